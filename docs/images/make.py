"""The pictures of the pages in these docs, taken from a real talk with the real models.

    python -m docs.images.make

Needs Chromium and what `make test` installs; fetches the default models for English into German.
"""

import tempfile
from pathlib import Path

import soundfile
from PIL import Image

from dragoman.audio.source import read_audio
from tests.serve.browser import Browser, Page
from tests.serve.pages.looking import link, start
from tests.serve.processes import command

HERE = Path(__file__).parent
TALK = HERE.parents[1] / "dragoman" / "talks" / "report.en.ogg"
SECONDS = 11.0  # of the talk, before the pictures are taken


def main() -> None:
    """Interpret a talk in the browser, and look at it as a speaker and as a listener."""
    with tempfile.TemporaryDirectory() as name, command("--from", "en", "--to", "de") as (_, url):
        folder = Path(name)
        soundfile.write(folder / "microphone.wav", read_audio(TALK), 16000)
        browser = Browser(folder, folder / "microphone.wav")
        page = browser.open(url.replace("ws", "http", 1) + "/", 1280, 640)
        page.wait("document.getElementById('to').options.length")
        start(page)
        listener = browser.open(link(page), 390, 640)
        page.run(f"new Promise((done) => setTimeout(done, {SECONDS * 1000}))")
        take(page, folder, "speaker")
        take(listener, folder, "listener")
        browser.close()


def take(page: Page, folder: Path, name: str) -> None:
    page.picture(folder / f"{name}.png")
    Image.open(folder / f"{name}.png").save(HERE / f"{name}.webp", quality=80)


if __name__ == "__main__":
    main()

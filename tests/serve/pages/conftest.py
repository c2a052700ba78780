"""The pages in a real Chromium, whose microphone is a file: what people see and can do."""

import pytest
import soundfile

from tests.audio.conftest import chirp
from tests.serve.browser import Browser, chromium


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("browser")
    soundfile.write(made / "microphone.wav", chirp(30.0), 16000)
    return made


@pytest.fixture(scope="session")
def browser(folder):
    if chromium() is None:
        pytest.skip("no Chromium here: install it (apt install chromium) to see the pages")
    made = Browser(folder, folder / "microphone.wav")
    yield made
    made.close()


@pytest.fixture(scope="session")
def deaf_browser(tmp_path_factory):
    """Without a microphone; and with a name that leads here but is not this machine's own."""
    rules = "--host-resolver-rules=MAP talks.test 127.0.0.1"
    made = Browser(tmp_path_factory.mktemp("deaf"), None, rules)
    yield made
    made.close()


@pytest.fixture
def visit(browser):
    """Opens pages; none of them may have had an error of its own."""
    pages = []

    def open_page(address, *size, of=browser):
        page = of.open(address, *size)
        if page.run("location.pathname") == "/":
            page.wait("document.getElementById('to').options.length")
        pages.append(page)
        return page

    yield open_page
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.close()
    # A line that a test cuts, and an answer that refuses, are told in the console, too.
    expected = ("WebSocket connection", "Failed to load")
    assert [error for error in errors if not error.startswith(expected)] == []

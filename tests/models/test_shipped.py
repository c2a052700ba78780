"""The speech translator that ships, on speech."""

from pathlib import Path

import pytest

from dragoman import talks
from dragoman.audio.source import open_audio
from dragoman.errors import DragomanError
from dragoman.setup import Setup, System
from dragoman.store import get

pytestmark = pytest.mark.weights
REPORT = Path(talks.__file__).parent / "report.en.ogg"


def told(target: str, recording: Path) -> str:
    setup = Setup("st-en", "en", target, threads=1).tuned(2000.0)
    updates = System(setup).interpreter().run(open_audio(recording, step_ms=setup.step_ms))
    return "".join(word for update in updates for word in update.said)


@pytest.fixture(scope="module", autouse=True)
def weights():
    try:
        for name in ("moonshine-base", "demo-de"):
            get(name)
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("de", ("Damen und Herren", "sauberes Wasser", "gute Schulen", "Vielen Dank")),
        ("es", ("Comisión", "agua limpia", "escuelas", "racias por")),  # "Gracias" or "Muchas …"
    ],
)
def test_it_tells_a_report(target, words):
    said = told(target, REPORT)
    assert all(word in said for word in words), said


def test_of_another_language_it_makes_up_little():
    """Seventeen seconds of German: what comes before it is known to be no English may be said."""
    assert len(told("de", get("demo-de") / "proverb.wav").split()) <= 6

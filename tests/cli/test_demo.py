"""The demo, for real: a German recording that begins and ends in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import DragomanError


@pytest.mark.weights
def test_the_demo_says_something_about_the_recording_and_nothing_about_the_silence():
    from dragoman.store import get

    try:
        get("whisper-base"), get("demo-de")
    except DragomanError as error:
        pytest.skip(f"the weights cannot be fetched: {error}")
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "demo", "--fast", "--threads", "1"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 5 <= len(done.stdout.split()) <= 25, done.stdout
    assert "behind the speaker" in done.stderr

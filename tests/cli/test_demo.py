"""The demo: on a scripted model what it shows, on the real one what it says."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import Chunk
from dragoman.audio.source import duration
from dragoman.cli.demo import DEMOS, TALKS, _Known
from dragoman.errors import DragomanError
from dragoman.interpreter import Update
from dragoman.setup import Setup
from dragoman.trace import Hearing
from tests import warm
from tests.cli.commands import dragoman
from tests.cli.terminal import terminal

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("pair", DEMOS)
def test_a_recording_and_its_text_belong_together(pair):
    talk = DEMOS[pair].talk
    ends = [end for end, _ in json.loads((TALKS / f"{talk}.json").read_text())]
    assert ends == sorted(ends)
    assert 0 < duration(TALKS / f"{talk}.ogg") - ends[-1] < 1


SCRIPTED = """
import sys
import dragoman.setup
from tests.talkers import sentences
dragoman.setup.load_model = lambda *args, **options: sentences()
from dragoman.cli import main
main(["demo", *sys.argv[1:]])
"""


def test_piped_both_languages_are_lines():
    done = subprocess.run(
        warm.command("-c", SCRIPTED, "--fast"),
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "de: Guten Tag und herzlich willkommen." in lines
    assert "en: This is the first sentence of a talk that goes on and on." in lines
    assert [line[:3] for line in lines].count("de:") == 5
    assert "behind the speaker" in done.stderr


def test_its_title_has_room_on_a_terminal_of_80_columns():
    assert len(DEMOS["en-de"].headline("whisper-base+mt-en")) <= 80


def test_of_a_demo_that_is_ended_early_the_speaker_says_what_was_heard():
    lines = []
    view = SimpleNamespace(take=lambda chunk, update: lines.extend(update.transcript))
    update = Update((), "", Hearing(3500.0, 3500.0, 3500.0, 3600.0))
    _Known("weather.de", [view]).take(Chunk(np.zeros(8000, np.float32), last=True), update)
    assert lines == [" Guten Tag und herzlich willkommen."]


def test_on_a_terminal_source_translation_and_lag_are_shown_as_it_runs(tmp_path):
    """The first four seconds of it: it takes as long as the speaker."""
    sound, rate = soundfile.read(TALKS / "weather.de.ogg")
    soundfile.write(tmp_path / "weather.de.ogg", sound[: 4 * rate], rate)
    shutil.copy(TALKS / "weather.de.json", tmp_path)
    short = f"from dragoman.cli import demo\ndemo.TALKS = demo.Path({str(tmp_path)!r})"
    with terminal(program=("-c", short + SCRIPTED)) as screen:
        screen.until("Guten Tag und herzlich willkommen.")
        screen.until("This is the first")
        assert screen.inside
        source = next(n for n, line in enumerate(screen.lines) if "Guten Tag" in line)
        translation = next(n for n, line in enumerate(screen.lines) if "This is" in line)
        assert source < translation
        assert "s behind" in screen.lines[-1]
        assert screen.rest() == 0
    assert "en: It ends." in screen.everything


@pytest.mark.weights
def test_whisper_base_gets_it_right():
    from dragoman.store import get

    try:
        get("whisper-base")
    except DragomanError as error:
        pytest.skip(f"the weights cannot be fetched: {error}")
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "demo", "--fast", "--threads", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    english = " ".join(line[4:] for line in done.stdout.splitlines() if line.startswith("en: "))
    for words in ("weather in the mountains", "still sunny", "rain", "at home", "your attention"):
        assert words in english


def test_a_machine_that_is_too_slow_is_told_of_options_that_there_are(monkeypatch):
    setup = Setup(model="tests.talkers:sentences", source="de", policy="greedy")
    monkeypatch.setitem(DEMOS, "de-en", replace(DEMOS["de-en"], setup=setup))
    monkeypatch.setattr("dragoman.lag.Lag.load", property(lambda lag: 1.5))
    done = dragoman("demo", "--fast")
    assert done.returncode == 0, done.stderr
    assert "too fast for this machine. 'dragoman check' finds a setting" in done.stderr
    assert "--" not in done.stderr

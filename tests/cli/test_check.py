"""`dragoman check`: what is there, what is missing, how fast, what next."""

import json
import sys
from importlib.machinery import ModuleSpec

import pytest
from click.testing import CliRunner

from dragoman.cli import check
from dragoman.cli.app import dragoman
from dragoman.errors import DragomanError
from tests import talkers
from tests.audio.fake_sounddevice import FakeSounddevice


@pytest.fixture
def run(monkeypatch, tmp_path):
    """A machine with a microphone and an empty store."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_WEIGHTS", raising=False)
    fake = FakeSounddevice([("Desk", 1, 0, (16000,))])
    fake.__spec__ = ModuleSpec("sounddevice", None)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)

    def run(*args):
        done = CliRunner().invoke(dragoman, ["check", *args])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_everything_is_told_in_json(run):
    report = json.loads(run("--model", "tests.talkers:sentences", "--json"))
    assert {found["name"] for found in report["extras"]} == {
        "train",
        "mic",
        "espeak",
        "serve",
        "gpu",
    }
    assert report["programs"][0]["name"] == "ffmpeg"
    assert report["devices"][0] == {
        "name": "CPU", "there": True, "about": report["devices"][0]["about"], "to_do": ""
    }  # fmt: skip
    assert not any(found["there"] for found in report["models"] if found["name"] == "whisper-base")
    assert {"hibari", "espeak"} <= {found["name"] for found in report["voices"]}
    names = [(found["name"], found["there"], found["about"]) for found in report["sound"]]
    assert names[0] == ("microphone", True, "Desk (default)")
    assert names[1][:2] == ("loudspeaker", False)
    assert report["speed"]["options"] == "--step 0.5s --beams 5"
    assert report["speed"]["keeps_up"]
    assert 0 <= report["speed"]["work_per_second"] < 0.7
    assert any(line.startswith("dragoman live") for line in report["next"])


def test_without_a_model_nothing_is_measured_and_the_demo_is_next(run):
    text = run()
    assert "not measured" in text
    assert "dragoman demo" in text
    assert "fetches whisper-base first" in text


def test_what_was_not_to_be_measured_is_not_said_to_be_missing(run, monkeypatch):
    monkeypatch.setattr(check, "_best_here", lambda: "whisper-base")
    text = run("--no-trial")
    assert "not measured\n" in text
    assert "no model is here" not in text


def test_a_machine_that_is_too_slow_is_told_so(run, monkeypatch):
    speed = check.Speed("m", 2000.0, 1, 1.5, False, "--step 2s --beams 1")
    monkeypatch.setattr(check, "_speed", lambda model: speed)
    text = run("--model", "m")
    assert "1.50 s of work for a second of speech with --step 2s --beams 1: too slow" in text
    assert "dragoman translate talk.mp3 --model m --step 2s --beams 1" in text
    assert "a smaller model would keep up" in text


def test_a_model_that_hears_english_alone_is_tried_in_english(run, monkeypatch):
    """As the one that commands take from English into German."""
    model = talkers.sentences()
    hear = model.open

    def open_english(source, target, **how):
        if (source, target) not in ((None, "de"), ("en", "de")):
            raise DragomanError(f"It hears English, not '{source}'.")
        return hear(source, target, **how)

    model.open = open_english
    monkeypatch.setattr(talkers, "english", lambda: model, raising=False)
    text = run("--model", "tests.talkers:english")
    assert "keeps up with a live speaker" in text
    assert "dragoman translate talk.mp3 --model tests.talkers:english --from en --to de" in text


@pytest.mark.parametrize("model", ["whisper-base", "hub:a/b", "tests.talkers:sentences+opus-en-de"])
def test_nothing_is_fetched(run, model):
    done = CliRunner().invoke(dragoman, ["check", "--model", model])
    assert isinstance(done.exception, DragomanError)
    assert "a check fetches nothing; first run: dragoman models get" in str(done.exception)


def test_what_is_missing_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    monkeypatch.setattr(check.shutil, "which", lambda name: None)
    report = json.loads(run("--no-trial", "--json"))
    assert report["speed"] is None
    assert all(not found["there"] and "pip install" in found["to_do"] for found in report["extras"])
    assert report["programs"][0]["to_do"] == "install ffmpeg"


@pytest.mark.parametrize(
    ("columns", "begins"), [(40, "  yes  mic: live"), (80, "  yes  mic      ")]
)
def test_a_narrow_terminal_has_no_columns(columns, begins, monkeypatch, capsys):
    monkeypatch.setattr(check, "columns_of", lambda stream: columns)
    check._print_section("Extras", [check.Found("mic", True, "live")])
    assert capsys.readouterr().out.startswith(f"\nExtras\n{begins}")

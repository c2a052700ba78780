"""Our interpreter as an agent of the real SimulEval, run as its users run it."""

import json

import numpy as np
import pytest
import soundfile

from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Rules
from tests.evaluate.simuleval_runs import run_cli

pytest.importorskip("simuleval", reason="SimulEval is not installed (pip install 'dragoman[dev]')")


def simuleval(folder, setup, *arguments, samples=41600, clips=("a.wav", "b.wav")):
    """Run SimulEval on clips of silence; returns the rows of its log and its scores."""
    for name in clips:
        soundfile.write(folder / name, np.zeros(samples, np.float32), 16000)
    (folder / "source.txt").write_text("".join(f"{folder / name}\n" for name in clips))
    (folder / "target.txt").write_text("word0 word1 word2\n" * len(clips))
    (folder / "setup.yaml").write_text(setup)
    words = (
        *("--agent-class", "dragoman.evaluate.simuleval_agent.DragomanAgent"),
        *("--setup", folder / "setup.yaml", *arguments),
        *("--source", folder / "source.txt", "--target", folder / "target.txt"),
        *("--source-segment-size", "500", "--output", folder / "out"),
        *("--quality-metrics", "BLEU", "--latency-metrics", "AL", "LAAL", "DAL"),
    )
    run_cli(folder, *words)
    names, values = (folder / "out/scores.tsv").read_text().splitlines()
    scores = dict(zip(names.split("\t"), map(float, values.split("\t")), strict=True))
    return [json.loads(line) for line in (folder / "out/instances.log").open()], scores


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        ("greedy", [500, 1000, 1500, 2000, 2000, 2500, 2600]),
        ("offline", [2600] * 7),
        ("wait-k:k=3", [1500, 2000, 2000, 2500, 2600, 2600, 2600]),
    ],
)
def test_simuleval_runs_our_policies_and_logs_our_delays(tmp_path, policy, delays):
    setup = "model: tests.scripted:sentence\ndetector: ctc\n"
    rows, _ = simuleval(tmp_path, setup, "--dragoman-policy", policy)
    assert [row["prediction"].split() for row in rows] == [[f"word{i}" for i in range(7)]] * 2
    assert [row["delays"] for row in rows] == [delays] * 2


LATE = "model: tests.evaluate.late_stops:model\npolicy: greedy\nstep_ms: 500\n"


@pytest.fixture
def evaluated(tmp_path):
    """What `dragoman evaluate` makes of the same clip with the same setup."""
    from dragoman.corpora import Clip
    from dragoman.evaluate.run import run_corpus
    from dragoman.setup import Setup

    soundfile.write(tmp_path / "a.wav", np.zeros(16000 * 7, np.float32), 16000)
    (tmp_path / "late.yaml").write_text(LATE)
    clip = Clip(0, tmp_path / "a.wav", {"en": "word0 word1 word2"})
    run = run_corpus([clip], Setup.read(tmp_path / "late.yaml"), tmp_path / "run")
    return run.traces[0].instance()


def test_one_system_has_one_latency(tmp_path, evaluated):
    """Late marks were words of their own: more of them, and later."""
    assert evaluated.prediction == "It rains. We stay at home, dry and warm."
    (row,), scores = simuleval(tmp_path, LATE, samples=16000 * 7, clips=["a.wav"])
    assert row["prediction"] == "It rains We stay at home dry and warm"
    assert row["delays"] == list(evaluated.delays)
    ours = score_corpus([evaluated], Rules(compat="simuleval")).scores
    for name in ("AL", "LAAL", "DAL"):
        assert scores[name] == pytest.approx(ours[name].value, abs=0.001)


def test_held_words_keep_their_marks_and_come_later(tmp_path, evaluated):
    hold = ("--dragoman-late-marks", "hold")
    (row,), _ = simuleval(tmp_path, LATE, *hold, samples=16000 * 7, clips=["a.wav"])
    assert row["prediction"] == evaluated.prediction
    pairs = list(zip(row["delays"], evaluated.delays, strict=True))
    assert all(theirs >= own for theirs, own in pairs)
    assert any(theirs > own for theirs, own in pairs)


def test_words_for_simuleval():
    from dragoman.evaluate.simuleval_agent import _Writer

    def written(pieces, unit="word", marks="leave"):
        writer = _Writer(unit, marks)
        last = len(pieces) - 1
        return [writer.write(piece, number == last) for number, piece in enumerate(pieces)]

    said = [" Yes", "", ". No", '?" he asks', " again", "!"]
    assert written(said) == ["Yes", "", "No", "he asks", "again", ""]
    assert written(said, marks="hold") == ["", "", "Yes.", 'No?" he', "asks", "again!"]
    # Marks that open a text, or stand between spaces, belong to no word before them.
    assert written(["“Yes", " – no"]) == ["“Yes", "– no"]
    assert written([" ¿", "Que?"]) == ["¿", "Que?"]
    # A word that grows by letters can only be a word of its own.
    assert written([" half", "-time, they", " say"]) == ["half", "-time, they", "say"]
    assert written(["今天", "。我们", "。"], unit="char") == ["今天", "。我们", "。"]

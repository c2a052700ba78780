"""Traces that benchmarks of speech keep."""

import numpy as np
import pytest
import soundfile

from dragoman.corpora import Clip
from dragoman.setup import Setup, System

speech = pytest.importorskip("benchmarks.speech")


def test_what_was_kept_of_another_corpus_is_not_taken_for_this_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_BENCH_RUNS", str(tmp_path / "runs"))
    system = System(Setup(model="tests.scripted:steady", source="en", target="de", step_ms=500))
    heard = []
    for name, seconds, reference in (("a", 2, "eins"), ("b", 4, "eins"), ("b", 4, "zwei")):
        path = tmp_path / f"{name}.wav"
        soundfile.write(path, np.zeros(16000 * seconds, np.float32), 16000)
        for _ in range(2):  # the second time from what was kept
            (trace,) = speech.interpret_all(system, [Clip(0, path, {"de": reference})], "corpus")
            heard.append((trace.source, trace.source_length, trace.reference))
    wanted = [("a.wav", 2000, "eins"), ("b.wav", 4000, "eins"), ("b.wav", 4000, "zwei")]
    assert heard == [one for one in wanted for _ in range(2)]


def test_clips_at_the_same_time_say_what_each_says_alone(tmp_path, monkeypatch):
    """However long each is, and whatever was kept of some of them."""
    monkeypatch.setenv("DRAGOMAN_BENCH_RUNS", str(tmp_path / "runs"))
    system = System(Setup(model="tests.scripted:steady", source="en", target="de", step_ms=500))
    clips = []
    for index, seconds in enumerate((5, 2, 3)):
        path = tmp_path / f"{index}.wav"
        soundfile.write(path, np.zeros(16000 * seconds, np.float32), 16000)
        clips.append(Clip(index, path, {"de": "eins"}))
    alone = speech.interpret_all(system, clips, "alone")
    assert len({trace.instance().delays for trace in alone}) == 3
    speech.interpret_all(system, clips[1:2], "together")
    monkeypatch.setenv("DRAGOMAN_BENCH_TOGETHER", "2")
    together = speech.interpret_all(system, clips, "together")
    for one, other in zip(alone, together, strict=True):
        assert (one.index, one.source) == (other.index, other.source)
        assert one.instance().delays == other.instance().delays
        assert one.instance().prediction == other.instance().prediction

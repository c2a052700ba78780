"""Nothing that was heard is lost: every policy on every family, however long the talk."""

import numpy as np
import pytest

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Ear
from dragoman.interpreter import Interpreter
from dragoman.models.whisper.model import WhisperModel
from dragoman.policies import POLICIES, make_policy
from dragoman.trace import Trace

from .toy_net import KINDS, speech, spelled, talk, toy_model
from .toy_whisper import ToyEngine, ToyVad, tones, vocabulary

SPECS = [
    *POLICIES,
    *("ksn:k=200,s=200,n=1", "wait-k:k=3,force_finish=false", "confidence:measure=tokens"),
    *("wait-k:k=1,strict=true", "alignatt:last=2000", "agreeatt:old=600,alone=1350"),
]
LONG = ["offline", "greedy", "local-agreement", "ksn:k=200,s=200,n=1", "agreeatt"]
SECONDS = (5, 31, 60, 240)


def chunks(sound: np.ndarray, seconds: float) -> list[Chunk]:
    size = int(seconds * RATE)
    parts = [sound[at : at + size] for at in range(0, len(sound), size)]
    return [Chunk(part, last=index == len(parts) - 1) for index, part in enumerate(parts)]


def interpret(model, spec: str, sound: np.ndarray, seconds: float, **more) -> Trace:
    trace = Trace()
    interpreter = Interpreter(
        model, make_policy(spec), source="en", target="de", record=trace, **more
    )
    for chunk in chunks(sound, seconds):
        interpreter.hear(chunk)
        window = interpreter.stream.window
        assert interpreter.stream.heard_ms - interpreter.stream.start_ms <= window.bounds.full
        assert len(window.said) == len(window.looks) <= 60
    return trace


def fits(model, spec: str) -> bool:
    return make_policy(spec).needs <= model.features


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("kind", KINDS)
def test_exported_nets_say_all_that_was_heard(kind, seconds, monkeypatch):
    words = talk(seconds)
    sound, told = speech(words), 0
    for spec in SPECS if seconds <= 60 else LONG:
        model = toy_model(kind, monkeypatch)
        if fits(model, spec):
            trace = interpret(model, spec, sound, 2.0 if seconds > 60 else 0.7)
            assert trace.prediction == spelled(words).strip(), spec
            told += 1
    assert told >= 4


@pytest.mark.parametrize("spec", ["offline", "ksn:k=200,s=200,n=1"])
@pytest.mark.parametrize("step", [0.3, 7.0, 70.0])
@pytest.mark.parametrize("kind", KINDS)
def test_in_steps_of_any_size(kind, step, spec, monkeypatch):
    words = talk(70, seed=3)
    trace = interpret(toy_model(kind, monkeypatch), spec, speech(words), step)
    assert trace.prediction == spelled(words).strip()


@pytest.mark.parametrize("spec", SPECS)
def test_whisper_says_all_that_was_heard(spec):
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    if not fits(whisper, spec):
        return
    words = talk(100)
    trace = Trace()
    interpreter = Interpreter(
        whisper,
        make_policy(spec),
        source="de",
        ear=Ear(ToyVad().stream()),
        record=trace,
    )
    for chunk in chunks(tones(words), 1.0):
        interpreter.hear(chunk)
    said = [int(word.strip(".").removeprefix("w")) for word in trace.prediction.split()]
    assert said == words

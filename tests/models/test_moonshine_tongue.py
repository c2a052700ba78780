"""Whether it is English that Moonshine hears."""

import dataclasses
from copy import copy
from itertools import count

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.models.base import Sound
from dragoman.models.load import load_model
from dragoman.models.moonshine.encoder import BEHIND, OPEN, STATE, Encoded
from dragoman.models.moonshine.engine import load_engine
from dragoman.models.moonshine.tongue import Tongue, foreign, no_judgement, tongues
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.options import Options
from dragoman.models.search import Found

from . import made_onnx as made
from .test_moonshine_encoder import in_steps, loaded, sound
from .test_moonshine_model import made_folder, toy


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_a_state_s_number_is_a_weighted_sum():
    judge = Tongue(numbers(2, -1), 0.5)
    assert judge(np.array([[1, 1], [3, 8]], np.float32)).tolist() == [1.5, -1.5]


def test_the_mean_of_the_newest_states_tells():
    assert not foreign(numbers(*[-9] * 124))  # too few
    assert foreign(numbers(*[-9] * 125))
    assert foreign(numbers(*[1] * 100, *[-5] * 101))
    assert not foreign(numbers(*[1] * 100, *[-5] * 100))  # -2 is English still
    assert not foreign(numbers(*[-9] * 500, *[1] * 250))  # what was before them is forgotten
    assert foreign(numbers(*[-751] * 500, *[1] * 249))
    assert not foreign(no_judgement())


def test_tiny_and_base_have_learned_it():
    assert {width: len(one.weight) for width, one in tongues().items()} == {288: 288, 416: 416}


def test_a_final_state_keeps_its_judgement(tmp_path):
    plain, made_of, _ = loaded(tmp_path, exact=True)
    encoder, calls = copy(made_of), count(1)
    encoder._judge = lambda states: np.full(len(states), next(calls), np.float32)
    window = in_steps(encoder, sound(3.0), RATE, Encoded())
    final = (2 * RATE - BEHIND) // STATE - OPEN  # after the second of three steps
    assert window.judged.tolist() == [2] * final + [3] * (len(window) - final)
    encoder._judge = lambda states: states[:, 1]
    whole = encoder.encode([Encoded()], [sound(2.0)])[0]
    states, _ = plain.states(plain.frames(sound(2.0)[: len(whole) * STATE + BEHIND]))
    np.testing.assert_allclose(whole.judged, states[:, 1], atol=1e-3)


def test_published_weights_judge_and_others_do_not(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    folder = made_folder(tmp_path)
    units = MoonshineUnits.load(folder / "tokenizer.json")
    noise = np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)

    def judged() -> np.ndarray:
        engine = load_engine(folder, units, Options(threads=1, device="cpu"))
        return engine.encode([Encoded()], [noise])[0].judged

    assert judged().tolist() == []  # nothing was learned for states so narrow
    learned = {made.MOONSHINE_WIDTH: Tongue(np.zeros(made.MOONSHINE_WIDTH, np.float32), -2.5)}
    monkeypatch.setattr("dragoman.models.moonshine.engine.tongues", lambda: learned)
    assert set(judged().tolist()) == {-2.5}


def heard(stream, *judged: float) -> None:
    """As if the window's states had been judged so."""
    stream.states = dataclasses.replace(stream.states, judged=numbers(*judged), count=len(judged))


def found(log_prob: float) -> Found:
    return Found((5,) * 20, (log_prob,) * 20, (), True)


def test_what_sounds_foreign_must_be_surer():
    model, _ = toy()
    stream = model.open(None, "en")
    sure, fairly, hardly = found(-0.1), found(-0.59), found(-0.61)
    heard(stream, *[-1.9] * 125)
    for one in (sure, fairly, hardly):
        assert model._if_understood(stream, one, final=False) is one
        assert stream.language == "en"
    heard(stream, *[-2.1] * 125)
    for final in (False, True):
        assert model._if_understood(stream, hardly, final=final) == Found()
        assert stream.language is None
        assert stream.doubted  # so that old sound is let go
    assert model._if_understood(stream, Found(), final=False) == Found()
    assert stream.language is None  # of silence nothing is learned
    assert model._if_understood(stream, fairly, final=False) is fairly
    assert stream.language == "en"
    heard(stream, *[-2.1] * 124)
    assert model._if_understood(stream, hardly, final=False) is hardly
    assert model._if_understood(stream, found(-1.1), final=False) == Found()
    assert stream.language == "en"  # it may be a bad microphone


def test_what_left_the_window_tells_too():
    model, _ = toy()
    stream = model.open(None, "en")
    stream.samples = np.zeros(200 * STATE, np.float32)
    heard(stream, *[-3] * 100, *[3] * 100)
    stream.forget(100 * STATE * 1000 / RATE)
    assert stream.judged.tolist() == [-3] * 100
    assert not stream.foreign  # too little again
    heard(stream, *[-3] * 25)
    assert stream.foreign
    heard(stream, *[2] * 60)
    assert not stream.foreign
    stream.samples = np.zeros(400 * STATE, np.float32)
    heard(stream, *[4] * 400)
    stream.forget(stream.heard_ms)
    assert stream.judged.tolist() == [4] * 250  # bounded


@pytest.mark.weights
@pytest.mark.parametrize("name", ["moonshine-tiny", "moonshine-base"])
def test_german_does_not_sound_like_english(name):
    """Sentences that it has not learned from."""
    import soxr

    from dragoman.voices.espeak import EspeakVoice

    try:
        model = load_model(name, threads=2)
        voices = {code: EspeakVoice(code) for code in ("de", "en")}
        voices["de"].load()
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    texts = {
        "de": "Der Zug nach Hamburg hat heute leider wieder fast eine Stunde Verspätung. "
        "Deshalb haben wir beschlossen, mit dem Wagen durch die Berge zu fahren.",
        "en": "The train to the north is almost an hour late again today. "
        "That is why we decided to take the car and drive through the mountains.",
    }
    for code, voice in voices.items():
        speech = soxr.resample(voice.speak(texts[code]), voice.rate, RATE).astype(np.float32)
        stream = model.open("en", "en")
        for at in range(0, len(speech), RATE):
            model.hear([stream], [Sound(speech[at : at + RATE])])
        assert stream.foreign == (code == "de")

"""What is no sound, no setup or no kind of event is answered with a sentence."""

import asyncio
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import dragoman
from dragoman.audio.arrays import frames_of
from tests.api.talks import SETTINGS, silence, text
from tests.serve.numbers import sound_of


def test_an_error_leaves_the_rest_unsaid(translator):
    talk = translator.talk().on(dragoman.End, lambda event: pytest.fail("it was finished"))
    with pytest.raises(KeyError), talk:
        raise KeyError


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"modle": "whisper-base"}, "There is no setting 'modle'. Did you mean 'model'?"),
        ({"policy": "greedy", "max_latency": 1.0}, "give it or policy, not both"),
        ({"max_latency": 0.1}, "No policy is tuned for less"),
        ({"step_ms": 1.0}, "A step is 40 to 60000 ms long, not 1"),
        ({"threads": -3}, "A model has 0 (all) to 256 threads, not -3"),
        ({"beams": 0}, "A search follows 1 to 64 beams, not 0"),
        ({"beams": "5"}, "The setting beams='5' is not possible: Expected `int`, got `str`"),
        ({"policy": print}, "The setting policy=<built-in function print> is not possible"),
        ({"device": "gpu"}, "The setting device='gpu' is not possible"),
        ({"max_latency": "2s"}, "A latency is a number of seconds above 0, not '2s'"),
        ({"max_latency": 0}, "A latency is a number of seconds above 0, not 0"),
        ({"max_latency": 2000}, "A latency is in seconds: for 2000 ms write 2."),
        ({"source": "Klingonese"}, "'Klingonese' is not a language"),
    ],
)
def test_mistakes_are_sentences(settings, sentence):
    with pytest.raises(dragoman.DragomanError, match=re.escape(sentence)):
        dragoman.Translator(**{"model": "tests.scripted:steady"} | settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"modle": "whisper-base"}, "There is no setting 'modle'. Did you mean 'model'?"),
        ({"source": "de", "latency": 2}, "There is no setting 'latency'. Keys are: model, source,"),
        ({"beams": "5"}, "The setting beams='5' is not possible: Expected `int`, got `str`"),
        ({"step_ms": "1s"}, "The setting step_ms='1s' is not possible"),
        ({"policy": None}, "The setting policy=None is not possible"),
    ],
)
def test_a_setup_tells_mistakes_as_a_translator_does(settings, sentence):
    with pytest.raises(dragoman.DragomanError, match=re.escape(sentence)):
        dragoman.Setup(**settings)


def test_a_setup_shows_what_it_takes():
    assert list(inspect.signature(dragoman.Setup).parameters)[:3] == ["model", "source", "target"]
    assert dragoman.Setup("whisper-base", "de").source == "de"


@pytest.mark.parametrize("wrong", ["best.yaml", {"source": "de"}])
def test_a_setup_is_one(wrong):
    with pytest.raises(dragoman.DragomanError, match=r"not (str|dict); Setup\.read\(PATH\) reads"):
        dragoman.Translator(wrong)


def test_what_sound_may_be():
    ramp = np.array([-32768, 0, 16384], np.int16)
    assert frames_of(ramp).tolist() == [[-1.0], [0.0], [0.5]]
    assert frames_of(np.array([0, 128, 255], np.uint8)).tolist() == [[-1.0], [0.0], [127 / 128]]
    assert frames_of(np.stack([ramp, ramp], axis=1)).tolist() == [[-1, -1], [0, 0], [0.5, 0.5]]
    assert frames_of(np.array([0.25], np.float64)).dtype == np.float32
    for sound, sentence in (
        (np.zeros((2, 2, 2)), "the shape"),
        (np.zeros((3, 0)), "the shape"),
        (b"\0\0", "numpy.frombuffer"),
        (bytearray(2), "numpy.frombuffer"),
        (np.array([0.0, np.nan]), "no numbers"),
        (np.array(["a"]), "floats, integers with a sign or uint8, not <U1"),
        (np.zeros(3, np.uint16), "not uint16"),
        (np.ones(3, np.int64), r"int64.* sound\.astype\('int16'\)"),
        (np.zeros((2, 16000)), r"would have 16000 channels; .* sound\.T"),
        (np.array([0.0, -3000.0]), "lies between -1 and 1; this reaches 3000"),
    ):
        with pytest.raises(dragoman.DragomanError, match=sentence):
            frames_of(sound)
    with pytest.raises(dragoman.DragomanError, match="samples a second"):
        next(dragoman.translate(silence(), rate=3, **SETTINGS))


@pytest.mark.parametrize("size", [320, 200_000])
def test_channels_that_cancel_each_other_are_heard_as_those_of_a_file_are(size):
    """From piece to piece, and from one number of channels to another."""
    sound = sound_of(0, 10)
    three = np.stack([0 * sound, 0 * sound, sound], axis=1)
    two = np.stack([sound_of(10, 10), -0.9 * sound_of(10, 10)], axis=1)
    three[:, 0] = -0.9 * three[:, 2]
    whole = [one[at : at + size] for one in (three, two) for at in range(0, len(one), size)]
    settings = {"model": "tests.serve.numbers:numbers", "policy": "greedy", "source": "de"}
    with dragoman.Translator(**settings) as translator:
        assert text(translator.translate(whole)) == [str(number) for number in range(20)]


def test_what_is_no_sound_is_a_sentence(translator):
    async def pieces():
        yield silence()

    async def listen(sound):
        return [event async for event in translator.translate_async(sound)]

    for wrong in (None, 5, pieces()):
        with pytest.raises(dragoman.DragomanError, match=r"Sound is the name of a file.* not "):
            translator.translate(wrong)
    with pytest.raises(dragoman.DragomanError, match="takes what comes asynchronously, not list"):
        asyncio.run(listen([silence()]))
    with pytest.raises(dragoman.DragomanError, match="has '16000' samples a second"):
        translator.translate(silence(), "16000")


def test_languages_are_named_as_on_the_command_line():
    with dragoman.Translator(**SETTINGS | {"source": "German", "target": "EN"}) as translator:
        assert (translator.setup.source, translator.setup.target) == ("de", "en")


def test_calls_are_for_events(translator):
    with pytest.raises(dragoman.DragomanError, match="5 cannot be called"):
        translator.talk().on(dragoman.Said, 5)
    with pytest.raises(dragoman.DragomanError, match="is no kind of event"):
        translator.talk().on(str, print)


def test_a_policy_that_is_refused_changes_nothing(translator):
    talk = translator.talk()
    for wrong in ("gredy", print):
        with pytest.raises(dragoman.DragomanError):
            talk.policy = wrong
    assert talk.policy == "greedy"
    with pytest.raises(dragoman.DragomanError, match="a number of seconds"):
        talk.set_max_latency("1.3")


def test_a_notebook_offers_every_name():
    assert set(dragoman.__all__) <= set(dir(dragoman))


def test_importing_it_is_light():
    code = "import dragoman, sys; print('numpy' in sys.modules, dragoman.Said.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "Said"]

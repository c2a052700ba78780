"""A net of the workshop in Moonshine's shape, as its folder is read: by hand, without a network."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Feature, Sound
from dragoman.models.exported.config import Languages
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.models.exported.pieces import Pieces
from dragoman.models.moonshine import tongue
from dragoman.models.moonshine import trained as module
from dragoman.models.moonshine.encoder import STATE, Encoded, Pace
from dragoman.models.moonshine.model import BOUNDS
from dragoman.models.moonshine.stream import MoonshineStream
from dragoman.models.moonshine.trained import (
    Settings,
    TrainedMoonshine,
    count_words,
    counting,
    engine_of,
    whole,
)
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.options import Options
from dragoman.models.whisper.weights import Weights
from dragoman.models.window import Window

from .toy_moonshine import FOREIGN, NAMES, ToyEngine, spoken

SETTINGS = Settings(40, 12, Languages("en", "de,es"), {"de": 30, "es": 31})


def test_settings_are_kept_beside_the_weights(tmp_path: Path):
    SETTINGS.write(tmp_path)
    assert Settings.read(tmp_path) == SETTINGS
    said = json.loads((tmp_path / "dragoman.json").read_text())
    assert (said["kind"], said["encoder"], said["precision"]) == ("moonshine-net", "", "int8")
    assert (said["suffix"], said["source_suffix"]) == (False, False)
    with pytest.raises(DragomanError, match="does not hold a net in Moonshine's shape"):
        Settings.read(tmp_path / "elsewhere")


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(("codes", "keys"), [("de,es", ("de", "es")), ("", ("",))])
def test_a_folder_holds_settings_weights_and_units(tmp_path, monkeypatch, counts, codes, keys):
    settings = replace(SETTINGS, languages=Languages("en", codes))
    settings.write(tmp_path)
    weights = {"ctc/weight": 0} if counts else {}
    told = {}

    def engine(*given, **more):
        told["engine"] = given, more
        return "engine"

    monkeypatch.setattr(module, "Weights", lambda path: told.update(weights=path) or weights)
    monkeypatch.setattr(module, "engine_of", engine)
    monkeypatch.setattr(module, "counting", lambda *given: given)
    monkeypatch.setattr(Pieces, "of_target", lambda *given: given)
    made = TrainedMoonshine.load(tmp_path, "net", Options(threads=3, beams=2))
    assert told["weights"] == tmp_path / "model.bin"
    assert told["engine"] == ((tmp_path, settings, weights), {"threads": 3})
    assert made._engine == "engine"
    assert made._by_language == {code: (tmp_path, settings, code) for code in keys}
    assert made._words_in == ((tmp_path, settings) if counts else None)
    assert (made.name, made._beams, made._settings) == ("net", 2, settings)


def noting(told, answer):
    """A function that notes what it is told."""

    def note(*given, **more):
        told.update(given=given, more=more)
        return answer

    return note


@pytest.fixture
def parts(monkeypatch):
    """What an engine is made of, noted."""
    told = {}
    monkeypatch.setattr(module, "MoonshineEngine", noting(told, "engine"))
    monkeypatch.setattr(module, "Graphs", lambda *given: ("graphs", *given))
    monkeypatch.setattr(module, "MoonshineRules", lambda *given, **more: (given, more))
    monkeypatch.setattr(module, "whole", lambda weights: {"own": 1, "encoder": 0})
    return told


@pytest.mark.parametrize(("precision", "exact"), [("float32", True), ("int8", False)])
def test_an_engine_never_says_what_is_no_word(parts, precision, exact):
    weights = Weights(Path("model.bin"), {})
    settings = replace(SETTINGS, precision=precision, chunk=28, ahead=12)
    assert engine_of(Path("net"), settings, weights, threads=3) == "engine"
    whole_weights, rules, graphs = parts["given"]
    assert (whole_weights.path, whole_weights._arrays) == (weights.path, {"own": 1, "encoder": 0})
    assert rules == (
        (40,),
        {"end": EOS, "no_speech": EOS, "never": [PAD, BOS, 30, 31], "not_first": []},
    )
    assert graphs == ("graphs", Path("net"), 3)
    assert parts["more"] == {"of_encoder": None, "pace": Pace(ahead=12, chunk=28), "exact": exact}


def test_an_encoder_may_be_the_stores(parts, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("dragoman.store.get", lambda name: asked.append(name) or tmp_path)
    monkeypatch.setattr(module, "encoder_arrays", lambda path: {"encoder": path.name})
    settings, weights = replace(SETTINGS, encoder="moonshine-x"), Weights(Path("model.bin"), {})
    with pytest.raises(DragomanError, match="needs the encoder of 'moonshine-x', which"):
        engine_of(Path("net"), settings, weights, threads=3)
    (tmp_path / "encoder_model.ort").write_bytes(b"")
    engine_of(Path("net"), settings, weights, threads=3)
    assert asked == ["moonshine-x"] * 2
    assert parts["given"][0]._arrays == {"own": 1, "encoder": "encoder_model.ort"}
    assert parts["given"][2] == ("graphs", Path("net"), 3)
    assert parts["more"]["of_encoder"] == ("graphs", tmp_path, 3)


@pytest.mark.parametrize("scaled", [True, False])
def test_what_a_decoder_reads_follows_from_its_weights(scaled):
    """Tokens are embedded by the matrix that chooses them, with room for the turns of positions."""
    table = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    arrays = {"decoder/projection/weight": table, "decoder/angles": np.float32([0.5, 0.1])}
    if scaled:
        arrays["decoder/projection/weight_scale"] = np.float32([10.0, 20.0])
    made = whole(Weights(Path("model.bin"), arrays))
    assert made["decoder/embeddings/weight"].tolist() == [
        [1, 2, 3, 0, 0, 0, 0],
        [4, 5, 6, 0, 0, 0, 0],
    ]
    assert ("decoder/embeddings/weight_scale" in made) is scaled
    if scaled:
        assert made["decoder/embeddings/weight_scale"].tolist() == [10.0, 20.0]
    third = made["decoder/position_encodings/encodings"][2]
    wanted = [0, 0, 0, np.cos(1.0), np.cos(0.2), np.sin(1.0), np.sin(0.2)]
    np.testing.assert_allclose(third, wanted, rtol=1e-6)
    assert made["decoder/projection/weight"] is table


def test_words_are_counted_by_the_units_of_the_source(monkeypatch):
    told = {}
    monkeypatch.setattr(Pieces, "load", noting(told, "units"))
    count = counting(Path("net"), replace(SETTINGS, source_suffix=True))
    assert told == {"given": (Path("net/source.model"), 12), "more": {"suffix": True}}
    assert (count.func, count.args) == (count_words, ("units", 12))
    assert isinstance(count, partial)
    units = Pieces(("", "", "", "", "▁a", "b", "▁c"), "prefix")
    # a a b, a pause, a c c: repeats are one unit, a blank (9) parts them.
    assert count_words(units, 9, np.array([4, 4, 5, 9, 4, 6, 6])) == 3
    assert count_words(units, 9, np.array([9, 9])) == 0


@pytest.mark.parametrize(
    ("labels", "looks", "untold"),
    [
        ([1, 0, 1, 0, 1, 1], [], 3),  # the first state is the beginning's own
        ([1, 0, 1, 0, 1, 1], [2 * 24.0], 2),
        ([1, 0, 1, 0, 1, 1], [3 * 24.0 + 1, 24.0], 2),  # what looked furthest counts
        ([1, 0, 1, 0, 1, 1], [5 * 24.0], 0),
    ],
)
def test_words_behind_all_looks_are_untold(labels, looks, untold):
    stream = hearing(labels)
    stream.window.looks = looks
    assert stream.untold == untold


@pytest.mark.parametrize(("words", "least"), [(3, 0), (4, 3), (5, 3)])
@pytest.mark.parametrize("final", [True, False])
def test_a_text_goes_on_while_words_are_untold(words, least, final):
    model = TrainedMoonshine("net", "engine", SETTINGS, {"de": None}, count_ones)
    stream = hearing([0] + [1] * words)
    assert model._prompt(stream, Ask(final=final)).least == least
    assert model._prompt(stream, Ask(final=final, max_tokens=2)).least == min(least, 2)
    mute = TrainedMoonshine("net", "engine", SETTINGS, {"de": None})
    assert mute._prompt(stream, Ask(final=final)).least == 0


def hearing(labels):
    """A stream in whose window a CTC head heard so."""
    stream = MoonshineStream("de", Window(BOUNDS, None), "en")
    stream.words_in = count_ones
    stream.samples = np.zeros(len(labels) * STATE, np.float32)
    stream.states = replace(Encoded(), count=len(labels), labels=np.array(labels))
    return stream


def count_ones(labels):
    return int((labels == 1).sum())


def net(languages: Languages, units: dict, **more) -> tuple[TrainedMoonshine, ToyEngine]:
    engine = ToyEngine()
    settings = Settings(len(NAMES), 9, languages, tags={"de": 30, "es": 31})
    return TrainedMoonshine("net", engine, settings, units, **more), engine


def test_a_net_is_told_the_language_and_speaks_more_densely():
    german, spanish = MoonshineUnits(NAMES), MoonshineUnits(NAMES)
    model, engine = net(Languages("en", "de,es"), {"de": german, "es": spanish})
    assert (model.hears, model.speaks) == (("en",), ("de", "es"))
    assert model.features == {Feature.ATTENTION}
    assert model._beams == 5
    for target, tag, units in (("de", 30, german), ("es", 31, spanish)):
        stream = model.open(None, target)
        assert (stream.target, stream.language, stream.window.units) == (target, "en", units)
        assert stream.window.bounds == replace(BOUNDS, full=20_000)
        model.hear([stream], [Sound(spoken([4, 7, 9]))])
        model.draft([stream], [Ask()])
        assert (engine.prompts[-1].start, engine.prompts[-1].most) == ((tag,), 10 + 10 * 3)
    with pytest.raises(DragomanError, match="speaks 'de' and 'es', not 'fr'"):
        model.open("en", "fr")


def test_a_net_that_knows_no_languages_takes_any():
    units = MoonshineUnits(NAMES)
    model, engine = net(Languages(), {"": units}, beams=3)
    assert (model.hears, model.speaks, model._beams) == ((), (), 3)
    stream = model.open(None, "fr")
    assert (stream.language, stream.window.units) == (None, units)
    assert model.open("it", "fr").language == "it"
    model.hear([stream], [Sound(spoken([4]))])
    model.draft([stream], [Ask()])
    assert engine.prompts[-1].start == (1,)  # the beginning of a sentence
    model.draft([stream], [Ask(final=True)])
    assert engine.beams == [1, 3]  # a draft follows one


def test_a_translation_is_said_however_sure_it_is():
    model, engine = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)}, beams=1)
    engine.knows_languages = True
    stream = model.open("en", "de")
    model.hear([stream], [Sound(spoken([index % FOREIGN for index in range(15)]))])
    assert len(model.draft([stream], [Ask()])[0].words) == 15


@pytest.mark.parametrize("named", [None, "en"])
def test_of_speech_in_another_language_nothing_is_said_and_that_is_told(named):
    """Who speaks German to a net of English would wait for ever, and not know for what."""
    model, _ = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)})
    stream = model.open(named, "de")
    told, doubted = [], []
    for judged in (-9.0, -9.0, 9.0):
        stream.judged = np.full(tongue.NEWEST, judged, np.float32)
        model.hear([stream], [Sound(spoken([4]))])
        (draft,) = model.draft([stream], [Ask()])
        told.append((stream.language, bool(draft.words)))
        doubted.append(stream.doubted)
    assert told == [(None, False), (None, False), ("en", True)]
    # How sure it was of the word and the full stop: with these, old sound is let go.
    assert doubted == [(-0.1, -0.1), (-0.1, -0.1), ()]


def test_words_are_counted_by_a_net_that_hears_them():
    model, _ = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)}, words_in=lambda one: 7)
    assert model.features == {Feature.ATTENTION, Feature.CTC}
    stream = model.open("en", "de")
    model.hear([stream], [Sound(spoken([4]))])
    assert stream.words_heard == 7
    silent, _ = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)})
    stream = silent.open("en", "de")
    silent.hear([stream], [Sound(spoken([4]))])
    assert stream.words_heard == 0
    assert Settings(1, 1, Languages(), {}).decides == "no"


def test_what_was_said_is_read_anew_by_a_net():
    """It was said early: what was heard since tells more about it."""
    model, engine = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)})
    stream = model.open("en", "de")
    for word in (4, 7, 9):
        model.hear([stream], [Sound(spoken([word]))])
        model.commit(stream, model.draft([stream], [Ask()])[0], 1)
    assert engine.pasts == [None] * 3

"""Moonshine's network as it is loaded: which files, which heads, which tokens."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.moonshine import engine as module
from dragoman.models.moonshine.alignment import ALIGNMENT, alignment
from dragoman.models.moonshine.encoder import Encoded, no_labels
from dragoman.models.moonshine.engine import (
    DECODERS,
    ENCODERS,
    CtcHead,
    MoonshineEngine,
    MoonshineRules,
    first_file,
    load_engine,
)
from dragoman.models.moonshine.units import END, START, MoonshineUnits
from dragoman.models.options import Options
from dragoman.models.search import Past, Prompt
from dragoman.models.whisper.graph import Shape

from . import made_onnx as made

ON_CPU = Options(threads=1, device="cpu")


def test_heads_that_nobody_looked_for_are_those_of_the_later_layers():
    def of(layers, heads):
        return alignment(Shape(layers, heads, 64, 9, 8, True))

    assert of(2, 3) == [(1, 0), (1, 1), (1, 2)]
    assert of(3, 2) == [(1, 1), (2, 0), (2, 1)]


def test_heads_are_those_that_were_found_to_follow_the_sound():
    """By layer; whoever looks for better ones writes them down here, too."""
    tiny = {3: [0, 5, 6], 4: [3, 6, 7], 5: [6]}
    base = {4: [2], 5: [3, 5, 6], 6: [0, 4]}
    for layers, wanted in ((6, tiny), (8, base)):
        found = alignment(Shape(layers, 8, 64, 9, 8, True))
        assert found == [(layer, head) for layer, heads in wanted.items() for head in heads]
    assert len(ALIGNMENT) == 2


@pytest.mark.parametrize("exact", [None, True, False])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("encoder", [None, "another's"])
def test_an_engine_is_an_encoder_that_remembers_for_a_decoder(monkeypatch, exact, counts, encoder):
    arrays = {"ctc/weight": np.ones((2, 2)), "ctc/bias": np.ones(2)} if counts else {}
    weights = type("Bare", (dict,), {"array": dict.__getitem__})(arrays)
    told = {}

    class Part:
        def __init__(self, *given, **more):
            told[len(told)] = given, more

        remember = "remembers"

    monkeypatch.setattr(module, "Decoder", Part)
    monkeypatch.setattr(module, "Encoder", Part)
    monkeypatch.setattr(
        module, "Shape", SimpleNamespace(of=lambda some: Shape(2, 1, 4, 9, 2, True))
    )
    more = {} if exact is None else {"exact": exact}
    MoonshineEngine(weights, "rules", "graphs", of_encoder=encoder, **more)
    (decoder, precisely), (given, options) = told[0], told[1]
    assert decoder == (weights, "rules", [(1, 0)], "graphs")
    assert given == (weights, encoder or "graphs", "remembers")
    assert precisely["exact"] is options["exact"] is bool(exact)  # in bytes, unless that is told
    assert isinstance(options["label"], CtcHead) is counts
    assert (options["label"] is no_labels) is not counts


def test_an_onnx_file_goes_before_an_ort_file(tmp_path: Path):
    assert first_file(tmp_path, ENCODERS) is None
    (tmp_path / "encoder_model.ort").write_bytes(b"")
    assert first_file(tmp_path, ENCODERS) == tmp_path / "encoder_model.ort"
    (tmp_path / "encoder_model.onnx").write_bytes(b"")
    assert first_file(tmp_path, ENCODERS) == tmp_path / "encoder_model.onnx"
    assert first_file(tmp_path, DECODERS) is None


def test_a_ctc_head_hears_the_likeliest_unit():
    arrays = {
        "ctc/weight": np.float32([[1, 0], [0, 1], [0, 0]]),
        "ctc/bias": np.float32([0, 0, 1.5]),
    }
    head = CtcHead(SimpleNamespace(array=arrays.__getitem__))
    assert head(np.float32([[2, 1], [1, 2], [1, 1], [-9, -9]])).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("lacking", ["encoder_model.onnx", "decoder_model_merged.onnx"])
def test_half_a_moonshine_is_a_sentence(tmp_path: Path, lacking):
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
        if name != lacking:
            (tmp_path / name).write_bytes(b"")
    with pytest.raises(DragomanError, match="lacks its encoder or decoder"):
        load_engine(tmp_path, MoonshineUnits(()), ON_CPU)


def test_tokens_without_a_name_are_never_said_but_the_end_may_come(tmp_path: Path, monkeypatch):
    made.moonshine_encoder(tmp_path / "encoder_model.onnx", None)
    made.moonshine_decoder(tmp_path / "decoder_model_merged.onnx", None)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    told = {}

    class Noting(MoonshineRules):
        def __init__(self, words, **more):
            told.update(more, words=words)
            super().__init__(words, **more)

    monkeypatch.setattr(module, "MoonshineRules", Noting)
    names = ["", "", "", "▁a", "", *["▁b"] * (made.WORDS - 7)]  # two fewer than the net has
    units = MoonshineUnits(tuple(names))
    engine = load_engine(tmp_path, units, ON_CPU)
    unnamed = [0, 1, 4, made.WORDS - 2, made.WORDS - 1]
    assert told == {
        "words": made.WORDS,
        "end": END,
        "no_speech": END,
        "never": unnamed,
        "not_first": [],
    }
    sound = np.random.default_rng(0).standard_normal(8000).astype(np.float32)
    (window,) = engine.encode([Encoded()], [sound])
    logits = engine.first(window, START)
    (found,) = engine.speak([window], [Prompt((START,), 1)], 1)
    assert logits.shape == (made.WORDS,)
    allowed = np.delete(np.arange(made.WORDS), unnamed)
    best = int(allowed[logits[allowed].argmax()])
    assert found.tokens == (() if best == END else (best,))
    assert found.silence == 0.0  # there is no token for it
    assert found.past is None  # nobody has wanted it
    (kept,) = engine.speak([window], [Prompt((START,), 1)], 1, [Past()])
    assert (kept.tokens, kept.past.tokens) == (found.tokens, (START,))


def test_numbers_and_device_are_those_that_are_wanted(tmp_path: Path, monkeypatch):
    made.moonshine_encoder(tmp_path / "encoder_model.onnx", None)
    made.moonshine_decoder(tmp_path / "decoder_model_merged.onnx", None)
    names = ("", "", "</s>", *["▁a"] * (made.WORDS - 3))  # some name the end, too
    units, told = MoonshineUnits(names), []
    monkeypatch.setattr(module, "MoonshineEngine", lambda *parts, **more: told.append(more))
    for compute in (None, "int8", "float32"):
        load_engine(tmp_path, units, Options(device="cpu", compute=compute))
    assert [more["exact"] for more in told] == [False, False, True]

    pytest.importorskip("torch")
    from dragoman.models.moonshine.gpu.engine import TorchEngine

    monkeypatch.setattr("dragoman.models.options.why_no_gpu", lambda: None)
    monkeypatch.setattr("dragoman.models.options.gpu_found", lambda: True)
    given = {}
    monkeypatch.setattr(
        TorchEngine, "load", lambda weights, options, **more: given.update(more) or options
    )
    for device in ("auto", "cuda"):
        options = load_engine(tmp_path, units, Options(device=device))
        assert (options.device, options.compute) == ("cuda", "float16")
    assert given["end"] == END
    assert given["never"] == [0, 1]
    assert given["tongue"] is None
    assert load_engine(tmp_path, units, Options(compute="int8")) is None  # the CPU's, noted above

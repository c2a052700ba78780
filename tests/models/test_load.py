"""A folder says what kind of model it holds."""

import json
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dragoman.errors import DragomanError
from dragoman.models import Feature, load
from dragoman.models.kind import kind_of
from dragoman.models.load import INTERFACE, is_function, load_model
from dragoman.models.options import Options


def write_spec(folder: Path, name: str) -> None:
    head = struct.pack("<IH", 6, len(name) + 1) + name.encode() + b"\0"
    (folder / "model.bin").write_bytes(head + b"more")


def test_kinds_that_are_declared(tmp_path):
    assert kind_of(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps({"input": "speech"}))
    assert kind_of(tmp_path) == "exported"
    (tmp_path / "config.json").write_text(json.dumps({"input": "text"}))
    assert kind_of(tmp_path) == "exported-text"
    (tmp_path / "config.json").write_text(json.dumps({"input": "states"}))
    assert kind_of(tmp_path) == "grafted"
    (tmp_path / "config.json").write_text("[]")
    assert kind_of(tmp_path) is None
    (tmp_path / "recipe.yaml").touch()
    assert kind_of(tmp_path) is None  # a run that is under way
    (tmp_path / "final.pt").touch()
    assert kind_of(tmp_path) == "run"
    write_spec(tmp_path, "WhisperSpec")
    assert kind_of(tmp_path) == "whisper"  # what the weights say goes before the settings
    (tmp_path / "dragoman.json").write_text('{"kind": "mine"}')
    assert kind_of(tmp_path) == "mine"  # and what is said outright before both
    (tmp_path / "dragoman.json").write_text("{}")
    assert kind_of(tmp_path) is None


def test_kinds_that_nobody_loads(tmp_path):
    (tmp_path / "dragoman.json").write_text('{"kind": "parrot"}')
    with pytest.raises(DragomanError, match="of the kind 'parrot', which Dragoman does not know;"):
        load_model(str(tmp_path))
    (tmp_path / "dragoman.json").write_text("{")
    with pytest.raises(DragomanError, match=r"dragoman\.json is damaged"):
        load_model(str(tmp_path))
    (tmp_path / "dragoman.json").unlink()
    (tmp_path / "model.bin").write_bytes(b"\1")
    with pytest.raises(DragomanError, match="as a CTranslate2 model"):
        load_model(str(tmp_path))


def test_what_is_no_model_is_told_before_anything_is_heard(monkeypatch):
    """Not by a traceback, when the first chunk comes."""
    half = type("Half", (), {"name": "half", "features": frozenset(), "open": None, "hears": ()})
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    sys.modules["mine"].half, sys.modules["mine"].number = half, lambda: 7
    with pytest.raises(DragomanError, match=r"'mine:half' makes no model: it lacks speaks, hear, "):
        load_model("mine:half")
    with pytest.raises(DragomanError, match=r"'mine:number' makes no model but 'int'"):
        load_model("mine:number")


def test_a_function_of_ones_own_makes_the_model(monkeypatch):
    made = SimpleNamespace(**dict.fromkeys(INTERFACE))
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(whole=lambda: made))
    assert load_model("mine:whole") is made


@pytest.fixture
def halves(monkeypatch):
    """Takes the place of what loads the halves of a cascade; tells with which options. Those that
    are named cannot run on a GPU."""
    told, bound = [], set()
    ears = SimpleNamespace(**dict.fromkeys(INTERFACE) | {"features": {Feature.ATTENTION}})

    def from_folder(name, options, kinds):
        told.append((name, options))
        if name in bound:
            options.on_cpu(f"'{name}'")
        return ears

    monkeypatch.setattr(load, "_from_folder", from_folder)
    return told, bound


def test_both_halves_of_a_cascade_run_as_the_options_say(halves):
    told, _ = halves
    given = {"threads": 3, "beams": 4, "device": "cuda", "compute": "float16"}
    assert load_model("ears+mouth", **given).name == "ears+mouth"
    assert dict(told) == dict.fromkeys(["ears", "mouth"], Options(3, 4, "cuda", "float16"))
    told.clear()
    load_model("ears+mouth")
    assert dict(told) == dict.fromkeys(["ears", "mouth"], Options())


@pytest.mark.parametrize("one", ["ears", "mouth"])
def test_a_half_that_cannot_run_on_a_gpu_does_not_keep_the_other_from_it(halves, one):
    told, bound = halves
    bound.add(one)
    load_model("ears+mouth", beams=2, device="cuda", compute="float16")
    asked = Options(beams=2, device="cuda", compute="float16")
    assert sorted(told, key=str) == sorted(
        [("ears", asked), ("mouth", asked), (one, Options(beams=2, device="cpu"))], key=str
    )


def test_a_gpu_that_neither_half_can_run_on_is_refused(halves):
    told, bound = halves
    bound |= {"ears", "mouth"}
    with pytest.raises(DragomanError, match="'ears' runs on the CPU only; leave --device cuda out"):
        load_model("ears+mouth", device="cuda")
    assert len(told) == 2
    load_model("ears+mouth")


@pytest.mark.parametrize("name", ["", "+"])
def test_an_empty_name_is_not_the_folder_in_which_we_are(name):
    with pytest.raises(DragomanError, match="is not the name of a model"):
        load_model(name)


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("moonshine-tiny+", r"a translator is missing .*, such as moonshine-tiny\+mt-en;"),
        ("+mt-en", r"a recogniser is missing .*; try --model whisper-base\+mt-en\."),
        ("+opus-de-en", r"--model whisper-base\+opus-de-en\."),
        ("+nllb-600m", r"--model whisper-base\+nllb-600m\."),
        ("+./net", r"--model whisper-base\+\./net\."),
    ],
)
def test_half_a_name_is_told_with_a_whole_one(name, way_out):
    with pytest.raises(DragomanError, match=way_out):
        load_model(name)


def test_functions_are_told_from_folders(tmp_path):
    assert is_function("package.module:make")
    assert is_function("package.module:make+somewhere")
    assert not is_function("whisper-base")
    assert not is_function("hub:owner/model")
    odd = tmp_path / "a:b"
    odd.mkdir()
    assert not is_function(str(odd))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"device": "tpu"}, "There is no device 'tpu'. There are: auto, cpu, cuda."),
        ({"compute": "int4"}, "There is no compute type 'int4'. There are: int8, "),
        ({"beams": 0}, "A search follows 1 beam or more, not 0."),
    ],
)
def test_options_that_do_not_exist(settings, sentence):
    with pytest.raises(DragomanError) as caught:
        Options(**settings)
    assert sentence in str(caught.value)

"""Whisper of every size: heads that tell where it looks, and who can translate."""

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.options import Options
from dragoman.models.whisper.alignment import PUBLISHED, alignment_heads
from dragoman.models.whisper.model import WhisperModel
from dragoman.store import get

from . import made_whisper as made

SHAPES = {  # layers and heads of the decoder, tokens
    "tiny.en": (4, 6, 51864), "tiny": (4, 6, 51865), "base.en": (6, 8, 51864),
    "base": (6, 8, 51865), "small.en": (12, 12, 51864), "small": (12, 12, 51865),
    "medium.en": (24, 16, 51864), "medium": (24, 16, 51865),
    "large-v2": (32, 20, 51865), "large-v3": (32, 20, 51866),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_heads_are_those_that_were_published(name):
    """CTranslate2's converter has the same list, for models that come without."""
    transformers = pytest.importorskip("ctranslate2.converters.transformers")
    told = transformers._WHISPER_ALIGNMENT_HEADS[f"openai/whisper-{name}"]
    assert PUBLISHED[SHAPES[name]] == [tuple(head) for head in told]


def test_every_published_head_exists():
    for (layers, heads, _), found in PUBLISHED.items():
        assert len(set(found)) == len(found)
        assert all(0 <= layer < layers and 0 <= head < heads for layer, head in found)


def test_heads_of_a_folder_are_taken_as_far_as_they_exist():
    shape = {"layers": 2, "heads": 3, "words": 51866}
    assert alignment_heads([[1, 2], [0, 0]], **shape) == [(1, 2), (0, 0)]
    assert alignment_heads([[1, 2], [1, 3], [2, 0], [-1, 0], [0, -1]], **shape) == [(1, 2)]
    assert alignment_heads([[7, 0], [9, 1]], **shape) == [(1, 0), (1, 1), (1, 2)]
    assert alignment_heads(None, **shape) == [(1, 0), (1, 1), (1, 2)]
    turbo = alignment_heads([], layers=4, heads=20, words=51866)
    told = np.zeros((4, 20), bool)
    told[tuple(zip(*turbo, strict=True))] = True
    assert crc32(told.tobytes()) == 0xBEDAF884  # as OpenAI's list has it, with which it is packed


@pytest.mark.weights
def test_whisper_base_names_the_published_heads():
    try:
        folder = get("whisper-base")
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    told = json.loads((folder / "config.json").read_text())["alignment_heads"]
    assert PUBLISHED[SHAPES["base"]] == [tuple(head) for head in told]


def load(folder: Path) -> WhisperModel:
    return WhisperModel.load(folder, "whisper-x", Options(threads=1))


def test_a_whole_model_translates(tmp_path: Path):
    model = load(made.make(tmp_path))
    model.open("de", "en")
    model.open(None, "en")
    model.open("de", "de")
    with pytest.raises(DragomanError, match=r"from 'en' into 'de'.* --model whisper-x\+mt-en"):
        model.open("en", "de")


def test_a_model_works_as_its_options_say(tmp_path: Path):
    folder = made.make(tmp_path)
    model = WhisperModel.load(folder, "whisper-x", Options(threads=1, beams=3))
    assert (model.name, model.device) == ("whisper-x", "cpu")
    assert (model._beams, model._final_beams) == (3, 5)
    assert WhisperModel.load(folder).name == "whisper"  # and without any


def test_a_distilled_model_writes_down_what_it_hears(tmp_path: Path):
    """Its decoder has fewer layers than its encoder; it names heads that it has not."""
    folder = made.make(tmp_path, decoder_layers=1)
    config = json.loads((folder / "config.json").read_text())
    config["alignment_heads"] = [[7, 0], [10, 17]]
    (folder / "config.json").write_text(json.dumps(config))
    model = load(folder)
    model.open("de", "de")
    for source in ("de", None):  # a language that is detected may be another
        with pytest.raises(DragomanError, match="not trained to translate"):
            model.open(source, "en")


def test_a_model_of_english_writes_english(tmp_path: Path):
    filler = [f"Ġx{index}" for index in range(50256 - made.TEXT)]
    names = [*made.NAMES[: made.TEXT], *filler, *made.NAMES[made.TEXT :]]  # with all languages
    model = load(made.make(tmp_path, names=names))
    assert model.hears == ("en",)
    model.open(None, "en")
    model.open("en", "en")
    with pytest.raises(DragomanError, match="does not know the language 'de'"):
        model.open("de", "en")
    with pytest.raises(DragomanError, match=r"put a translator .* --model whisper-x\+opus-en-fr"):
        model.open("en", "fr")


def with_settings(folder: Path, **settings: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


def test_a_model_may_be_allowed_every_token(tmp_path: Path):
    """As converters write it of a model that was trained further, whose own settings say null."""
    folder = made.make(tmp_path)
    load(with_settings(folder, suppress_ids=None, suppress_ids_begin=None)).open("de", "en")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"suppress_ids": 5}, "does not describe the settings of a Whisper"),
        ({"suppress_ids": [50257]}, "names token 50257, and there are 56"),
        ({"suppress_ids_begin": [-1]}, "names token -1, and there are 56"),
        ({"alignment_heads": [[1]]}, "does not describe the settings of a Whisper"),
    ],
)
def test_settings_of_another_model_are_a_sentence(tmp_path: Path, settings, sentence):
    with pytest.raises(DragomanError, match=sentence):
        load(with_settings(made.make(tmp_path), **settings))


@pytest.mark.parametrize("count", [len(made.NAMES) - 1, len(made.NAMES) + 1])
def test_the_vocabulary_of_another_model_is_a_sentence(tmp_path: Path, count):
    """It was found out in the middle of a talk, by onnxruntime."""
    folder = made.make(tmp_path)
    (folder / "vocabulary.json").write_text(json.dumps([*made.NAMES, "<|0.10|>"][:count]))
    with pytest.raises(DragomanError, match=f"has {count} tokens and the net 56"):
        load(folder)


def test_what_is_no_vocabulary_is_a_sentence(tmp_path: Path):
    folder = made.make(tmp_path)
    (folder / "vocabulary.json").write_text("null")
    with pytest.raises(DragomanError, match="does not describe a vocabulary"):
        load(folder)

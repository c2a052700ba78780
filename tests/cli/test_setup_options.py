"""What the options make of a model that knows its own languages."""

import re
from pathlib import Path

import pytest

from dragoman.cli.setup_options import read_setup
from dragoman.errors import DragomanError
from dragoman.models.exported.config import ExportedNet, Languages
from dragoman.setup import TUNED, TUNED_CASCADE


@pytest.fixture
def exported(tmp_path) -> str:
    return folder_of(tmp_path / "pt-cy")


def folder_of(folder: Path, languages: Languages | None = None, **changes) -> str:
    """A folder that says of itself: Portuguese to Welsh, or between others."""
    folder.mkdir()
    (folder / "encoder.onnx").touch()
    ExportedNet(
        net="transformer", settings={}, target_units=9, source_units=9, input="speech", bands=80,
        memory=2, memory_time=3, cache=(), chunks=None, attention_layer=0, ctc=False,
        boundaries=False, languages=languages or Languages("pt", "cy"), **changes,
    ).write(folder)  # fmt: skip
    return str(folder)


def test_an_exported_net_brings_its_languages(exported):
    setup = read_setup(model=exported)
    assert (setup.source, setup.target) == ("pt", "cy")


def test_its_languages_need_not_be_known_here(tmp_path):
    setup = read_setup(model=folder_of(tmp_path / "own", Languages("nds", "frr")))
    assert (setup.source, setup.target) == ("nds", "frr")


def test_what_is_asked_for_goes_first(exported, tmp_path):
    setup = read_setup(model=exported, source="en", target="German")
    assert (setup.source, setup.target) == ("en", "de")
    path = Path(tmp_path / "setup.yaml")
    path.write_text("target: fr\n")
    assert read_setup(model=exported, setup=path).target == "fr"


def test_who_decides_for_itself_is_followed(exported, tmp_path):
    folder = folder_of(tmp_path / "mma", decides="monotonic")
    assert read_setup(model=folder).policy == "follow"
    assert read_setup(model=folder, policy="greedy").policy == "greedy"
    assert read_setup(model=folder, max_latency="2s").policy == TUNED[-1][1]
    assert read_setup(model=exported).policy == TUNED[-1][1]


def test_a_cascade_has_a_policy_of_its_own():
    def chosen(**options):
        setup = read_setup(**options)
        return setup.policy, setup.step_ms

    assert TUNED_CASCADE[-1] != TUNED[-1]
    cascade, other = TUNED_CASCADE[-1][1:], TUNED[-1][1:]
    assert chosen(source="en", target="de", model="whisper-base+mine") == cascade
    assert chosen(source="en", target="de") == cascade
    assert chosen(source="en", target="es") == cascade
    assert chosen(source="de", model="whisper-base") == chosen(source="de") == other
    assert chosen(source="de", target="de") == other
    assert chosen(source="en", target="de", policy="greedy", step=500.0) == ("greedy", 500.0)


def test_other_models_speak_english_and_detect(tmp_path):
    for model in (None, "whisper-tiny", str(tmp_path)):
        setup = read_setup(model=model)
        assert (setup.source, setup.target) == (None, "en")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mt-en", "translates text; put a recogniser before it: --model whisper-base+mt-en."),
        ("opus-de-en", "translates text; put a recogniser before it: --model whisper-base+opus"),
        ("kokoro", "is a voice; --voice kokoro speaks with it"),
        ("silero-vad", "hears no words; 'dragoman models list' shows what does."),
    ],
)
def test_what_hears_nothing_is_no_model_to_interpret_with(name, told, tmp_path, monkeypatch):
    with pytest.raises(DragomanError, match=f"^'{name}' {re.escape(told)}"):
        read_setup(model=name)
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / name)  # somebody's own, of the same name
    assert read_setup(model=name).source == "pt"


def test_an_empty_latency_is_none():
    with pytest.raises(DragomanError, match="'' is not a time"):
        read_setup(max_latency="")

"""A model that does not fit is refused before it is loaded."""

from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.models import memory
from dragoman.models.load import load_model, load_translator
from dragoman.models.options import Options

from . import made_translator, made_whisper


def folder_of(tmp_path: Path, megabytes: int) -> Path:
    with (tmp_path / "model.bin").open("wb") as file:
        file.truncate(megabytes * 1_000_000)
    (tmp_path / "notes.txt").write_text("no weights" * 1000)
    return tmp_path


def test_only_weights_count(tmp_path: Path):
    folder_of(tmp_path, 3)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "decoder.onnx").write_bytes(b"x" * 500)
    assert memory.weights_size(tmp_path) == 3_000_500


def test_what_does_not_fit_is_a_sentence(tmp_path: Path):
    folder = folder_of(tmp_path, 2000)
    needed = int(memory.TIMES * 2e9)
    memory.refuse_too_large(folder, "big", free=needed)
    with pytest.raises(DragomanError, match=r"'big' takes about 7\.0 GB .* and 7\.0 GB are free"):
        memory.refuse_too_large(folder, "big", free=needed - 1)


@pytest.mark.parametrize("text", ["MemTotal: 9 kB\nMemAvailable:    2048 kB\n", ""])
def test_the_container_may_have_less_than_the_machine(tmp_path: Path, monkeypatch, text):
    paths = {name: tmp_path / name for name in ("meminfo", "max", "current")}
    monkeypatch.setattr(memory, "MEMINFO", paths["meminfo"])
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "none", paths["max"]))
    monkeypatch.setattr(memory, "USED", (tmp_path / "none", paths["current"]))
    paths["meminfo"].write_text(text)
    machine = memory.free_memory()
    assert machine == 2048 * 1024 if text else machine > 1e6
    paths["current"].write_text("1000\n")
    paths["max"].write_text("max\n")
    assert memory.free_memory() == machine
    paths["max"].write_text("3000\n")
    assert memory.free_memory() == 2000
    paths["max"].write_text("900\n")
    assert memory.free_memory() == 0


def test_where_nobody_tells_what_is_free_any_model_may_be_tried(tmp_path: Path, monkeypatch):
    nowhere = tmp_path / "none"
    monkeypatch.setattr(memory, "MEMINFO", nowhere)
    monkeypatch.setattr(memory, "LIMITS", (nowhere,))
    monkeypatch.setattr(memory, "USED", (nowhere,))
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.free_memory() is None
    memory.refuse_too_large(folder_of(tmp_path, 2000), "big")


def test_models_and_translators_are_asked_before_they_load(tmp_path: Path, monkeypatch):
    heard = made_whisper.make(tmp_path / "whisper")
    read = made_translator.opus(tmp_path / "opus")
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    with pytest.raises(DragomanError, match="are free"):
        load_model(str(heard))
    with pytest.raises(DragomanError, match="are free"):
        load_translator(str(read), Options())

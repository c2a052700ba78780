"""From a name to a model: one of the store's, a folder, or a function of the user's own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.models.base import Model

if TYPE_CHECKING:
    from dragoman.models.exported.config import ExportedNet


def load_model(name: str, *, threads: int = 0, beams: int = 5) -> Model:
    """Load a model.

    `name` is an entry of the store (`dragoman models list`), a folder with a CTranslate2 Whisper
    or an exported net, `package.module:function` where the function returns a Model, or
    EARS+MOUTH: a model that writes down what it hears, and an exported text net.
    `threads` 0 leaves the number to the library; `beams` is how wide the search for a draft is.
    """
    ears, mouth = _halves(name)
    if mouth:
        return _cascade(name, ears, mouth, threads, beams)
    if ":" in name and not Path(name).exists():
        return _own(name)
    return _from_folder(name, _folder(name), threads, beams)


def exported_net(name: str) -> ExportedNet | None:
    """What a folder with an exported net says about itself; None for every other model.

    Of a cascade, that is its text net.
    """
    ears, mouth = _halves(name)
    folder = Path(mouth or ears).expanduser()
    if not (folder / "encoder.onnx").is_file():
        return None
    from dragoman.models.exported.config import ExportedNet

    return ExportedNet.read(folder)


def _halves(name: str) -> tuple[str, str]:
    """The two names of a cascade, or the only one and nothing."""
    if Path(name).expanduser().exists():
        return name, ""
    ears, _, mouth = name.partition("+")
    return ears, mouth


def _cascade(name: str, ears: str, mouth: str, threads: int, beams: int) -> Model:
    from dragoman.models.cascade.model import CascadeModel
    from dragoman.models.cascade.text_net import TextNet

    text = TextNet.load(_folder(mouth), threads=threads, beams=beams)
    return CascadeModel(name, load_model(ears, threads=threads, beams=beams), text)


def _folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    from dragoman.store import get

    return get(name)


def _from_folder(name: str, folder: Path, threads: int, beams: int) -> Model:
    if (folder / "model.bin").is_file():
        from dragoman.models.whisper.model import WhisperModel

        return WhisperModel.load(folder, name=name, threads=threads, beams=beams)
    from dragoman.models.whisper.from_onnx import in_ctranslate2, is_onnx_whisper

    if is_onnx_whisper(folder):
        return _from_folder(name, in_ctranslate2(folder), threads, beams)
    if (folder / "encoder.onnx").is_file():
        from dragoman.models.exported.model import OnnxModel

        return OnnxModel.load(folder, name=name, threads=threads, beams=beams)
    raise DragomanError(
        f"{folder} holds no model that Dragoman knows: a CTranslate2 Whisper has a model.bin, "
        "an exported net an encoder.onnx."
    )


def _own(name: str) -> Model:
    module, _, function = name.partition(":")
    try:
        make = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise DragomanError(f"There is no model function '{name}' ({error}).") from error
    model: Model = make()
    return model

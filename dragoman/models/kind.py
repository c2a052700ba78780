"""What kind of model a folder holds, as a file in it declares.

`dragoman.json` with `{"kind": "..."}` says it outright. Folders of others have declarations of
their own: the head of a CTranslate2 file names the architecture, the settings of an exported net
its input.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dragoman.errors import DragomanError

FILE = "dragoman.json"
T = TypeVar("T")
# By the architecture that a model.bin names.
CTRANSLATE2 = {"WhisperSpec": "whisper", "TransformerSpec": "text"}
# By the input of a net.
EXPORTED = {"speech": "exported", "text": "exported-text", "states": "grafted"}
RUN = ("recipe.yaml", "final.pt")  # of a training run that has ended
# By the files of exporters that declare nothing: one of each group.
FILES = {
    "whisper-onnx": (
        ("onnx/encoder_model_quantized.onnx", "onnx/encoder_model.onnx"),
        ("onnx/decoder_model_merged_quantized.onnx", "onnx/decoder_model_merged.onnx"),
    ),
    "moonshine": (
        ("encoder_model.onnx", "encoder_model.ort"),
        ("decoder_model_merged.onnx", "decoder_model_merged.ort"),
    ),
}


def kind_of(folder: Path) -> str | None:
    """The kind of the model in a folder; None: it declares none."""
    if (folder / FILE).is_file():
        return str(_settings(folder / FILE).get("kind", "")) or None
    if (folder / "model.bin").is_file():
        spec = _architecture(folder / "model.bin")
        return CTRANSLATE2.get(spec, spec)
    for kind, files in FILES.items():
        if all(any((folder / name).is_file() for name in names) for names in files):
            return kind
    if all((folder / name).is_file() for name in RUN):
        return "run"
    if (folder / "config.json").is_file():
        return EXPORTED.get(_settings(folder / "config.json").get("input", ""))
    return None


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """Whichever of some files a folder has, the first one if there are several."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def write_settings(path: Path, settings: object) -> None:
    """What a net says about itself, for `read_settings`."""
    data = msgspec.json.format(msgspec.json.encode(settings), indent=1)
    path.write_bytes(data + b"\n")


def read_settings(path: Path, settings: type[T], what: str) -> T:
    """What a net says about itself; `what` it is said to be is for the errors."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=settings)
    except OSError as error:
        raise DragomanError(f"{path.parent} does not hold {what}: {error}.") from error
    except msgspec.ValidationError as error:
        raise DragomanError(f"{path} does not describe {what}: {error}.") from error
    except msgspec.DecodeError as error:
        raise DragomanError(f"{path} is damaged: {error}.") from error


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DragomanError(f"{path} is damaged: {error}.") from error
    return settings if isinstance(settings, dict) else {}


def _architecture(path: Path) -> str:
    """The name at the head of a CTranslate2 model: a version, then a length and letters."""
    try:
        with path.open("rb") as file:
            _, size = struct.unpack("<IH", file.read(6))
            return file.read(size).rstrip(b"\0").decode("utf-8")
    except (OSError, struct.error, UnicodeDecodeError) as error:
        raise DragomanError(f"Cannot read {path} as a CTranslate2 model: {error}.") from error

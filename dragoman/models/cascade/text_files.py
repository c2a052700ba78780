"""The files of a text model in CTranslate2's format, and the model itself on a device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.models.options import Options

VOCABULARIES = ("shared_vocabulary", "target_vocabulary")
# SentencePiece models for what is read and for what is written, as the families name them.
TOKENIZERS = (
    ("source.spm", "target.spm"),
    *((name, name) for name in ("sentencepiece.bpe.model", "sentencepiece.model", "spm.model")),
)


def _vocabulary_path(folder: Path) -> Path | None:
    paths = (folder / f"{name}.{kind}" for name in VOCABULARIES for kind in ("json", "txt"))
    return next((path for path in paths if path.is_file()), None)


def read_vocabulary(folder: Path) -> tuple[str, ...]:
    path = _vocabulary_path(folder)
    if path is None:
        raise DragomanError(f"There is no shared_vocabulary or target_vocabulary in {folder}.")
    try:
        text = path.read_text(encoding="utf-8")
        names = json.loads(text) if path.suffix == ".json" else text.removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise DragomanError(f"Cannot read the vocabulary {path}: {error}.") from error
    if not isinstance(names, list):
        raise DragomanError(f"Cannot read the vocabulary {path}: it is no list of units.")
    return tuple(map(str, names))


def read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DragomanError(f"Cannot read {folder / 'config.json'}: {error}.") from error
    if not isinstance(config, dict):
        raise DragomanError(f"{folder / 'config.json'} is not the settings of a text model.")
    return config


def open_tokenizer(folder: Path) -> Any:
    """The SentencePiece model for what is read."""
    from dragoman.models.exported.pieces import open_units

    for names in TOKENIZERS:
        if all((folder / name).is_file() for name in names):
            return open_units(folder / names[0])
    raise DragomanError(
        f"The text model in {folder} has no tokenizer: put the original model's source.spm and "
        "target.spm, or its sentencepiece.bpe.model, beside model.bin."
    )


def open_net(folder: Path, options: Options, end: str) -> Any:
    """CTranslate2's translator on the device that is wanted, or on one that it can use."""
    placed = options.placed()
    if options.device == "auto" and placed.device == "cuda":
        try:
            return _opened(folder, placed, end)
        except DragomanError:  # it needs other libraries than torch does
            placed = replace(options, device="cpu").placed()
    return _opened(folder, placed, end)


def _opened(folder: Path, options: Options, end: str) -> Any:
    import ctranslate2

    compute = options.compute
    if options.device == "cpu" and compute != "int8":
        compute = "float32"  # processors have no other numbers, or are slow with them
    try:
        net = ctranslate2.Translator(
            str(folder),
            device=options.device,
            compute_type=compute,
            intra_threads=options.threads,
        )
        if options.device == "cuda":  # what is missing is missed when it is first used
            net.translate_batch([[end]], max_decoding_length=1)
    except (RuntimeError, ValueError) as error:
        what = f"Cannot load a text model from {folder}"
        if options.device == "cpu":
            raise DragomanError(f"{what}: {error}.") from error
        raise DragomanError(
            f"{what} onto the GPU: {error}.", advice="--device cpu may do."
        ) from error
    return net

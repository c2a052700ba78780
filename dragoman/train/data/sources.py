"""What a recipe may name as data: a pack, a text to be voiced, or a corpus to be packed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dragoman.errors import DragomanError
from dragoman.evaluate.corpora import read_clips
from dragoman.train.data.clips import fingerprint, pack_clips
from dragoman.train.data.cuts import read_cuts
from dragoman.train.data.texts import pack_text
from dragoman.train.recipe import Recipe
from dragoman.train.settings import convert

CUTS = (".jsonl.gz", "cuts.jsonl")


@dataclass(frozen=True)
class TextOptions:
    """What may follow a text's name: `voice:europarl.tsv.xz?columns=en,de,_,_&limit=1000`."""

    columns: str | None = None
    skip: int = 0
    limit: int | None = None
    voices: str = "espeak"
    rooms: float = 0.5
    noise: float = 0.5
    max_words: int = 80


def pack_of(name: str, recipe: Recipe, processes: int) -> Path:
    """The folder of the pack for a data entry of the recipe, made first if need be.

    An entry is a pack, a corpus in a known layout, a lhotse manifest, `voice:TEXT` to be spoken,
    or `text:TEXT` to be used as text alone.
    """
    kind, colon, rest = name.partition(":")
    if colon and kind in ("voice", "text"):
        path, options = parse_text(rest)
        make = _voiced if kind == "voice" else _text
        return make(path, options, recipe, processes)
    path = Path(name)
    if (path / "pack.json").exists():
        return path
    if path.is_dir() and any(path.glob("shard-*")):
        raise DragomanError(f"The pack {path} is unfinished; run the command that makes it again.")
    return _packed(path, recipe, processes)


def parse_text(entry: str) -> tuple[Path, TextOptions]:
    """`PATH?key=value&key=value`"""
    path, _, query = entry.partition("?")
    return Path(path), convert(TextOptions, dict(parse_qsl(query)), "data")


def _packed(path: Path, recipe: Recipe, processes: int) -> Path:
    """A corpus in one of the known layouts, or a lhotse manifest, cut into a pack."""
    data = recipe.data
    if path.name.endswith(CUTS):
        if not path.exists():
            raise DragomanError(f"There is no manifest {path}.")
        clips = list(read_cuts(path, data.source))
    else:
        clips = read_clips(path, data.source, data.target)
    folder = Path(data.packs) / f"{path.stem}-{fingerprint(clips)[:12]}"
    limit = data.fault_limit
    pack_clips(clips, folder, data.source, data.target, processes=processes, fault_limit=limit)
    return folder


def _voiced(text: Path, options: TextOptions, recipe: Recipe, processes: int) -> Path:
    """A text spoken with the recipe's seed."""
    from dragoman.train.voicing.corpus import voice_text
    from dragoman.train.voicing.shard import Staging
    from dragoman.train.voicing.spoken import parse_shares

    folder = _folder(text, options, recipe, "voiced")
    staging = Staging(
        spoken=recipe.data.source,
        seed=recipe.seed,
        shares=parse_shares(options.voices),
        codec="pcm",
        rooms=options.rooms,
        noise=options.noise,
        max_words=options.max_words,
    )
    voice_text(text, folder, staging, processes=processes, **_rows(options, recipe))
    return folder


def _text(text: Path, options: TextOptions, recipe: Recipe, processes: int) -> Path:
    folder = _folder(text, options, recipe, "text")
    pack_text(text, folder, processes=processes, **_rows(options, recipe))
    return folder


def _rows(options: TextOptions, recipe: Recipe) -> dict[str, Any]:
    """Which rows of a text are taken, and how many may be faulty."""
    chosen = {"columns": options.columns, "skip": options.skip, "limit": options.limit}
    return chosen | {"fault_limit": recipe.data.fault_limit}


def _folder(text: Path, options: TextOptions, recipe: Recipe, kind: str) -> Path:
    """A name that changes with the options and the seed, so that packs never get mixed up."""
    what = hashlib.sha256(repr((options, recipe.seed, recipe.data.source)).encode()).hexdigest()
    return Path(recipe.data.packs) / f"{text.name.partition('.')[0]}-{kind}-{what[:8]}"

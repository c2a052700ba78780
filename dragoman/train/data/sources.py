"""What a recipe may name as data: a pack, a text to be voiced, or a corpus to be packed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dragoman.corpora import Clip, read_clips
from dragoman.errors import DragomanError
from dragoman.store.home import sha256_of
from dragoman.train.data.clips import fingerprint, pack_clips
from dragoman.train.data.cuts import is_manifest, read_cuts
from dragoman.train.data.heard import Hearing
from dragoman.train.data.packing import Progress
from dragoman.train.data.texts import pack_text
from dragoman.train.recipe import Data, Recipe
from dragoman.train.settings import Count, Share, Whole, convert
from dragoman.workers import FreshProcesses

Told = Callable[[str], None]  # how far the making of a pack is, in words


@dataclass(frozen=True)
class TextOptions:
    """What may follow a text's name: `voice:europarl.tsv.xz?columns=en,de,_,_&limit=1000`."""

    columns: str | None = None
    skip: Count = 0
    limit: Whole | None = None
    voices: str = "espeak"
    rooms: Share = 0.5
    noise: Share = 0.5
    max_words: Whole = 80
    heard: Share = 0.0  # of texts alone: without case or marks, as a recogniser may write
    cut: Share = 0.0  # cut off in mid-sentence, with as much of the translation
    join: Share = 0.0  # of what is spoken: together with the next row


def pack_of(name: str, recipe: Recipe, processes: int, tell: Told = lambda text: None) -> Path:
    """The folder of the pack for a data entry of the recipe, made first if need be.

    An entry is a pack, a corpus in a known layout, a lhotse manifest, `voice:TEXT` to be spoken,
    or `text:TEXT` to be used as text alone.
    """

    def progress(items: int, hours: float) -> None:
        tell(f"packing {name}: {items} items" + (f", {hours:.1f} h" if hours else ""))

    kind, colon, rest = name.partition(":")
    if colon and kind in ("voice", "text"):
        path, options = parse_text(rest)
        make = _voiced if kind == "voice" else _text
        return make(path, options, recipe, processes, progress)
    path = Path(name)
    if (path / "pack.json").exists():
        return path
    if path.is_dir() and any(path.glob("shard-*")):
        raise DragomanError(f"The pack {path} is unfinished; run the command that makes it again.")
    return _packed(path, recipe, processes, progress)


def parse_text(entry: str) -> tuple[Path, TextOptions]:
    """`PATH?key=value&key=value`"""
    path, _, query = entry.partition("?")
    return Path(path), convert(TextOptions, dict(parse_qsl(query, keep_blank_values=True)), path)


def _packed(path: Path, recipe: Recipe, processes: int, progress: Progress) -> Path:
    """A corpus in one of the known layouts, or a lhotse manifest, cut into a pack."""
    data = recipe.data
    clips, target = _translated(path, data)
    what = _short((fingerprint(clips), data.source, target))
    folder = Path(data.packs) / f"{path.stem}-{what}"
    pack_clips(
        clips,
        folder,
        data.source,
        target,
        processes=processes,
        fault_limit=data.fault_limit,
        progress=progress,
    )
    return folder


def _translated(path: Path, data: Data) -> tuple[list[Clip], str]:
    """The clips of a corpus, and the language of their translations: the first wanted one that the
    corpus has, as each item is translated into one."""
    wrong: list[DragomanError] = []
    for target in data.targets:
        try:
            clips = _clips(path, data.source, target)
        except DragomanError as error:
            wrong.append(error)
        else:
            return clips, target
    raise wrong[0]


def _clips(path: Path, source: str, target: str) -> list[Clip]:
    manifest = is_manifest(path)
    clips = list(read_cuts(path, source)) if manifest else read_clips(path, source, target)
    for language in (source, target):
        if not any(clip.texts.get(language) for clip in clips):
            raise DragomanError(f"{path} has no text in '{language}', which training needs.")
    return clips


def _voiced(
    text: Path, options: TextOptions, recipe: Recipe, processes: int, progress: Progress
) -> Path:
    """A text spoken with the recipe's seed."""
    from dragoman.train.voicing.corpus import voice_text
    from dragoman.train.voicing.shard import Voicing
    from dragoman.train.voicing.spoken import parse_shares

    folder = _folder(text, options, recipe, "voiced")
    voicing = Voicing(
        spoken=recipe.data.source,
        seed=recipe.seed,
        shares=parse_shares(options.voices),
        codec="pcm",
        rooms=options.rooms,
        noise=options.noise,
        max_words=options.max_words,
        join=options.join,
        cut=options.cut,
    )
    rows = _rows(options, recipe)
    workers = FreshProcesses(processes)
    voice_text(text, folder, voicing, workers=workers, progress=progress, **rows)
    return folder


def _text(
    text: Path, options: TextOptions, recipe: Recipe, processes: int, progress: Progress
) -> Path:
    folder = _folder(text, options, recipe, "text")
    rows = _rows(options, recipe)
    hearing = Hearing(recipe.data.source, options.heard, options.cut, recipe.seed)
    pack_text(text, folder, hearing=hearing, processes=processes, progress=progress, **rows)
    return folder


def _rows(options: TextOptions, recipe: Recipe) -> dict[str, Any]:
    """Which rows of a text are taken, and how many may be faulty."""
    chosen = {"columns": options.columns, "skip": options.skip, "limit": options.limit}
    return chosen | {"fault_limit": recipe.data.fault_limit}


def _folder(text: Path, options: TextOptions, recipe: Recipe, kind: str) -> Path:
    """A name that changes with the text, the options and the seed: packs never get mixed up."""
    if not text.is_file():
        raise DragomanError(f"There is no file {text}.")
    what = _short((sha256_of(text), options, recipe.seed, recipe.data.source))
    return Path(recipe.data.packs) / f"{text.name.partition('.')[0]}-{kind}-{what}"


def _short(things: object) -> str:
    return hashlib.sha256(repr(things).encode()).hexdigest()[:12]

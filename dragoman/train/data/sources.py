"""What a recipe may name as data: a pack, a text to be voiced, or a corpus to be packed."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.evaluate.corpora import read_clips
from dragoman.train.data.clips import fingerprint, pack_clips
from dragoman.train.data.cuts import read_cuts
from dragoman.train.recipe import Recipe

VOICED = "voice:"
CUTS = (".jsonl.gz", "cuts.jsonl")


def pack_of(name: str, recipe: Recipe, processes: int) -> Path:
    """The folder of the pack for a data entry of the recipe, made first if need be."""
    if name.startswith(VOICED):
        return _voiced(Path(name.removeprefix(VOICED)), recipe, processes)
    path = Path(name)
    if (path / "pack.json").exists():
        return path
    if path.is_dir() and any(path.glob("shard-*")):
        raise DragomanError(f"The pack {path} is unfinished; run the command that makes it again.")
    return _packed(path, recipe, processes)


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


def _voiced(text: Path, recipe: Recipe, processes: int) -> Path:
    """A text voiced with eSpeak NG and the recipe's seed."""
    from dragoman.train.voicing.corpus import voice_text
    from dragoman.train.voicing.shard import Staging
    from dragoman.train.voicing.spoken import parse_shares

    folder = Path(recipe.data.packs) / f"{text.stem}-voiced-{recipe.seed}"
    staging = Staging(
        spoken=recipe.data.source,
        seed=recipe.seed,
        shares=parse_shares("espeak"),
        codec="pcm",
        rooms=0.5,
        noise=0.5,
        max_words=80,
    )
    limit = recipe.data.fault_limit
    voice_text(text, folder, staging, processes=processes, fault_limit=limit)
    return folder

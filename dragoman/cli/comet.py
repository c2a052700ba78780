"""`--comet`: where its net is, in a folder or among what the model hub's client has fetched, and
what it says of a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.metrics.comet import Comet
    from dragoman.metrics.score import Report

PIECES = "sentencepiece.bpe.model"


@cache  # two logs that are compared are read by one net
def load_comet(name: str) -> Comet:
    """The net in a folder, or the one that is called so on the hub."""
    here = Path(name).is_dir()
    folder = Path(name) if here else _fetched(name)
    from dragoman.metrics.comet import Comet  # and with it torch

    return Comet(folder, _pieces(folder), "" if here else name)


def add_comet(report: Report, comet: Comet, sources: Sequence[str], how: str = "") -> Report:
    """A report with COMET, too; a bar shows how far it is, since that takes a while."""
    from dragoman.cli.progress import clip_progress
    from dragoman.metrics.comet import with_comet

    with clip_progress("COMET") as on_text:
        return with_comet(report, comet, sources, how, on_text)


def _fetched(name: str) -> Path:
    from dragoman.store.hub import cache_of

    if name.count("/") == 1:
        snapshots = cache_of(name) / "snapshots"
        found = sorted(snapshots.glob("*/hparams.yaml"), key=lambda path: path.stat().st_mtime)
        if found:
            return found[-1].parent
    raise DragomanError(
        f"There is no folder {name}, and nothing of that name has been fetched from the model hub: "
        "pip install huggingface-hub, then hf download Unbabel/wmt22-comet-da, and "
        f"hf download FacebookAI/xlm-roberta-large {PIECES}."
    )


def _pieces(folder: Path) -> Path | None:
    """XLM-RoBERTa's pieces of words, where the folder has none: all its sizes have the same."""
    from dragoman.store.hub import cache_of

    if (folder / PIECES).is_file():
        return None
    hub = cache_of("any/model").parent
    return next(hub.glob(f"models--*xlm-roberta-*/snapshots/*/{PIECES}"), None)

"""Parallel text without sound as a pack: what a text translation net is trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from dragoman.errors import DragomanError
from dragoman.store.home import sha256_of
from dragoman.train.data.faults import Fault
from dragoman.train.data.heard import Hearing
from dragoman.train.data.pack import Header, Item, ShardReport, ShardWriter, Tick
from dragoman.train.data.packing import Progress, groups_of, make_pack
from dragoman.train.voicing.text import Row, columns_of, read_rows
from dragoman.workers import FreshProcesses

ROWS_PER_SHARD = 100_000
MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class TextShard:
    """Rows for one shard."""

    folder: Path
    number: int
    rows: list[Row]
    hearing: Hearing


def pack_text(
    text: Path,
    folder: Path,
    *,
    columns: str | None = None,
    skip: int = 0,
    limit: int | None = None,
    hearing: Hearing | None = None,
    processes: int = 1,
    fault_limit: float = 0.02,
    progress: Progress = lambda items, hours: None,
) -> Header:
    """A TSV file as a pack of silent items; `spoken` is empty in its header.

    With a `hearing`, some of its texts are as a recogniser would hand them on.
    """
    hearing = hearing or Hearing()
    names, header = columns_of(text, columns)
    if (hearing.heard or hearing.cut) and hearing.source not in names:
        raise DragomanError(
            f"{text} has no column '{hearing.source}', whose texts are to be as they are heard; it "
            f"has {', '.join(names)}."
        )
    stop = None if limit is None else skip + limit
    rows = islice(read_rows(text, names, header), skip, stop)
    groups = enumerate(groups_of(rows, ROWS_PER_SHARD))
    return make_pack(
        folder,
        (TextShard(folder, number, group, hearing) for number, group in groups),
        write_shard,
        made_from={
            "text": text.name,
            "sha256": sha256_of(text),
            "columns": ",".join(names),
            "skip": skip,
            "limit": limit,
            "heard": hearing.heard,
            "cut": hearing.cut,
            "seed": hearing.seed,
        },
        codec="pcm",
        languages=[name for name in names if name != "_"],
        spoken="",
        workers=FreshProcesses(processes),
        fault_limit=fault_limit,
        progress=progress,
    )


def write_shard(job: TextShard, tick: Tick) -> ShardReport:
    return ShardWriter(job.folder, job.number, "pcm").write(_items(job), tick)


def _items(job: TextShard) -> Iterator[tuple[Item, np.ndarray] | Fault]:
    silence = np.zeros(0, np.int16)
    for row in job.rows:
        words = max(len(text.split()) for text in row.text.values())
        if not all(row.text.values()):
            yield Fault("empty text", f"row {row.number}", "a column is empty")
        elif words > MOST_WORDS:
            yield Fault("text too long", f"row {row.number}", f"{words} words")
        else:
            yield Item(str(row.number), 0, 0, 0, job.hearing.change(row.number, row.text)), silence

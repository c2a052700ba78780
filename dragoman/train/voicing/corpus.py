"""Voice a whole text into a pack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.store.home import sha256_of
from dragoman.train.data.heard import Hearing
from dragoman.train.data.pack import Header
from dragoman.train.data.packing import MadeFrom, Progress, groups_of, make_pack
from dragoman.train.voicing.shard import VoicedShard, Voicing, make_shard
from dragoman.train.voicing.text import Row, columns_of, joined, read_rows
from dragoman.voices.registry import open_voice
from dragoman.workers import FreshProcesses, Workers

ROWS_PER_SHARD = 512  # about an hour of speech, which a fast voice speaks in seconds
ROWS_OF_SLOW_VOICES = 64  # a shard is what an interruption loses
FAST = ("espeak", "hibari")
ONE_PROCESS = FreshProcesses(1)


def voice_text(
    text: Path,
    folder: Path,
    voicing: Voicing,
    *,
    columns: str | None = None,
    limit: int | None = None,
    skip: int = 0,
    workers: Workers = ONE_PROCESS,
    fault_limit: float = 0.02,
    progress: Progress = lambda items, hours: None,
) -> Header:
    """Speak rows `skip` to `skip + limit` of a TSV file; an interrupted run goes on."""
    names, header = columns_of(text, columns)
    languages = [name for name in names if name != "_"]
    if voicing.spoken not in languages:
        raise DragomanError(
            f"{text} has no column '{voicing.spoken}' to speak; it has {', '.join(languages)}."
        )
    for share in voicing.shares:  # a wrong name is said now, and weights are fetched once
        open_voice(share.engine, voicing.spoken)
    stop = None if limit is None else skip + limit
    rows = islice(read_rows(text, names, header), skip, stop)
    made_from: MadeFrom = {
        "text": text.name,
        "sha256": sha256_of(text),
        "columns": ",".join(names),
        "skip": skip,
        "limit": limit,
        **{k: v for k, v in asdict(voicing).items() if k != "shares"},
        "voices": ",".join(f"{s.engine}*{s.weight:g}" for s in voicing.shares),
    }
    return make_pack(
        folder,
        _jobs(folder, _told(rows, voicing), voicing),
        make_shard,
        made_from=made_from,
        codec=voicing.codec,
        languages=languages,
        spoken=voicing.spoken,
        workers=workers,
        fault_limit=fault_limit,
        progress=progress,
    )


def _told(rows: Iterable[Row], voicing: Voicing) -> Iterator[Row]:
    """The rows as they are spoken: some together with the next, some broken off."""
    cutting = Hearing(voicing.spoken, cut=voicing.cut, seed=voicing.seed)
    for row in joined(rows, voicing.join, voicing.max_words, voicing.seed):
        yield replace(row, text=cutting.change(row.number, row.text))


def _jobs(folder: Path, rows: Iterator[Row], voicing: Voicing) -> Iterator[VoicedShard]:
    fast = voicing.device != "cpu" or all(share.engine in FAST for share in voicing.shares)
    size = ROWS_PER_SHARD if fast else ROWS_OF_SLOW_VOICES
    for number, group in enumerate(groups_of(rows, size)):
        yield VoicedShard(folder, number, group, voicing)

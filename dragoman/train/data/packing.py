"""Make a pack with many workers: one job per shard, finished shards are not made again."""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.files import LOCK, kept, sweep, whole_file
from dragoman.train.data.faults import FAULTS, Faults, write_faults
from dragoman.train.data.pack import (
    Codec,
    Header,
    ShardReport,
    Tick,
    finished_shard,
    read_header,
    write_header,
)
from dragoman.versions import with_this_one
from dragoman.workers import Workers

T = TypeVar("T")
Make = Callable[[Any, Tick], ShardReport]
MadeFrom = dict[str, str | int | float | bool | None]
Progress = Callable[[int, float], None]  # items and hours that are done
TICK_SECONDS = 0.5
_MADE_FROM = "made_from.json"

log = logging.getLogger(__name__)


class Partial(NamedTuple):
    """What a shard in the making holds so far."""

    items: int
    samples: int


class Job(Protocol):
    """What a worker needs to make one shard."""

    @property
    def number(self) -> int: ...


def make_pack(
    folder: Path,
    jobs: Iterable[Job],
    make: Make,
    *,
    made_from: MadeFrom,
    codec: Codec,
    languages: list[str],
    spoken: str,
    workers: Workers,
    fault_limit: float = 0.02,
    progress: Progress = lambda items, hours: None,
) -> Header:
    """Run every job whose shard is not there yet, then close the pack with its header.

    `made_from` says what the pack is a function of; a folder begun with something else is refused.
    """
    with begun(folder, made_from) as fingerprint:
        if is_finished(folder):
            return read_header(folder)
        reports = _all_reports(folder, jobs, make, workers, fault_limit, progress)
        items, hours = _size(reports)
        if items == 0:
            raise DragomanError(f"Nothing came into {folder}: the corpus has no usable item.")
        write_faults(folder / FAULTS, [fault for report in reports for fault in report.faults])
        shards = len(reports)
        header = Header(codec, languages, spoken, shards, items, hours, fingerprint, made_from)
        write_header(folder, header)
    return header


def is_finished(folder: Path) -> bool:
    return (folder / "pack.json").exists()


@contextmanager
def begun(folder: Path, made_from: MadeFrom) -> Iterator[str]:
    """Open a folder for a pack made from exactly this, and tell the fingerprint. Until the pack is
    finished, the folder is kept to this process; another one's work is waited for.

    What was begun from something else is refused, unless nothing has come of it yet.
    """
    text = msgspec.json.encode(made_from, order="sorted")
    fingerprint = hashlib.sha256(text).hexdigest()
    _check_begun(folder, text)
    if is_finished(folder):
        yield fingerprint
        return

    def tell() -> None:
        if "--multiprocessing-fork" in sys.orig_argv:  # a worker's parent would wait for it
            raise DragomanError(f"Another process is making the pack {folder}; wait for it.")
        log.warning("Another process is making the pack %s; waiting for it.", folder)

    with kept(folder, tell):
        _check_begun(folder, text)  # again: somebody may have been at work
        with whole_file(folder / _MADE_FROM, "wb") as stream:
            stream.write(text)
        _note_version(folder)
        sweep(folder)
        yield fingerprint


def _check_begun(folder: Path, text: bytes) -> None:
    """Refuse a folder of something else."""
    path = folder / _MADE_FROM
    if folder.exists() and not folder.is_dir():
        raise DragomanError(f"{folder} is a file; choose another folder.")
    if path.exists() and path.read_bytes() != text and any(folder.glob("shard-*")):
        raise DragomanError(
            f"{folder} was begun from other text or settings; choose another folder, "
            "or delete it to begin again."
        )
    if not path.exists() and folder.exists() and _others(folder):
        raise DragomanError(f"{folder} is not empty and not a pack; choose another folder.")


def _note_version(folder: Path) -> None:
    """Another version may speak or translate in another way: it is told, and noted."""
    path = folder / "made_by.json"
    before = msgspec.json.decode(path.read_bytes(), type=list[str]) if path.exists() else []
    if not any(folder.glob("shard-*")):
        before = []
    with whole_file(path, "wb") as stream:
        stream.write(msgspec.json.encode(with_this_one(folder, before)))


def _others(folder: Path) -> bool:
    """Whether there is anything in a folder but what keeps it to somebody."""
    return any(path.name != LOCK for path in folder.iterdir())


def _all_reports(
    folder: Path,
    jobs: Iterable[Job],
    make: Make,
    workers: Workers,
    fault_limit: float,
    progress: Progress,
) -> list[ShardReport]:
    """What is in the shards, in their order, once all are there."""
    faults = Faults(fault_limit)
    reports: dict[int, ShardReport] = {}
    news: dict[int, ShardReport | Partial] = {}
    for number, one in _reports(folder, jobs, make, workers):
        news[number] = one
        if isinstance(one, ShardReport):
            reports[number] = one
            faults.seen(one.items + len(one.faults))
            faults.add(one.faults)
        progress(*_size(news.values()))
    faults.check_small()
    return [reports[number] for number in sorted(reports)]


def hours_there(folder: Path) -> float:
    """Hours of speech in the shards that are finished; a file that somebody has named is none."""
    named = [path.stem.removeprefix("shard-") for path in folder.glob("shard-*.jsonl")]
    numbers = {int(number) for number in named if number.isdecimal()}
    reports = (finished_shard(folder, number) for number in numbers)
    return sum(report.samples for report in reports if report) / RATE / 3600


def groups_of(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` things, the last one maybe shorter."""
    iterator = iter(things)
    while group := list(islice(iterator, size)):
        yield group


def _size(parts: Iterable[ShardReport | Partial]) -> tuple[int, float]:
    """Items and hours."""
    sizes = [(part.items, part.samples) for part in parts]
    return sum(items for items, _ in sizes), sum(samples for _, samples in sizes) / RATE / 3600


def _reports(
    folder: Path, jobs: Iterable[Job], make: Make, workers: Workers
) -> Iterator[tuple[int, ShardReport | Partial]]:
    """Shard numbers with what they hold so far, and their reports once they are finished.

    Reports travel by the shard's own file.
    """
    known: list[tuple[int, ShardReport]] = []

    def missing() -> Iterator[Job]:
        for job in jobs:
            report = finished_shard(folder, job.number)
            if report is None:
                yield job
            else:
                known.append((job.number, report))

    try:
        for number, size in workers.each(Making(make), missing()):
            yield from known
            known.clear()
            yield number, size or _report(folder, number)
        yield from known
    finally:
        sweep(folder)


@dataclass(frozen=True)
class Making:
    """The work on a shard: it reports its progress now and then, and its number at the end."""

    make: Make

    def __call__(self, job: Job, tell: Callable[[tuple[int, Partial | None]], None]) -> None:
        told = time.monotonic()

        def tick(items: int, samples: int) -> None:
            nonlocal told
            if time.monotonic() - told > TICK_SECONDS:
                told = time.monotonic()
                tell((job.number, Partial(items, samples)))

        self.make(job, tick)
        tell((job.number, None))


def _report(folder: Path, number: int) -> ShardReport:
    report = finished_shard(folder, number)
    if report is None:
        raise DragomanError(
            f"A worker has made shard {number}, but it is not in {folder} here: choose a folder "
            "that all machines of the cluster share."
        )
    return report

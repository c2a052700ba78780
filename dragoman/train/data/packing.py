"""Make a pack with many processes: one job per shard, finished shards are not made again."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from dragoman.errors import DragomanError
from dragoman.files import sweep, whole_file
from dragoman.train.data.faults import FAULTS, Faults, write_faults
from dragoman.train.data.pack import (
    RATE,
    Codec,
    Header,
    ShardReport,
    Tick,
    finished_shard,
    read_header,
    write_header,
)

T = TypeVar("T")
Make = Callable[[Any, Tick], ShardReport]
MadeFrom = dict[str, str | int | float | bool | None]
Progress = Callable[[int, float], None]  # items and hours that are done
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


TICK_SECONDS = 0.5


class Partial(NamedTuple):
    """What a shard in the making holds so far."""

    items: int
    samples: int


class Job(Protocol):
    """What one process needs to make one shard."""

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
    processes: int,
    fault_limit: float = 0.02,
    progress: Progress = lambda items, hours: None,
) -> Header:
    """Run every job whose shard is not there yet, then close the pack with its header.

    `made_from` says what the pack is a function of; a folder begun with something else is refused.
    """
    fingerprint = begin(folder, made_from)
    if (folder / "pack.json").exists():
        return read_header(folder)
    sweep(folder)
    faults = Faults(fault_limit)
    reports: dict[int, ShardReport] = {}
    news: dict[int, ShardReport | Partial] = {}
    for number, one in _reports(folder, jobs, make, processes):
        news[number] = one
        if isinstance(one, ShardReport):
            reports[number] = one
            faults.seen(one.items + len(one.faults))
            faults.add(one.faults)
        progress(*_size(news.values()))
    faults.check_small()
    items, hours = _size(reports.values())
    if items == 0:
        raise DragomanError(f"Nothing came into {folder}: the corpus has no usable item.")
    in_order = [fault for number in sorted(reports) for fault in reports[number].faults]
    write_faults(folder / FAULTS, in_order)
    header = Header(codec, languages, spoken, len(reports), items, hours, fingerprint, made_from)
    write_header(folder, header)
    return header


def begin(folder: Path, made_from: MadeFrom) -> str:
    """Open the folder for a pack made from exactly this, and return the fingerprint.

    What was begun from something else is refused, unless nothing has come of it yet.
    """
    text = msgspec.json.encode(made_from, order="sorted")
    path = folder / "made_from.json"
    if folder.exists() and not folder.is_dir():
        raise DragomanError(f"{folder} is a file; choose another folder.")
    if path.exists() and path.read_bytes() != text and any(folder.glob("shard-*")):
        raise DragomanError(
            f"{folder} was begun from other text or settings; choose another folder, "
            "or delete it to begin again."
        )
    if not path.exists() and folder.exists() and any(folder.iterdir()):
        raise DragomanError(f"{folder} is not empty and not a pack; choose another folder.")
    with whole_file(path, "wb") as stream:
        stream.write(text)
    return hashlib.sha256(text).hexdigest()


def hours_there(folder: Path) -> float:
    """Hours of speech in the shards that are finished."""
    numbers = (int(path.stem.removeprefix("shard-")) for path in folder.glob("shard-*.jsonl"))
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
    folder: Path, jobs: Iterable[Job], make: Make, processes: int
) -> Iterator[tuple[int, ShardReport | Partial]]:
    """Shard numbers with what they hold so far, and their reports once they are finished.

    Every shard gets a process of its own: synthesisers carry hidden state from sentence to
    sentence, and what they leak goes with them. Results travel by the shard's own file.
    """
    context = get_context("spawn")
    running: dict[int, tuple[Job, BaseProcess, Connection]] = {}  # by sentinel
    jobs_folder = TemporaryDirectory(prefix="dragoman-")
    try:
        for job in jobs:
            done = finished_shard(folder, job.number)
            if done is not None:
                yield job.number, done
                continue
            while len(running) >= processes:
                yield from _reap(folder, running)
            # By a file: whoever starts a process waits until it has read what it was given, for
            # ever where it could not start, and here for as long as its imports take.
            path = Path(jobs_folder.name) / str(job.number)
            path.write_bytes(pickle.dumps((make, job)))
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_worker, args=(path, theirs), daemon=True)
            with one_thread():
                process.start()
            theirs.close()
            running[process.sentinel] = (job, process, ours)
        while running:
            yield from _reap(folder, running)
    finally:
        for _, worker, _ in running.values():
            worker.terminate()
            worker.join()
        jobs_folder.cleanup()
        sweep(folder)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that start in here compute with one thread each, unless the user wants otherwise.

    There is a process per core; linear algebra that wakes a thread per core in each of them makes
    a machine of 16 cores four times slower. It reads these variables when it is loaded.
    """
    ours = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def _worker(path: Path, answer: Connection) -> None:
    """A process' life: Ctrl-C is for the parent, who then ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make, job = pickle.loads(path.read_bytes())
    path.unlink()
    _work(make, job, answer)


def _work(make: Make, job: Job, answer: Connection) -> None:
    """In the worker process: make the shard; a DragomanError goes back as its sentence."""
    told = time.monotonic()

    def tick(items: int, samples: int) -> None:
        nonlocal told
        if time.monotonic() - told > TICK_SECONDS:
            told = time.monotonic()
            answer.send(Partial(items, samples))

    try:
        make(job, tick)
    except DragomanError as error:
        answer.send(str(error))
        sys.exit(2)
    except BrokenPipeError:  # nobody is there any more to make a shard for
        sys.exit(1)


def _reap(
    folder: Path, running: dict[int, tuple[Job, BaseProcess, Connection]]
) -> Iterator[tuple[int, ShardReport | Partial]]:
    """Wait for news; give it on, or raise an error that it is."""
    ready = wait([*running, *(answer for _, _, answer in running.values())])
    for sentinel, (job, process, answer) in list(running.items()):
        if answer in ready:
            for message in _messages(answer, process):
                if isinstance(message, str):
                    raise DragomanError(message)
                yield job.number, message
        if sentinel in ready:
            del running[sentinel]
            yield job.number, _report(folder, job, process)


def _messages(answer: Connection, process: BaseProcess) -> Iterator[str | Partial]:
    try:
        while answer.poll():
            yield answer.recv()
    except EOFError:  # it has said all it had to say
        process.join()


def _report(folder: Path, job: Job, process: BaseProcess) -> ShardReport:
    """Of a process that has ended."""
    process.join()
    if process.exitcode and process.exitcode < 0:
        raise DragomanError(
            f"A worker process was killed (signal {-process.exitcode}), perhaps for want of "
            "memory; run the same command again to go on, with fewer processes if it recurs."
        )
    report = finished_shard(folder, job.number)
    if process.exitcode or report is None:
        raise RuntimeError(f"The worker for shard {job.number} failed; its error is above.")
    return report

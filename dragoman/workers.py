"""Where work is done that can be done apart: in processes here, or on a cluster (`cluster.py`).

Work is a function of a task; what it reports comes out of `each` as it comes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar

from dragoman.errors import DragomanError

Task = TypeVar("Task")
News = TypeVar("News")
Work = Callable[[Task, Callable[[News], None]], None]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KILLED = (
    "A worker process was killed{why}, perhaps for want of memory; run the same command again to "
    "go on, with fewer processes if it recurs."
)

log = logging.getLogger(__name__)

# Spawned, not forked: inference libraries hold threads that do not survive a fork.
_context = multiprocessing.get_context("spawn")


class Workers(Protocol):
    """Who does work; each worker has one core."""

    def each(self, work: Work[Task, News], tasks: Iterable[Task]) -> Iterator[News]:
        """Do the work of every task, and yield what is reported.

        An error in one ends them all, and so does a caller who asks no further.
        """


def told_by(work: Work[Task, News], task: Task) -> list[News]:
    """All that the work on a task reports."""
    told: list[News] = []
    work(task, told.append)
    return told


@dataclass(frozen=True, slots=True)
class Told(Generic[News]):
    """What a worker sends back of a task."""

    news: list[News]
    warnings: list[str]


def done_apart(work: Work[Task, News], task: Task) -> Told[News]:
    """In a worker: do the work; what it warns of is for whoever asked for it, and who alone can
    see that another worker said the same."""
    warnings: list[str] = []
    handler = _Kept(warnings)
    logger = logging.getLogger("dragoman")
    logger.addHandler(handler)
    try:
        return Told(told_by(work, task), warnings)
    finally:
        logger.removeHandler(handler)


class _Kept(logging.Handler):
    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(record.getMessage())


def news_of(told: Told[News]) -> list[News]:
    """What a worker had to tell of a task; its warnings are given here."""
    for warning in told.warnings:
        log.warning("%s", warning)
    return told.news


@dataclass(frozen=True, slots=True)
class WarmProcesses:
    """Processes that keep what they have loaded; a task reports when it is done."""

    count: int

    def each(self, work: Work[Task, News], tasks: Iterable[Task]) -> Iterator[News]:
        """As many at once as there are processes."""
        with ProcessPoolExecutor(self.count, _context, initializer=end_with_parent) as pool:
            try:
                # Who hands in the last may find that the first has killed its worker.
                futures = [pool.submit(done_apart, work, task) for task in tasks]
                for future in as_completed(futures):
                    yield from news_of(future.result())
            except BrokenProcessPool as error:
                raise DragomanError(KILLED.format(why="")) from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def end_with_parent() -> None:
    """In a worker that waits for tasks: where the parent was killed, none will ever come."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # who started this process

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@dataclass(frozen=True, slots=True)
class FreshProcesses:
    """A process of its own for every task; what it reports comes at once.

    For work that leaves something behind, as synthesisers do that carry hidden state from sentence
    to sentence.
    """

    count: int

    def each(self, work: Work[Task, News], tasks: Iterable[Task]) -> Iterator[News]:
        """As many at once as `count` says."""
        running: dict[int, tuple[BaseProcess, Connection]] = {}  # by sentinel
        with TemporaryDirectory(prefix="dragoman-") as folder:
            try:
                for number, task in enumerate(tasks):
                    while len(running) >= self.count:
                        yield from _reap(running)
                    # By a file: the parent of a process waits until that has read what it was
                    # given, for ever where it could not start, and as long as its imports take.
                    path = Path(folder) / str(number)
                    path.write_bytes(pickle.dumps((work, task)))
                    ours, theirs = _context.Pipe(duplex=False)
                    process = _context.Process(target=_live, args=(path, theirs), daemon=True)
                    with one_thread():
                        process.start()
                    theirs.close()
                    running[process.sentinel] = (process, ours)
                while running:
                    yield from _reap(running)
            finally:
                for left, _ in running.values():
                    left.terminate()
                    left.join()


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


def _live(path: Path, answer: Connection) -> None:
    """A process' life: Ctrl-C is for the parent, who then ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work, task = pickle.loads(path.read_bytes())
    path.unlink()
    do_and_tell(work, task, answer)


def do_and_tell(work: Work[Task, Any], task: Task, answer: Connection) -> None:
    """In the worker process: a DragomanError goes back as one."""
    try:
        work(task, answer.send)
    except DragomanError as error:
        answer.send(error.plain())
        sys.exit(2)
    except BrokenPipeError:  # nobody is there any more to work for
        sys.exit(1)


def _reap(running: dict[int, tuple[BaseProcess, Connection]]) -> Iterator[Any]:
    """Wait for news; give it on, or raise an error that it is."""
    ready = wait([*running, *(answer for _, answer in running.values())])
    for sentinel, (process, answer) in list(running.items()):
        if answer in ready or sentinel in ready:
            for news in _received(answer):
                if isinstance(news, DragomanError):
                    raise news
                yield news
        if sentinel in ready:
            del running[sentinel]
            _check_end(process)


def _received(answer: Connection) -> Iterator[Any]:
    try:
        while answer.poll():
            yield answer.recv()
    except EOFError:  # it has said all it had to say
        pass


def _check_end(process: BaseProcess) -> None:
    process.join()
    if process.exitcode and process.exitcode < 0:
        raise DragomanError(KILLED.format(why=f" (signal {-process.exitcode})"))
    if process.exitcode:
        raise RuntimeError("A worker process failed; its error is above.")

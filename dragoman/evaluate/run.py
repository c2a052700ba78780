"""A run: a corpus interpreted by one setup, its traces kept in a folder.

The folder holds `setup.yaml` and `traces.jsonl`; a run that was interrupted goes on where it
stopped, and a clip that cannot be interpreted is counted and named, not fatal.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.audio.source import open_audio
from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.setup import Setup, System
from dragoman.trace import Trace, TraceWriter, read_traces

TRACES = "traces.jsonl"


@dataclass(frozen=True, slots=True)
class Failure:
    """A clip that could not be interpreted, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of a corpus."""

    traces: list[Trace]
    failures: list[Failure]


def interpret_clip(system: System, clip: Clip) -> Trace:
    """One clip through the loop, as if its speaker spoke it now."""
    reference = clip.texts.get(system.setup.target)
    trace = Trace(clip.index, clip.audio.name, reference)
    chunks = open_audio(
        clip.audio, start=clip.start or 0.0, end=clip.end, step_ms=system.setup.step_ms
    )
    start_ms = 1000.0 * (clip.start or 0.0)
    interpreter = system.interpreter(record=trace, recording=clip.audio.name, start_ms=start_ms)
    for _ in interpreter.run(chunks):
        pass
    return trace


def run_corpus(
    clips: Sequence[Clip],
    setup: Setup,
    folder: Path,
    *,
    jobs: int = 1,
    system: System | None = None,
    only: Collection[int] | None = None,
    on_clip: Callable[[int, int], None] = lambda done, total: None,
) -> Run:
    """Interpret every clip that the folder has no trace of yet; give all traces, in order.

    `jobs` above 1 interprets in that many processes, each with a model and one thread of its own.
    `only` limits the run to some clips of the corpus; the others may follow in a later call.
    `on_clip` hears of progress: (clips done, clips in all).
    """
    _claim(folder, setup, clips)
    if only is not None:
        clips = [clip for clip in clips if clip.index in only]
    wanted = {clip.index for clip in clips}
    path = folder / TRACES
    known = read_traces(path, unfinished=False)
    done = {trace.index: trace for trace in known if trace.index in wanted}
    todo = [clip for clip in clips if clip.index not in done]
    failures = []
    on_clip(len(clips) - len(todo), len(clips))
    with TraceWriter.open(path) as writer:
        for count, outcome in enumerate(_outcomes(todo, setup, jobs, system), start=1):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                writer.write(outcome)
                done[outcome.index] = outcome
            on_clip(len(clips) - len(todo) + count, len(clips))
    return Run([done[index] for index in sorted(done)], failures)


def _claim(folder: Path, setup: Setup, clips: Sequence[Clip]) -> None:
    """Take the folder for this run, or go on with the same run; refuse to mix two."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DragomanError(f"Cannot use the folder {folder}: {error.strerror}.") from error
    mark = {"setup": asdict(setup), "corpus": fingerprint(clips)}
    path = folder / "run.json"
    if path.exists():
        if json.loads(path.read_text(encoding="utf-8")) != mark:
            raise DragomanError(
                f"The folder {folder} holds another run (its setup or its corpus differs); "
                f"choose another folder with --output."
            )
    else:
        path.write_text(json.dumps(mark, indent=1, ensure_ascii=False), encoding="utf-8")
    setup.write(folder / "setup.yaml")
    (folder / TRACES).touch()


def fingerprint(clips: Sequence[Clip]) -> str:
    """A corpus in a few letters: what is heard and what it is compared with."""
    rows = [(c.index, c.audio.name, c.start, c.end, sorted(c.texts.items())) for c in clips]
    text = json.dumps(rows, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Outcome = Trace | Failure


def _outcomes(
    clips: Sequence[Clip], setup: Setup, jobs: int, system: System | None
) -> Iterator[Outcome]:
    if not clips:
        return iter(())
    if jobs <= 1:
        ready = system or System(setup)
        return (_attempt(ready, clip) for clip in clips)
    return _in_processes(clips, setup.with_changes(threads=1), min(jobs, len(clips)))


def _in_processes(clips: Sequence[Clip], setup: Setup, jobs: int) -> Iterator[Outcome]:
    # Spawned, not forked: inference libraries hold threads that do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_enter, initargs=(setup,)) as pool:
        futures: list[Future[Outcome]] = [pool.submit(_attempt_here, clip) for clip in clips]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_here: dict[str, Any] = {}  # the system of this worker process


def _enter(setup: Setup) -> None:
    _here["system"] = System(setup)


def _attempt_here(clip: Clip) -> Outcome:
    return _attempt(_here["system"], clip)


def _attempt(system: System, clip: Clip) -> Outcome:
    # A setup that does not fit fails the run, not every clip of it.
    system.interpreter(recording=clip.audio.name)
    try:
        return interpret_clip(system, clip)
    except DragomanError as error:
        return Failure(clip.index, str(error))

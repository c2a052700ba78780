"""A run: a corpus interpreted by one setup, its traces kept in a folder.

The folder holds `setup.yaml` and `traces.jsonl`; a run that was interrupted goes on where it
stopped, and a clip that cannot be interpreted is counted and named, not fatal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TextIO, cast

from dragoman.audio.chunk import Chunk
from dragoman.audio.source import open_audio
from dragoman.awake import awake
from dragoman.clock import SimulatedClock
from dragoman.corpora import Clip
from dragoman.detectors import NoEndsError
from dragoman.errors import DragomanError
from dragoman.evaluate.claim import claim, held, note_left_out, settle
from dragoman.evaluate.names import told_apart
from dragoman.files import sentences_for, whole_file
from dragoman.interpreter import step
from dragoman.own import OwnError, fault_of_own
from dragoman.setup import Setup, System
from dragoman.trace import Trace, TraceWriter, read_traces
from dragoman.workers import Workers

TRACES = "traces.jsonl"
_END = b'{"end":true}\n'  # the last line of a whole trace
_BEGIN = re.compile(rb'^{"dragoman_trace":\d+,"index":(-?\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Failure:
    """A clip that could not be interpreted, and why."""

    index: int
    audio: str
    reason: str
    own: bool = False
    """It was code of the user's own that failed, such as a policy, and no fault of the clip's."""

    def __str__(self) -> str:
        return f"clip {self.index} ({self.audio}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of a corpus."""

    traces: list[Trace]
    failures: list[Failure]

    def checked(self) -> Run:
        """The same run, if anything came out at all."""
        if not self.traces:
            raise nothing_heard(self.failures)
        return self


def nothing_heard(failures: Sequence[Failure]) -> DragomanError:
    """What to say where no clip could be interpreted."""
    if len(failures) == 1:
        return DragomanError(f"The only clip could not be interpreted: {failures[0]}")
    return DragomanError(
        f"None of the {len(failures)} clips could be interpreted. The first is {failures[0]}"
    )


Outcome = Trace | Failure


class _Speaker:
    """A clip on its way through the loop, as if it were spoken now."""

    def __init__(self, system: System, clip: Clip) -> None:
        self._clip, self._step_ms, name = clip, system.setup.step_ms, clip.name
        self.trace = Trace(
            clip.index,
            name,
            clip.texts.get(system.setup.target),
            more_references=clip.more_references,
        )
        self._chunks: Iterator[Chunk] | None = None
        self.outcome: Outcome | None = None  # once it is known
        self.chunk: Chunk | None = None
        try:
            self.interpreter = system.interpreter(
                record=self.trace,
                clock=SimulatedClock(awake()),
                recording=name,
                start_ms=1000.0 * (clip.start or 0.0),
            )
        except NoEndsError as why:
            self.go_on(why)
        else:
            self.go_on(None)

    def go_on(self, error: Exception | None) -> None:
        """Take the next chunk; without one, or with an error, this is the end."""
        clip = self._clip
        try:
            if error is not None:
                raise error
            if self._chunks is None:
                self._chunks = open_audio(
                    clip.audio, start=clip.start or 0.0, end=clip.end, step_ms=self._step_ms
                )
            self.chunk = next(self._chunks, None)
            if self.chunk is None:
                self.outcome = self.trace
        except Exception as error:
            why = fault_of_own(error) or error
            if not isinstance(why, DragomanError):
                raise
            self.outcome = Failure(clip.index, clip.name, str(why), isinstance(why, OwnError))


def interpret_clips(system: System, clips: Sequence[Clip]) -> list[Outcome]:
    """Clips through the loop side by side: what the model does, it does for all of them at once."""
    speakers = [_Speaker(system, clip) for clip in clips]
    while going := [(s, s.chunk) for s in speakers if s.outcome is None and s.chunk is not None]:
        updates = step([s.interpreter for s, _ in going], [chunk for _, chunk in going])
        for (speaker, _), update in zip(going, updates, strict=True):
            speaker.go_on(update.error)
    return [s.outcome for s in speakers if s.outcome is not None]


def run_corpus(
    clips: Sequence[Clip],
    setup: Setup,
    folder: Path,
    *,
    workers: Workers | None = None,
    together: int = 1,
    system: System | None = None,
    only: Collection[int] | None = None,
    on_clip: Callable[[int, int], None] = lambda done, total: None,
) -> Run:
    """Interpret every clip that the folder has no trace of yet; return all traces, in order.

    `workers` have a model and one thread each; without them this process interprets.
    `together` clips are interpreted side by side, each charged for its share of the work: much
    faster on a GPU. `only` limits the run to some clips of the corpus; the others may follow in a
    later call.
    `on_clip` hears of progress: (clips done, clips in all).
    """
    with held(folder):
        claim(folder, setup, clips, heard=_heard(folder / TRACES))
        clips = told_apart(clips)
        if only is not None:
            clips = [clip for clip in clips if clip.index in only]
        outcomes = partial(
            _outcomes, setup, workers, together, system, cache(partial(settle, folder))
        )
        run = _run_in(folder, clips, outcomes, on_clip)
        failures = {failure.index: str(failure) for failure in run.failures}
        note_left_out(folder, failures, {trace.index for trace in run.traces})
        return run


def _run_in(
    folder: Path,
    clips: Sequence[Clip],
    outcomes: Callable[[Sequence[Clip]], Iterator[Outcome]],
    on_clip: Callable[[int, int], None],
) -> Run:
    """Add what is missing to the traces in a folder that is held."""
    wanted = {clip.index for clip in clips}
    path = folder / TRACES
    with sentences_for(path):
        path.touch()
    _drop_torn_end(path)
    known = list(read_traces(path, unfinished=False))
    done = {trace.index: trace for trace in known if trace.index in wanted}
    todo = [clip for clip in clips if clip.index not in done]
    failures: list[Failure] = []
    on_clip(len(clips) - len(todo), len(clips))
    with TraceWriter.open(path) as writer:
        for count, outcome in enumerate(outcomes(todo), start=1):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                with sentences_for(path):
                    writer.write(outcome)
                done[outcome.index] = outcome
                known.append(outcome)
            on_clip(len(clips) - len(todo) + count, len(clips))
    _put_in_order(path, known)
    failures.sort(key=lambda failure: failure.index)
    return Run([done[index] for index in sorted(done)], failures)


def _put_in_order(path: Path, traces: Sequence[Trace]) -> None:
    """The file by the clips' numbers, whichever process was done first: other tools take its lines
    for the corpus's."""
    ordered = sorted(traces, key=lambda trace: trace.index)
    if list(traces) == ordered:
        return
    with whole_file(path) as file:
        writer = TraceWriter(cast(TextIO, file), path)
        for trace in ordered:
            writer.write(trace)


def _drop_torn_end(path: Path) -> None:
    """Cut off what follows the last whole trace: a run that was killed may end inside a line."""
    if (whole := len(_whole(path))) < path.stat().st_size:
        with sentences_for(path), path.open("r+b") as file:
            file.truncate(whole)


def _whole(path: Path) -> bytes:
    """As much of a file as are whole traces."""
    with sentences_for(path):
        content = path.read_bytes() if path.exists() else b""
    end = content.rfind(_END)
    return b"" if end < 0 else content[: end + len(_END)]


def _heard(path: Path) -> set[int]:
    """The numbers of the clips that a file has traces of."""
    return {int(index) for index in _BEGIN.findall(_whole(path))}


def _outcomes(
    setup: Setup,
    workers: Workers | None,
    together: int,
    system: System | None,
    on_device: Callable[[str], None],
    clips: Sequence[Clip],
) -> Iterator[Outcome]:
    """What comes of the clips. `on_device` hears what interprets them before the first is told."""
    groups = [clips[at : at + together] for at in range(0, len(clips), together)]
    if not groups:
        return
    if workers is not None:
        for device, outcome in workers.each(Interpreting(setup.with_changes(threads=1)), groups):
            on_device(device)
            yield outcome
        return
    ready = system or System(setup)
    on_device(ready.device)
    for group in groups:
        yield from _attempt(ready, group)


_here: dict[Setup, System] = {}  # what this worker has loaded


@dataclass(frozen=True, slots=True)
class Interpreting:
    """The work of one worker: clips by a setup, whose model it keeps for the next ones. It tells
    what comes of each, and the device."""

    setup: Setup

    def __call__(self, clips: Sequence[Clip], tell: Callable[[tuple[str, Outcome]], None]) -> None:
        if self.setup not in _here:
            _here.clear()
            _here[self.setup] = System(self.setup)
        system = _here[self.setup]
        for outcome in _attempt(system, clips):
            tell((system.device, outcome))


def _attempt(system: System, clips: Sequence[Clip]) -> list[Outcome]:
    # A setup that does not fit fails the run, not every clip of it; what one clip lacks, that clip.
    with suppress(NoEndsError):
        system.interpreter(recording=clips[0].name)
    return interpret_clips(system, clips)

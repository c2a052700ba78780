"""Where the sound of `translate` and `live` comes from, and how it is ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.audio.chunk import Chunk
from dragoman.audio.pcm import RawFormat
from dragoman.awake import awake
from dragoman.clock import Clock, RealClock, SimulatedClock
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import Feature
from dragoman.setup import System
from dragoman.trace import Recorder


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a file that is wanted, in seconds, how plain samples are to be read, which audio
    track is heard, and which channel of it."""

    start: float = 0.0
    end: float | None = None
    raw: RawFormat | None = None
    track: str | None = None
    channel: int | None = None


@dataclass(frozen=True, slots=True)
class Sound:
    """Chunks, the clock for the work on them, which begins when it is asked for, and how to end."""

    chunks: Iterator[Chunk]
    clock: Callable[[], Clock]
    live: bool
    stop: Callable[[], None] | None = None


def open_file(
    file: str | Path,
    step_ms: float,
    realtime: bool = False,
    part: Part | None = None,
    original: bool = False,
) -> Sound:
    """A recording, or a pipe ('-': standard input), which is live by nature. With `original` its
    chunks hold their sound as it was recorded, too.

    A recording waits while this process is stopped (Ctrl-Z); a live speaker talks on, so that what
    comes later for it is lag, but no work.

    What is wrong with a file is told here. A pipe is read from now on, whatever else is done
    before anybody listens to it: what it brings meanwhile counts as late, as it is.
    """
    from dragoman.audio.arrivals import BLOCK_MS, Arrivals
    from dragoman.audio.pace import paced
    from dragoman.audio.source import is_pipe, open_audio

    part = part or Part()
    piped = is_pipe(file)
    chunks = open_audio(
        file,
        start=part.start,
        end=part.end,
        step_ms=BLOCK_MS if piped else step_ms,
        raw=part.raw,
        track=part.track,
        channel=part.channel,
        original=original,
    )
    if piped:
        clock = _wall_clock()
        arrivals = Arrivals(chunks, step_ms, realtime=realtime, clock=lambda: clock.now() / 1000)
        return Sound(arrivals.chunks(), lambda: clock, True, arrivals.stop)
    if realtime:
        return Sound(paced(chunks, clock=awake()), lambda: RealClock(awake()), True)
    return Sound(chunks, lambda: SimulatedClock(awake()), False)


def _wall_clock() -> RealClock:
    return RealClock(timer=awake())


def open_microphone(wanted: str | None, step_ms: float) -> Sound:
    """A microphone by its number or a part of its name, or the system's own."""
    from dragoman.audio.microphone import Microphone

    microphone = Microphone(wanted, step_ms)
    return Sound(microphone.chunks(), _wall_clock, True, microphone.stop)


def check_fit(system: System, both: bool) -> None:
    """Load the model; what does not fit it is told before any file is written."""
    open_interpreter(system, None, SimulatedClock(), both)


def open_interpreter(
    system: System, record: Recorder | None, clock: Clock, both: bool
) -> Interpreter:
    """An interpreter for one speaker; `both`: what he says is wanted, too."""
    if both and Feature.TRANSCRIPT not in system.model.features:
        raise DragomanError(
            f"Showing both languages needs {Feature.TRANSCRIPT}, which model "
            f"'{system.model.name}' does not have; choose another model."
        )
    return system.interpreter(record, clock, transcript=both)

"""The record of what was heard and said, and when: the one source of every metric.

Times are milliseconds. For every chunk of audio the trace keeps when it arrived, when work on it
began and when that work ended; every computation-aware latency is derived from these. A trace
file is JSON lines that grow while the speaker talks, so a crash loses nothing that was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TextIO

import msgspec

from dragoman.errors import DragomanError
from dragoman.files import sentences_for
from dragoman.metrics.erasure import erased_units
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.whole_units import unit_chunks

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Hearing:
    """One chunk of audio: how much was heard with it, and when it was worked on."""

    audio_ms: float  # audio heard in all, this chunk included
    arrival_ms: float
    start_ms: float
    end_ms: float

    @property
    def compute_ms(self) -> float:
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True)
class Saying:
    """Text that became final, with its spacing, and the chunk after which it did."""

    text: str
    chunk: int


@dataclass(frozen=True, slots=True)
class Showing:
    """What a viewer sees of the not yet final text after a chunk."""

    text: str
    chunk: int


class Recorder(Protocol):
    """Who listens to the interpreter's work."""

    def heard(self, event: Hearing) -> None: ...

    def said(self, event: Saying) -> None: ...

    def shown(self, event: Showing) -> None: ...


@dataclass(slots=True)
class Trace:
    """One utterance or talk, kept in memory."""

    index: int = 0
    source: str = ""  # what was heard: a file name
    reference: str | None = None
    hearings: list[Hearing] = field(default_factory=list)
    sayings: list[Saying] = field(default_factory=list)
    showings: list[Showing] = field(default_factory=list)
    more_references: tuple[str, ...] = ()

    def heard(self, event: Hearing) -> None:
        self.hearings.append(event)

    def said(self, event: Saying) -> None:
        self.sayings.append(event)

    def shown(self, event: Showing) -> None:
        self.showings.append(event)

    @property
    def prediction(self) -> str:
        return "".join(said.text for said in self.sayings).strip()

    @property
    def source_length(self) -> float:
        return self.hearings[-1].audio_ms if self.hearings else 0.0

    def updates(self) -> list[tuple[str, str]]:
        """After each chunk: the text that became final with it, and the interim text shown."""
        said: dict[int, str] = {}
        for saying in self.sayings:
            said[saying.chunk] = said.get(saying.chunk, "") + saying.text
        shown = {showing.chunk: showing.text for showing in self.showings}
        interim, updates = "", []
        for chunk in range(len(self.hearings)):
            interim = shown.get(chunk, interim)
            updates.append((said.get(chunk, ""), interim))
        return updates

    def instance(self, unit: Unit = "word") -> Instance:
        """The trace as metrics want it: one delay per word (or character) of the prediction."""
        chunks = unit_chunks([(said.text, said.chunk) for said in self.sayings], unit)
        compute, elapsed = 0.0, []
        for heard in self.hearings:
            compute += heard.compute_ms
            elapsed.append(heard.audio_ms + compute)
        return Instance(
            index=self.index,
            source=self.source,
            prediction=self.prediction,
            reference=self.reference,
            more_references=self.more_references,
            source_length=self.source_length,
            delays=tuple(self.hearings[c].audio_ms for c in chunks),
            elapsed=tuple(elapsed[c] for c in chunks),
            works=tuple(self.hearings[c].compute_ms for c in chunks),
            ends=tuple(self.hearings[c].end_ms for c in chunks),
            compute=compute,
            erased=erased_units(self.updates(), unit),
        )


class TraceWriter:
    """A recorder that writes as it goes; memory stays flat however long the talk."""

    def __init__(self, file: TextIO, path: Path | None = None) -> None:
        self._file, self._path = file, path or Path("the trace")
        self._encode = msgspec.json.Encoder().encode

    @classmethod
    def open(cls, path: Path) -> TraceWriter:
        """Append to `path`, or begin it."""
        return cls._opened(path, "a")

    @classmethod
    def begun(cls, path: Path) -> TraceWriter:
        """Begin `path` anew."""
        return cls._opened(path, "w")

    @classmethod
    def _opened(cls, path: Path, mode: Literal["a", "w"]) -> TraceWriter:
        try:
            # Line by line on the disk: a crash loses nothing, and a full disk is told at once.
            return cls(path.open(mode, encoding="utf-8", buffering=1), path)
        except OSError as error:
            raise DragomanError(f"Cannot write the trace to {path}: {error.strerror}.") from error

    def begin(
        self,
        index: int,
        source: str,
        reference: str | None = None,
        more_references: Sequence[str] = (),
    ) -> None:
        """Start the record of one utterance or talk."""
        row = {"dragoman_trace": FORMAT, "index": index, "source": source, "reference": reference}
        self._write(row | {"more_references": more_references} if more_references else row)

    def heard(self, event: Hearing) -> None:
        self._write({"heard": [event.audio_ms, event.arrival_ms, event.start_ms, event.end_ms]})

    def said(self, event: Saying) -> None:
        self._write({"said": event.text, "chunk": event.chunk})

    def shown(self, event: Showing) -> None:
        self._write({"shown": event.text, "chunk": event.chunk})

    def end(self) -> None:
        """The record is complete; a file without this line was cut short."""
        self._write({"end": True})

    def write(self, trace: Trace) -> None:
        """Write a whole trace."""
        self.begin(trace.index, trace.source, trace.reference, trace.more_references)
        for heard in trace.hearings:
            self.heard(heard)
        for said in trace.sayings:
            self.said(said)
        for shown in trace.showings:
            self.shown(shown)
        self.end()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written was told when it was tried
            self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, row: dict[str, Any]) -> None:
        with sentences_for(self._path):
            self._file.write(self._encode(row).decode() + "\n")


def is_trace(path: Path) -> bool:
    """Whether a file is one of ours, by its first line."""
    with path.open("rb") as file:
        return b'"dragoman_trace"' in file.readline(4096)


def read_traces(
    path: Path, *, unfinished: bool = True, faults: list[str] | None = None
) -> Iterator[Trace]:
    """The traces of a file in order; `unfinished` also returns one that was cut short.

    A trace with a broken line is left out where somebody wants to hear of its `faults`.
    """
    trace: Trace | None = None
    lost = False  # what comes belongs to a trace that is left out: nothing more is told of it
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    try:
        lines = path.open("rb")
    except OSError as error:
        raise DragomanError(f"Cannot read the trace {path}: {error.strerror}.") from error
    with lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            try:
                row = decode(line)
                if "dragoman_trace" in row:
                    if trace is not None and unfinished:
                        yield trace
                    trace, lost = None, False
                    trace = msgspec.convert(row, _Begun).trace()
                elif trace is None:
                    raise ValueError("no record was begun")
                elif "end" in row:
                    yield trace
                    trace = None
                else:
                    _take(trace, row)
            except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
                torn = isinstance(error, msgspec.DecodeError) and not line.endswith(b"\n")
                if torn and number > 1:
                    break  # by a disk that was full, or a power cut: what came before holds
                fault = f"Line {number} of {path} is not a line of a Dragoman trace ({error})."
                if faults is None:
                    raise DragomanError(fault) from error
                if not lost:
                    faults.append(fault)
                trace, lost = None, True
    if trace is not None and unfinished:
        yield trace


class _Begun(msgspec.Struct):
    """The line with which a trace begins."""

    index: int
    source: str
    reference: str | None
    more_references: tuple[str, ...] = ()

    def trace(self) -> Trace:
        return Trace(self.index, self.source, self.reference, more_references=self.more_references)


def _take(trace: Trace, row: dict[str, Any]) -> None:
    if "heard" in row:
        hearing = Hearing(*msgspec.convert(row["heard"], tuple[float, float, float, float]))
        if hearing.compute_ms < 0:
            raise ValueError("work ends before it begins")
        trace.heard(hearing)
        return
    kind = "said" if "said" in row else "shown"
    chunk = index(row["chunk"])
    if not 0 <= chunk < len(trace.hearings):
        raise ValueError(f"chunk {chunk} was not heard")
    if kind == "said":
        trace.said(Saying(str(row["said"]), chunk))
    else:
        trace.shown(Showing(str(row["shown"]), chunk))

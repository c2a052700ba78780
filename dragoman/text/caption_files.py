"""Captions on disk, as SRT or WebVTT: after every cue the file is complete and can be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Protocol, Self

from dragoman.errors import DragomanError
from dragoman.text.captions import CaptionMaker, CaptionSettings, Cue, TimedWord

_TIME = r"(\d+):(\d\d):(\d\d)[.,](\d{3})"
_BLOCK = re.compile(rf"(\d+)\n{_TIME} --> {_TIME}\n((?:.+\n)+)\n")
_PART = re.compile(rf"(\d+(\n([\d:.,> -]*|{_TIME} --> {_TIME}\n(.+\n)*.*))?)?")
"""What a crash leaves of a last cue; anything else is somebody's text."""
MOST_CUT_OFF = 500
"""Characters that this may have."""


class CaptionFile:
    """Words go in as they are said; each cue is written in one piece when it is complete.

    With `source_language` the speaker's own words stand below the translation (`say_source`).
    Words count their times from `offset` seconds on. With `resume` an existing file is gone on
    with: what a crash left of a last cue is cut off, as are cues from `offset` on, numbers go on,
    no cue begins before the last one ends, and without an `offset` times count from there.
    """

    def __init__(
        self,
        path: str | Path,
        language: str = "en",
        settings: CaptionSettings | None = None,
        *,
        source_language: str | None = None,
        resume: bool = False,
        offset: float | None = None,
    ) -> None:
        self.path = Path(path)
        header, block = _format_of(self.path)
        kept = read_captions(self.path) if resume else Kept()
        kept = kept if offset is None else kept.before(offset)
        self._block = partial(block, point=".") if kept.point == "." else block
        self._count = kept.number
        self._offset = kept.end if offset is None else offset
        self._maker = CaptionMaker(language, settings, source_language, kept.end - self._offset)
        try:
            self._file = self.path.open("r+b" if kept.text else "wb", buffering=0)
            if kept.text:  # else it is empty, or a pipe, which has no places
                self._file.truncate(self._file.seek(len(kept.text.encode())))
        except OSError as error:
            raise DragomanError(f"{path} cannot be written: {error.strerror}.") from None
        if not kept.text:
            self._write(header)

    def say(self, word: TimedWord) -> None:
        self._write_cues(self._maker.say(word))

    def say_source(self, word: TimedWord) -> None:
        """A word of the speaker, where both languages are shown."""
        self._write_cues(self._maker.say_source(word))

    def spoken_in(self, language: str) -> None:
        """Which language the speaker speaks, where that was not known before."""
        self._maker.spoken_in(language)

    def pause(self, now: float, silence: float) -> None:
        """At a moment nobody has spoken for so many seconds: what has ended is written."""
        self._write_cues(self._maker.pause(now, silence))

    def close(self) -> None:
        """Write the last cue. May be called twice."""
        if not self._file.closed:
            try:
                self._write_cues(self._maker.finish())
            finally:
                self._file.close()

    def _write_cues(self, cues: Iterable[Cue]) -> None:
        for cue in cues:
            self._count += 1
            later = replace(cue, start=cue.start + self._offset, end=cue.end + self._offset)
            self._write(self._block(self._count, later))

    def _write(self, text: str) -> None:
        left = memoryview(text.encode())
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]
        except OSError as error:
            raise DragomanError(f"{self.path} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Kept:
    """The whole cues of a file: its text with them, and for each its number and where it ends."""

    text: str = ""
    cues: tuple[Cue, ...] = ()
    numbers: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    point: str = ""
    """What stands before milliseconds: some write SRT with the dots of WebVTT."""

    @property
    def end(self) -> float:
        return self.cues[-1].end if self.cues else 0.0

    @property
    def number(self) -> int:
        return self.numbers[-1] if self.numbers else 0

    def before(self, moment: float) -> Kept:
        """The cues that begin before a moment."""
        count = sum(cue.start < moment for cue in self.cues)
        if count == len(self.cues):
            return self
        if not count:
            return Kept()
        text = self.text[: self.places[count - 1]]
        return replace(
            self,
            text=text,
            cues=self.cues[:count],
            numbers=self.numbers[:count],
            places=self.places[:count],
        )


def read_captions(path: Path) -> Kept:
    """What a file of captions holds, if it is there; what a crash left of a cue is left out."""
    header, _ = _format_of(path)
    if path.is_fifo():
        raise DragomanError(f"{path} cannot be gone on with: a pipe keeps nothing.")
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return Kept()
    except OSError as error:
        raise DragomanError(f"{path} cannot be read: {error.strerror}.") from None
    text = found.decode("utf-8", errors="ignore")  # a crash may leave a part of a character
    if header.startswith(text):
        return Kept()
    place, point = len(header), ""
    cues, numbers, places = [], [], []
    while (block := _BLOCK.match(text, place)) is not None:
        place, point = block.end(), text[block.start(5) - 1]
        start, end = _seconds(*block.groups()[1:5]), _seconds(*block.groups()[5:9])
        shown = unescape(block[10]) if header else block[10]
        cues.append(Cue(start, end, tuple(shown.splitlines())))
        numbers.append(int(block[1]))
        places.append(place)
    ours = text.startswith(header) and found.startswith(text[:place].encode())
    rest = text[place:]
    if not (ours and len(rest) <= MOST_CUT_OFF and _PART.fullmatch(rest)):
        raise DragomanError(
            f"{path} cannot be gone on with: what follows cue {len(cues)} is not written as "
            "Dragoman writes captions; name another file."
        )
    return Kept(text[:place], tuple(cues), tuple(numbers), tuple(places), point)


def _seconds(hours: str, minutes: str, seconds: str, milliseconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(milliseconds) / 1000


def srt_block(number: int, cue: Cue, point: str = ",") -> str:
    """One cue in an SRT file."""
    text = "\n".join(cue.lines).replace("-->", "→")
    return _block(number, cue, text, point)


def vtt_block(number: int, cue: Cue, point: str = ".") -> str:
    """One cue in a WebVTT file."""
    text = escape("\n".join(cue.lines), quote=False)
    return _block(number, cue, text, point)


def _block(number: int, cue: Cue, text: str, point: str) -> str:
    return f"{number}\n{_clock(cue.start, point)} --> {_clock(cue.end, point)}\n{text}\n\n"


class _Block(Protocol):
    def __call__(self, number: int, cue: Cue, /, point: str = ...) -> str: ...


_FORMATS: dict[str, tuple[str, _Block]] = {
    ".srt": ("", srt_block),
    ".vtt": ("WEBVTT\n\n", vtt_block),
}


SUFFIXES = tuple(_FORMATS)
"""How the names of caption files end."""


def captions_of(suffix: str, cues: Iterable[Cue]) -> str:
    """A whole caption file of these cues."""
    header, block = _FORMATS[suffix]
    return header + "".join(block(number, cue) for number, cue in enumerate(cues, 1))


def _format_of(path: Path) -> tuple[str, _Block]:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise DragomanError(f"Captions are written to a .srt or a .vtt file, not to {path}.")
    return found


def _clock(seconds: float, point: str) -> str:
    """HH:MM:SS and milliseconds after a comma (SRT) or a point (WebVTT)."""
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}{point}{milliseconds % 1000:03}"

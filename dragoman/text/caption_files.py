"""Captions on disk, as SRT or WebVTT: after every cue the file is complete and can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.errors import DragomanError
from dragoman.text.captions import CaptionMaker, CaptionSettings, Cue, TimedWord


class CaptionFile:
    """Words go in as they are said; each cue is written in one piece when it is complete."""

    def __init__(
        self, path: str | Path, language: str = "en", settings: CaptionSettings | None = None
    ) -> None:
        self.path = Path(path)
        self._maker = CaptionMaker(language, settings)
        self._header, self._block = _format_of(self.path)
        self._count = 0
        try:
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            raise DragomanError(f"{path} cannot be written: {error.strerror}.") from None
        self._write(self._header)

    def say(self, word: TimedWord) -> None:
        self._write_cues(self._maker.say(word))

    def close(self) -> None:
        """Write the last cue. May be called twice."""
        if not self._file.closed:
            self._write_cues(self._maker.finish())
            self._file.close()

    def _write_cues(self, cues: Iterable[Cue]) -> None:
        for cue in cues:
            self._count += 1
            self._write(self._block(self._count, cue))

    def _write(self, text: str) -> None:
        try:
            self._file.write(text.encode())
        except OSError as error:
            raise DragomanError(f"{self.path} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def srt_block(number: int, cue: Cue) -> str:
    """One cue in an SRT file."""
    text = "\n".join(cue.lines).replace("-->", "→")
    return f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{text}\n\n"


def vtt_block(number: int, cue: Cue) -> str:
    """One cue in a WebVTT file."""
    text = escape("\n".join(cue.lines), quote=False)
    return f"{number}\n{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{text}\n\n"


_FORMATS: dict[str, tuple[str, Callable[[int, Cue], str]]] = {
    ".srt": ("", srt_block),
    ".vtt": ("WEBVTT\n\n", vtt_block),
}


def _format_of(path: Path) -> tuple[str, Callable[[int, Cue], str]]:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise DragomanError(f"Captions are written to a .srt or a .vtt file, not to {path}.")
    return found


def _clock(seconds: float, point: str) -> str:
    """HH:MM:SS and milliseconds after a comma (SRT) or a point (WebVTT)."""
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}{point}{milliseconds % 1000:03}"

"""The audio tracks of a file: films have several, one for each language."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.text.languages import look_up

# As ffmpeg tells of a file, in the same way for many years; ffprobe may not be there.
_STREAM = re.compile(r"\s*Stream #0:\d+(?:\[\w+\])?(?:\((\w+)\))?: (\w+): (.*)")
_LAYOUT = re.compile(r" Hz, ([^,]+)")
_TITLE = re.compile(r"\s+(?:title|name)\s+: (.+)")


@dataclass(frozen=True, slots=True)
class Track:
    """An audio track, as far as its file tells."""

    language: str | None = None
    layout: str = ""
    """Its channels: 'stereo', '5.1'."""
    title: str = ""

    def is_in(self, language: str) -> bool:
        if self.language is None:
            return False
        mine, wanted = look_up(self.language), look_up(language)
        if mine is None or wanted is None:
            return self.language.casefold() == language.casefold()
        return mine.code == wanted.code

    def __str__(self) -> str:
        known = look_up(self.language or "")
        language = known.name if known else self.language
        return ", ".join(filter(None, (language, self.layout, self.title)))


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds."""

    tracks: tuple[Track, ...] = ()
    picture: bool = False
    subtitles: int = 0


def contents_of(path: Path) -> Contents:
    """What is in a file, as ffmpeg tells."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise DragomanError(f"To look into {path}, ffmpeg is needed: install it and try again.")
    return _told([program, "-nostdin", "-hide_banner", "-i", f"file:{path}"], b"")


def contents_by(beginning: bytes) -> Contents:
    """What is in something that begins so, as ffmpeg tells, which is there."""
    return _told(["ffmpeg", "-hide_banner", "-i", "pipe:0"], beginning)


def _told(asked: Sequence[str], given: bytes) -> Contents:
    told = subprocess.run(asked, input=given, capture_output=True).stderr
    return read_contents(told.decode(errors="replace"))


def read_contents(told: str) -> Contents:
    """What ffmpeg says of a file."""
    tracks: list[Track] = []
    picture, subtitles, kind = False, 0, ""
    for line in told.splitlines():
        if stream := _STREAM.match(line):
            language, kind, about = stream.groups()
            picture |= kind == "Video" and "(attached pic)" not in about
            subtitles += kind == "Subtitle"
            if kind == "Audio":
                layout = _LAYOUT.search(about)
                language = None if language == "und" else language
                tracks.append(Track(language, layout[1] if layout else ""))
        elif kind == "Audio" and (title := _TITLE.match(line)):
            tracks[-1] = Track(tracks[-1].language, tracks[-1].layout, title[1].strip())
    return Contents(tuple(tracks), picture, subtitles)


def number_of(wanted: str, tracks: Sequence[Track], name: str) -> int:
    """The number, from 0 on, of the track that somebody names by its number, from 1 on, or by its
    language; of several in a language it is the first."""
    if wanted.isdecimal():
        if 1 <= int(wanted) <= len(tracks):
            return int(wanted) - 1
    else:
        for number, track in enumerate(tracks):
            if track.is_in(wanted):
                return number
    raise DragomanError(f"{name} has {listed(tracks)}; there is no track {wanted}.")


def listed(tracks: Sequence[Track]) -> str:
    """What there is to choose from."""
    told = [
        f"{number} ({track})" if str(track) else str(number)
        for number, track in enumerate(tracks, 1)
    ]
    return f"{len(told)} audio track{'s' if len(told) != 1 else ''}: {', '.join(told)}"


def check_only_track(wanted: str | None, name: str) -> None:
    """Refuse another track than the first of a recording that has no more, and no language."""
    if wanted is not None:
        number_of(wanted, [Track()], name)

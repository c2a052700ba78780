"""The clips of a corpus as a report shows them: what was spoken, as text and as sound."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.audio.chunk import RATE
from dragoman.audio.source import duration, open_audio
from dragoman.corpora import Clip
from dragoman.errors import DragomanError

# Ogg with Opus: 28 kbit/s for speech, and every browser plays it.
_FORMAT = {"format": "OGG", "subtype": "OPUS"}
MEGABYTE = 1_000_000
_BYTES_A_SECOND = 3500  # of speech
_SPARED = 2.0  # times as much may fit of somebody who pauses a lot


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is heard in one clip, as far as it is known."""

    text: str = ""
    sound: str = ""  # a data address, empty where the sound is left out


def spoken_clips(clips: Sequence[Clip], source: str | None, megabytes: float) -> dict[int, Spoken]:
    """Text and sound of every clip; sounds only until they fill so many megabytes."""
    room = _Room(megabytes * MEGABYTE)
    return {clip.index: Spoken(clip.texts.get(source or "", ""), room.take(clip)) for clip in clips}


class _Room:
    """What there is for sounds; what will not fit is not encoded only to be thrown away."""

    def __init__(self, size: float) -> None:
        self._left = size
        self._too_long = math.inf  # seconds of the shortest clip that did not fit

    def take(self, clip: Clip) -> str:
        """The sound of a clip as a data address; empty if there is no room or no sound."""
        if self._left <= 0:
            return ""
        room = self._left * 3 / 4  # an address has four letters for three bytes
        try:
            seconds = _seconds(clip)
            if seconds >= self._too_long or seconds * _BYTES_A_SECOND > _SPARED * room:
                return ""
            encoded = _opus(clip, room)
        except DragomanError:  # the run names such clips
            return ""
        if not encoded:
            self._too_long = seconds
            return ""
        sound = "data:audio/ogg;base64," + base64.b64encode(encoded).decode()
        self._left -= len(sound)
        return sound


def _seconds(clip: Clip) -> float:
    end = duration(clip.audio) if clip.end is None else clip.end
    return end - (clip.start or 0.0)


def _opus(clip: Clip, room: float) -> bytes:
    """A clip in Opus; nothing if it would need more than this many bytes."""
    import soundfile

    made = io.BytesIO()
    with soundfile.SoundFile(made, "w", RATE, 1, **_FORMAT) as file:
        for chunk in open_audio(clip.audio, start=clip.start or 0.0, end=clip.end):
            file.write(chunk.samples)
            if made.tell() > room:
                return b""
    return made.getvalue() if len(made.getbuffer()) <= room else b""

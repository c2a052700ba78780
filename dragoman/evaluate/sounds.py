"""The clips of a corpus as a report shows them: what was spoken, as text and as sound."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.audio.chunk import RATE
from dragoman.audio.source import open_audio
from dragoman.corpora import Clip
from dragoman.errors import DragomanError

# Ogg with Opus: 28 kbit/s for speech, and every browser plays it.
_FORMAT = {"format": "OGG", "subtype": "OPUS"}
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is heard in one clip, as far as it is known."""

    text: str = ""
    sound: str = ""  # a data address, empty where the sound is left out


def spoken_clips(clips: Sequence[Clip], source: str | None, megabytes: float) -> dict[int, Spoken]:
    """Text and sound of every clip; sounds only until they fill so many megabytes."""
    room = megabytes * MEGABYTE
    found = {}
    for clip in clips:
        sound = _address(clip, room)
        room -= len(sound)
        found[clip.index] = Spoken(clip.texts.get(source or "", ""), sound)
    return found


def _address(clip: Clip, room: float) -> str:
    """The sound of a clip as a data address; empty if there is no room or no sound."""
    try:
        encoded = _opus(clip, room * 3 / 4)
    except DragomanError:  # the run names such clips
        return ""
    if not encoded:
        return ""
    return "data:audio/ogg;base64," + base64.b64encode(encoded).decode()


def _opus(clip: Clip, room: float) -> bytes:
    """A clip in Opus; nothing if it would need more than this many bytes."""
    import soundfile

    if room <= 0:
        return b""
    made = io.BytesIO()
    with soundfile.SoundFile(made, "w", RATE, 1, **_FORMAT) as file:
        for chunk in open_audio(clip.audio, start=clip.start or 0.0, end=clip.end):
            file.write(chunk.samples)
            if made.tell() > room:
                return b""
    return made.getvalue() if len(made.getbuffer()) <= room else b""

"""The speaker and the interpreter in one stereo file, pleasant to listen to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.level import LEVEL, PEAK, frames, of_loud
from dragoman.audio.write import KeptOrDiscarded, SoundWriter
from dragoman.files import MOST_NAME, is_left, temporary_for, with_short_name

DUCK_DB = 12.0
RAMP = 0.3
"""Seconds in which the speaker becomes softer, ending when the interpreter begins."""
SHORT_GAP = 1.0
"""A pause of the interpreter this short does not bring the speaker back: levels must not pump."""
MOST_GAIN = 4.0
"""A soft speaker is brought to the interpreter's level, but noise must not become loud."""


class StereoMix(KeptOrDiscarded):
    """Speaker left, interpreter right, 16 kHz, the speaker lowered while the interpreter speaks.

    `hear` adds to the speaker; `say` adds a piece of the interpreter's speech at its moment, past
    or to come, after the pieces before it. Both tracks are on disk until `close` makes one of them.
    With `duck_db=0` both are left as they are.
    """

    def __init__(self, path: str | Path, duck_db: float = DUCK_DB) -> None:
        self._writer = SoundWriter(path, RATE, channels=2)  # first: it knows what can be written
        self._duck_db = duck_db
        self._given_up = False
        self._spans: list[tuple[float, float]] = []  # seconds in which the interpreter speaks
        with ExitStack() as opened:  # whichever cannot be opened takes the others with it
            opened.callback(self._writer.discard)
            self._speaker = self._track("speaker")
            opened.callback(self._speaker.discard)
            self._interpreter = self._track("interpreter")
            opened.pop_all()

    def hear(self, source: Samples) -> None:
        """The next of the speaker."""
        self._speaker.write(source)

    def say(self, at: float, speech: Samples) -> None:
        """A piece of the interpreter's speech (16 kHz) at a moment in seconds, or as soon as the
        pieces before it are over."""
        track = self._interpreter
        pad_until(track, at)
        begin = track.frames / RATE
        track.write(speech)
        if len(speech):
            self._spans.append((begin, track.frames / RATE))

    def close(self) -> None:
        """Mix both, to the end of the longer one, and keep the file; without one of them, which
        could not be written and was told of, there is none."""
        tracks = (self._speaker, self._interpreter)
        if not all(track.is_open for track in tracks):
            self.discard()
            return
        end = max(track.frames for track in tracks) / RATE
        try:
            for track in tracks:
                pad_until(track, end)
                track.close()
            self._mix(self._writer)
            self._writer.close()
        finally:
            self.discard()  # what is not whole by now
            for track in tracks:
                track.path.unlink(missing_ok=True)

    def give_up(self) -> None:
        """Let `close` end early, without a file; for a signal that comes while all wait for it."""
        self._given_up = True

    def discard(self) -> None:
        for file in (self._speaker, self._interpreter, self._writer):
            file.discard()

    def _track(self, name: str) -> SoundWriter:
        path = self._writer.path.resolve()  # where there is room for it
        part = temporary_for(_stem(path)).with_suffix(f".{name}.wav")
        return SoundWriter(part, named=path)

    def _mix(self, writer: SoundWriter) -> None:
        gain = _gain(self._blocks(self._speaker)) if self._duck_db else 1.0
        moments, gains = duck_curve(self._spans, self._duck_db)
        both = zip(self._blocks(self._speaker), self._blocks(self._interpreter), strict=True)
        for left, right in both:
            times = (writer.frames + np.arange(len(left))) / RATE
            curve = gain * np.interp(times, moments, gains)
            writer.write(np.stack([left * curve.astype(np.float32), right], axis=1))

    def _blocks(self, track: SoundWriter) -> Iterator[Samples]:
        import soundfile

        # Opened by us, whatever bytes its name has.
        with track.path.open("rb") as file, soundfile.SoundFile(file) as sound:
            for block in sound.blocks(10 * RATE, dtype="float32"):
                if self._given_up:
                    raise KeyboardInterrupt
                yield block


def _stem(path: Path) -> Path:
    """What the names of the tracks of a mix begin with; they are written under longer ones."""
    return with_short_name(path.with_suffix(""), MOST_NAME - 50)


def sweep_parts(path: Path) -> None:
    """Remove what a process that was killed has left of a file: a part of it, or of tracks that
    were to be mixed into it."""
    place = path.resolve()
    name, stem = with_short_name(place).name, _stem(place).name
    whole = rf"\.{re.escape(name)}\.(\d+)\.(\d+)\.tmp"
    track = rf"\.\.?{re.escape(stem)}\.(\d+)\.(\d+)\.(speaker|interpreter)\.wav(\..*\.tmp)?"
    part = re.compile(f"{whole}|{track}")
    for found in place.parent.glob(".*"):
        named = part.fullmatch(found.name)
        if named and is_left(found, named[1] or named[3], named[2] or named[4]):
            found.unlink(missing_ok=True)


def pad_until(writer: SoundWriter, moment: float) -> None:
    """Silence up to a moment, a second at a time."""
    while (left := round(moment * writer.rate) - writer.frames) > 0:
        writer.write(np.zeros(min(left, writer.rate), np.float32))


def duck_curve(spans: list[tuple[float, float]], duck_db: float) -> tuple[list[float], list[float]]:
    """The speaker's gain over time, as points of a line: down before each span, up after it."""
    low = 10 ** (-duck_db / 20)
    moments, gains = [-1.0], [1.0]  # before the file begins
    for begin, end in _joined(spans):
        moments += [begin - RAMP, begin, end, end + RAMP]
        gains += [1.0, low, low, 1.0]
    return moments, gains


def _joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for begin, end in spans:
        if joined and begin - joined[-1][1] < SHORT_GAP:
            begin = joined.pop()[0]
        joined.append((begin, end))
    return joined


def _gain(blocks: Iterable[Samples]) -> float:
    """What brings a track to the common level without clipping it."""
    levels, peak = [np.zeros(0)], 1e-9
    for block in blocks:
        levels.append(frames(block, RATE))
        peak = max(peak, float(np.abs(block).max()))
    loud = of_loud(np.concatenate(levels))
    return min(LEVEL / loud, MOST_GAIN, PEAK / peak) if loud > 0 else 1.0

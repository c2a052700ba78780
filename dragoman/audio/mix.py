"""The recording with the interpreter in it, in the recording's own quality, pleasant to hear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE, Samples, as_many
from dragoman.audio.film import Film
from dragoman.audio.level import FRAME_SECONDS, LEVEL, PEAK, frames, of_loud
from dragoman.audio.limit import frame_of, limited
from dragoman.audio.resample import resampled
from dragoman.audio.write import KeptOrDiscarded, SoundWriter, check_channels, format_of
from dragoman.files import MOST_NAME, is_left, temporary_for, with_short_name

DUCK_DB = 12.0
RAMP = 0.3
"""Seconds in which the speaker becomes softer, ending when the interpreter begins."""
SHORT_GAP = 1.0
"""A pause of the interpreter this short does not bring the speaker back: levels must not pump."""
MOST_GAIN = 4.0
"""A soft speaker is brought to the interpreter's level, but noise must not become loud."""
BLOCK = 100
"""Frames of the limiter that are mixed at once: two seconds."""
FRONT = 2
"""Channels that the interpreter is heard in: the first two, left and right in the front."""


class Mix(KeptOrDiscarded):
    """The speaker, lowered while the interpreter speaks, and the interpreter.

    `hear` adds to the recording, which keeps its rate and its channels; `say` adds a piece of the
    interpreter's speech, of the `rate` of its voice, at its moment, past or to come, after the
    pieces before it. Both are on disk until `close` makes one of them. The interpreter is in the
    middle of a recording with two channels or more. One with a single channel is the left side of
    the mix, and the interpreter the right; in a `film` both are in one channel.
    With `duck_db=0` both are as loud as they are. Nothing is clipped.
    """

    def __init__(
        self,
        path: str | Path,
        duck_db: float = DUCK_DB,
        rate: int = RATE,
        film: Film | None = None,
    ) -> None:
        self.path = Path(path)
        self._film = film
        if film is None:
            format_of(self.path)
        self._duck_db = duck_db
        self._given_up = False
        self._spans: list[tuple[float, float]] = []  # seconds in which the interpreter speaks
        self._level = _Level()
        self._writer: SoundWriter | None = None
        self._speaker: SoundWriter | None = None  # once it is heard what kind of sound it is
        self._interpreter = self._track("interpreter", rate, 1, "PCM_16")

    def hear(self, sound: Samples, rate: int = RATE) -> None:
        """The next of the recording, of the shape (frames,) or (frames, channels)."""
        sound = sound[:, None] if sound.ndim == 1 else sound
        if self._speaker is None:
            check_channels(self.path, self._sides(sound.shape[1]))
            # As floats: what is louder than full scale becomes softer before it is written.
            self._speaker = self._track("speaker", rate, sound.shape[1], "FLOAT")
        sound = as_many(sound, self._speaker.channels)
        self._level.hear(sound, rate)
        self._speaker.write(sound)

    def say(self, at: float, speech: Samples) -> None:
        """A piece of the interpreter's speech at a moment in seconds, or as soon as the pieces
        before it are over."""
        track = self._interpreter
        pad_until(track, at)
        begin = track.frames / track.rate
        track.write(speech)
        if len(speech):
            self._spans.append((begin, track.frames / track.rate))

    def close(self) -> None:
        """Mix both, to the end of the longer one, and keep the file; without one of them, which
        could not be written and was told of, there is none."""
        if self._speaker is None and self._interpreter.is_open:
            self.hear(np.zeros(0, np.float32))  # nobody was heard
        speaker, interpreter = self._speaker, self._interpreter
        if speaker is None or not (speaker.is_open and interpreter.is_open):
            self.discard()
            return
        parts = [speaker.path, interpreter.path]
        try:
            for track in (speaker, interpreter):
                track.close()
            if self._film is None:
                self._mix(speaker, interpreter, self.path)
            else:
                parts.append(self._part("mix"))
                self._mix(speaker, interpreter, parts[-1])
                self._film.make(parts[-1], self.path, lambda: self._given_up)
        finally:
            self.discard()  # what is not whole by now
            for part in parts:
                part.unlink(missing_ok=True)

    def give_up(self) -> None:
        """Let `close` end early, without a file; for a signal that comes while all wait for it."""
        self._given_up = True

    def discard(self) -> None:
        for file in (self._speaker, self._interpreter, self._writer):
            if file is not None:
                file.discard()

    def _part(self, name: str) -> Path:
        path = self.path.resolve()  # where there is room for it
        return temporary_for(_stem(path)).with_suffix(f".{name}.wav")

    def _track(self, name: str, rate: int, channels: int, subtype: str) -> SoundWriter:
        part, format = self._part(name), ("RF64", subtype)
        return SoundWriter(part, rate, channels, named=self.path, format=format)

    def _sides(self, channels: int) -> int:
        """How many channels the mix of a recording has."""
        return 2 if channels == 1 and self._film is None else channels

    def _mix(self, speaker: SoundWriter, interpreter: SoundWriter, path: Path) -> None:
        rate, channels = speaker.rate, self._sides(speaker.channels)
        length = max(speaker.frames, -(-interpreter.frames * rate // interpreter.rate))
        self._writer = SoundWriter(path, rate, channels, named=self.path, length=length)
        voice = (block[:, 0] for block in self._blocks(interpreter))
        voice = (block[:, None] for block in resampled(voice, interpreter.rate, rate))
        heard, said = Reader(self._blocks(speaker), speaker.channels), Reader(voice, 1)
        gain = self._level.gain() if self._duck_db else 1.0
        ceiling = min(1.0, max(PEAK, gain * self._level.peak))
        for block in limited(self._mixed(heard, said, gain, rate, length), ceiling, rate):
            self._writer.write(block)
        self._writer.close()

    def _mixed(
        self, heard: Reader, said: Reader, gain: float, rate: int, length: int
    ) -> Iterator[Samples]:
        """The speaker under the curve, and the interpreter, added up or side by side."""
        size = BLOCK * frame_of(rate)
        moments, gains = duck_curve(self._spans, self._duck_db)
        for start in range(0, length, size):
            count = min(size, length - start)
            times = (start + np.arange(count)) / rate
            curve = (gain * np.interp(times, moments, gains)).astype(np.float32)
            block = heard.take(count) * curve[:, None]
            voice = said.take(count)
            if self._sides(block.shape[1]) > block.shape[1]:
                yield np.concatenate([block, voice], axis=1)
            else:
                block[:, :FRONT] += voice
                yield block

    def _blocks(self, track: SoundWriter) -> Iterator[Samples]:
        import soundfile

        # Opened by us, whatever bytes its name has.
        with track.path.open("rb") as file, soundfile.SoundFile(file) as sound:
            for block in sound.blocks(2 * track.rate, dtype="float32", always_2d=True):
                if self._given_up:
                    raise KeyboardInterrupt
                yield block


class Reader:
    """Blocks of any length, read in those that are wanted; silence after their end."""

    def __init__(self, blocks: Iterator[Samples], channels: int) -> None:
        self._blocks = blocks
        self._held = np.zeros((0, channels), np.float32)

    def take(self, count: int) -> Samples:
        held = [self._held]
        while sum(map(len, held)) < count and (block := next(self._blocks, None)) is not None:
            held.append(block)
        joined = np.concatenate(held)
        self._held = joined[count:]
        return np.pad(joined[:count], ((0, max(0, count - len(joined))), (0, 0)))


class _Level:
    """How loud a recording is, measured while it is heard."""

    def __init__(self) -> None:
        self._frames = [np.zeros(0, np.float32)]
        self._rest: Samples | None = None  # less than a frame
        self.peak = 1e-9

    def hear(self, sound: Samples, rate: int) -> None:
        self.peak = max(self.peak, float(np.abs(sound).max(initial=0.0)))
        sound = sound if self._rest is None else np.concatenate([self._rest, sound])
        whole = len(sound) - len(sound) % round(FRAME_SECONDS * rate)
        self._rest = sound[whole:]
        sides = [frames(side, rate) ** 2 for side in sound[:whole].T]
        self._frames.append(np.sqrt(np.mean(sides, axis=0)).astype(np.float32))

    def gain(self) -> float:
        """What brings it to the common level without clipping it."""
        loud = of_loud(np.concatenate(self._frames).astype(np.float64))
        return min(LEVEL / loud, MOST_GAIN, PEAK / self.peak) if loud > 0 else 1.0


def _stem(path: Path) -> Path:
    """What the names of the tracks of a mix begin with; they are written under longer ones."""
    return with_short_name(path.with_suffix(""), MOST_NAME - 50)


def sweep_parts(path: Path) -> None:
    """Remove what a process that was killed has left of a file: a part of it, or of tracks that
    were to be mixed into it."""
    place = path.resolve()
    name, stem = with_short_name(place).name, _stem(place).name
    whole = rf"\.{re.escape(name)}\.(\d+)\.(\d+)\.tmp"
    track = rf"\.\.?{re.escape(stem)}\.(\d+)\.(\d+)\.(speaker|interpreter|mix)\.wav(\..*\.tmp)?"
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

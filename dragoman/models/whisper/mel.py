"""Whisper's log-mel spectrogram, made once per frame while the speaker talks.

A frame is 25 ms of sound around a point every 10 ms. Frames whose sound has all arrived are
computed once and kept; the two or three at the edge of what was heard are made anew each time,
as if silence followed. Whisper's scaling depends on the loudest point of the whole window, so it
is applied last, to the window that the encoder is about to see.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Samples

HOP = 160
WINDOW = 400
REACH = WINDOW // 2  # a frame reaches this many samples to each side of its centre
OVERLAP = -(-REACH // HOP)  # frames after the end of a sound that still reach into it
FRAME_MS = 1000.0 * HOP / RATE
QUIETEST = -10.0  # log10 of the least power that is told apart from silence
RANGE = 8.0  # what is quieter than the loudest point by more than this is not heard
LOUD = 0.0  # log10 of the power of the loudest point in soft speech; what is softer is turned up,
MOST = 5.0  # but not by more than this: silence stays silence
FADING = FRAME_MS / 30_000.0  # how fast the level of the loudest sound is forgotten, per frame

Mel = NDArray[np.float32]


class Frames(Protocol):
    """The log-mel frames of one stream, wherever they are kept."""

    start: int  # index, in the stream, of the first frame that is kept
    heard: int  # samples heard since the stream began
    loudest: float  # the level of the loudest point, as far as it is known here

    @property
    def frames(self) -> int:
        """Frames heard since the stream began: one per hop of sound, begun ones included."""

    def hear(self, samples: Samples) -> None:
        """Take the next sound."""

    def forget(self, frame: int) -> None:
        """Drop the frames before `frame`, counted from the beginning of the stream."""

    def window(self, padding: int, end: int | None = None) -> Any:
        """What the engine's encoder sees: all frames, or those before `end`, and then
        `padding` frames of silence."""

    def level(self, begin: int, end: int) -> Mel:
        """How loud each kept frame from `begin` to `end` of the stream is, by its mean band."""


class SoundTail:
    """What is heard of a stream, and the end of its sound, from which frames are yet to come."""

    def __init__(self) -> None:
        self.start = 0  # index, in the stream, of the first frame that is kept
        self.heard = 0  # samples heard since the stream began
        self.tail: Samples = np.empty(0, np.float32)

    @property
    def frames(self) -> int:
        """Frames heard since the stream began: one per hop of sound, begun ones included."""
        return -(-self.heard // HOP)

    def ready(self, samples: Samples) -> int:
        """Take the next sound: how many frames are complete now.

        Before the first sound stands its mirror image, as in Whisper's own front end.
        """
        begun = len(self.tail) > REACH  # as it is from the first frame on
        self.tail = np.concatenate([self.tail, samples])
        self.heard += len(samples)
        if not begun and len(self.tail) > REACH:
            self.tail = np.concatenate([self.tail[REACH:0:-1], self.tail])
        return max(0, (len(self.tail) - WINDOW) // HOP + 1)

    def drop(self, frames: int) -> None:
        """The sound of some frames is no longer needed."""
        self.tail = self.tail[frames * HOP :]


class LogMel(SoundTail):
    """The unscaled log-mel frames of one stream, `[frames, bands]`, from `start` on."""

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.bands = bands
        self.loudest = QUIETEST  # the level of the loudest point, fading once it was forgotten
        self._frames: Mel = np.empty((0, bands), np.float32)

    def hear(self, samples: Samples) -> None:
        """Take the next sound and make the frames that it completes."""
        before = self.frames
        ready = self.ready(samples)
        if ready:
            self._frames = np.concatenate([self._frames, log_mel(self.tail, ready, self.bands)])
            self.drop(ready)
        faded = self.loudest - FADING * (self.frames - before)
        self.loudest = max(QUIETEST, faded, float(self._frames.max(initial=QUIETEST)))

    def forget(self, frame: int) -> None:
        """Drop the frames before `frame`, counted from the beginning of the stream."""
        drop = min(max(0, frame - self.start), len(self._frames))
        self._frames = self._frames[drop:].copy()
        self.start += drop

    def window(self, padding: int, end: int | None = None) -> Mel:
        """What the encoder sees: `[bands, frames]` kept, then `padding` frames of silence.

        `end` is the frame of the stream before which the window ends.
        """
        if end is not None and end <= self.start + len(self._frames):
            heard = self._frames[: max(0, end - self.start)]
        else:
            heard = np.concatenate([self._frames, self._edge(min(padding, OVERLAP))])
            padding -= min(padding, OVERLAP)
        silence = np.full((padding, self.bands), QUIETEST, np.float32)
        return scale(np.concatenate([heard, silence]).T, self.loudest)

    def _edge(self, more: int) -> Mel:
        """The frames at the edge of what was heard, and `more` that still reach into it."""
        count = self.frames - self.start - len(self._frames) + more
        silence = np.zeros(max(0, count * HOP + WINDOW - len(self.tail)), np.float32)
        return log_mel(np.concatenate([self.tail, silence]), count, self.bands)

    def level(self, begin: int, end: int) -> Mel:
        """How loud each kept frame from `begin` to `end` of the stream is, by its mean band."""
        levels: Mel = self._frames[max(0, begin - self.start) : max(0, end - self.start)].mean(1)
        return levels


def log_mel(sound: Samples, frames: int, bands: int) -> Mel:
    """The first `frames` frames of a sound that begins at the left edge of the first of them."""
    cut = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[: frames * HOP : HOP]
    spectrum = np.fft.rfft(cut * hann(), axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    # Frame by frame: for one product of all of them numpy wakes threads that cost more than it.
    energy = (power[:, None] @ mel_filters(bands).T)[:, 0]
    energy = np.maximum(energy, np.float32(10.0**QUIETEST))
    logs: Mel = np.log10(energy)
    return logs


def scale(mel: Mel, loudest: float = QUIETEST) -> Mel:
    """Whisper's scaling: nothing quieter than 8 below the loudest point, then (x + 4) / 4.

    A recording that is far too soft is turned up, since Whisper has hardly met such speech.
    """
    top = max(float(mel.max(initial=QUIETEST)), loudest)
    louder = 4.0 + min(max(0.0, LOUD - top), MOST)
    heard = np.maximum(mel, np.float32(top - RANGE))
    return np.ascontiguousarray((heard + np.float32(louder)) / np.float32(4.0), np.float32)


@cache
def hann() -> NDArray[np.float32]:
    return np.hanning(WINDOW + 1)[:-1].astype(np.float32)


@cache
def mel_filters(bands: int) -> NDArray[np.float32]:
    """Triangular filters `[bands, bins]` of equal area, evenly spaced on Slaney's mel scale."""
    edges = _mel_to_hertz(np.linspace(0.0, _hertz_to_mel(RATE / 2), bands + 2))
    bins = np.linspace(0.0, RATE / 2, REACH + 1)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    area = 2.0 / (edges[2:] - edges[:-2])
    return (triangles * area[:, None]).astype(np.float32)


# Slaney's scale: 15 mels for the first 1000 Hz, then a factor of 6.4 in frequency per 27 mels.
_LOG_STEP = float(np.log(6.4) / 27.0)


def _hertz_to_mel(hertz: float) -> float:
    return hertz * 0.015 if hertz < 1000.0 else 15.0 + float(np.log(hertz / 1000.0)) / _LOG_STEP


def _mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < 15.0, mel / 0.015, 1000.0 * np.exp(_LOG_STEP * (mel - 15.0)))

"""Pitch features of a stream of sound, the same as in training (`train.data.pitch`), in numpy.

Per frame: how periodic the sound is, the logarithm of its pitch against the recent mean, and the
change of it. The tracker only looks backwards, so it runs along with the sound.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE

Floats = NDArray[np.float32]

FEATURES = 3
DECIMATION, REACH = 4, 16  # 16 kHz to 4 kHz, with a low-pass of 16 samples to either side
LOW_RATE = RATE // DECIMATION  # pitch needs no more
SIZE, STEP = 100, 40  # of a frame: 25 ms every 10 ms
LOWEST, HIGHEST, LAGS = 60.0, 400.0, 64  # Hz, and candidates between them
JUMP = 10.0  # cost of a jump of one in the logarithm of the lag, squared
RECENT = 75  # frames whose mean pitch is subtracted
BALLAST = 1e4  # keeps silence from looking periodic

_LAGS = np.exp(np.linspace(math.log(LOW_RATE / HIGHEST), math.log(LOW_RATE / LOWEST), LAGS))
_JUMPS = JUMP * (np.log(_LAGS)[None] - np.log(_LAGS)[:, None]) ** 2
_LONGEST = math.ceil(_LAGS[-1]) + 1
_TAPS = np.sinc(np.arange(-REACH, REACH + 1) / DECIMATION) * np.hanning(2 * REACH + 3)[1:-1]
_LOW_PASS = _TAPS / _TAPS.sum()
_START = (_LONGEST - _LAGS).astype(int)  # where the frame a lag earlier begins,
_PART = (_LONGEST - _LAGS - _START)[:, None]  # and how far into that sample
_EARLIER = _START[:, None] + np.arange(SIZE)


class PitchStream:
    """Hears sound in the int16 range, returns the frames that are complete."""

    def __init__(self) -> None:
        self._sound = np.zeros(REACH)  # not yet low-passed, with silence before the beginning
        self._low = np.zeros(_LONGEST)  # at 4 kHz, from the next frame's earliest lag on
        self._total = np.zeros(LAGS)  # how good a track that ends in each lag is
        self._heights: deque[float] = deque(maxlen=RECENT)  # weighted by how periodic they were
        self._weights: deque[float] = deque(maxlen=RECENT)
        self._last: float | None = None

    def hear(self, sound: Floats, ended: bool = False) -> Floats:
        """New samples -> new frames [n, 3]. At the end silence follows, so that none is missing."""
        silence = np.zeros(REACH if ended else 0)
        self._filter(np.concatenate([self._sound, sound, silence]))
        frames = []
        while len(self._low) >= _LONGEST + SIZE:
            frames.append(self._frame(self._low[: _LONGEST + SIZE]))
            self._low = self._low[STEP:]
        return np.array(frames, np.float32).reshape(-1, FEATURES)

    def _filter(self, sound: NDArray[np.float64]) -> None:
        """Low-pass what has its surroundings, and keep every fourth sample of it."""
        count = max(0, (len(sound) - 2 * REACH - 1) // DECIMATION + 1)
        if count:
            windows = np.lib.stride_tricks.sliding_window_view(sound, 2 * REACH + 1)
            self._low = np.concatenate([self._low, windows[::DECIMATION][:count] @ _LOW_PASS])
        self._sound = sound[count * DECIMATION :]

    def _frame(self, past: NDArray[np.float64]) -> tuple[float, float, float]:
        past = past - past.mean()
        now = past[_LONGEST:]
        earlier = past[_EARLIER] * (1 - _PART) + past[_EARLIER + 1] * _PART  # [lags, SIZE]
        power = (now @ now) * np.square(earlier).sum(1)
        similarity = (earlier @ now) / np.sqrt(power + BALLAST**2 * SIZE)

        gain = similarity - 0.1 * (_LAGS / _LAGS[-1])  # a period is also a multiple of itself
        total = (self._total - _JUMPS).max(1) + gain
        self._total = total - total.max()
        lag = int(self._total.argmax())

        periodic = float(np.clip(similarity[lag], -1, 1))
        height, weight = math.log(LOW_RATE / _LAGS[lag]), 0.01 + max(0.0, periodic)
        self._heights.append(height * weight)
        self._weights.append(weight)
        recent = sum(self._heights) / sum(self._weights)
        change = height - (height if self._last is None else self._last)
        self._last = height
        voicing = 2 * (max(0.0, 1.0001 - periodic) ** 0.15 - 1)
        return voicing, height - recent, 10 * change

"""Log-mel features of a stream of sound, as Kaldi computes them: one frame every 10 ms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Samples

FRAMES_PER_STATE = 4


class FeatureStream:
    """Frames of what was heard and not yet forgotten."""

    def __init__(self, bands: int) -> None:
        self._fbank = _fbank(bands)
        self._read = 0  # frames taken from it
        self._frames = np.zeros((0, bands), np.float32)
        self.start = 0  # frames forgotten
        self.samples = 0

    def hear(self, samples: Samples) -> None:
        self.samples += len(samples)
        self._fbank.accept_waveform(RATE, (samples * 32768.0).tolist())
        ready = self._fbank.num_frames_ready
        if ready > self._read:
            new = [self._fbank.get_frame(i) for i in range(self._read, ready)]
            self._frames = np.concatenate([self._frames, np.stack(new)])
            self._fbank.pop(ready - self._read)
            self._read = ready

    @property
    def end(self) -> int:
        """Frames heard in all."""
        return self.start + len(self._frames)

    @property
    def frames(self) -> NDArray[np.float32]:
        """What is not forgotten: [T, bands]"""
        return self._frames

    def forget(self, until: int) -> None:
        """Frames before `until` (of all that were heard) are of no use any more."""
        dropped = max(0, min(until, self.end) - self.start)
        self._frames = self._frames[dropped:]
        self.start += dropped


def _fbank(bands: int) -> Any:
    import kaldi_native_fbank

    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.samp_freq = RATE
    options.mel_opts.num_bins = bands
    return kaldi_native_fbank.OnlineFbank(options)

"""Features of a stream of sound, one frame every 10 ms: log-mel as Kaldi computes it, or 80 such
bands and three of pitch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Samples
from dragoman.models.exported.pitch import FEATURES, PitchStream

FRAMES_PER_STATE = 4
MELS = 80  # of nets that also hear pitch


class FeatureStream:
    """Frames of what was heard and not yet forgotten."""

    def __init__(self, bands: int) -> None:
        self._pitch = PitchStream() if bands == MELS + FEATURES else None
        self._pitches = np.zeros((0, FEATURES), np.float32)  # of frames that wait for the rest
        self._fbank = _fbank(bands if self._pitch is None else MELS)
        self._read = 0  # frames taken from it
        self.frames: NDArray[np.float32] = np.zeros((0, bands), np.float32)  # not forgotten
        self.start = 0  # frames forgotten
        self.samples = 0

    def hear(self, samples: Samples, ended: bool = False) -> None:
        self.samples += len(samples)
        sound = samples * 32768.0
        self._fbank.accept_waveform(RATE, sound.tolist())
        ready = self._fbank.num_frames_ready
        if self._pitch is not None:
            pitches = [self._pitches, self._pitch.hear(sound, ended)]
            self._pitches = np.concatenate(pitches)
            ready = min(ready, self._read + len(self._pitches))
        if ready == self._read:
            return
        new = np.stack([self._fbank.get_frame(i) for i in range(self._read, ready)])
        if self._pitch is not None:
            new = np.concatenate([new, self._pitches[: len(new)]], axis=1)
            self._pitches = self._pitches[len(new) :]
        self.frames = np.concatenate([self.frames, new])
        self._fbank.pop(ready - self._read)
        self._read = ready

    @property
    def end(self) -> int:
        """Frames heard in all."""
        return self.start + len(self.frames)

    def forget(self, until: int) -> None:
        """Frames before `until` (of all that were heard) are of no use any more."""
        dropped = max(0, min(until, self.end) - self.start)
        self.frames = self.frames[dropped:]
        self.start += dropped


def _fbank(bands: int) -> Any:
    import kaldi_native_fbank

    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.samp_freq = RATE
    options.mel_opts.num_bins = bands
    return kaldi_native_fbank.OnlineFbank(options)

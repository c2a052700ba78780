"""Voice activity: how likely it is that somebody speaks, every 32 ms.

Silero's small recurrent network through onnxruntime, on one thread: about 0.002 CPU-seconds
for a second of sound. `Vad` is loaded once and shared; each speaker has a `VadStream`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Chunk, Samples
from dragoman.audio.gate import GateSettings, SpeechGate, Utterance
from dragoman.errors import DragomanError

WINDOW = 512
WINDOW_SECONDS = WINDOW / RATE
CONTEXT = 64
"""Samples of the window before that the network sees again."""

MOST_WINDOWS = 512
"""More windows than these go through the network in several calls: memory stays flat."""

LOUD = 0.1
"""Sound whose peaks stay below this is turned up: the network hears no speech in a whisper."""

QUIET = LOUD / 100
"""Sound is turned up a hundredfold at the most."""

FADING = 10 ** (-0.5 * WINDOW_SECONDS / 30)
"""How fast a peak is forgotten: 10 dB in half a minute, so that a speaker's pause does not make the
next room audible."""

MODEL_FILE = "silero_vad_16k_sequence.onnx"

Probabilities = NDArray[np.float32]


class Vad:
    """The network."""

    def __init__(self, model: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class of its own for each kind of trouble
            raise DragomanError(f"{model} is not a voice activity model: {error}") from None

    @classmethod
    def load(cls) -> Vad:
        """The network from the weight store, fetched at the first use."""
        from dragoman.store import get

        return cls(get("silero-vad") / MODEL_FILE)

    def stream(self) -> VadStream:
        return VadStream(self)

    def run(
        self, windows: Samples, hidden: Samples, cell: Samples
    ) -> tuple[Probabilities, Samples, Samples]:
        """Windows of shape (n, CONTEXT + WINDOW) to n probabilities and the state after them."""
        feeds = {"input": windows, "h": hidden, "c": cell}
        probabilities, hidden, cell = self._session.run(["speech_probs", "hn", "cn"], feeds)
        return probabilities, hidden, cell


class VadStream:
    """One speaker being listened to; what is kept does not grow with time."""

    def __init__(self, vad: Vad) -> None:
        self._vad = vad
        self._hidden = np.zeros((1, 1, 128), np.float32)
        self._cell = np.zeros((1, 1, 128), np.float32)
        # The context of the next window, then what has been heard of that window.
        self._heard = np.zeros(CONTEXT, np.float32)
        self._level = QUIET  # of the peaks so far

    def hear(self, samples: Samples) -> Probabilities:
        """The probability of speech in each window that is complete now."""
        self._heard = np.concatenate([self._heard, samples])
        count = (len(self._heard) - CONTEXT) // WINDOW
        parts = [self._next(min(MOST_WINDOWS, count - at)) for at in range(0, count, MOST_WINDOWS)]
        return np.concatenate([*parts, np.zeros(0, np.float32)])

    def finish(self) -> Probabilities:
        """The probability for what is left, as if silence followed; nothing when nothing is."""
        left = len(self._heard) - CONTEXT
        return self.hear(np.zeros(-left % WINDOW, np.float32))

    def _next(self, count: int) -> Probabilities:
        each = np.lib.stride_tricks.sliding_window_view(self._heard, CONTEXT + WINDOW)
        windows = self._turned_up(each[: count * WINDOW : WINDOW])
        probabilities, self._hidden, self._cell = self._vad.run(windows, self._hidden, self._cell)
        self._heard = self._heard[count * WINDOW :]
        return probabilities

    def _turned_up(self, windows: Samples) -> Samples:
        """Windows as loud as speech usually is, whatever the microphone's gain."""
        gains = np.empty((len(windows), 1), np.float32)
        for index, peak in enumerate(np.abs(windows[:, CONTEXT:]).max(axis=1)):
            self._level = max(float(peak), self._level * FADING, QUIET)
            gains[index] = max(1.0, LOUD / self._level)
        louder: Samples = windows * gains
        return louder


def utterances(
    chunks: Iterable[Chunk], vad: Vad, settings: GateSettings | None = None
) -> Iterator[Utterance]:
    """The stretches of speech in a recording, each as soon as it has ended."""
    stream, gate = vad.stream(), SpeechGate(WINDOW_SECONDS, settings or GateSettings())
    heard = 0.0
    for chunk in chunks:
        heard += chunk.seconds
        yield from gate.hear(stream.hear(chunk.samples))
        if chunk.last:
            # The last window is filled up with silence, which is not part of the recording.
            for one in [*gate.hear(stream.finish()), *gate.finish()]:
                yield Utterance(one.start, min(one.end, heard))

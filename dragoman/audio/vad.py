"""Voice activity: how likely it is that somebody speaks, every 32 ms.

Silero's small recurrent network through onnxruntime, on one thread: about 0.002 CPU-seconds
for a second of sound. `Vad` is loaded once and shared; each speaker has a `VadStream`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    def hear(self, streams: Sequence[VadStream], windows: Sequence[Samples]) -> list[Probabilities]:
        """The probability of speech in the next windows of each of several speakers."""
        return [self._hear(one, next) for one, next in zip(streams, windows, strict=True)]

    def _hear(self, stream: VadStream, windows: Samples) -> Probabilities:
        found = [np.zeros(0, np.float32)]
        for at in range(0, len(windows), MOST_WINDOWS):
            part = windows[at : at + MOST_WINDOWS]
            told, stream.hidden, stream.cell = self.run(part, stream.hidden, stream.cell)
            found.append(told)
        return np.concatenate(found)

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
        self.vad = vad
        self.hidden = np.zeros((1, 1, 128), np.float32)
        self.cell = np.zeros((1, 1, 128), np.float32)
        # The context of the next window, then what has been heard of that window.
        self._heard = np.zeros(CONTEXT, np.float32)
        self._level = QUIET  # of the peaks so far

    def hear(self, samples: Samples) -> Probabilities:
        """The probability of speech in each window that is complete now."""
        return self.vad.hear([self], [self.windows(samples)])[0]

    def windows(self, samples: Samples) -> Samples:
        """Take the next sound: the windows, `[n, CONTEXT + WINDOW]`, that are complete now."""
        heard = np.concatenate([self._heard, samples])
        count = (len(heard) - CONTEXT) // WINDOW
        self._heard = heard[count * WINDOW :]
        if not count:
            return np.zeros((0, CONTEXT + WINDOW), np.float32)
        step = heard.strides[0]  # the windows overlap, and are not copied
        shape, strides = (count, CONTEXT + WINDOW), (WINDOW * step, step)
        return self._turned_up(np.lib.stride_tricks.as_strided(heard, shape, strides))

    def finish(self) -> Probabilities:
        """The probability for what is left, as if silence followed; nothing when nothing is."""
        left = len(self._heard) - CONTEXT
        return self.hear(np.zeros(-left % WINDOW, np.float32))

    def _turned_up(self, windows: Samples) -> Samples:
        """Windows as loud as speech usually is, whatever the microphone's gain."""
        new = windows[:, CONTEXT:]
        peaks = np.maximum(new.max(axis=1), -new.min(axis=1))
        # The level is the highest of all peaks, each faded since: in units that fade with time,
        # the highest so far.
        fading = FADING ** np.arange(len(windows) + 1)
        levels = np.maximum.accumulate(np.append(self._level, peaks) / fading) * fading
        levels = np.maximum(levels[1:], QUIET)
        self._level = float(levels[-1])
        gains = np.maximum(1.0, LOUD / levels).astype(np.float32)
        louder: Samples = windows * gains[:, None]
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

"""Live sound from a microphone.

The driver calls us from a thread of its own and must never wait: what it brings goes into a queue
with a limit. To whoever takes the chunks too slowly, those that wait come as one; what still finds
no room is lost, counted and reported.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from dragoman.audio.catch_up import caught_up
from dragoman.audio.chunk import RATE, Chunk, Chunker, Samples
from dragoman.audio.devices import Device, choose_device, close, sounddevice, started
from dragoman.audio.resample import Resampler
from dragoman.errors import DragomanError

log = logging.getLogger(__name__)

BLOCK_SECONDS = 0.02
POLL_SECONDS = 0.1
SLOW_START = 3.0
"""So many times longer than between two blocks the first one may take: sound servers wake up."""


class Microphone:
    """One microphone being listened to.

        microphone = Microphone(step_ms=500)
        for chunk in microphone.chunks(): ...      # until microphone.stop(), from anywhere

    Stopped or pulled out, it ends the same way: all that was captured comes, then the last chunk.
    If something was wrong, the sentence that says so follows as an error, and is kept in `trouble`.
    """

    def __init__(
        self,
        device: str | int | None = None,
        step_ms: float = 1000.0,
        *,
        backlog: float = 60.0,
        patience: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`backlog`: seconds kept for a slow listener. `patience`: seconds without a sound from
        the driver after which the microphone counts as gone; it may take longer to begin."""
        self._wanted = device
        self._chunker = Chunker(step_ms)
        self._blocks_per_step = math.ceil(step_ms / 1000 / BLOCK_SECONDS)
        self._queue: queue.Queue[tuple[Samples, float]] = queue.Queue(int(backlog / BLOCK_SECONDS))
        self._patience, self._clock = patience, clock
        self._stopped = threading.Event()
        self._lost_frames = 0
        self._rate = RATE
        self._began = 0.0
        self.overflows = 0
        """How often the driver itself lost sound because the machine was too busy."""
        self.trouble: str | None = None

    @property
    def lost(self) -> float:
        """Seconds that were captured but found no room."""
        return self._lost_frames / self._rate

    def stop(self) -> None:
        """End the stream: what was captured still comes, then the last chunk. From any thread."""
        self._stopped.set()

    def chunks(self) -> Iterator[Chunk]:
        """Listen. A microphone that cannot be opened is an error here, not at the first chunk."""
        device = choose_device("input", self._wanted)
        stream = self._open(device)
        return caught_up(self._listen(stream, device), self._another_waits)

    def _open(self, device: Device) -> Any:
        library = sounddevice()
        self._rate = _rate_for(library, device)
        self._began = self._clock()
        try:
            return started(
                library.InputStream(
                    device=device.index,
                    channels=1,
                    samplerate=self._rate,
                    blocksize=round(self._rate * BLOCK_SECONDS),
                    dtype="float32",
                    callback=self._on_block,
                )
            )
        except library.PortAudioError as error:
            raise DragomanError(
                f"The microphone '{device.name}' cannot be opened ({error}); "
                "another program may be using it, or may not share it."
            ) from None

    def _on_block(self, data: Samples, frames: int, _time: Any, status: Any) -> None:
        """Called by the driver's thread, which must not wait."""
        if status.input_overflow:
            self.overflows += 1
        try:
            self._queue.put_nowait((data[:, 0].copy(), self._clock() - self._began))
        except queue.Full:
            self._lost_frames += frames

    def _listen(self, stream: Any, device: Device) -> Iterator[Chunk]:
        resampler, arrival = Resampler(self._rate), 0.0
        try:
            for block, arrival in self._blocks(stream, device):
                yield from self._chunker.feed(resampler.feed(_sound(block)), arrival)
        finally:
            close(stream)
        yield from self._chunker.feed(resampler.finish(), arrival)
        yield self._chunker.finish(arrival)
        self._report()

    def _another_waits(self) -> bool:
        """Whether the next chunk is there already: once stopped, all that will come is there."""
        return self._stopped.is_set() or self._queue.qsize() >= self._blocks_per_step

    def _blocks(self, stream: Any, device: Device) -> Iterator[tuple[Samples, float]]:
        """What the driver brings, until we are stopped or it brings nothing more."""
        heard, patience = self._clock(), SLOW_START * self._patience
        while not self._stopped.is_set() and self.trouble is None:
            try:
                yield self._queue.get(timeout=POLL_SECONDS)
                heard, patience = self._clock(), self._patience
            except queue.Empty:
                if not stream.active or self._clock() - heard > patience:
                    self.trouble = f"The microphone '{device.name}' is gone."
        close(stream)
        with suppress(queue.Empty):
            while True:
                yield self._queue.get_nowait()

    def _report(self) -> None:
        faults = [f"{self.lost:.1f} s found no room"] if self.lost else []
        faults += [f"the system lost some {self.overflows} times"] if self.overflows else []
        if faults:
            told = " and ".join(faults)
            log.warning("Of what the microphone heard, %s: the machine is too slow.", told)
        if self.trouble:
            raise DragomanError(self.trouble)


def _sound(block: Samples) -> Samples:
    """A block as it may be worked on: a driver may bring anything, above all when it begins."""
    return np.clip(np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)


def _rate_for(library: Any, device: Device) -> int:
    """16 kHz if the device has it, else what it likes best."""
    try:
        library.check_input_settings(
            device=device.index, channels=1, dtype="float32", samplerate=RATE
        )
    except (library.PortAudioError, ValueError):
        return device.rate
    return RATE

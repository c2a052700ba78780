"""Sound to a loudspeaker, which can be stopped at once."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType
from typing import Any, Self

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.devices import Device, choose_device, close, sounddevice, started
from dragoman.audio.resample import resample
from dragoman.errors import DragomanError

AHEAD_SECONDS = 0.2
"""`play` returns this long before the end, so that what is played next follows without a gap."""


class Player:
    """One loudspeaker. The driver takes what is waiting, from a thread of its own."""

    def __init__(
        self, rate: int = RATE, device: str | int | None = None, *, patience: float = 2.0
    ) -> None:
        """`rate` is that of the sound that will be played."""
        self._rate, self._patience = rate, patience
        self._waiting: deque[Samples] = deque()
        self._changed = threading.Condition()
        self._stops = 0
        self._device = choose_device("output", device)
        self._device_rate, self._stream = self._open(self._device)

    def play(self, samples: Samples, ahead: float = AHEAD_SECONDS) -> bool:
        """Play; returns `ahead` seconds before the end, or False when it was stopped on the way."""
        stops = self._stops
        block = resample(samples, self._rate, self._device_rate)  # the driver must not wait for it
        with self._changed:
            if self._stops == stops:
                self._waiting.append(block)
                self._wait_until_left(ahead, stops)
            return self._stops == stops

    def drain(self) -> None:
        """Wait until all has been given to the loudspeaker."""
        with self._changed:
            self._wait_until_left(0.0, self._stops)

    def stop(self) -> None:
        """Fall silent at once; what was waiting is forgotten. From any thread."""
        with self._changed:
            self._waiting.clear()
            self._stops += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Fall silent and give the loudspeaker back."""
        self.stop()
        close(self._stream)

    def _left(self) -> float:
        return sum(map(len, self._waiting)) / self._device_rate

    def _wait_until_left(self, seconds: float, stops: int) -> None:
        while self._stops == stops and self._left() > seconds:
            # The driver wakes us whenever it takes something, even when that is only silence.
            if not self._changed.wait(self._patience):
                self._waiting.clear()
                raise DragomanError(f"The loudspeaker '{self._device.name}' is gone.")

    def _open(self, device: Device) -> tuple[int, Any]:
        library = sounddevice()
        rate = self._rate
        try:
            library.check_output_settings(
                device=device.index, channels=1, dtype="float32", samplerate=rate
            )
        except (library.PortAudioError, ValueError):
            rate = device.rate
        try:
            stream = started(
                library.OutputStream(
                    device=device.index,
                    channels=1,
                    samplerate=rate,
                    dtype="float32",
                    latency="low",
                    callback=self._on_demand,
                )
            )
        except library.PortAudioError as error:
            raise DragomanError(
                f"The loudspeaker '{device.name}' cannot be opened ({error}); "
                "another program may be using it."
            ) from None
        return rate, stream

    def _on_demand(self, out: Samples, frames: int, _time: Any, _status: Any) -> None:
        """Called by the driver's thread when it needs more."""
        with self._changed:
            filled = 0
            while self._waiting and filled < frames:
                block = self._waiting.popleft()
                now, later = block[: frames - filled], block[frames - filled :]
                out[filled : filled + len(now), 0] = now
                filled += len(now)
                if len(later):
                    self._waiting.appendleft(later)
            out[filled:] = 0
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.drain()
        self.close()

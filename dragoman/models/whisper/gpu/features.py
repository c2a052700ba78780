"""Log-mel frames of all streams, on the device: made in one batch per step, and kept there.

The frames are those of `whisper/mel.py`: made once when their sound has arrived, those at the edge
of what was heard as if silence followed, and made anew when more arrives.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from dragoman.audio.chunk import Samples
from dragoman.models.gpu.moving import moved
from dragoman.models.whisper.mel import (
    FADING,
    HOP,
    LOUD,
    MOST,
    OVERLAP,
    QUIETEST,
    RANGE,
    WINDOW,
    SoundTail,
    hann,
    mel_filters,
)

KEPT = 4096  # frames of a stream for which there is room: more than a window holds
SLOTS = 16  # streams for which there is room at first
NOBODY = 0  # the slot of no stream, for frames that are none


@dataclass(frozen=True, slots=True)
class DeviceWindow:
    """What the encoder sees: frames of a stream from one on, then silence."""

    slot: int
    start: int
    heard: int  # frames that are not silence
    length: int  # in all


@dataclass(frozen=True, slots=True)
class _Piece:
    """Sound that begins at the left edge of a frame, of which frames are to be made."""

    slot: int
    sound: Samples
    first: int  # the frame
    whole: int  # frames whose sound has all arrived
    count: int  # with those at the edge
    start: int  # of the window
    new: int  # frames heard now, for the first time


class DeviceMel(SoundTail):
    """The frames of one stream; what it is asked for is a place on the device."""

    loudest = QUIETEST  # what it is, only the device knows

    def __init__(self, bank: MelBank, slot: int) -> None:
        super().__init__()
        self._bank, self._slot = bank, slot
        self._whole = 0  # frames made for good since the stream began

    def hear(self, samples: Samples) -> None:
        before = self.frames
        ready = self.ready(samples)
        count = self.frames + OVERLAP - self._whole
        piece = _Piece(
            self._slot, self.tail, self._whole, ready, count, self.start, self.frames - before
        )
        self._bank.add(piece)
        self._whole += ready
        self.drop(ready)

    def forget(self, frame: int) -> None:
        self.start += min(max(0, frame - self.start), self._whole - self.start)

    def window(self, padding: int, end: int | None = None) -> DeviceWindow:
        if end is not None and end <= self._whole:
            heard = max(0, end - self.start)
            return DeviceWindow(self._slot, self.start, heard, heard + padding)
        length = self.frames - self.start + padding
        heard = self.frames - self.start + min(padding, OVERLAP)
        return DeviceWindow(self._slot, self.start, heard, length)

    def level(self, begin: int, end: int) -> NDArray[np.float32]:
        return self._bank.levels(self._slot, max(begin, self.start), min(end, self._whole))


class MelBank:
    """The frames of all streams."""

    def __init__(self, bands: int, device: torch.device) -> None:
        self._device = device
        self._lock = threading.RLock()  # one thread opens streams while another hears
        self._frames = torch.full((SLOTS, KEPT, bands), QUIETEST, device=device)
        self._peaks = torch.full((SLOTS, KEPT), QUIETEST, device=device)  # of whole frames
        self._loudest = torch.full((SLOTS,), QUIETEST, device=device)
        self._free = list(range(SLOTS - 1, NOBODY, -1))
        self._pending: dict[int, _Piece] = {}
        window = np.arange(WINDOW) * np.arange(WINDOW // 2 + 1)[:, None] * (2 * np.pi / WINDOW)
        waves = np.concatenate([np.cos(window), np.sin(window)]) * hann()
        self._waves = torch.from_numpy(waves.T.astype(np.float32)).to(device)
        self._filters = torch.from_numpy(mel_filters(bands).T.copy()).to(device)

    @torch.inference_mode()
    def new(self) -> DeviceMel:
        """The frames of a new stream; they are given up with it."""
        with self._lock:
            if not self._free:
                self._grow()
            slot = self._free.pop()
            self._pending.pop(slot, None)  # sound of who had the place before, nobody looked at it
            self._loudest[slot] = QUIETEST
        mel = DeviceMel(self, slot)
        weakref.finalize(mel, self._free.append, slot)
        return mel

    def _grow(self) -> None:
        slots = len(self._frames)
        self._free += range(2 * slots - 1, slots - 1, -1)  # it is the list that streams know
        self._frames = functional.pad(self._frames, (0, 0, 0, 0, 0, slots), value=QUIETEST)
        self._peaks = functional.pad(self._peaks, (0, 0, 0, slots), value=QUIETEST)
        self._loudest = functional.pad(self._loudest, (0, slots), value=QUIETEST)

    def add(self, piece: _Piece) -> None:
        """Take sound in; its frames are made together with others, when somebody looks."""
        with self._lock:
            if piece.slot in self._pending:
                self.flush()
            self._pending[piece.slot] = piece

    @torch.inference_mode()
    def flush(self) -> None:
        """Make the frames of all sound that came in."""
        with self._lock:
            pieces, self._pending = list(self._pending.values()), {}
            if pieces:
                self._make(*self._on_device(pieces))

    def _on_device(self, pieces: Sequence[_Piece]) -> tuple[Tensor, Tensor]:
        """The sound of pieces, and their numbers."""
        count = max(piece.count for piece in pieces)
        sound = np.zeros((len(pieces), (count - 1) * HOP + WINDOW), np.float32)
        for row, piece in zip(sound, pieces, strict=True):
            row[: len(piece.sound)] = piece.sound
        numbers = np.array([(p.slot, p.first, p.whole, p.count, p.start, p.new) for p in pieces])
        return moved(sound, self._device), moved(numbers, self._device)

    def _make(self, sound: Tensor, pieces: Tensor) -> None:
        slots, first, whole, count, start, new = pieces.T[:, :, None]
        waves = sound.unfold(1, WINDOW, HOP) @ self._waves
        real, imaginary = waves.chunk(2, dim=2)
        energy = (real**2 + imaginary**2) @ self._filters
        frames = energy.clamp(min=10.0**QUIETEST).log10()
        steps = torch.arange(frames.shape[1], device=self._device)
        places = (first + steps) % KEPT
        owner = torch.where(steps < count, slots, NOBODY)
        self._frames[owner, places] = frames
        peaks = torch.where(steps < whole, frames.amax(dim=2), QUIETEST)
        self._peaks[owner, places] = peaks
        # The level of the loudest sound fades once that has left the window.
        at = torch.arange(KEPT, device=self._device)
        kept = (at - start) % KEPT < first + whole - start
        slots = slots[:, 0]
        loudest = torch.where(kept, self._peaks[slots], QUIETEST).amax(dim=1)
        faded = self._loudest[slots] - FADING * new[:, 0]
        self._loudest[slots] = torch.maximum(loudest, faded).clamp(min=QUIETEST)

    @torch.inference_mode()
    def placed(self, windows: Sequence[DeviceWindow]) -> Tensor:
        """Windows as numbers on the device, `[windows, 4]`; their frames are all made."""
        self.flush()
        numbers = [(window.slot, window.start, window.heard, window.length) for window in windows]
        return moved(np.array(numbers), self._device)

    @torch.inference_mode()
    def windows(self, placed: Tensor, frames: int) -> Tensor:
        """Placed windows for the encoder, `[windows, frames, bands]`, scaled; frames behind the end
        of a window mean nothing."""
        slots, start, heard, _ = placed.T[:, :, None]
        steps = torch.arange(frames, device=self._device)
        mel = self._frames[slots, (start + steps) % KEPT]
        mel = torch.where((steps < heard)[:, :, None], mel, QUIETEST)
        top = torch.maximum(mel.amax(dim=(1, 2)), self._loudest[slots[:, 0]])[:, None, None]
        louder = 4.0 + (LOUD - top).clamp(min=0.0, max=MOST)
        return (torch.maximum(mel, top - RANGE) + louder) / 4.0

    @torch.inference_mode()
    def levels(self, slot: int, begin: int, end: int) -> NDArray[np.float32]:
        """How loud each frame of a stream from one to another is, by its mean band."""
        self.flush()
        places = torch.arange(begin, max(begin, end), device=self._device) % KEPT
        levels: NDArray[np.float32] = self._frames[slot, places].mean(dim=1).cpu().numpy()
        return levels

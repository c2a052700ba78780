"""Sound that a program holds: arrays of any kind become samples as they are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError

Sound = NDArray[Any]
"""Samples: floats in [-1, 1] or integers of full scale; shape (frames,) or (frames, channels)."""

MOST_CHANNELS = 64
LOUDEST = 30.0
"""Of floats, whose full scale is 1: nobody records so far above it; integers soon reach it."""


def mono(sound: Sound) -> Samples:
    """Samples as they are wanted: floats, channels averaged; what is no sound is told."""
    refuse_bytes(sound)
    array = np.asarray(sound)
    if array.ndim == 2 and array.shape[1]:
        if array.shape[1] > MOST_CHANNELS:
            raise DragomanError(
                f"Sound of the shape {array.shape} would have {array.shape[1]} channels; if the "
                "channels come first, turn it round: sound.T."
            )
        array = _floats(array).mean(axis=1)
    if array.ndim != 1:
        raise DragomanError(
            f"Sound has the shape (frames,) or (frames, channels), not {np.shape(sound)}."
        )
    samples = np.ascontiguousarray(_floats(array), np.float32)
    if len(samples) and not np.isfinite(samples).all():
        raise DragomanError("This sound holds samples that are no numbers.")
    if len(samples) and (peak := float(np.abs(samples).max())) > LOUDEST:
        raise DragomanError(
            f"Sound in floats lies between -1 and 1; this reaches {peak:g}. Samples of 16 bits are "
            "given as they are (int16), or divided by 32768."
        )
    return samples


def refuse_bytes(sound: object) -> None:
    """Bytes do not say what they are; nor are they pieces of sound, one after the other."""
    if isinstance(sound, bytes | bytearray | memoryview):
        raise DragomanError(
            "Bytes are samples of some kind; say which: numpy.frombuffer(data, 'int16')."
        )


def _floats(array: NDArray[Any]) -> NDArray[Any]:
    """Integers of full scale become numbers from -1 to 1."""
    if array.dtype == np.uint8:
        return (array.astype(np.float32) - 128) / 128
    if np.issubdtype(array.dtype, np.signedinteger):
        return array.astype(np.float32) / -float(np.iinfo(array.dtype).min)
    if np.issubdtype(array.dtype, np.floating):
        return array
    raise DragomanError(f"Sound is floats or integers, not {array.dtype}.")

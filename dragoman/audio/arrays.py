"""Sound that a program holds: arrays of any kind become frames as decoders return them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.pcm import Frames
from dragoman.errors import DragomanError

Sound = NDArray[Any]
"""Samples: floats in [-1, 1] or integers of full scale; shape (frames,) or (frames, channels)."""

MOST_CHANNELS = 64
LOUDEST = 30.0
"""Of floats, whose full scale is 1: nobody records so far above it; integers soon reach it."""


def frames_of(sound: Sound) -> Frames:
    """Frames as decoders return them: floats, of the shape (frames, channels); what is no sound is
    told."""
    refuse_bytes(sound)
    array = np.asarray(sound)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.shape[1]:
        raise DragomanError(
            f"Sound has the shape (frames,) or (frames, channels), not {np.shape(sound)}."
        )
    if array.shape[1] > MOST_CHANNELS:
        raise DragomanError(
            f"Sound of the shape {array.shape} would have {array.shape[1]} channels; if the "
            "channels come first, turn it round: sound.T."
        )
    frames = np.ascontiguousarray(_floats(array), np.float32)
    if len(frames) and not np.isfinite(frames).all():
        raise DragomanError("This sound holds samples that are no numbers.")
    if len(frames) and (peak := float(np.abs(frames).max())) > LOUDEST:
        raise DragomanError(
            f"Sound in floats lies between -1 and 1; this reaches {peak:g}. Samples of 16 bits are "
            "given as they are (int16), or divided by 32768."
        )
    return frames


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
    if array.dtype.itemsize == 8 and np.issubdtype(array.dtype, np.signedinteger):
        raise DragomanError(
            "Nobody records in int64, which is what smaller integers become when one computes with "
            "them. Give the sound as what it was, such as sound.astype('int16')."
        )
    if np.issubdtype(array.dtype, np.signedinteger):
        return array.astype(np.float32) / -float(np.iinfo(array.dtype).min)
    if np.issubdtype(array.dtype, np.floating):
        return array
    raise DragomanError(f"Sound is floats, integers with a sign or uint8, not {array.dtype}.")

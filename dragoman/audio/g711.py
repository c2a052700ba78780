"""The sound of telephones, a byte a sample (ITU-T G.711): what each byte stands for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int16]


def _mulaw() -> Table:
    """Used in America and Japan, and by most services that hand on calls."""
    byte = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (byte >> 4 & 7).astype(np.int32), (byte & 15).astype(np.int32)
    size = ((mantissa << 3) + 132 << exponent) - 132
    return np.where(byte & 128, -size, size).astype(np.int16)


def _alaw() -> Table:
    """Used elsewhere."""
    byte = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (byte >> 4 & 7).astype(np.int32), (byte & 15).astype(np.int32)
    size = (mantissa << 4) + 8 + 256 * (exponent > 0) << np.maximum(exponent - 1, 0)
    return np.where(byte & 128, size, -size).astype(np.int16)


TABLES: dict[str, Table] = {"mulaw": _mulaw(), "alaw": _alaw()}
"""By the names that Deepgram's clients use: 16-bit samples, by the byte."""

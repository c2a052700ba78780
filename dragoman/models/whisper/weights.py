"""Reads the weights of a CTranslate2 model file, mapped into memory, not copied."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

VERSION = 6  # of the format
BFLOAT16 = np.uint16  # numpy has no such numbers: their bits, the upper half of a float32's
# By CTranslate2's own numbers.
_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, BFLOAT16)


class Weights:
    """The variables of one file, by name."""

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]] | None = None) -> None:
        """`arrays`: the variables, if they were read already, from another kind of file."""
        self.path = path
        if arrays is not None:
            self._arrays = arrays
            return
        try:
            self._bytes: Any = np.memmap(path, np.uint8, "r")
            self._at = 0
            self._arrays = self._read()
        except (OSError, ValueError, LookupError, struct.error) as error:
            raise DragomanError(f"Cannot read {path} as a CTranslate2 model: {error}.") from error

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    @property
    def numbers(self) -> int:
        """How many there are in all; those that go by two names count twice."""
        return sum(array.size for array in self._arrays.values())

    def layers(self, side: str) -> int:
        """How many layers the encoder or the decoder has."""
        return next(n for n in count() if f"{side}/layer_{n}/ffn/linear_0/weight" not in self)

    def array(self, name: str, rows: Any = slice(None)) -> NDArray[np.float32]:
        """A variable, or some of its rows, as numbers, whatever it is stored as."""
        stored = self.stored(name)
        numbers = _numbers(stored[rows])
        if stored.dtype in (np.int8, np.int16):
            scale = _numbers(self.stored(f"{name}_scale"))  # one for all, or one per row
            each = scale[rows] if scale.ndim else scale
            numbers /= each.reshape(each.shape + (1,) * (numbers.ndim - each.ndim))
        return numbers

    def stored(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise DragomanError(f"{self.path} has no variable '{name}': it is another model's.")
        return self._arrays[name]

    def _read(self) -> dict[str, NDArray[Any]]:
        """Format version, name and version of the architecture, the variables, other names."""
        arrays: dict[str, NDArray[Any]] = {}
        self._number("<I"), self._name(), self._number("<I")
        for _ in range(self._number("<I")):
            name = self._name()
            shape = [self._number("<I") for _ in range(self._number("<B"))]
            kind = np.dtype(_TYPES[self._number("<B")])
            size = self._number("<I")
            data = np.frombuffer(self._bytes, kind, size // kind.itemsize, self._at)
            arrays[name] = data.reshape(shape)
            self._at += size
        for _ in range(self._number("<I")):
            other, name = self._name(), self._name()
            arrays[other] = arrays[name]
            # A tied weight's scale is tied too, though the file does not say so.
            if f"{name}_scale" in arrays:
                arrays[f"{other}_scale"] = arrays[f"{name}_scale"]
        return arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._bytes, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _name(self) -> str:
        size = self._number("<H")
        raw = bytes(self._bytes[self._at : self._at + size])
        self._at += size
        return raw.rstrip(b"\0").decode("utf-8")


def write_weights(path: Path, architecture: str, arrays: dict[str, NDArray[Any]]) -> None:
    """A file in CTranslate2's format."""

    def named(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    with path.open("wb") as file:
        file.write(struct.pack("<I", VERSION) + named(architecture))
        file.write(struct.pack("<II", 1, len(arrays)))
        for name, array in arrays.items():
            kind = [np.dtype(one) for one in _TYPES].index(array.dtype)
            file.write(named(name) + struct.pack("<B", array.ndim))
            file.write(struct.pack(f"<{array.ndim}I", *array.shape))
            file.write(struct.pack("<BI", kind, array.nbytes) + array.tobytes())
        file.write(struct.pack("<I", 0))  # other names


def _numbers(stored: NDArray[Any]) -> NDArray[np.float32]:
    if stored.dtype == BFLOAT16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)

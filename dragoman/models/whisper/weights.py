"""Reads the weights of a CTranslate2 model file, mapped into memory, not copied."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

# By CTranslate2's own numbers.
_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


class Weights:
    """The variables of one file, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._bytes: Any = np.memmap(path, np.uint8, "r")
            self._at = 0
            self._arrays = self._read()
        except (OSError, ValueError, KeyError, struct.error, UnicodeDecodeError) as error:
            raise DragomanError(f"Cannot read {path} as a CTranslate2 model: {error}.") from error

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, rows: Any = slice(None)) -> NDArray[np.float32]:
        """A variable, or some of its rows, as numbers, whatever it is stored as."""
        numbers: NDArray[np.float32] = self.stored(name)[rows].astype(np.float32)
        if self.stored(name).dtype == np.int8:
            numbers /= self.stored(f"{name}_scale")[rows].astype(np.float32)[..., None]
        return numbers

    def stored(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise DragomanError(f"{self.path} has no variable '{name}': it is not Whisper's.")
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
            other = self._name()
            arrays[other] = arrays[self._name()]
        return arrays

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._bytes, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _name(self) -> str:
        size = self._number("<H")
        raw = bytes(self._bytes[self._at : self._at + size])
        self._at += size
        return raw.rstrip(b"\0").decode("utf-8")

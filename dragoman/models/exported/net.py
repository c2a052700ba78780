"""Exported nets, run with numpy and onnxruntime alone: encode, hear a chunk, decode a step.

The batch is always axis 0. `memory` is what the decoder reads of the source, `cache` what it
remembers of the target; both are flat tuples of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.models.byte_sums import make_exact
from dragoman.models.exported.config import ExportedNet, Kept
from dragoman.models.sessions import session_options

Array = NDArray[Any]
Arrays = tuple[Array, ...]

# The first ids of every vocabulary. The CTC blank is no token: it comes after the last one.
PAD, BOS, EOS, UNK = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Encoding:
    """What the encoder made of a batch."""

    lengths: NDArray[np.int64]  # [B] states of each item
    memory: Arrays
    labels: NDArray[np.int64] | None = None  # [B, C] best CTC units, before collapsing
    label_lengths: NDArray[np.int64] | None = None
    boundaries: NDArray[np.float32] | None = None  # [B, S] probability that a word ends


@dataclass(frozen=True, slots=True)
class Stepped:
    """What the decoder made of U new tokens."""

    log_probs: NDArray[np.float32]  # [B, U, V]
    attention: NDArray[np.float32]  # [B, layers, U, S]
    cache: Arrays
    write: NDArray[np.bool_] | None = None  # [B, U] a monotonic decoder's decisions


class OnnxNet:
    """A folder with `encoder.onnx` and `decoder.onnx`, loaded."""

    def __init__(self, folder: Path, *, threads: int = 0) -> None:
        self.config = ExportedNet.read(folder)
        self._encoder = _session(folder / "encoder.onnx", threads)
        self._decoder = _session(folder / "decoder.onnx", threads)

    @property
    def blank(self) -> int:
        return self.config.source_units

    def encode(self, source: Array, lengths: Array) -> Encoding:
        """Features [B, T, F], or source units [B, T], and the lengths [B] of the items."""
        return self._encoding(self._run(self._encoder, (source, lengths)))

    def begin_stream(self, batch: int) -> Arrays:
        """What an encoder that hears chunks keeps before the first one."""
        assert self.config.chunks is not None
        return _zeros(self.config.chunks.kept, batch)

    def hear(self, features: Array, frames: Array, stream: Arrays) -> tuple[Encoding, Arrays]:
        """One chunk: features [B, window, F], of which `frames` [B] are real."""
        outputs = self._run(self._encoder, (features, frames, *stream))
        return self._encoding(outputs), outputs[len(outputs) - len(stream) :]

    def begin(self, batch: int) -> Arrays:
        """The decoder's cache before the first token."""
        return _zeros(self.config.cache, batch)

    def step(
        self,
        tokens: Array,
        memory: Arrays,
        lengths: Array,
        cache: Arrays,
        final: Array | None = None,
    ) -> Stepped:
        """Tokens [B, U] that follow the cache; `final` [B] (monotonic): the source has ended."""
        inputs: tuple[Array, ...] = (tokens, lengths, *memory, *cache)
        if self.config.decides == "monotonic":
            ended = np.ones(len(tokens), bool) if final is None else final
            log_probs, attention, write, *kept = self._run(self._decoder, (*inputs, ended))
            return Stepped(log_probs, attention, tuple(kept), write)
        log_probs, attention, *kept = self._run(self._decoder, inputs)
        return Stepped(log_probs, attention, tuple(kept))

    def join(self, before: Arrays | None, after: Arrays) -> Arrays:
        """Memory of a stream and of what it heard next."""
        if before is None:
            return after
        axis = self.config.memory_time
        pairs = zip(before, after, strict=True)
        return tuple(np.concatenate(pair, axis=axis) for pair in pairs)

    def cut(self, memory: Arrays, states: slice) -> Arrays:
        """Some of the states of a memory."""
        index = (slice(None),) * self.config.memory_time + (states,)
        return tuple(array[index] for array in memory)

    def _encoding(self, outputs: Arrays) -> Encoding:
        rest = list(outputs)
        lengths = rest.pop(0)
        labels, label_lengths = (rest.pop(0), rest.pop(0)) if self.config.ctc else (None, None)
        boundaries = rest.pop(0) if self.config.boundaries else None
        memory = tuple(rest[: self.config.memory])
        return Encoding(lengths, memory, labels, label_lengths, boundaries)

    def _run(self, session: Any, inputs: Sequence[Array]) -> Arrays:
        names = [value.name for value in session.get_inputs()]
        return tuple(session.run(None, dict(zip(names, inputs, strict=True))))


def row_of(arrays: Arrays, item: int) -> Arrays:
    """One item's part of a batch's cache or memory."""
    return tuple(array[item : item + 1] for array in arrays)


def _zeros(kept: Sequence[Kept], batch: int) -> Arrays:
    return tuple(np.zeros((batch, *one.shape), one.dtype) for one in kept)


def _session(path: Path, threads: int) -> Any:
    """Open a graph; a damaged or missing one is named."""
    import onnxruntime

    options = session_options(threads)
    make_exact(options)
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common exception of its own
        raise DragomanError(f"Cannot load {path}: {error}.") from error

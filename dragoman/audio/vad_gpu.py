"""Voice activity on a GPU: the same network, for all speakers of a step at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.audio.chunk import Samples
from dragoman.audio.vad import MODEL_FILE, Probabilities, Vad, VadStream
from dragoman.errors import DragomanError

STFT, SHIFT, BINS = 256, 128, 129  # of the spectrum
STRIDES = (1, 2, 2, 1)  # of the convolutions
GATES = (0, 2, 3, 1)  # torch's order of an LSTM's gates, by their places in ONNX's


class GpuVad(Vad):
    """Silero's network in torch, from the weights of its ONNX file."""

    def __init__(self, model: Path, device: str = "cuda") -> None:
        self._device = torch.device(device)
        try:
            with torch.inference_mode():
                self._read(_weights(model))
        except (OSError, KeyError, RuntimeError) as error:
            raise DragomanError(f"{model} is not a voice activity model: {error}") from None

    def _read(self, weights: dict[str, Any]) -> None:
        def tensor(array: Any) -> Tensor:
            return torch.tensor(np.array(array), device=self._device)

        self._waves = tensor(weights["stft.forward_basis_buffer"][:, 0].T)
        self._layers = [
            (
                tensor(weights[f"encoder.{layer}.weight"]).flatten(1),
                tensor(weights[f"encoder.{layer}.bias"]),
                stride,
            )
            for layer, stride in enumerate(STRIDES)
        ]
        # ONNX has the two biases of the gates in a row.
        inward, inner, biases = (weights[f"onnx::LSTM_{number}"][0] for number in (209, 210, 211))
        in_order = [_gates(part) for part in (inward, inner, *np.split(biases, 2))]
        self._lstm = [tensor(part) for part in in_order]
        self._out = tensor(weights["output.weight"][:, :, 0]), tensor(weights["output.bias"])

    def run(
        self, windows: Samples, hidden: Samples, cell: Samples
    ) -> tuple[Probabilities, Samples, Samples]:
        told, hidden, cell = self._batch(windows[None], hidden, cell)
        return told[0], hidden, cell

    def hear(self, streams: Sequence[VadStream], windows: Sequence[Samples]) -> list[Probabilities]:
        """Speakers with as many windows go together."""
        found: list[Probabilities] = [np.zeros(0, np.float32)] * len(streams)
        counts = [len(one) for one in windows]
        for count in set(counts) - {0}:
            group = [index for index, other in enumerate(counts) if other == count]
            chosen = [streams[index] for index in group]
            hidden, cell = (
                np.concatenate([getattr(one, name) for one in chosen], axis=1)
                for name in ("hidden", "cell")
            )
            told, hidden, cell = self._batch(
                np.stack([windows[index] for index in group]), hidden, cell
            )
            for place, (index, one) in enumerate(zip(group, chosen, strict=True)):
                one.hidden, one.cell = hidden[:, place : place + 1], cell[:, place : place + 1]
                found[index] = told[place]
        return found

    @torch.inference_mode()
    def _batch(
        self, windows: Samples, hidden: Samples, cell: Samples
    ) -> tuple[Probabilities, Samples, Samples]:
        """Windows `[speakers, n, samples]` to probabilities `[speakers, n]`, and the states."""
        speakers, count = windows.shape[:2]
        x, *state = (torch.from_numpy(one).to(self._device) for one in (windows, hidden, cell))
        x = functional.pad(x.flatten(0, 1), (0, SHIFT // 2), mode="reflect")
        waves = x.unfold(1, STFT, SHIFT) @ self._waves
        x = (waves[..., :BINS] ** 2 + waves[..., BINS:] ** 2).sqrt()
        for weight, bias, stride in self._layers:
            x = functional.pad(x, (0, 0, 1, 1)).unfold(1, 3, stride).flatten(2)
            x = functional.relu(functional.linear(x, weight, bias))
        x = x[:, 0].unflatten(0, (speakers, count))
        with torch.backends.cudnn.flags(allow_tf32=False):
            x, h, c = torch.lstm(x, state, self._lstm, True, 1, 0.0, False, False, True)
        told = functional.linear(functional.relu(x), *self._out).sigmoid()[..., 0]
        return told.cpu().numpy(), h.cpu().numpy(), c.cpu().numpy()

    @classmethod
    def load(cls) -> GpuVad:
        """The network from the weight store, fetched at the first use."""
        from dragoman.store import get

        return cls(get("silero-vad") / MODEL_FILE)


def _weights(model: Path) -> dict[str, Any]:
    import onnx

    graph = onnx.load(str(model)).graph
    return {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}


def _gates(numbers: Any) -> Any:
    parts = np.split(numbers, 4)
    return np.concatenate([parts[place] for place in GATES])

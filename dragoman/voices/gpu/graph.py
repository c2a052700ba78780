"""The network of a voice, run by torch, as a GPU wants it.

The graph of an ONNX file is gone through node by node. What depends on no input is worked out when
it is loaded. Quantised nets are run in floats: their weights are what the whole numbers stand for,
and what flows between them is not rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.voices.gpu.layers import FINE, LSTM, whole
from dragoman.voices.gpu.operations import OPERATIONS, UNREAD

Values = list[Any]

SMALL = 64  # whole numbers of a constant that stays on the CPU: a shape, an axis, a place


@dataclass(slots=True)
class Node:
    """One step: a function of values by their places, and where its results go."""

    run: Callable[..., Any]
    inputs: list[int]
    outputs: list[int]
    done_with: list[int]  # values that nobody asks for afterwards

    def __call__(self, values: Values) -> None:
        made = self.run(*(None if place < 0 else values[place] for place in self.inputs))
        if len(self.outputs) == 1 and not isinstance(made, tuple):
            values[self.outputs[0]] = made
        else:
            for place, value in zip(self.outputs, made, strict=False):
                if place >= 0:
                    values[place] = value
        for place in self.done_with:
            values[place] = None


class TorchNetwork:
    """Takes the place of an onnxruntime session."""

    def __init__(self, path: Path, device: str) -> None:
        import onnx

        model = onnx.load(str(path))
        self._device = torch.device(device)
        self._places: dict[str, int] = {}
        self._values: Values = []
        self._inputs = [self._place(one.name) for one in model.graph.input]
        self._names = [one.name for one in model.graph.input]
        for one in model.graph.initializer:
            self._values[self._place(one.name)] = self._constant(onnx.numpy_helper.to_array(one))
        with torch.inference_mode():
            self._nodes = [
                node for one in model.graph.node if (node := self._node(one, path)) is not None
            ]
        self._outputs = [self._place(one.name) for one in model.graph.output]
        self._forget_early()

    def run(self, outputs: None, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """All outputs."""
        values = list(self._values)
        for place, name in zip(self._inputs, self._names, strict=True):
            values[place] = torch.as_tensor(inputs[name]).to(self._device)
        with torch.inference_mode():
            for node in self._nodes:
                node(values)
        return [values[place].cpu().numpy() for place in self._outputs]

    def _place(self, name: str) -> int:
        if not name:
            return -1
        if name not in self._places:
            self._places[name] = len(self._values)
            self._values.append(None)
        return self._places[name]

    def _constant(self, array: np.ndarray) -> Tensor:
        value = torch.from_numpy(array.copy())
        few = value.numel() <= SMALL and value.dtype in (torch.int32, torch.int64)
        return value if few else value.to(self._device)

    def _node(self, one: Any, path: Path) -> Node | None:
        """What a node of the graph does; None if it is done already."""
        from onnx.helper import get_attribute_value

        if one.op_type not in OPERATIONS:
            raise DragomanError(
                f"{path} needs '{one.op_type}', which voices on a GPU cannot do yet.",
                advice="voice without --device.",
            )
        read = [a for a in one.attribute if a.name not in UNREAD]
        settings = {a.name: _plain(get_attribute_value(a)) for a in read}
        inputs = [self._place(name) for name in one.input]
        outputs = [self._place(name) for name in one.output]
        given = [None if place < 0 else self._values[place] for place in inputs]
        run: Callable[..., Any] = partial(OPERATIONS[one.op_type], **settings)
        match one.op_type:
            case "DynamicQuantizeLinear":
                for place, value in zip(outputs[1:], (1 / FINE, 0.0), strict=True):
                    self._values[place] = torch.tensor(value, device=self._device)
            case "ConvInteger" | "MatMulInteger" if given[1] is not None:  # made floats once
                self._values[inputs[1]] = whole(given[1], given[3] if len(given) > 3 else None)
            case "DynamicQuantizeLSTM":
                run, inputs = LSTM(given, **settings), inputs[:1]
        node = Node(run, inputs, outputs, [])
        known = all(place < 0 or self._values[place] is not None for place in inputs)
        if known and one.op_type != "RandomNormalLike":
            node(self._values)
            return None
        return node

    def _forget_early(self) -> None:
        """Values are dropped behind the last node that asks for them."""
        kept = set(self._outputs)
        for node in reversed(self._nodes):
            asked = {place for place in [*node.inputs, *node.outputs] if place >= 0}
            node.done_with = [place for place in asked - kept if self._values[place] is None]
            kept |= asked


def _plain(value: Any) -> Any:
    """An attribute's value without the classes of onnx."""
    if hasattr(value, "dims"):
        from onnx.numpy_helper import to_array

        return to_array(value)
    return value.decode() if isinstance(value, bytes) else value

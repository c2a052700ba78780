"""LSTM layers that can be exported for sequences of any length.

torch's own tracing of an LSTM writes down the length it was traced with. While a graph is traced,
the layer therefore appears as one operation of its own, `dragoman::lstm`, which the exporter
turns into ONNX' LSTM.
"""

from typing import Any

import torch
from torch import Tensor, nn


class Lstm(nn.LSTM):
    """One layer that starts by remembering: orthogonal recurrence, forget gates open."""

    weight_ih_l0: nn.Parameter
    weight_hh_l0: nn.Parameter
    bias_ih_l0: nn.Parameter
    bias_hh_l0: nn.Parameter

    def __init__(self, inputs: int, size: int):
        super().__init__(inputs, size, batch_first=True)
        for gate in range(4):
            part = slice(gate * size, (gate + 1) * size)
            nn.init.xavier_uniform_(self.weight_ih_l0.data[part])
            nn.init.orthogonal_(self.weight_hh_l0.data[part])
        nn.init.zeros_(self.bias_ih_l0)
        nn.init.zeros_(self.bias_hh_l0)
        nn.init.ones_(self.bias_ih_l0.data[size : 2 * size])

    def forward(  # type: ignore[override]
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x [B, T, D], hidden and cell [B, size] -> [B, T, size], hidden and cell after it"""
        if state is None:
            zeros = x.new_zeros(x.shape[0], self.hidden_size)
            state = (zeros, zeros)
        hidden, cell = state
        if torch.compiler.is_exporting():
            y, hidden, cell = lstm(x, hidden, cell, *self._flat_weights)
            return y, (hidden, cell)
        y, (hidden, cell) = super().forward(x, (hidden.unsqueeze(0), cell.unsqueeze(0)))
        return y, (hidden.squeeze(0), cell.squeeze(0))


@torch.library.custom_op("dragoman::lstm", mutates_args=())
def lstm(
    x: Tensor,
    hidden: Tensor,
    cell: Tensor,
    from_input: Tensor,
    from_hidden: Tensor,
    input_bias: Tensor,
    hidden_bias: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Stands for ONNX's LSTM in a graph that is exported."""
    raise RuntimeError("dragoman::lstm is only ever traced, never run")


@lstm.register_fake
def _(
    x: Tensor, hidden: Tensor, cell: Tensor, from_input: Tensor, *_: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    y = x.new_empty(x.shape[0], x.shape[1], hidden.shape[1])
    return y, torch.empty_like(hidden), torch.empty_like(cell)


def lstm_in_onnx(
    x: Any,
    hidden: Any,
    cell: Any,
    from_input: Any,
    from_hidden: Any,
    input_bias: Any,
    hidden_bias: Any,
) -> tuple[Any, Any, Any]:
    """`dragoman::lstm` in ONNX: gates in the order i, o, f, g instead of i, f, g, o."""
    from onnxscript import opset18

    op: Any = opset18  # its types tell the kinds of constants apart only once a graph is made
    size, axis = from_hidden.shape[1], op.Constant(value_ints=[0])

    def gates(matrix: Any) -> Any:
        bounds = [op.Constant(value_ints=[gate * size]) for gate in range(5)]
        i, f, g, o = (op.Slice(matrix, bounds[k], bounds[k + 1], axis) for k in range(4))
        return op.Concat(i, o, f, g, axis=0)

    bias = op.Concat(gates(input_bias), gates(hidden_bias), axis=0)
    y, hidden, cell = op.LSTM(
        op.Transpose(x, perm=[1, 0, 2]),
        op.Unsqueeze(gates(from_input), axis),
        op.Unsqueeze(gates(from_hidden), axis),
        op.Unsqueeze(bias, axis),
        None,
        op.Unsqueeze(hidden, axis),
        op.Unsqueeze(cell, axis),
        hidden_size=size,
    )
    y = op.Transpose(op.Squeeze(y, op.Constant(value_ints=[1])), perm=[1, 0, 2])
    return y, op.Squeeze(hidden, axis), op.Squeeze(cell, axis)

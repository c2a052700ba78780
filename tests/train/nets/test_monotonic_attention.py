"""A whole layer of monotonic attention, head after head and state after state."""

import pytest
import torch

from dragoman.train.nets.layers import LayerConfig
from dragoman.train.nets.monotonic.attention import (
    Expected,
    MonotonicAttention,
    MonotonicConfig,
)
from dragoman.train.nets.monotonic.decisions import decide_every

SIZE, HEADS, WIDTH = 8, 2, 4
ENDS = [3, 6, 7]  # of 7 states, a decision every 3


def stopping(p):
    """a_ij of probabilities p [U, G]: q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}, a = p q"""
    before, rows = [1.0, 0.0, 0.0], []
    for row in p:
        q, now = 0.0, []
        for j, start in enumerate(before):
            q = (1 - float(row[j - 1])) * q + start if j else start
            now.append(q * (1.0 if j == len(before) - 1 else float(row[j])))
        rows.append(now)
        before = now
    return rows


@torch.no_grad()
@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("pooling", ["average", "last"])
def test_a_layer_is_its_formula(soft, pooling):
    torch.manual_seed(0)
    monotonic = MonotonicConfig(
        attention="infinite" if soft else "hard", ratio=3, pooling=pooling, energy_bias=-0.5
    )
    layer = MonotonicAttention(LayerConfig(SIZE, HEADS, 16), monotonic).eval()
    x, states = torch.randn(1, 4, SIZE), torch.randn(1, 7, SIZE)
    decisions = decide_every(3, torch.tensor([7]), 7)
    stop_key = layer.stop_key(monotonic.group(states, decisions))
    readable = monotonic.readable(states, decisions)
    found, reading = layer.explain(x, readable, Expected(decisions, stop_key, energies=True))

    groups = [states[0, :3], states[0, 3:6], states[0, 6:]]
    grouped = torch.stack([g.mean(0) if pooling == "average" else g[-1] for g in groups])
    context = torch.zeros(4, SIZE)
    for head in range(HEADS):
        part = slice(head * WIDTH, (head + 1) * WIDTH)
        query, key = layer.stop_query(x[0])[:, part], layer.stop_key(grouped)[:, part]
        energy = query @ key.T / WIDTH**0.5 - 0.5
        torch.testing.assert_close(reading.energies[0, head], energy)
        alignment = stopping(energy.sigmoid())
        delays = [sum(a * end for a, end in zip(row, ENDS, strict=True)) for row in alignment]
        torch.testing.assert_close(reading.delays[0, head], torch.tensor(delays))
        if soft:
            keys, value = (m[:, part] for m in layer.key_value(states[0]).chunk(2, -1))
            scores = layer.query(x[0])[:, part] @ keys.T / WIDTH**0.5
        else:
            value = layer.value(states[0])[:, part]
        for unit, row in enumerate(alignment):
            for a, end in zip(row, ENDS, strict=True):
                weights = scores[unit, :end].softmax(0) if soft else torch.eye(end)[-1]
                context[unit, part] += a * (weights @ value[:end])
    torch.testing.assert_close(found[0], layer.out(context), atol=1e-5, rtol=1e-4)

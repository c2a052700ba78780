"""Where heads stop in expectation, and what they look back on, in plain PyTorch.

`alignment_triton.py` and `lookback_triton.py` have kernels for both.

Everything in monotonic attention is a walker on a line of source states:

*The reader* starts a row where it stood before, and at each state j stops with probability
p_j = sigmoid(e_j) or steps right. If it starts at j with probability s_j, it passes j with q_j and
stops there with a_j:

    q_j = (1 - p_{j-1}) q_{j-1} + s_j          a_j = p_j q_j

*The one who looks back* starts where the reader stopped and steps left. It stops at j with
w_j = exp(u_j) / sum_{m<=j} exp(u_m), the softmax weight of j among the states up to j; breaking the
stick like this draws j from softmax(u_1..u_k) when started at k:

    r_j = a_j + (1 - w_{j+1}) r_{j+1}          b_j = w_j r_j

Where the reader may stop only after every `ratio` states, the look back first draws a group of
states (with the groups' logsumexp for u), then a state within it: the walk is as short as the
reader's.

Both are first-order linear recurrences of positive numbers. They are summed as they stand: no
division, no logarithm, so nothing to overflow, and what underflows is truly zero. Gradients are
recurrences of the same kind (the value of standing at j), given here in closed form.

Shapes: N attention heads of all items, I target steps, S source states, G groups of `ratio` states;
lengths [N] in groups for the reader, in states for the look back. What lies past a length is
padding; the last real group always stops the reader: a source that has ended cannot be read
further, and no probability is lost. Energies may be half floats; the walk is in single precision.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

CERTAIN = 1e4  # an energy whose sigmoid is exactly 1 (and 0 when negative) in every float type


def scan(keep: Tensor, x: Tensor) -> Tensor:
    """y_j = keep_j y_{j-1} + x_j along the last axis, in log2(J) doubling steps."""
    step, length = 1, x.shape[-1]
    while step < length:
        x = torch.cat([x[..., :step], x[..., step:] + keep[..., step:] * x[..., :-step]], -1)
        keep = torch.cat([keep[..., :step], keep[..., step:] * keep[..., :-step]], -1)
        step *= 2
    return x


def scan_left(keep: Tensor, x: Tensor) -> Tensor:
    """y_j = keep_j y_{j+1} + x_j."""
    return scan(keep.flip(-1), x.flip(-1)).flip(-1)


def align(energy: Tensor, lengths: Tensor) -> Tensor:
    """Expected alignment [N, I, G] of energies [N, I, G]: row i walks on from row i - 1."""
    energy = close(_single(energy), lengths)
    stop, go = energy.sigmoid(), (-energy).sigmoid()
    came = torch.cat([torch.zeros_like(go[..., :1]), go[..., :-1]], -1)
    row = torch.zeros_like(energy[:, 0])
    row[:, 0] = 1
    rows = []
    for i in range(energy.shape[1]):
        row = stop[:, i] * scan(came[:, i], row)
        rows.append(row)
    return torch.stack(rows, 1)


def align_backward(grad: Tensor, energy: Tensor, alignment: Tensor, lengths: Tensor) -> Tensor:
    """Gradient on the energies [N, I, G].

    With g the reward of stopping (the given gradient plus the value of the next row), the value of
    standing at j is v_j = p_j g_j + (1 - p_j) v_{j+1}; then d/ds_j = v_j and
    d/de_j = a_j (g_j - v_j): how much better stopping here is than arriving here.
    """
    kind, energy = energy.dtype, close(_single(energy), lengths)
    stop, go = energy.sigmoid(), (-energy).sigmoid()
    value = torch.zeros_like(energy[:, 0])
    out = torch.empty_like(energy)
    for i in reversed(range(energy.shape[1])):
        reward = grad[:, i] + value
        value = scan_left(go[:, i], stop[:, i] * reward)
        out[:, i] = alignment[:, i] * (reward - value)
    return out.to(kind)


def look_back(alignment: Tensor, energy: Tensor, lengths: Tensor, ratio: int) -> Tensor:
    """Attention b_j = sum_{k>=j} a_k softmax(u_1..u_k)_j: [N, I, G], [N, I, S] -> [N, I, S]"""
    inner, weight, stay = _weights(energy, lengths, ratio, alignment.shape[-1])
    outer = weight * scan_left(stay, alignment)
    return _ungroup(inner * outer.unsqueeze(-1), energy)


def look_back_backward(
    grad: Tensor, alignment: Tensor, energy: Tensor, lengths: Tensor, ratio: int
) -> tuple[Tensor, Tensor]:
    """Gradients on alignment [N, I, G] and energies [N, I, S].

    With g_k the mean of the given gradient over group k, m_k = w_k g_k + (1 - w_k) m_{k-1} is its
    mean under softmax(u_1..u_k), so d/da_k = m_k, and d/du_j = b_j grad_j - sum_{k>=j} a_k m_k
    softmax(u_1..u_k)_j: another look back.
    """
    inner, weight, stay = _weights(energy, lengths, ratio, alignment.shape[-1])
    grad = _group(_single(grad), ratio, alignment.shape[-1], 0.0)
    mean = scan(1 - weight, weight * (inner * grad).sum(-1))
    seen = scan_left(stay, alignment).unsqueeze(-1)
    expected = scan_left(stay, alignment * mean).unsqueeze(-1)
    to_energy = inner * weight.unsqueeze(-1) * (seen * grad - expected)
    return mean, _ungroup(to_energy, energy)


def close(energy: Tensor, lengths: Tensor) -> Tensor:
    """Make the last real column stop the reader for certain, and padding never."""
    column = torch.arange(energy.shape[-1], device=energy.device)
    last = (lengths - 1).view(-1, 1, 1)
    energy = energy.masked_fill(column > last, -CERTAIN)
    return energy.masked_fill(column == last, CERTAIN)


def _weights(
    energy: Tensor, lengths: Tensor, ratio: int, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax within groups [N, I, G, ratio]; w_k of groups and 1 - w_{k+1}, both [N, I, G].

    The latter is exact where w is nearly 1: sigmoid(logcumsumexp(u)_k - u_{k+1}).
    """
    padding = torch.arange(energy.shape[-1], device=energy.device) >= lengths.view(-1, 1, 1)
    grouped = _group(_single(energy).masked_fill(padding, -CERTAIN), ratio, groups, -CERTAIN)
    group = grouped.logsumexp(-1)
    total = torch.logcumsumexp(group, -1)
    stay = F.pad((total[..., :-1] - group[..., 1:]).sigmoid(), (0, 1))
    return grouped.softmax(-1), (group - total).exp(), stay


def _group(x: Tensor, ratio: int, groups: int, fill: float) -> Tensor:
    """[N, I, S] -> [N, I, G, ratio]"""
    missing = groups * ratio - x.shape[-1]
    return F.pad(x, (0, missing), value=fill).unflatten(-1, (groups, ratio))


def _ungroup(x: Tensor, like: Tensor) -> Tensor:
    """[N, I, G, ratio] -> [N, I, S]"""
    return x.flatten(-2)[..., : like.shape[-1]].to(like.dtype)


def _single(x: Tensor) -> Tensor:
    """At least single precision: half floats lose the sums of rows."""
    return x if x.dtype == torch.float64 else x.float()

"""Two walks along the source, in plain PyTorch. `walk_triton.py` does the same in one kernel each.

Everything in monotonic attention is a walker on a line of source states:

*The reader* starts a row where it stood before, and at each state j stops with probability
p_j = sigmoid(e_j) or steps right. If it starts at j with probability s_j, it passes j with q_j and
stops there with a_j:

    q_j = (1 - p_{j-1}) q_{j-1} + s_j          a_j = p_j q_j

*The one who looks back* starts where the reader stopped and steps left. It stops at j with
w_j = exp(u_j) / sum_{m<=j} exp(u_m), the softmax weight of j among the states up to j; breaking the
stick like this draws j from softmax(u_1..u_k) when started at k:

    r_j = a_j + (1 - w_{j+1}) r_{j+1}          b_j = w_j r_j

Both are first-order linear recurrences of positive numbers. They are summed as they stand: no
division, no logarithm, so nothing to overflow, and what underflows is truly zero. Gradients are
recurrences of the same kind (the value of standing at j), given here in closed form.

Shapes: energies and alignments [N, I, J] (rows of attention heads, target steps, source states);
lengths [N]. Columns from a row's length on are padding; the last real column always stops the
reader: a source that has ended cannot be read further, and no probability is lost.
"""

import torch
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
    """Expected alignment a [N, I, J]: row i is the reader's walk started from row i-1."""
    energy = close(energy, lengths)
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
    """Gradient on the energies [N, I, J].

    With g the reward of stopping (the given gradient plus the value of the next row), the value of
    standing at j is v_j = p_j g_j + (1 - p_j) v_{j+1}; then d/ds_j = v_j and
    d/de_j = a_j (g_j - v_j): how much better stopping here is than arriving here.
    """
    energy = close(energy, lengths)
    stop, go = energy.sigmoid(), (-energy).sigmoid()
    value = torch.zeros_like(energy[:, 0])
    out = torch.empty_like(energy)
    for i in reversed(range(energy.shape[1])):
        reward = grad[:, i] + value
        value = scan_left(go[:, i], stop[:, i] * reward)
        out[:, i] = alignment[:, i] * (reward - value)
    return out


def look_back(alignment: Tensor, energy: Tensor) -> Tensor:
    """Infinite-lookback attention b_j = sum_{k>=j} a_k softmax(u_1..u_k)_j, [N, I, J]."""
    weight, stay = _prefix_weights(energy)
    return weight * scan_left(stay, alignment)


def look_back_backward(grad: Tensor, alignment: Tensor, energy: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients on alignment and energies, both [N, I, J].

    m_k = w_k g_k + (1 - w_k) m_{k-1} is the mean of g under softmax(u_1..u_k), so d/da_k = m_k and
    d/du_j = b_j g_j - sum_{k>=j} a_k m_k softmax(u_1..u_k)_j: another look back.
    """
    weight, stay = _prefix_weights(energy)
    mean = scan(1 - weight, weight * grad)
    seen = scan_left(stay, alignment)
    expected = scan_left(stay, alignment * mean)
    return mean, weight * (seen * grad - expected)


def close(energy: Tensor, lengths: Tensor) -> Tensor:
    """Make the last real column stop the reader for certain, and padding never."""
    column = torch.arange(energy.shape[-1], device=energy.device)
    last = (lengths - 1).view(-1, 1, 1)
    energy = energy.masked_fill(column > last, -CERTAIN)
    return energy.masked_fill(column == last, CERTAIN)


def _prefix_weights(energy: Tensor) -> tuple[Tensor, Tensor]:
    """w_j and 1 - w_{j+1}, the latter exactly: sigmoid(logcumsumexp(u)_j - u_{j+1})."""
    total = torch.logcumsumexp(energy, -1)
    stay = (total[..., :-1] - energy[..., 1:]).sigmoid()
    return (energy - total).exp(), torch.cat([stay, torch.zeros_like(total[..., :1])], -1)

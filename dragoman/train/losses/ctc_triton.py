"""CTC on CUDA in three Triton kernels: nothing is asked of the host, so a step can be captured.

PyTorch's CTC wants log probabilities of all units in single precision and lengths on the host. Here

1. every row of logits gives its logsumexp, and the log probabilities of the units that matter: the
   target's and the blank;
2. one program walks forwards through the states of an item, one backwards, with the log
   probability of having come to each unit;
3. the gradient, softmax minus the probability of standing at a unit, is written in the logits'
   own precision. Standing at the blank is what is left by all other units.
"""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

NEVER = tl.constexpr(-1e30)  # the logarithm of what cannot be; sums of it stay finite


@triton.jit
def _rows(logits, lengths, targets, blank, sums, scores, states, units, wanted,
          BLOCK: tl.constexpr, LABELS: tl.constexpr):  # fmt: skip
    """Logsumexp of a row [B, S], and log probabilities of targets, then blank [B, S, W + 1]."""
    row = tl.program_id(0).to(tl.int64)
    item = row // states
    if row % states < tl.load(lengths + item):
        logits += row * units
        column = tl.arange(0, BLOCK)
        highest = tl.full([BLOCK], NEVER, tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        for first in range(0, units, BLOCK):
            place = first + column
            x = tl.load(logits + place, mask=place < units, other=NEVER).to(tl.float32)
            higher = tl.maximum(highest, x)
            total = total * tl.exp(highest - higher) + tl.exp(x - higher)
            highest = higher
        top = tl.max(highest, 0)
        whole = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
        tl.store(sums + row, whole)
        label = tl.arange(0, LABELS)
        unit = tl.load(targets + item * wanted + label, mask=label < wanted, other=blank)
        x = tl.load(logits + unit).to(tl.float32)
        tl.store(scores + row * (wanted + 1) + label, x - whole, mask=label <= wanted)


@triton.jit
def _either(a, b):
    """The logarithm of the sum of two probabilities."""
    top = tl.maximum(a, b)
    return top + tl.log(tl.exp(a - top) + tl.exp(b - top))


@triton.jit
def _walk(scores, lengths, targets, target_lengths, came, likelihood, items, states, wanted,
          LABELS: tl.constexpr):  # fmt: skip
    """Log probabilities [2, B, S, W] of all ways to a label at a state: from the left, the right.

    Both take in the state itself. Blank i stands before label i, blank n after the last.
    """
    item = tl.program_id(0).to(tl.int64)
    side = tl.program_id(1)
    last = tl.load(lengths + item) - 1
    labels = tl.load(target_lengths + item)
    place = tl.arange(0, LABELS)
    real = place < labels
    # Seen from the right, labels and states run backwards.
    mine = tl.where(side == 0, place, labels - 1 - place)
    before = tl.where(side == 0, place - 1, labels - place)
    unit = tl.load(targets + item * wanted + mine, mask=real, other=-1)
    other = tl.load(targets + item * wanted + before, mask=real & (place > 0), other=-1)
    from_left = (place > 0) & (place <= labels)
    leap = real & from_left & (unit != other)  # no blank is needed between two different labels
    scores += item * states * (wanted + 1)
    came += (side * items + item) * states * wanted
    on_label = tl.full([LABELS], NEVER, tl.float32)
    on_blank = tl.full([LABELS], NEVER, tl.float32)
    was = last * 0
    for step in range(0, last + 1):
        state = tl.where(side == 0, step, last - step)
        say_label = tl.load(scores + state * (wanted + 1) + mine, mask=real, other=NEVER)
        say_blank = tl.load(scores + state * (wanted + 1) + wanted)
        # The neighbours' numbers of the state before come by way of memory.
        shifted = tl.load(came + was * wanted + before, mask=from_left & (step > 0), other=NEVER)
        # Before the first state everybody stands in front of the first blank.
        enter = tl.where((place == 0) & (step == 0), 0.0, NEVER)
        on_blank = tl.maximum(on_blank, enter)
        next_label = _either(_either(on_label, on_blank), tl.where(leap, shifted, NEVER))
        on_blank = tl.where(place <= labels, _either(on_blank, shifted) + say_blank, NEVER)
        on_label = tl.where(real, next_label + say_label, NEVER)
        tl.store(came + state * wanted + mine, on_label, mask=real)
        tl.debug_barrier()
        was = state
    if side == 0:
        ended = tl.where(place == labels - 1, on_label, NEVER)
        rested = tl.where(place == labels, on_blank, NEVER)
        top = tl.maximum(tl.max(ended, 0), tl.max(rested, 0))
        total = tl.exp(tl.max(ended, 0) - top) + tl.exp(tl.max(rested, 0) - top)
        tl.store(likelihood + item, top + tl.log(total))


@triton.jit
def _gradient(logits, lengths, targets, target_lengths, sums, scores, came, back, likelihood, given,
              out, blank, states, units, wanted,
              BLOCK: tl.constexpr, LABELS: tl.constexpr, PART: tl.constexpr):  # fmt: skip
    """Softmax minus the probability of standing at each unit, times the gradient that is given."""
    row = tl.program_id(0).to(tl.int64)
    item = row // states
    logits += row * units
    out += row * units
    total = tl.load(likelihood + item)
    counts = (row % states < tl.load(lengths + item)) & (total > -1e29)
    scale = tl.where(counts, tl.load(given), 0.0)
    whole = tl.where(counts, tl.load(sums + row), 0.0)
    column = tl.arange(0, BLOCK)
    for first in range(0, units, BLOCK):
        place = first + column
        x = tl.load(logits + place, mask=place < units, other=NEVER).to(tl.float32)
        share = tl.where(counts, tl.exp(x - whole), 0.0)  # padding may hold anything
        tl.store(out + place, scale * share, mask=place < units)
    tl.debug_barrier()  # units of the target are written once more
    if counts:
        label = tl.arange(0, LABELS)
        labels = tl.load(target_lengths + item)
        real = label < labels
        unit = tl.load(targets + item * wanted + label, mask=real, other=-1)
        standing = tl.zeros([LABELS], tl.float32)
        somewhere = 0.0
        for first in range(0, LABELS, PART):
            part = first + tl.arange(0, PART)
            there = part < labels
            at = row * wanted + part
            ways = tl.load(came + at, mask=there, other=NEVER)
            ways += tl.load(back + at, mask=there, other=0.0)
            said = tl.load(scores + row * (wanted + 1) + part, mask=there, other=0.0)
            here = tl.where(there, tl.exp(ways - said - total), 0.0)
            theirs = tl.load(targets + item * wanted + part, mask=there, other=-2)
            # A unit may be in the target many times; each of its lanes gets the sum of all.
            same = unit[:, None] == theirs[None, :]
            standing += tl.sum(tl.where(same, here[None, :], 0.0), 1)
            somewhere += tl.sum(here, 0)
        x = tl.load(logits + unit, mask=real, other=NEVER).to(tl.float32)
        tl.store(out + unit, scale * (tl.exp(x - whole) - standing), mask=real)
        x = tl.load(logits + blank).to(tl.float32)
        tl.store(out + blank, scale * (tl.exp(x - whole) - (1.0 - somewhere)))


class _Ctc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, lengths, targets, target_lengths, blank):
        logits, targets = logits.contiguous(), targets.contiguous()
        items, states, units = logits.shape
        wanted = targets.shape[1]
        sizes = {"LABELS": triton.next_power_of_2(wanted + 1)}
        sums = logits.new_empty((items, states), dtype=torch.float32)
        scores = logits.new_empty((items, states, wanted + 1), dtype=torch.float32)
        came = logits.new_empty((2, items, states, wanted), dtype=torch.float32)
        likelihood = logits.new_empty(items, dtype=torch.float32)
        block = {"BLOCK": min(1024, triton.next_power_of_2(units))}
        _rows[(items * states,)](
            logits, lengths, targets, blank, sums, scores, states, units, wanted, **block, **sizes
        )
        _walk[(items, 2)](
            scores, lengths, targets, target_lengths, came, likelihood, items, states, wanted,
            **sizes, num_warps=1 if sizes["LABELS"] <= 128 else 4, num_stages=1,
        )  # fmt: skip
        ctx.save_for_backward(
            logits, lengths, targets, target_lengths, sums, scores, *came, likelihood
        )
        ctx.blank, ctx.sizes = blank, {**block, **sizes, "PART": min(32, sizes["LABELS"])}
        return -torch.where(likelihood > -1e29, likelihood, 0.0).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, given):
        logits, *rest = ctx.saved_tensors
        items, states, units = logits.shape
        out = torch.empty_like(logits)
        numbers = (ctx.blank, states, units, rest[1].shape[1])
        _gradient[(items * states,)](logits, *rest, given, out, *numbers, **ctx.sizes)
        return out, None, None, None, None


def ctc(
    logits: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """As `tokens.ctc`."""
    return _Ctc.apply(logits, lengths, targets, target_lengths, blank)

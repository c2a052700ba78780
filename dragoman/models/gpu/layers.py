"""The layers of a Transformer, with weights in CTranslate2's format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.whisper.weights import Weights

Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Linear:
    """x times a matrix, and a bias."""

    weight: Tensor  # [out, in]
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation."""

    gamma: Tensor
    beta: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.gamma.shape, self.gamma, self.beta, 1e-5)


@dataclass(frozen=True, slots=True)
class Attention:
    """What is made of the input before and after heads look; `inward` are q, k and v in one, or,
    where another input is looked at, q alone."""

    norm: Norm
    inward: Linear
    outward: Linear


@dataclass(frozen=True, slots=True)
class Thought:
    """The feed-forward part of a layer."""

    norm: Norm
    up: Linear
    down: Linear
    activation: Activation = functional.gelu

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(self.norm(x))))


def gated(x: Tensor) -> Tensor:
    """The first half of the numbers, as far as the second lets them through."""
    inner, gate = x.chunk(2, dim=-1)
    return inner * functional.silu(gate)


HEAD_ALIGNED = 8
# By CTranslate2's numbers.
ACTIVATIONS: dict[int, Activation] = {0: functional.relu, 3: functional.gelu}


class Reader:
    """Reads layers from a file of weights, onto a device and in some kind of numbers."""

    def __init__(self, weights: Weights, device: torch.device, dtype: torch.dtype) -> None:
        self.weights = weights
        self.device, self.dtype = device, dtype

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.weights.array(name))).to(
            self.device, self.dtype
        )

    def linear(self, name: str) -> Linear:
        bias = self.tensor(f"{name}/bias") if f"{name}/bias" in self.weights else None
        return Linear(self.tensor(f"{name}/weight"), bias)

    def convolution(self, name: str) -> Linear:
        """A convolution `[out, in, size]`, as a matrix for windows whose numbers are in a row."""
        weight = self.tensor(f"{name}/weight")
        return Linear(weight.flatten(1).contiguous(), self.tensor(f"{name}/bias"))

    def norm(self, name: str) -> Norm:
        beta = self.tensor(f"{name}/beta") if f"{name}/beta" in self.weights else None
        return Norm(self.tensor(f"{name}/gamma"), beta)

    def attention(
        self, name: str, heads: int, outward: str = "linear_1", *, turned: int = 0
    ) -> Attention:
        """Queries are scaled already: they are the first rows. `turned`: numbers of a head that
        turn with their place."""
        inward, back = self.linear(f"{name}/linear_0"), self.linear(f"{name}/{outward}")
        width = inward.weight.shape[1]
        for part in (inward.weight, inward.bias):
            if part is not None:
                part[:width] *= (width // heads) ** -0.5
        size = width // heads
        back = Linear(aligned_heads(back.weight.T, size).T.contiguous(), back.bias)
        norm = self.norm(f"{name}/layer_norm")
        made = Attention(norm, _with_aligned_heads(inward, size), back)
        return turning(made, heads, turned) if turned else made

    def memory(self, name: str, heads: int) -> Linear:
        """What makes keys and values of the source."""
        made = self.linear(name)
        return _with_aligned_heads(made, made.weight.shape[0] // (2 * heads))

    def thought(self, name: str) -> Thought:
        return Thought(
            self.norm(f"{name}/layer_norm"),
            up := self.linear(f"{name}/linear_0"),
            down := self.linear(f"{name}/linear_1"),
            gated if len(up.weight) > down.weight.shape[1] else self._activation(name),
        )

    def _activation(self, name: str) -> Activation:
        """That of the encoder or the decoder; where nothing is said, Whisper's."""
        said = f"{name.partition('/')[0]}/activation"
        return ACTIVATIONS[int(self.weights.stored(said)) if said in self.weights else 3]


def aligned_size(size: int) -> int:
    """The width that heads have on a device: its fast kernels take multiples of eight numbers."""
    return size + -size % HEAD_ALIGNED


def aligned_heads(rows: Tensor, size: int) -> Tensor:
    """Rows of heads of that width, with zeros behind each of them."""
    heads = rows.unflatten(0, (-1, size))
    more = heads.new_zeros(len(heads), aligned_size(size) - size, *heads.shape[2:])
    return torch.cat([heads, more], dim=1).flatten(0, 1)


def _with_aligned_heads(linear: Linear, size: int) -> Linear:
    bias = None if linear.bias is None else aligned_heads(linear.bias, size)
    return Linear(aligned_heads(linear.weight, size), bias)


def heads_of(x: Tensor, heads: int) -> Tensor:
    """`[batch, n, width]` to `[batch, heads, n, head width]`."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """`[batch, heads, n, head width]` to `[batch, n, width]`."""
    return x.transpose(1, 2).flatten(2)


@dataclass(frozen=True, slots=True)
class Turns:
    """By how much places turn the numbers of a head: `[places, head width]`, or of a batch of them
    `[batch, 1, n, head width]`."""

    cosine: Tensor
    sine: Tensor

    @classmethod
    def of(cls, cosine: Tensor, sine: Tensor, size: int) -> Turns:
        """Of cosines and sines `[places, half]`: the first half of what turns is turned with the
        second, the rest of a head stays."""
        rest = cosine.new_ones(len(cosine), size - 2 * cosine.shape[1])
        return cls(torch.cat([cosine, cosine, rest], 1), torch.cat([sine, sine, 0 * rest], 1))

    def at(self, places: Tensor) -> Turns:
        """Those of `[batch, n]` places."""
        return Turns(self.cosine[places][:, None], self.sine[places][:, None])


def turning(attention: Attention, heads: int, numbers: int) -> Attention:
    """The same, whose matrix makes queries and keys twice: as they are, and with the first so many
    numbers of each head turned by a right angle. To turn them further is then a sum of two, where
    many small steps would keep a device waiting."""
    half, inward = numbers // 2, attention.inward

    def twice(made: Tensor) -> Tensor:
        query, key, _ = made.chunk(3)
        rows = torch.cat([query, key]).unflatten(0, (2 * heads, -1))
        turned = torch.zeros_like(rows)
        turned[:, :half], turned[:, half:numbers] = -rows[:, half:numbers], rows[:, :half]
        return torch.cat([made, turned.flatten(0, 1)])

    bias = None if inward.bias is None else twice(inward.bias)
    return replace(attention, inward=Linear(twice(inward.weight), bias))


def looking(
    attention: Attention, x: Tensor, heads: int, turns: Turns | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of `[batch, n, width]`, `[batch, heads, n, head width]` each;
    `turns` are those of an attention that is `turning`."""
    made = attention.inward(attention.norm(x))
    if turns is None:
        q, k, v = heads_of(made, 3 * heads).chunk(3, dim=1)
        return q, k, v
    both, v, right = heads_of(made, 5 * heads).split([2 * heads, heads, 2 * heads], dim=1)
    q, k = torch.addcmul(both * turns.cosine, right, turns.sine).chunk(2, dim=1)
    return q, k, v

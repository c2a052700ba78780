"""The decoder, for all texts about all sounds of a batch.

The keys and values of a text stand in columns of a buffer. The texts about one sound share them:
first the columns of what is known, then, for every token that was made, one column for each of the
texts. Which of the columns are its own is all that a text keeps for itself, so that following
another text means to copy a few flags and not what was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.gpu.layers import (
    Attention,
    Linear,
    Reader,
    Thought,
    Turns,
    aligned_size,
    heads_of,
    joined,
    looking,
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer."""

    back: Attention  # at the text so far
    memory: Linear  # keys and values of the sound
    sound: Attention
    think: Thought
    looks: Tensor  # heads that tell where the decoder looks


@dataclass(slots=True)
class Tape:
    """What was computed of a batch of sounds and of the texts about them."""

    memory: Tensor  # [layers, 2, sounds, heads, states, head width]
    deaf: Tensor  # [sounds, 1, 1, states]: states that are no sound
    columns: Tensor  # [layers, 2, sounds, heads, columns, head width]
    own: Tensor  # [sounds, texts, columns]: which columns are a text's
    length: Tensor  # [sounds, 1]: tokens that were read, the same for all texts about a sound

    def keep(self, sounds: Tensor) -> None:
        """Go on with some of the sounds."""
        self.memory = self.memory.index_select(2, sounds)
        self.columns = self.columns.index_select(2, sounds)
        self.deaf, self.own, self.length = self.deaf[sounds], self.own[sounds], self.length[sounds]

    def follow(self, texts: Tensor) -> None:
        """Go on with texts `[sounds, texts]` that continue those at these places."""
        columns = self.own.shape[2]
        self.own = self.own.gather(1, texts[:, :, None].expand(-1, -1, columns))

    def widen(self, columns: int) -> None:
        """Make room for more columns."""
        more = columns - self.own.shape[2]
        self.columns = functional.pad(self.columns, (0, 0, 0, more))
        self.own = functional.pad(self.own, (0, more))


class Decoder:
    """From tokens and sounds to what may follow."""

    def __init__(self, reader: Reader, alignment: Sequence[tuple[int, int]]) -> None:
        self._device, self._dtype = reader.device, reader.dtype
        self._heads = int(reader.weights.stored("decoder/num_heads"))
        self._norm = reader.norm("decoder/layer_norm")
        self.width = self._norm.gamma.shape[0]
        # Where positions turn, each has a row of cosines and one of sines behind what is added.
        positions = reader.tensor("decoder/position_encodings/encodings")
        cosines, sines = positions[:, self.width :].chunk(2, dim=1)
        turned = 2 * cosines.shape[1]
        self._size = aligned_size(self.width // self._heads)  # of a head
        self._turns = Turns.of(cosines, sines, self._size) if turned else None
        self._positions = positions[:, : self.width].contiguous()
        self._embeddings = reader.tensor("decoder/embeddings/weight")[:, : self.width].contiguous()
        self._projection = reader.linear("decoder/projection")
        self._layers = [
            Layer(
                reader.attention(
                    f"decoder/layer_{layer}/self_attention", self._heads, turned=turned
                ),
                reader.memory(f"decoder/layer_{layer}/attention/linear_1", self._heads),
                reader.attention(f"decoder/layer_{layer}/attention", self._heads, "linear_2"),
                reader.thought(f"decoder/layer_{layer}/ffn"),
                torch.tensor(
                    [head for at, head in alignment if at == layer],
                    dtype=torch.long,
                    device=reader.device,
                ),
            )
            for layer in range(reader.weights.layers("decoder"))
        ]
        self._alignment = len(alignment)
        self.words = self._embeddings.shape[0]
        self.most_tokens = len(self._positions)

    @property
    def layers(self) -> int:
        return len(self._layers)

    def bytes_of(self, states: int, texts: int, tokens: int = 128) -> int:
        """About how much memory a sound takes, with as many texts about it of so many tokens."""
        size = torch.finfo(self._dtype).bits // 8
        columns = 2 * self.layers * self.width * (states + tokens * texts) * size
        looks = texts * tokens * states * size
        words = 3 * 4 * self.words * texts  # what may follow, in 32 bits, and two copies of it
        return 2 * (columns + looks) + words  # those who go on are copied now and then

    def nothing(self, sounds: int, states: int) -> Tensor:
        """The states of sounds that are not there."""
        return torch.zeros(sounds, states, self.width, dtype=self._dtype, device=self._device)

    def begin(self, states: Tensor, lengths: Tensor, texts: int, columns: int) -> Tape:
        """A tape for `[sounds, states, width]`, of which so many states count, with room for
        columns, and as many texts about each sound."""
        sounds, size = len(states), self._size
        shape = (self.layers, 2, sounds, self._heads)
        memory = states.new_empty(*shape, states.shape[1], size)
        for index, layer in enumerate(self._layers):
            both = layer.memory(states).unflatten(-1, (2, self._heads, size))
            memory[index] = both.permute(2, 0, 3, 1, 4)
        places = torch.arange(states.shape[1], device=self._device)
        return Tape(
            memory,
            (places >= lengths[:, None])[:, None, None, :],
            states.new_zeros(*shape, columns, size),
            torch.zeros(sounds, texts, columns, dtype=torch.bool, device=self._device),
            torch.zeros(sounds, 1, dtype=torch.long, device=self._device),
        )

    def read_known(self, tape: Tape, tokens: Tensor, unused: Tensor) -> Tensor:
        """Read what is known, `[sounds, n]` with so many unused columns at the left of each, into
        the first columns of a tape. Returns what is left of the tokens, `[sounds, n, width]`."""
        count = tokens.shape[1]
        places = torch.arange(count, device=self._device)
        outside = places < unused[:, None]
        seen = (places <= places[:, None]) & ~outside[:, None, :]
        seen |= torch.eye(count, dtype=torch.bool, device=self._device)  # it must see something
        positions = (places - unused[:, None]).clamp(min=0)
        x, _ = self._read(tape, tokens, positions, places, seen, looks=False)
        tape.own[:, :, :count] = ~outside[:, None, :]
        tape.length = count - unused[:, None]
        return x

    def read(
        self, tape: Tape, tokens: Tensor, places: Tensor, upto: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read the newest token of every text, `[sounds, texts]`, into columns of the tape.

        `upto`: columns further to the right are empty. Returns what is left of the tokens,
        `[sounds, texts, width]`, and where each looks, `[sounds, texts, states]`.
        """
        columns = tape.own.shape[2] if upto is None else upto
        fresh = torch.eye(tokens.shape[1], dtype=torch.bool, device=self._device)
        tape.own.index_copy_(2, places, fresh.expand(len(tokens), -1, -1))
        positions = tape.length.expand_as(tokens)
        x, looks = self._read(tape, tokens, positions, places, tape.own[:, :, :columns], looks=True)
        tape.length = tape.length + 1
        return x, looks

    def logits(self, x: Tensor, projection: Tensor | None = None) -> Tensor:
        """What may follow `[n, width]`, as float32; `projection` has rows for some tokens only."""
        matrix = self._projection.weight if projection is None else projection
        x = self._norm(x)
        if x.is_cuda and x.dtype != torch.float32:
            # Probabilities of tokens that are nearly as likely need more digits than float16 has.
            return torch.mm(x, matrix.T, out_dtype=torch.float32)
        return (x @ matrix.T).float()

    def projection(self, tokens: Tensor) -> Tensor:
        """The rows of the last matrix that stand for some tokens."""
        return self._projection.weight[tokens]

    def _read(
        self,
        tape: Tape,
        tokens: Tensor,
        positions: Tensor,
        places: Tensor,
        seen: Tensor,
        *,
        looks: bool,
    ) -> tuple[Tensor, Tensor]:
        """What is left of tokens, and where they look, if that is wanted.

        The tokens, `[sounds, n]`, stand in columns `places` and see some of the first columns,
        `[sounds, n, columns]`.
        """
        columns = seen.shape[2]
        positions = positions.clamp(max=self.most_tokens - 1)
        x = self._embeddings[tokens] + self._positions[positions]
        turns = self._turns.at(positions) if self._turns is not None else None
        hidden = ~seen[:, None]
        looked_at = x.new_zeros((), dtype=torch.float32)
        for index, layer in enumerate(self._layers):
            q, k, v = looking(layer.back, x, self._heads, turns)
            keys, values = tape.columns[index]
            keys.index_copy_(2, places, k)
            values.index_copy_(2, places, v)
            looked, _ = self._attend(q, keys[:, :, :columns], values[:, :, :columns], hidden)
            x = x + layer.back.outward(looked)
            q = heads_of(layer.sound.inward(layer.sound.norm(x)), self._heads)
            keys, values = tape.memory[index]
            looked, spread = self._attend(q, keys, values, tape.deaf)
            x = x + layer.sound.outward(looked)
            x = x + layer.think(x)
            if looks and len(layer.looks):
                looked_at = looked_at + spread[:, layer.looks].sum(dim=1, dtype=torch.float32)
        return x, looked_at / self._alignment

    def _attend(
        self, q: Tensor, keys: Tensor, values: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What the heads of queries see, joined, and how they spread their attention."""
        scores = q @ keys.transpose(-1, -2)
        scores.masked_fill_(hidden, -torch.inf)
        spread = torch.softmax(scores, dim=-1)
        return joined(spread @ values), spread

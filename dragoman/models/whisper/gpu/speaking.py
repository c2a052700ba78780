"""From encoded sounds and prompts to texts: the decoder and the search, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.models.search import FORBIDDEN, Found, Prompt
from dragoman.models.whisper.gpu.beams import GROUP, Beams, likeliest
from dragoman.models.whisper.gpu.decoder import Decoder

ROOM = 32  # tokens for which there is room at first
CHECK = 4  # tokens after which it is asked who goes on: the device waits for the answer
ALIGNED = 8  # matrices whose sizes are multiples of this are multiplied fastest


class Choice:
    """Which tokens may be made: the rows of the decoder's last matrix that stand for them."""

    def __init__(
        self,
        decoder: Decoder,
        device: torch.device,
        *,
        end: int,
        no_speech: int,
        never: Sequence[int],
        not_first: Sequence[int],
    ) -> None:
        self.end, self.no_speech = end, no_speech
        forbidden = set(never)
        allowed = [token for token in range(decoder.words) if token not in forbidden]
        self._filled = -len(allowed) % GROUP  # up to a multiple, with tokens that are not taken
        column = {token: index for index, token in enumerate(allowed)}
        self._end_column = column.get(end)
        self._tokens = torch.tensor(allowed + [0] * self._filled, device=device)
        self._not_first = torch.tensor(
            [column[token] for token in not_first if token in column], device=device
        )
        self._projection = decoder.projection(self._tokens).contiguous()
        self._decoder = decoder

    def likeliest(
        self, x: Tensor, count: int, *, avoid_end: Tensor, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the likeliest tokens that may follow `[sounds, texts, width]`, and
        the tokens, `[sounds, texts, count]`.

        `avoid_end` and `first` tell for which sounds the text may not end, or begins.
        """
        sounds, texts = x.shape[:2]
        logits = self._decoder.logits(x.flatten(0, 1), self._projection)
        if self._filled:
            logits[:, -self._filled :] = float(FORBIDDEN)
        view = logits.unflatten(0, (sounds, texts))
        if self._end_column is not None:
            view[:, :, self._end_column] += avoid_end[:, None] * float(FORBIDDEN)
        if first is not None:
            penalty = first[:, None].expand(-1, len(self._not_first)) * float(FORBIDDEN)
            view.index_add_(2, self._not_first, penalty[:, None].expand(-1, texts, -1))
        values, places = likeliest(torch.log_softmax(logits, dim=1), count)
        shape = (sounds, texts)
        return values.unflatten(0, shape), self._tokens[places].unflatten(0, shape)

    def silence(self, x: Tensor) -> Tensor:
        """The probability of silence, from what is left of the start of each text."""
        return torch.softmax(self._decoder.logits(x), dim=1)[:, self.no_speech]


@dataclass(frozen=True, slots=True)
class Known:
    """What the prompts of a batch tell the decoder, all ending in the same column."""

    tokens: Tensor  # [sounds, n]
    unused: Tensor  # columns at the left of each
    starts: Tensor  # the column of the token after which silence is told
    avoid_end: Tensor
    first: Tensor  # nothing was said yet

    @classmethod
    def of(cls, prompts: Sequence[Prompt], device: torch.device) -> Known:
        texts = [prompt.known for prompt in prompts]
        width = max(map(len, texts))
        tokens = np.zeros((len(texts), width), np.int64)
        for row, text in zip(tokens, texts, strict=True):
            row[width - len(text) :] = text
        unused = [width - len(text) for text in texts]
        starts = [left + len(p.context) for left, p in zip(unused, prompts, strict=True)]
        flags = [[p.avoid_end for p in prompts], [not p.said for p in prompts]]
        packed = np.column_stack([tokens, unused, starts, *flags])  # one way to the device for all
        moved = torch.from_numpy(packed).to(device)
        return cls(
            moved[:, :width], moved[:, width], moved[:, width + 1],
            moved[:, width + 2], moved[:, width + 3],
        )  # fmt: skip


class Speaking:
    """The texts of a batch of prompts while they are made."""

    def __init__(
        self,
        decoder: Decoder,
        choice: Choice,
        sounds: tuple[Tensor, Tensor],
        prompts: Sequence[Prompt],
        beams: int,
    ) -> None:
        """`sounds` are states, `[sounds, states, width]`, and how many of each count."""
        states, lengths = sounds
        self._decoder, self._choice, self._beams = decoder, choice, beams
        known = Known.of(prompts, states.device)
        width = known.tokens.shape[1]
        most = [min(p.most, decoder.most_tokens - len(p.known)) for p in prompts]
        self._most = max(most)
        self._made = 0  # tokens of every text
        room = min(ROOM, max(1, self._most))
        self._tape = decoder.begin(states, lengths, 1, _aligned(width + room * beams))
        before = decoder.read_known(self._tape, known.tokens[:, :-1], known.unused)
        starts = known.starts[:, None, None].expand(-1, -1, before.shape[2])
        self._silences = choice.silence(before.gather(1, starts)[:, 0])
        looks = states.new_zeros(len(prompts), room, beams, states.shape[1])
        self._search = Beams(prompts, most, beams, choice.end, looks)
        self._avoid_end = known.avoid_end
        # The last token that is known is the first that is read as those that are made will be.
        self._width = width
        self._tokens = known.tokens[:, -1:]
        self._advance(torch.tensor([width - 1], device=states.device), width, known.first)
        self._places = torch.arange(width, width + beams, device=states.device)

    def results(self) -> list[Found]:
        """Make the texts to their ends."""
        found: dict[int, Found] = {}
        who = np.arange(len(self._silences))  # is still in the batch
        while len(who):
            going = self._search.going.cpu().numpy()
            if 2 * going.sum() <= len(going):
                found |= self._take_out(who, going)
                who = who[going]
            for _ in range(CHECK if len(who) else 0):
                self._step()
        silences = self._silences.tolist()
        return [replace(found[index], silence=silence) for index, silence in enumerate(silences)]

    def _take_out(self, who: NDArray[np.int64], going: NDArray[np.bool_]) -> dict[int, Found]:
        """The texts that are over; the batch goes on without them."""
        device = self._silences.device
        over = torch.from_numpy(np.flatnonzero(~going)).to(device)
        made = dict(zip(who[~going].tolist(), self._search.found(over), strict=True))
        left = torch.from_numpy(np.flatnonzero(going)).to(device)
        self._search.keep(left)
        self._tape.keep(left)
        self._tokens, self._avoid_end = self._tokens[left], self._avoid_end[left]
        return made

    def _step(self) -> None:
        """Make one more token of every text."""
        if self._made >= self._most:
            return
        if self._made == self._search.room:
            room = min(2 * self._made, self._most)
            self._search.widen(room)
            self._tape.widen(_aligned(self._width + room * self._beams))
        used = self._width + self._made * self._beams
        self._advance(self._places, used)
        self._places = self._places + self._beams

    def _advance(self, places: Tensor, used: int, first: Tensor | None = None) -> None:
        """Read the newest tokens into columns of the tape, and choose those that follow."""
        x, looks = self._decoder.read(self._tape, self._tokens, places, _aligned(used))
        log_probs, tokens = self._choice.likeliest(
            x, self._beams + 1, avoid_end=self._avoid_end, first=first
        )
        self._tokens, parents = self._search.advance(log_probs, tokens, looks)
        self._tape.follow(parents)
        self._made += 1


def _aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED

"""The search of `models/search.py` for all prompts of a batch at once, on the device.

It follows the same rule, token for token, and its tests hold it to that: each text goes on with
its likeliest tokens, the best texts of a prompt are followed, one that ends is worth the mean of
its tokens, what was said before included, and the search is over when no text that goes on will
beat the best that has ended. Prompts that are over stay in the batch until somebody takes them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from dragoman.models.gpu.moving import moved
from dragoman.models.search import FURTHER, IMPOSSIBLE, Found, Prompt

GROUP = 64  # tokens of which the likeliest is found first


@dataclass(slots=True)
class Beams:
    """The texts about each sound of a batch, best first, and what ended."""

    beams: int
    end: int
    made: Tensor  # [1]: tokens of every text
    said: Tensor  # tokens said before, of each sound
    least: Tensor  # tokens before which a text does not end
    most: Tensor  # tokens to make at most
    going: Tensor  # whether the search goes on
    ended: Tensor  # texts that ended
    best: Tensor  # what the best of them is worth
    length: Tensor  # of the text that was found,
    row: Tensor  # and among which of the texts it is
    scores: Tensor  # [sounds, beams]
    # [sounds, tokens, beams], of every token: itself, the text it continues, its probability,
    tokens: Tensor
    parents: Tensor
    log_probs: Tensor
    looks: Tensor  # and where the texts that were continued looked, [.., states]

    @classmethod
    def of(
        cls, prompts: Sequence[Prompt], most: Sequence[int], beams: int, end: int, looks: Tensor
    ) -> Beams:
        """`most` tokens are made of each prompt; `looks` is empty room, `[sounds, tokens, beams,
        states]`, for where they look."""
        device, room = looks.device, looks.shape[:3]
        limits = [[len(p.said) for p in prompts], [p.least for p in prompts], most]
        said, least, at_most = moved(np.array(limits), device)
        none = torch.zeros_like(said)
        scores = torch.zeros(len(prompts), 1, dtype=torch.float64, device=device)
        return cls(
            beams,
            end,
            made=torch.zeros(1, dtype=torch.long, device=device),
            said=said,
            least=least,
            most=at_most,
            going=at_most > 0,
            ended=none,
            best=torch.full_like(scores[:, 0], -torch.inf),
            length=none.clone(),
            row=none.clone(),
            scores=scores,
            tokens=torch.zeros(room, dtype=torch.int32, device=device),
            parents=torch.zeros(room, dtype=torch.int32, device=device),
            log_probs=torch.zeros(room, device=device),
            looks=looks,
        )

    @property
    def room(self) -> int:
        """Tokens that can be made before more room is needed."""
        return self.tokens.shape[1]

    def widen(self, tokens: int) -> None:
        """Make room for more tokens."""
        more = tokens - self.room
        self.tokens = functional.pad(self.tokens, (0, 0, 0, more))
        self.parents = functional.pad(self.parents, (0, 0, 0, more))
        self.log_probs = functional.pad(self.log_probs, (0, 0, 0, more))
        self.looks = functional.pad(self.looks, (0, 0, 0, 0, 0, more))

    def keep(self, sounds: Tensor) -> None:
        """Go on with some of the sounds."""
        for name in PER_SOUND:
            setattr(self, name, getattr(self, name)[sounds])

    def advance(self, log_probs: Tensor, tokens: Tensor, looks: Tensor) -> tuple[Tensor, Tensor]:
        """Take the next token of every text, of the likeliest `[sounds, texts, candidates]`.

        Returns the tokens of the texts now followed and which text each continues,
        `[sounds, beams]`.
        """
        candidates = log_probs.shape[2]
        scores = self.scores[:, :, None] + log_probs.double()
        scores = scores.masked_fill(log_probs <= IMPOSSIBLE, -torch.inf).flatten(1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        tokens = tokens.flatten(1).gather(1, order)
        log_probs = log_probs.flatten(1).gather(1, order)
        rows = order // candidates
        possible = scores > -torch.inf
        ends = possible & (tokens == self.end)
        self._take_ends(ends[:, : self.beams], scores, rows)

        # The first that do not end, in their order.
        left = (possible & ~ends).to(torch.int8)
        taken = left.sort(dim=1, descending=True, stable=True).indices[:, : self.beams]
        followed = left.gather(1, taken) > 0
        scores = scores.gather(1, taken).masked_fill(~followed, -torch.inf)
        tokens, rows = tokens.gather(1, taken), rows.gather(1, taken)
        self._note(tokens, rows, log_probs.gather(1, taken), looks)
        self.scores = scores
        self._stop(followed[:, 0])
        return tokens, rows

    def _take_ends(self, ends: Tensor, scores: Tensor, rows: Tensor) -> None:
        """Those among the best that end; the first of them is the best."""
        ends = ends & (self.made >= self.least)[:, None]
        first = ends.to(torch.int8).argmax(dim=1, keepdim=True)
        worth = scores.gather(1, first)[:, 0] / (self.said + self.made + 1)
        better = self.going & ends.any(dim=1) & (worth > self.best)
        self.best = torch.where(better, worth, self.best)
        self.length = torch.where(better, self.made, self.length)
        self.row = torch.where(better, rows.gather(1, first)[:, 0], self.row)
        self.ended = self.ended + ends.sum(dim=1) * self.going

    def _note(self, tokens: Tensor, rows: Tensor, log_probs: Tensor, looks: Tensor) -> None:
        self.tokens.index_copy_(1, self.made, tokens[:, None].int())
        self.parents.index_copy_(1, self.made, rows[:, None].int())
        self.log_probs.index_copy_(1, self.made, log_probs[:, None])
        room = self.looks[:, :, : looks.shape[1]]
        room.index_copy_(1, self.made, looks[:, None].to(room.dtype))

    def _stop(self, followed: Tensor) -> None:
        """Where the best text has ended, nothing is left to follow, or the text is long enough."""
        made = self.made + 1
        over = ~followed | (made >= self.most) | self._decided(made)
        unended = self.going & over & (self.ended == 0)
        length = torch.where(followed, made, self.made)
        self.length = torch.where(unended, length, self.length)
        self.row = torch.where(unended, 0, self.row)
        self.going = self.going & ~over
        self.made = made

    def _decided(self, made: Tensor) -> Tensor:
        """Whether a text has ended that none of the others will get ahead of; once as many have as
        are followed, that none is ahead of."""
        further = torch.minimum(self.most, made + FURTHER) + 1
        length = self.said + torch.where(self.ended < self.beams, further, made)
        behind = (self.scores / length[:, None] <= self.best[:, None]).all(dim=1)
        return behind & (self.ended > 0)

    def found(self, sounds: Tensor) -> list[Found]:
        """The text about each of some sounds, `sounds` of them at these places."""
        lengths, at = self.length[sounds].tolist(), self.row[sounds].cpu().numpy()
        ended = (self.ended[sounds] > 0).tolist()
        longest = max(lengths, default=0)
        tokens, parents, log_probs = (
            part[sounds, :longest].cpu().numpy()
            for part in (self.tokens, self.parents, self.log_probs)
        )
        rows = np.zeros((len(lengths), longest + 1), np.int64)
        every = np.arange(len(lengths))
        for step in range(longest - 1, -1, -1):
            rows[:, step + 1] = np.where(np.array(lengths) == step + 1, at, rows[:, step + 1])
            rows[:, step] = parents[every, step, rows[:, step + 1]]
        steps = np.arange(longest)
        tokens = tokens[every[:, None], steps, rows[:, 1:]]
        log_probs = log_probs[every[:, None], steps, rows[:, 1:]]
        looks = self._looked(sounds, lengths, rows)
        return [
            Found(
                tuple(tokens[index, :length].tolist()),
                tuple(log_probs[index, :length].tolist()),
                tuple(looks[index]),
                ended[index],
            )
            for index, length in enumerate(lengths)
        ]

    def _looked(
        self, sounds: Tensor, lengths: Sequence[int], rows: NDArray[np.int64]
    ) -> list[NDArray[np.float32]]:
        """Where the tokens of each text looked, `[tokens, states]`: where the text before did."""
        places = [(i, step) for i, length in enumerate(lengths) for step in range(length)]
        which, steps = np.array(places, np.int64).reshape(-1, 2).T
        chosen = moved(np.stack([which, steps, rows[which, steps]]), sounds.device)
        looks = self.looks[sounds[chosen[0]], chosen[1], chosen[2]].float().cpu().numpy()
        return np.split(looks, np.cumsum(lengths)[:-1])


PER_SOUND = (
    *("said", "least", "most", "going", "ended", "best", "length", "row"),
    *("scores", "tokens", "parents", "log_probs", "looks"),
)


def likeliest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The greatest numbers of each row, best first, and where they are.

    Of `[rows, n]`, where n is a multiple of `GROUP`: the best lie in the groups whose best are
    best, so that all but those are read once.
    """
    groups = scores.unflatten(1, (-1, GROUP))
    if groups.shape[1] <= count:
        return scores.topk(count, dim=1)
    best = groups.amax(dim=2).topk(count, dim=1).indices
    near = groups.gather(1, best[:, :, None].expand(-1, -1, GROUP)).flatten(1)
    values, places = near.topk(count, dim=1)
    return values, best.gather(1, places // GROUP) * GROUP + places % GROUP

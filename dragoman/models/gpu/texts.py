"""The texts of a batch of sounds while they are made, a token at a time.

`Texts` grow and shrink. `CapturedTexts` have a fixed size, so that the many small kernels of a step
are captured once and then started all together: for a few sounds, starting them one by one would
take longer than what they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dragoman.models.gpu.beams import PER_SOUND, Beams
from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder, Tape
from dragoman.models.search import Prompt

ALIGNED = 8  # matrices whose sizes are multiples of this are multiplied fastest
# What a step of the search and of the tape replaces; the rest is written in place.
STEPPING = ("made", "going", "ended", "best", "length", "row", "scores")


@dataclass(slots=True)
class Texts:
    """The texts about each sound: what was computed, what was found, what is read next."""

    tape: Tape
    search: Beams
    tokens: Tensor  # the newest of every text, [sounds, texts]
    places: Tensor  # the columns of the tape for the next tokens
    avoid_end: Tensor  # of which sounds

    def keep(self, sounds: Tensor) -> None:
        """Go on with some of the sounds."""
        self.tape.keep(sounds)
        self.search.keep(sounds)
        self.tokens, self.avoid_end = self.tokens[sounds], self.avoid_end[sounds]

    def step(
        self, decoder: Decoder, choice: Choice, upto: int, first: Tensor | None = None
    ) -> None:
        """Read the newest tokens, and choose those that follow. `upto`: columns in use by then.
        `first`: of which sounds nothing was said yet, if these are the first to be chosen."""
        beams = self.search.beams
        x, looks = decoder.read(self.tape, self.tokens, self.places, upto)
        log_probs, tokens = choice.likeliest(x, beams + 1, avoid_end=self.avoid_end, first=first)
        self.tokens, parents = self.search.advance(log_probs, tokens, looks)
        self.tape.follow(parents)
        next_place = self.places[-1] + 1
        self.places = next_place + torch.arange(beams, device=next_place.device)


class CapturedTexts:
    """Texts about a fixed number of sounds, in fixed buffers."""

    def __init__(
        self, decoder: Decoder, choice: Choice, *, sounds: int, states: int, beams: int, tokens: int
    ) -> None:
        self._decoder, self._choice = decoder, choice
        self.sounds, self.beams = sounds, beams
        self._columns = aligned(KNOWN + tokens * beams)
        self.texts = _room(decoder, choice, sounds, states, beams, tokens, self._columns)
        self._graph: torch.cuda.CUDAGraph | None = None
        if self.texts.tokens.is_cuda:
            self._capture()

    def fits(self, texts: Texts, sounds: int, most: int, width: int) -> bool:
        """Whether there is room for so many of the sounds of texts whose first `width` columns are
        known and that grow to so many tokens."""
        return (
            sounds <= self.sounds
            and texts.search.beams == self.beams
            and texts.tape.deaf.shape[3] <= self.texts.tape.deaf.shape[3]
            and most <= self.texts.search.room
            and width + most * self.beams <= self._columns
        )

    def take(self, texts: Texts, sounds: Tensor) -> None:
        """Go on with these sounds of some texts; what there is room for beside them is over."""
        count, own = len(sounds), self.texts
        other = replace(texts, tape=replace(texts.tape), search=replace(texts.search))
        other.keep(sounds)  # of copies of the holders: the texts themselves stay as they are
        _put(own.tape.memory, other.tape.memory, 2, 4)
        _put(own.tape.columns, other.tape.columns, 2, 4)
        own.tape.deaf.fill_(True)
        own.tape.deaf[count:] = False  # empty rows must look at something, too
        _put(own.tape.deaf, other.tape.deaf, 0, 3)
        own.tape.own.fill_(False)
        own.tape.own[count:, :, 0] = True
        _put(own.tape.own, other.tape.own, 0, 2)
        _put(own.tape.length, other.tape.length, 0)
        own.search.going.fill_(False)
        for name in PER_SOUND:  # and per token and per state, where there are such
            _put(getattr(own.search, name), getattr(other.search, name), 0, 1, 3)
        own.search.made.copy_(other.search.made)
        own.places.copy_(other.places)
        _put(own.tokens, other.tokens, 0)
        _put(own.avoid_end, other.avoid_end, 0)

    def step(self) -> None:
        """Make one more token of every text."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._step()

    def _step(self) -> None:
        """A step that leaves every buffer where it is."""
        texts = self.texts
        holders: list[tuple[Any, str]] = [(texts.search, name) for name in STEPPING]
        holders += [(texts.tape, "own"), (texts.tape, "length")]
        holders += [(texts, "tokens"), (texts, "places")]
        before = [getattr(holder, name) for holder, name in holders]
        texts.step(self._decoder, self._choice, self._columns)
        for (holder, name), buffer in zip(holders, before, strict=True):
            buffer.copy_(getattr(holder, name))
            setattr(holder, name, buffer)

    def _capture(self) -> None:
        """The buffers are empty yet: what the steps compute meanwhile does not matter."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._graph = graph


KNOWN = 128  # columns for what is known, of captured texts


def aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _room(
    decoder: Decoder,
    choice: Choice,
    sounds: int,
    states: int,
    beams: int,
    tokens: int,
    columns: int,
) -> Texts:
    """Empty buffers."""
    none = decoder.nothing(sounds, states)
    device = none.device
    tape = decoder.begin(none, torch.full((sounds,), states, device=device), beams, columns)
    tape.own[:, :, 0] = True
    looks = none.new_zeros(sounds, tokens, beams, states)
    search = Beams.of([Prompt((), 0)] * sounds, [0] * sounds, beams, choice.end, looks)
    search.scores = search.scores.repeat(1, beams)
    return Texts(
        tape,
        search,
        torch.zeros(sounds, beams, dtype=torch.long, device=device),
        torch.arange(beams, device=device),
        torch.zeros(sounds, dtype=torch.long, device=device),
    )


def _put(room: Tensor, part: Tensor, *dims: int) -> None:
    """Copy a part into the beginning of a buffer, which is larger along some dimensions, or
    smaller where what is left out is empty."""
    for dim in (dim for dim in dims if dim < room.dim()):
        size = min(room.shape[dim], part.shape[dim])
        room, part = room.narrow(dim, 0, size), part.narrow(dim, 0, size)
    room.copy_(part)

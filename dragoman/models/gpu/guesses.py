"""How much of what was drafted before still stands: all of it is read at once.

The rule is that of `Search.follow_guess`: with one beam a token stands while it is the likeliest,
with several while it is likelier than all others together. What stands is not searched for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.known import Known, aligned
from dragoman.models.search import SURE, Floats, Found, Prompt


@dataclass(frozen=True, slots=True)
class Standing:
    """The first tokens of a guess."""

    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    looks: tuple[Floats, ...] = field(default=())

    def told(self, prompt: Prompt) -> Prompt:
        """The prompt for a search that goes on behind them."""
        count = len(self.tokens)
        return replace(
            prompt,
            said=(*prompt.said, *self.tokens),
            most=prompt.most - count,
            least=max(0, prompt.least - count),
            guess=(),
        )

    def before(self, found: Found) -> Found:
        """What was found behind them, and themselves."""
        return replace(
            found,
            tokens=(*self.tokens, *found.tokens),
            log_probs=(*self.log_probs, *found.log_probs),
            looks=(*self.looks, *found.looks),
        )


def standing(
    decoder: Decoder,
    choice: Choice,
    sources: tuple[Tensor, Tensor],
    prompts: Sequence[Prompt],
    beams: int,
) -> list[Standing]:
    """What stands of the guess of each prompt, about states `[sounds, states, width]`, of which so
    many count."""
    states, lengths = sources
    known = Known.of(prompts, states.device, guessed=True)
    width, guess = known.tokens.shape[1], max(len(prompt.guess) for prompt in prompts)
    tape = decoder.begin(states, lengths, 1, aligned(width))
    x, looks = decoder.read_known(tape, known.tokens[:, :-1], known.unused)
    # All texts end in the same column, and so do their guesses, some of which begin later.
    tokens, x, looks = known.tokens[:, -guess:], x[:, -guess:], looks[:, -guess:]
    begins = torch.tensor([guess - len(prompt.guess) for prompt in prompts], device=x.device)
    places = torch.arange(guess, device=x.device)
    first = (places == begins[:, None]) & (known.first[:, None] > 0)
    log_probs, likeliest = choice.of_tokens(x, tokens, known.avoid_end, first)
    stands = likeliest if beams == 1 else log_probs >= float(np.log(SURE))
    counts = (stands | (places < begins[:, None])).long().cumprod(dim=1).sum(dim=1)
    ends = counts.tolist()
    numbers, seen = log_probs.cpu().numpy(), looks.float().cpu().numpy()
    found = []
    for row, (prompt, end) in enumerate(zip(prompts, ends, strict=True)):
        begin = guess - len(prompt.guess)
        found.append(
            Standing(
                prompt.guess[: end - begin],
                tuple(numbers[row, begin:end].tolist()),
                tuple(seen[row, begin:end]),
            )
        )
    return found

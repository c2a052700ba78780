"""What keeps Whisper honest: it loops when it sees too little, and talks when nobody does."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

LONGEST_LOOP = 24  # tokens
ENOUGH_TEXT = 48  # characters below which compression says nothing
LOOPING_RATIO = 2.4


def cut_loop(said: Sequence[int], draft: Sequence[int]) -> int:
    """How many tokens of a draft to keep so that nothing is said over and over.

    A loop is a phrase said three times in a row or more (a single token: five times); what was
    committed before counts. The first round stays.
    """
    tokens = [*said[-3 * LONGEST_LOOP :], *draft]
    before = len(tokens) - len(draft)
    keep = len(tokens)
    for size in range(1, LONGEST_LOOP + 1):
        rounds = 5 if size == 1 else 3
        equal = 0  # tokens in a row that are the same as `size` tokens before
        for index in range(size, keep):
            equal = equal + 1 if tokens[index] == tokens[index - size] else 0
            if equal == size * (rounds - 1):
                keep = min(keep, index + 1 - equal)
                break
    return max(0, keep - before)


def is_babble(text: str) -> bool:
    """Whether a text says so little with so many letters that it cannot be speech."""
    data = text.encode("utf-8")
    if len(data) < ENOUGH_TEXT:
        return False
    return len(data) / len(zlib.compress(data)) > LOOPING_RATIO


def most_tokens(seconds: float, english: bool) -> int:
    """The most tokens that so much speech can hold; other scripts take more tokens a word."""
    return 10 + int(seconds * (7.0 if english else 20.0))

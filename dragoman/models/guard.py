"""What keeps a net honest: it loops when it sees too little, and talks when nobody does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman.models.search import Found

LONGEST_LOOP = 24  # tokens
PARROTED = 8  # tokens in a row that nobody says again as they were said before
SILENT = 0.6  # probability of silence
UNSURE = -1.0  # mean log-probability of a token
EVIDENCE, ENOUGH = 24, 12  # newest tokens by which speech is judged; with fewer, there is a doubt
# Mean log-probabilities below which it is, or may be, not understood. Noisy English of people whose
# language it is not comes near them: higher ones silence more of other languages, and some of that.
STRANGE, DOUBTFUL = -1.0, -0.9
FOREIGN = -0.6  # the same where the sound is that of another language


def cut_loop(said: Sequence[int], draft: Sequence[int]) -> int:
    """How many tokens of a draft to keep so that nothing is said over and over.

    A loop is a phrase said again and again without a break; what was committed before counts.
    The longer the phrase, the less often it is said in earnest. Its first round stays.
    """
    tokens = [*said[-3 * LONGEST_LOOP :], *draft]
    before = len(tokens) - len(draft)
    keep = len(tokens)
    for size, again in sorted(_distances(tokens).items()):
        needed = size * (_rounds(size) - 1)
        if again < needed:
            continue
        equal = 0  # tokens in a row that are the same as `size` tokens before
        for index in range(size, keep):
            equal = equal + 1 if tokens[index] == tokens[index - size] else 0
            if equal == needed:
                keep = index + 1 - equal
                break
    return max(0, keep - before)


def led_astray(before: Sequence[int], said: Sequence[int], draft: Sequence[int]) -> bool:
    """Whether what was said `before` the window makes the net say it again, or loop, instead of
    what is spoken: it goes on better without."""
    known = {tuple(before[at : at + PARROTED]) for at in range(len(before) - PARROTED + 1)}
    runs = (tuple(draft[at : at + PARROTED]) for at in range(len(draft) - PARROTED + 1))
    return not known.isdisjoint(runs) or cut_loop(said, draft) < len(draft)


def _distances(tokens: Sequence[int]) -> Counter[int]:
    """How often a token stands so many tokens after the same token: most texts have no loop."""
    found: Counter[int] = Counter()
    places: dict[int, list[int]] = {}
    for index, token in enumerate(tokens):
        earlier = places.setdefault(token, [])
        for place in reversed(earlier):
            if index - place > LONGEST_LOOP:
                break
            found[index - place] += 1
        earlier.append(index)
    return found


def _rounds(size: int) -> int:
    """How often a phrase of so many tokens may not be said in a row: "no, no, no" is speech."""
    if size == 1:
        return 5
    return 3 if size < 5 else 2


def invented(silence: float | None, log_probs: Sequence[float]) -> bool:
    """Whether a text was made up: the net hears nobody and is not sure of its words either."""
    if silence is None or not log_probs:
        return False
    return silence > SILENT and sum(log_probs) / len(log_probs) < UNSURE


def trusted(said: Sequence[int], found: Found) -> int:
    """How many tokens of a text that was found after what was said are to be believed."""
    return 0 if invented(found.silence, found.log_probs) else cut_loop(said, found.tokens)


def understood(log_probs: Sequence[float], *, final: bool, foreign: bool = False) -> bool:
    """Whether a recogniser knows what it writes down.

    One that has learnt a single language takes any other for it, and writes fluent nonsense; but
    it is not sure of that. As long as there are few tokens, it may be asked again later, unless
    this is `final`. What sounds `foreign` it must be surer of.
    """
    newest = log_probs[-EVIDENCE:]
    if not newest:
        return True
    mean = sum(newest) / len(newest)
    if foreign:
        return mean >= FOREIGN
    if len(newest) < ENOUGH:
        return final or mean >= DOUBTFUL
    return mean >= STRANGE

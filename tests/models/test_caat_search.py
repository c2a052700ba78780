"""CAAT's search against the list of everything it could write."""

import itertools

import numpy as np
import pytest

from dragoman.models.exported.caat_search import (
    Beam,
    Hypothesis,
    common_prefix,
    scored,
    search_group,
)
from dragoman.models.exported.stream import Decoded
from dragoman.models.exported.transducer import read_on, sure

BOS, BLANK, END, WORDS = 1, 1, 2, (3, 4, 5)
START = [Hypothesis((BOS,), 0.0, (), None)]
MOST = 3


def log_probs(tokens, group):
    """Any prefix of any group has its own distribution."""
    rng = np.random.default_rng([group, *tokens])
    scores = 2 * rng.standard_normal(6)
    return scores - np.log(np.exp(scores).sum())


def scorer(group):
    def score(hypotheses):
        rows = np.array([log_probs(one.tokens, group) for one in hypotheses])
        return rows, [len(one.tokens) for one in hypotheses]

    return score


def by_hand(prefix, text, group, final):
    """Log probability of writing `text` after `prefix` in a group, then stopping."""
    total = 0.0
    for i, token in enumerate(text):
        total += log_probs((*prefix, *text[:i]), group)[token]
    stop = np.exp(log_probs((*prefix, *text), group))
    return total + np.log(stop[END] if final else stop[END] + stop[BLANK])


def texts():
    return itertools.chain.from_iterable(
        itertools.product(WORDS, repeat=n) for n in range(MOST + 1)
    )


def search(survivors, group, final, **beam):
    found = search_group(survivors, blank=BLANK, end=END, final=final, beam=Beam(**beam))
    return scored(found, scorer(group))


WIDE = {"within": 1000, "margin": 1e9, "max_tokens": MOST}


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("power", [0.0, 0.7])
def test_a_wide_beam_finds_the_best_of_all(final, power):
    # Token 0 is padding in real vocabularies; here it is a word that the hand count leaves out.
    found = search(START, 7, final, **WIDE, between=5000, length_power=power)
    scores = {one.tokens[1:]: one.normalised(power) for one in found if 0 not in one.tokens}
    expected = {
        text: by_hand((BOS,), text, 7, final) / max(1, len(text)) ** power for text in texts()
    }
    assert scores == pytest.approx(expected)
    assert max(scores, key=scores.get) == max(expected, key=expected.get)
    assert all(one.ended == final for one in found)


def test_survivors_go_on_with_their_scores_and_equal_texts_merge():
    first = search(START, 1, False, **WIDE, between=5000)
    second = search(first, 2, True, **WIDE, between=5000, length_power=0.0)
    text = (3, 4)
    ways = [
        by_hand((BOS,), text[:n], 1, False) + by_hand((BOS, *text[:n]), text[n:], 2, True)
        for n in range(3)
    ]
    scores = {one.tokens[1:]: one.score for one in second}
    assert scores[text] == pytest.approx(max(ways))
    assert len(scores) == len(second)


def test_the_margin_saves_work():
    calls = []

    def score(hypotheses):
        calls.append(len(hypotheses))
        row = np.full(6, -10.0)
        row[BLANK] = -0.01
        return np.array([row] * len(hypotheses)), [None] * len(hypotheses)

    beam = Beam(within=2, max_tokens=10)
    best = scored(search_group(START, blank=BLANK, end=END, final=False, beam=beam), score)
    assert best[0].tokens == (BOS,)
    assert calls == [1]


def test_the_state_is_the_one_before_the_last_token():
    best = search(START, 7, True, **WIDE, between=5000)
    for one in best:
        assert one.state == (None if len(one.tokens) == 1 else len(one.tokens) - 1)


def test_what_all_survivors_begin_with():
    make = [Hypothesis(tokens, 0.0, (), None) for tokens in ((1, 3, 4), (1, 3, 5), (1, 3))]
    assert common_prefix(make) == (1, 3)
    assert common_prefix(make[:2]) == (1, 3)
    assert common_prefix(make[:1]) == (1, 3, 4)


def groups_read(decoded: Decoded, states: int, final: bool = False) -> list[tuple[int, int]]:
    """The groups that are read of so many states, eight a group, each with how many it sees."""
    seen = []

    def score(hypotheses):
        seen.append((decoded.groups, decoded.seen))
        row = np.full(6, -10.0)
        row[[BLANK, END]] = np.log(0.49)  # nobody writes anything
        return np.array([row] * len(hypotheses)), [None] * len(hypotheses)

    scored(read_on(decoded, states, 8, final), score)
    return seen


def test_a_group_is_read_once_when_it_is_complete_and_sees_no_later_one():
    decoded = Decoded()
    assert groups_read(decoded, 7) == []
    assert groups_read(decoded, 20) == [(1, 8), (2, 16)]
    assert groups_read(decoded, 23) == []
    assert groups_read(decoded, 24) == [(3, 24)]
    assert not decoded.survivors[0].ended
    assert groups_read(decoded, 29, final=True) == [(4, 29)]  # the rest of them
    assert decoded.survivors[0].ended
    assert groups_read(decoded, 29, final=True) == []  # it has ended


def test_a_source_that_ends_with_a_group_ends_it_anew():
    decoded = Decoded()
    assert groups_read(decoded, 16) == [(1, 8), (2, 16)]
    assert groups_read(decoded, 16, final=True) == [(2, 16)]
    assert decoded.survivors[0].ended
    assert groups_read(Decoded(), 0, final=True) == []
    assert groups_read(Decoded(), 16, final=True) == [(1, 8), (2, 16)]


def test_only_what_all_survivors_say_is_sure_before_the_end():
    survivors = tuple(
        Hypothesis((BOS, 3, word), 0.0, (-0.1, -0.2), None, ended=True) for word in (4, 5)
    )
    decoded = Decoded(survivors=survivors)
    found = sure(decoded, 0, final=False)
    assert (found.tokens, found.log_probs, found.ended) == ((3,), (-0.1,), True)
    assert sure(decoded, 1, final=False).tokens == ()
    found = sure(decoded, 1, final=True)
    assert (found.tokens, found.log_probs) == ((4,), (-0.2,))

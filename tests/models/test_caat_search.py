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

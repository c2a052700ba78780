"""Search over a net that is a table: found texts against the list of all texts."""

import itertools

import numpy as np
import pytest
from dragoman.models.exported.search import Limits, beam_search, greedy

from dragoman.models.exported.net import BOS, EOS, Stepped

UNITS, WORDS = 6, (4, 5)


class TableNet:
    """Any row of tokens has its own distribution; the cache is the row itself."""

    class config:  # noqa: N801
        decides = "no"

    def begin(self, batch):
        return (np.zeros((batch, 0), np.int64),)

    def step(self, tokens, memory, lengths, cache, final=None):
        rows = np.concatenate([cache[0], tokens], axis=1)
        new = range(rows.shape[1] - tokens.shape[1] + 1, rows.shape[1] + 1)
        log_probs = np.stack(
            [[table(seed, row[:u]) for u in new] for seed, row in zip(memory[0], rows, strict=True)]
        )
        attention = np.tile(rows.sum(1)[:, None, None, None], (1, 1, tokens.shape[1], 2))
        return Stepped(log_probs, attention.astype(np.float32), (rows,))


def table(seed, row):
    scores = 2 * np.random.default_rng([int(seed), *row.tolist()]).standard_normal(UNITS)
    scores[[0, 3]] = -30  # padding and unknown
    return (scores - np.log(np.exp(scores).sum())).astype(np.float32)


def memory(*seeds):
    return (np.array(seeds),), np.full(len(seeds), 2)


def log_prob(seed, prefix, text, ended):
    row, total = np.array([BOS, *prefix]), 0.0
    for token in (*text, EOS) if ended else text:
        total += float(table(seed, row)[token])
        row = np.append(row, token)
    return total


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("prefix", [(), (4,), (5, 4, 4)])
def test_a_wide_beam_finds_the_best_of_all(seed, prefix):
    source, lengths = memory(seed)
    found = beam_search(
        TableNet(), source, lengths, [BOS, *prefix], Limits(tokens=5), beams=40, penalty=0.0
    )
    texts = itertools.chain.from_iterable(itertools.product(WORDS, repeat=n) for n in range(5))
    best = max(texts, key=lambda text: log_prob(seed, prefix, text, ended=True))
    assert found.tokens == best
    assert found.ended
    expected = log_prob(seed, prefix, best, ended=False)
    assert sum(found.log_probs) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_without_an_end_is_greedy(seed):
    source, lengths = memory(seed)
    limits = Limits(tokens=6, avoid_end=True)
    one = beam_search(TableNet(), source, lengths, [BOS], limits, beams=1)
    two = greedy(TableNet(), source, lengths, [[BOS]], [limits])[0]
    assert one.tokens == two.tokens
    assert len(two.tokens) == 6
    assert not two.ended
    np.testing.assert_allclose(one.log_probs, two.log_probs)
    np.testing.assert_array_equal(one.attention, two.attention)


def test_greedy_takes_the_best_next_token():
    source, lengths = memory(3)
    found = greedy(TableNet(), source, lengths, [[BOS, 4]], [Limits(tokens=9)])[0]
    row = [BOS, 4]
    for token, log in zip(found.tokens, found.log_probs, strict=True):
        scores = table(3, np.array(row))
        scores[BOS] = -99
        assert token == scores.argmax()
        assert log == pytest.approx(float(scores[token]))
        row.append(token)
    assert found.ended == (len(found.tokens) < 9)


def test_a_batch_is_its_items():
    seeds, limits = (1, 2, 3), [Limits(tokens=n, avoid_end=True) for n in (2, 7, 0)]
    source, lengths = memory(*seeds)
    together = greedy(TableNet(), source, lengths, [[BOS]] * 3, limits)
    for seed, limit, found in zip(seeds, limits, together, strict=True):
        alone = greedy(TableNet(), *memory(seed), [[BOS]], [limit])[0]
        assert found.tokens == alone.tokens
        assert len(found.tokens) == limit.tokens


def test_search_stops_when_there_is_enough():
    limits = Limits(tokens=50, avoid_end=True, enough=lambda tokens: tokens.count(4) == 2)
    found = greedy(TableNet(), *memory(1), [[BOS]], [limits])[0]
    assert found.tokens.count(4) == 2
    assert found.tokens[-1] == 4


def test_any_kept_prefix_can_be_gone_on_from():
    net, limits = TableNet(), Limits(tokens=6, avoid_end=True)
    whole = greedy(net, *memory(5), [[BOS]], [limits])[0]
    for kept in range(6):
        start = whole.tokens[kept - 1] if kept else BOS
        rest = greedy(
            net, *memory(5), [[start]], [Limits(6 - kept, avoid_end=True)], whole.caches[kept]
        )[0]
        assert whole.tokens == (*whole.tokens[:kept], *rest.tokens)

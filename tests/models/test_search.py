"""Search over a net that is a table: found texts against the list of all texts."""

import itertools
import weakref

import numpy as np
import pytest

from dragoman.models.exported.net import BOS, EOS
from dragoman.models.search import FORBIDDEN, Prompt, Scores, Search, _likeliest, search

from .table_net import UNITS, WORDS, TableNet, found, log_prob, prompt, table, texts_of


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("said", [(), (4,), (5, 4, 4)])
def test_a_wide_beam_finds_the_best_of_all(seed, said):
    """The best has the likeliest tokens on average, what was said and the end included."""
    one = found([seed], [prompt(5, said)], beams=40)[0]
    texts = itertools.chain.from_iterable(itertools.product(WORDS, repeat=n) for n in range(5))

    def worth(text) -> float:
        return log_prob(seed, said, text, ended=True) / (len(said) + len(text) + 1)

    best = max(texts, key=worth)
    assert one.tokens == best
    assert one.ended
    assert sum(one.log_probs) == pytest.approx(log_prob(seed, said, best, ended=False), abs=1e-4)


@pytest.mark.parametrize(
    ("guessed", "other", "stays"),
    [(0.9, 0.1, True), (0.31, 0.3, True), (0.29, 0.2, False), (0.4, 0.5, False)],
)
def test_of_a_guess_stays_what_is_likeliest_and_not_unlikely(guessed, other, stays):
    """Beside any other token of it, others are looked for."""
    chances = scores({4: np.log(guessed), 5: np.log(other)}, {4: -0.1, 5: -3.0})
    kept, followed = Search(Prompt((BOS,), 5, guess=(4,), sure=0.3), EOS, beams=2).follow_guess(
        chances
    )
    assert (kept, followed) == ((1, 2) if stays else (0, 2))


@pytest.mark.parametrize("wrong", range(5))
def test_behind_what_stays_of_a_guess_the_best_of_all_is_found(wrong):
    kept_some, left_some = 0, 0
    for seed, said in itertools.product(range(20), [(), (4,), (5, 4, 4)]):
        first = found([seed], [prompt(5, said)])[0].tokens[:4]
        guess = (*first[:wrong], *(9 - token for token in first[wrong:]))
        likely = [stands(seed, said, guess[:n], guess[n]) for n in range(len(guess))]
        kept = sum(itertools.accumulate(likely, lambda a, b: a and b))
        rest = itertools.chain.from_iterable(
            itertools.product(WORDS, repeat=n) for n in range(5 - kept)
        )

        def worth(text, seed=seed, said=said) -> float:
            return log_prob(seed, said, text, ended=True) / (len(said) + len(text) + 1)

        best = max((guess[:kept] + text for text in rest), key=worth)
        assert found([seed], [prompt(5, said, guess=guess, sure=0.3)], beams=40)[0].tokens == best
        kept_some += kept > 0
        left_some += kept < len(guess)
    assert kept_some > 5 or wrong == 0
    assert left_some > 5


def stands(seed, said, text, token) -> bool:
    """Whether a token is likely after a text, and nothing is likelier."""
    so_far = log_prob(seed, said, text, ended=False)
    ends = log_prob(seed, said, text, ended=True)
    after = {word: log_prob(seed, said, (*text, word), ended=False) for word in WORDS}
    return np.exp(after[token] - so_far) >= 0.3 and after[token] == max(ends, *after.values())


def test_what_was_said_counts_for_every_family():
    """The more was said, the less a mean gains by padding: some texts get shorter, none longer."""
    shorter = 0
    for seed in range(40):
        said = (4, 5) * 4
        counted = found([seed], [prompt(6, said)], beams=10)[0].tokens
        texts = itertools.chain.from_iterable(itertools.product(WORDS, repeat=n) for n in range(6))
        alone = max(texts, key=lambda t: log_prob(seed, said, t, ended=True) / (len(t) + 1))
        assert len(counted) <= len(alone)
        shorter += len(counted) < len(alone)
    assert shorter > 5


@pytest.mark.parametrize("seed", range(6))
def test_one_beam_takes_the_best_next_token(seed):
    one = found([seed], [prompt(9, (4,))])[0]
    row = [BOS, 4]
    for token, log in zip(one.tokens, one.log_probs, strict=True):
        scores = table(seed, np.array(row))
        assert log == pytest.approx(float(scores[token]))
        scores[BOS] = -99
        assert token == scores.argmax()
        row.append(token)
    scores = table(seed, np.array(row))
    scores[BOS] = -99
    assert one.ended == (scores.argmax() == EOS and len(one.tokens) < 9)
    assert one.ended or len(one.tokens) == 9


def test_where_the_end_is_avoided_the_next_best_is_taken():
    for seed in range(6):
        one = found([seed], [prompt(6, avoid_end=True)])[0]
        assert len(one.tokens) == 6
        assert not one.ended
        row = [BOS]
        for token in one.tokens:
            assert token == max(WORDS, key=lambda word: table(seed, np.array(row))[word])
            row.append(token)


@pytest.mark.parametrize("seed", range(6))
def test_a_text_that_must_go_on_is_the_best_of_those_that_are_long_enough(seed):
    least, said = 3, (4,)
    one = found([seed], [prompt(5, said, least=least)], beams=40)[0]
    sizes = range(least, 5)
    texts = itertools.chain.from_iterable(itertools.product(WORDS, repeat=n) for n in sizes)

    def worth(text) -> float:
        return log_prob(seed, said, text, ended=True) / (len(said) + len(text) + 1)

    assert one.tokens == max(texts, key=worth)
    assert one.ended


def test_a_search_ends_when_it_is_decided(monkeypatch):
    """No text that is open could win any more: fewer steps, the same text."""
    fewer = 0
    for seed in range(30):
        said = (4, 5) * 6
        decided = TableNet()
        one = found([seed], [prompt(9, said)], beams=4, net=decided)[0]
        monkeypatch.setattr(Search, "_decided", lambda self: False)
        whole = TableNet()
        assert found([seed], [prompt(9, said)], beams=4, net=whole)[0].tokens == one.tokens
        monkeypatch.undo()
        assert len(decided.batches) <= len(whole.batches)
        fewer += len(decided.batches) < len(whole.batches)
    assert fewer > 10


def test_what_is_decided():
    """One text has ended, worth -1 a token; the other, at -4, has two tokens and may take more."""

    def after(score: float, most: int) -> bool:
        one = Search(prompt(most), EOS, beams=2)
        rows = np.full((1, UNITS), -99.0, np.float32)
        rows[0, [4, 5]] = -1.0, score
        one.advance(Scores(rows, np.zeros((1, 1), np.float32)))
        rows = np.full((2, UNITS), -99.0, np.float32)
        rows[0, EOS] = -1.0  # (-1 - 1) / 2 tokens
        rows[1, 4] = 0.0
        one.advance(Scores(rows, np.zeros((2, 1), np.float32)))
        return one.over

    assert not after(-4.0, most=9)  # -4 / (2 + FURTHER + 1) is better than -1
    assert not after(-6.9, most=9)
    assert after(-7.1, most=9)
    assert after(-4.1, most=3)  # but it can only have three tokens and an end
    assert not after(-3.9, most=3)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_batch_is_its_items(beams):
    seeds, prompts = (1, 2, 3), [prompt(n, avoid_end=n == 7) for n in (2, 7, 0)]
    net = TableNet()
    together = found(seeds, prompts, beams, net)
    assert max(net.batches) >= 2
    for seed, one, made in zip(seeds, prompts, together, strict=True):
        alone = found([seed], [one], beams)[0]
        assert made.tokens == alone.tokens
        assert made.ended == alone.ended
        np.testing.assert_allclose(np.array(made.looks), np.array(alone.looks))
    assert together[2].tokens == ()


def test_each_token_tells_where_it_looked():
    """The table looks at the sum of the tokens before it."""
    one = found([2], [prompt(5, (4,), avoid_end=True)], beams=3)[0]
    sums = np.cumsum([BOS + 4, *one.tokens])[:-1]
    assert [look.tolist() for look in one.looks] == [[total] * 2 for total in sums]


def test_search_stops_when_there_is_enough():
    enough = prompt(50, avoid_end=True, enough=lambda tokens: list(tokens).count(4) == 2)
    one = found([1], [enough])[0]
    assert one.tokens.count(4) == 2
    assert one.tokens[-1] == 4


def test_any_kept_beginning_can_be_gone_on_from():
    whole = prompt(6, avoid_end=True)
    texts = texts_of(TableNet(), [5], [whole], [TableNet().begin(1)])
    one = search(texts, [whole], 1)[0]
    for kept in range(6):
        start = one.tokens[kept - 1] if kept else BOS
        rest = [type(whole)((start,), 6 - kept, avoid_end=True)]
        again = texts_of(TableNet(), [5], rest, [texts.trails[0][kept]])
        assert one.tokens == (*one.tokens[:kept], *search(again, rest, 1)[0].tokens)


@pytest.mark.parametrize("beams", [1, 5])
def test_nothing_is_kept_of_a_text_that_nobody_goes_on_from(beams):
    """Of a long sentence the caches after each of its tokens were hundreds of megabytes."""

    class Counted(TableNet):
        made, most = (), 0

        def step(self, *inputs):
            step = super().step(*inputs)
            self.made = [
                *(one for one in self.made if one() is not None),
                weakref.ref(step.cache[0]),
            ]
            self.most = max(self.most, len(self.made))
            return step

    net = Counted()
    assert len(found([5], [prompt(40, avoid_end=True)], beams, net)[0].tokens) == 40
    assert net.most <= 2  # the last, and the one before it


def test_a_net_that_would_rather_hear_more_writes_no_further():
    net = TableNet(write=lambda row, ended: bool(ended) or len(row) < 4)  # BOS and two tokens
    waiting = prompt(9, avoid_end=True, final=False)
    made = found([1, 1], [waiting, prompt(9, avoid_end=True)], net=net)
    assert [len(one.tokens) for one in made] == [3, 9]
    assert not made[0].ended
    assert made[0].tokens == made[1].tokens[:3]


def test_a_prompt_is_cut_to_the_positions_of_a_net():
    """By hand, for 20 positions, of which a quarter, 5, are for new tokens."""
    start, context = (90, 91), (80, 1, 2, 3)
    whole = Prompt(start, 9, said=tuple(range(5)), context=context, guess=(7, 8))
    assert whole.within(20) is whole  # 4 + 2 + 5 + 9 are 20
    assert whole.within(19) == Prompt(start, 8, whole.said, context, (7, 8))
    tight = Prompt(start, 12, said=tuple(range(11)), context=context, guess=tuple(range(10)))
    # 20 - 2 - 5 leave 13: 11 for what was said, 2 for the context, of which one opens it.
    assert tight.within(20) == Prompt(start, 5, tight.said, (80, 3), (0, 1, 2, 3))
    long = Prompt(start, 12, said=tuple(range(30)), context=context)
    assert long.within(20) == Prompt(start, 5, tuple(range(17, 30)))
    short = Prompt(start, 2, said=tuple(range(30)), context=context, guess=(1,))
    assert short.within(20) == Prompt(start, 2, tuple(range(14, 30)), guess=(1,))
    nothing = Prompt(start, 0, said=tuple(range(30)), guess=(1, 2))  # no room for a guess either
    assert nothing.within(20) == Prompt(start, 0, tuple(range(12, 30)))


def scores(*rows: dict[int, float]) -> Scores:
    """What may follow each text; all else is impossible."""
    log_probs = np.full((len(rows), 8), FORBIDDEN, np.float32)
    for row, likely in zip(log_probs, rows, strict=True):
        row[list(likely)] = list(likely.values())
    return Scores(log_probs, np.zeros((len(rows), 2), np.float32))


@pytest.mark.parametrize(
    ("best", "most", "kept", "tokens", "ended"),
    [
        ((4, 5, 5, 4), 9, 2, (4, 5, 5), False),  # the third is another than was guessed
        ((4, 5, 6, 5), 9, 3, (4, 5, 6, 5), False),  # all was guessed, and one more is known
        ((5, 5, 6, 5), 9, 0, (5,), False),
        ((4, 5, 6, 5), 2, 1, (4, 5), False),  # no more is wanted
        ((4, EOS, 6, 5), 9, 1, (4,), True),
    ],
)
def test_a_guess_is_followed_as_far_as_it_is_right(best, most, kept, tokens, ended):
    one = Search(Prompt((BOS,), most, guess=(4, 5, 6)), EOS, beams=1)
    read = scores(*({token: -0.1, 7: -3.0} for token in best))
    assert one.follow_guess(read)[0] == kept
    made = one.result()
    assert (made.tokens, made.ended) == (tokens, ended)


class Dictated:
    """A decoder that says what it is told to, and notes what it is asked."""

    end = EOS

    def __init__(self, known, *steps):
        self.known, self.steps = known, iter(steps)
        self.dropped, self.followed, self.heard = None, [], []

    def read_known(self):
        return self.known

    def read(self, tokens):
        self.heard.append(list(tokens))
        return next(self.steps)

    def drop(self, counts):
        self.dropped = list(counts)

    def follow(self, prompts, texts):
        self.followed.append((list(prompts), [list(rows) for rows in texts]))


def test_what_was_guessed_wrongly_is_dropped():
    guess = scores(*({token: -0.1} for token in (4, 5, 7, 4)))
    decoder = Dictated([guess, scores({5: -0.1})], [scores({6: -0.1}), scores({6: -0.1})])
    prompts = [Prompt((BOS,), 4, guess=(4, 5, 6)), Prompt((BOS,), 2)]
    made = search(decoder, prompts, 1)
    assert decoder.dropped == [1, 0]
    assert decoder.heard == [[7, 5]]
    assert [one.tokens for one in made] == [(4, 5, 7, 6), (5, 6)]


@pytest.mark.parametrize("seed", range(6))
def test_a_guess_changes_nothing_of_an_exported_net(seed):
    """Right, wrong from some token on, or wrong at once; but it saves steps where it is right."""
    bare = found([seed], [prompt(8, (4,), avoid_end=True)])[0]
    for right in range(8):
        guess = (*bare.tokens[:right], *(9 - token for token in bare.tokens[right:7]))
        net = TableNet()
        one = found([seed], [prompt(8, (4,), avoid_end=True, guess=guess)], net=net)[0]
        assert one.tokens == bare.tokens
        assert one.log_probs == pytest.approx(bare.log_probs)
        assert [look.tolist() for look in one.looks] == [look.tolist() for look in bare.looks]
        assert len(net.batches) == 8 - right


def test_each_prompt_follows_the_rows_of_its_own_texts():
    first = scores({4: -1.0, 5: -2.0})
    second = scores({4: -1.0}, {6: -1.0})
    decoder = Dictated([first, first], [second, second], [second, second])
    search(decoder, [Prompt((BOS,), 3), Prompt((BOS,), 3)], 2)
    assert decoder.followed == [
        ([0, 1], [[0, 0], [1, 1]]),
        ([0, 1], [[0, 1], [2, 3]]),
    ]
    assert decoder.heard == [[4, 5, 4, 5], [4, 6, 4, 6]]


def test_where_a_text_must_go_on_the_end_is_not_taken():
    one = Search(Prompt((BOS,), 5, least=1), EOS, beams=1)
    one.advance(scores({EOS: -0.1, 4: -1.0}))
    assert one.tokens == [4]
    one = Search(Prompt((BOS,), 5, least=3), EOS, beams=1)
    assert one.advance(scores({EOS: -0.1})) == []  # there is nothing else
    assert one.over
    assert (one.result().tokens, one.result().ended) == ((), False)


def test_of_texts_that_have_not_ended_the_likeliest_is_found():
    one = Search(Prompt((BOS,), 1), EOS, beams=2)
    one.advance(scores({5: -2.0, 4: -1.0}))
    assert one.over
    assert one.result().tokens == (4,)


def test_the_likeliest_tokens_best_first():
    assert _likeliest(np.float32([-1, -20, -3, -30]), 3).tolist() == [0, 2, 1]
    assert _likeliest(np.float32([-1.5, -1.2, -1.3, -1.4]), 2).tolist() == [1, 2]
    assert _likeliest(np.float32([-2, -1]), 5).tolist() == [1, 0]
    for seed in range(5):  # few are near the best
        far = -10 * np.random.default_rng(seed).permutation(50).astype(np.float32)
        assert _likeliest(far, 6).tolist() == np.argsort(-far)[:6].tolist()


@pytest.mark.parametrize(("wanted", "over"), [(4, True), (5, False)])
def test_it_is_the_likeliest_text_that_must_be_enough(wanted, over):
    one = Search(Prompt((BOS,), 9, enough=lambda tokens: tokens == [wanted]), EOS, beams=2)
    one.advance(scores({5: -2.0, 4: -1.0}))
    assert one.over is over


@pytest.mark.parametrize("beams", [2, 3, 5])
def test_unlikely_ends_do_not_end_a_likely_text(beams):
    """A text of twelve sure tokens, of which each might be the last with a chance in a thousand."""
    one = Search(prompt(20), EOS, beams)
    for place in range(12):
        rows = np.full((len(one.tokens), UNITS), -30.0, np.float32)
        rows[:, EOS] = -7.0
        rows[0, 4 + place % 2] = -0.1
        one.advance(Scores(rows, np.zeros((len(rows), 1), np.float32)))
        assert not one.over
    rows = np.full((len(one.tokens), UNITS), -30.0, np.float32)
    rows[0, EOS] = -0.1
    one.advance(Scores(rows, np.zeros((len(rows), 1), np.float32)))
    assert one.over
    assert one.result().tokens == (4, 5) * 6


def test_of_equal_tokens_the_first_are_taken():
    """Whatever the machine's way of sorting."""
    scores = np.full(3000, -9.0, np.float32)
    scores[[2000, 1000]] = -1.0, -2.0
    assert _likeliest(scores, 5).tolist() == [2000, 1000, 0, 1, 2]
    assert _likeliest(scores[:3], 5).tolist() == [0, 1, 2]

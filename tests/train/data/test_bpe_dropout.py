"""BPE-dropout: nothing dropped is SentencePiece; else the distribution that its rule gives."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.exported.net import UNK
from dragoman.train.data.bpe_dropout import BpeDropout
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Recipe, Units
from dragoman.train.settings import convert

WORDS = ["low", "lower", "lowest", "new", "newer", "wide", "widest", "slow", "slower", "show"]
TEXTS = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in ("lowest", "newer")]


def vocabulary(folder, **changes) -> Pieces:
    units = Units(**{"kind": "bpe", "size": 40, "dropout": 0.3} | changes)
    path = folder / "units.model"
    train_pieces(TEXTS, units, path)
    return Pieces(path, units)


@pytest.fixture(scope="module", params=[True, False], ids=["ends", "beginnings"])
def pieces(request, tmp_path_factory) -> Pieces:
    return vocabulary(tmp_path_factory.mktemp("units"), suffix=request.param)


texts = st.lists(
    st.text("lowernsidth", min_size=1, max_size=9) | st.sampled_from([*WORDS, "low-q"]), max_size=6
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_without_dropout_the_units_are_sentencepieces(pieces, text):
    cutter = BpeDropout(pieces)
    cutter.share = 0.0
    (ids,) = pieces.encode([text])
    assert cutter(ids, random.Random(0)) == ids


@settings(max_examples=60, deadline=None)
@given(text=texts, seed=st.integers(0, 2**32))
def test_the_text_stays_and_the_seed_decides(pieces, text, seed):
    cutter = BpeDropout(pieces)
    (ids,) = pieces.encode([text])
    other = cutter(ids, random.Random(seed))
    assert pieces.decode(other) == pieces.decode(ids)
    assert other == cutter(ids, random.Random(seed))
    assert len(other) >= len(ids) or UNK in ids


def exact(units: tuple[str, ...], rank: dict[str, int], share: float) -> Counter:
    """Every way a word may come out, with its probability: by the rule, one join after another."""
    places = [p for p, (a, b) in enumerate(pairwise(units)) if a + b in rank]
    places.sort(key=lambda p: (rank[units[p] + units[p + 1]], p))
    chances, noticed = Counter(), 1.0
    for place in places:  # this one is seen and all better ones are overlooked
        joined = (*units[:place], units[place] + units[place + 1], *units[place + 2 :])
        for result, chance in exact(joined, rank, share).items():
            chances[result] += noticed * (1 - share) * chance
        noticed *= share
    chances[units] += noticed
    return chances


def test_words_come_out_as_often_as_the_rule_says(pieces):
    cutter = BpeDropout(pieces)
    (ids,) = pieces.encode(["lowest"])
    letters = tuple("".join(pieces.model.id_to_piece(i) for i in ids))
    expected = exact(letters, cutter.rank, 0.3)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 5
    chance, draws = random.Random(1), 20_000
    found = Counter(tuple(cutter.pieces[i] for i in cutter(ids, chance)) for _ in range(draws))
    assert set(found) <= set(expected)
    for result, share in expected.items():
        deviation = (share * (1 - share) / draws) ** 0.5
        assert abs(found[result] / draws - share) < 5 * deviation + 1e-9, result


def test_longer_than_there_is_room_for_stays_as_it_is(pieces):
    cutter = BpeDropout(pieces)
    cutter.share = 0.99
    (ids,) = pieces.encode(["lowest newer"])
    assert len(cutter(ids, random.Random(0))) > len(ids)
    assert cutter.within(ids, len(ids), random.Random(0)) == ids


@pytest.mark.parametrize("suffix", [True, False])
def test_tags_of_languages_stay_and_what_follows_is_cut(tmp_path, suffix):
    """A net of several targets reads one before the text; its letters are units, too."""
    units = Units("bpe", 60, dropout=0.9, suffix=suffix)
    train_pieces([*TEXTS, "2 < d e s >"], units, tmp_path / "units.model", ("de", "es"))
    pieces = Pieces(tmp_path / "units.model", units)
    (ids,) = pieces.encode(["lowest newer"])
    cutter = BpeDropout(pieces)
    first, *other = cutter([pieces.tag("es"), *ids], random.Random(0))
    assert first == pieces.tag("es")
    assert len(other) > len(ids)
    assert pieces.decode(other) == "lowest newer"
    cutter.share = 0.0
    assert cutter([pieces.tag("es"), *ids], random.Random(0)) == [pieces.tag("es"), *ids]


def test_only_bpe_has_merges_to_leave_out(tmp_path):
    with pytest.raises(DragomanError, match="only bpe"):
        convert(Recipe, {"net": "caat", "data": {"train": ["x"]},
                         "vocabulary": {"target": {"kind": "char", "dropout": 0.1}}})  # fmt: skip
    train_pieces(TEXTS, Units("unigram", 40), tmp_path / "units.model")
    with pytest.raises(DragomanError, match="kind bpe"):
        BpeDropout(Pieces(tmp_path / "units.model", Units("bpe", 40, dropout=0.1)))

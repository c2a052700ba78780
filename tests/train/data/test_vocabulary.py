"""Vocabularies: special units in their places, word ends marked, wrong ones refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.exported.net import EOS, PAD
from dragoman.text.plain import plain
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Units

TEXTS = [f"the {a} {b} walks to the {c}" for a in ("old", "young", "tall")
         for b in ("man", "dog", "king", "child") for c in ("market", "house", "sea")]  # fmt: skip


def pieces(tmp_path, **units) -> Pieces:
    settings = Units(**{"kind": "unigram", "size": 60} | units)
    train_pieces(TEXTS, settings, tmp_path / "units.model")
    return Pieces(tmp_path / "units.model", settings)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_text_comes_back(kind, tmp_path):
    units = pieces(tmp_path, kind=kind)
    (ids,) = units.encode([TEXTS[5]])
    assert units.decode([*ids, EOS, PAD]) == TEXTS[5]
    assert min(ids) > 3


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_a_word_ends_with_a_unit_that_says_so(kind, tmp_path):
    units = pieces(tmp_path, kind=kind)
    (ids,) = units.encode([TEXTS[0]])
    ends = units.word_ends(extra=1)
    assert len(ends) == len(units) + 1
    assert sum(ends[i] for i in ids) == len(TEXTS[0].split())
    assert ends[ids[-1]]


def test_a_vocabulary_that_marks_beginnings_has_no_ends(tmp_path):
    assert pieces(tmp_path, suffix=False).word_ends() is None


def test_the_same_text_gives_the_same_units(tmp_path):
    pieces(tmp_path / "a")
    pieces(tmp_path / "b")
    one, other = (tmp_path / name / "units.model" for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_small_texts_give_small_vocabularies(tmp_path):
    assert len(pieces(tmp_path, size=8000)) < 200
    assert len(pieces(tmp_path, size=8000, kind="bpe")) < 300


def test_plain_text_is_as_spoken():
    assert plain("Don’t stop, OK? – “Well-known” (1,000).") == "don’t stop ok well-known 1 000"


@given(st.text(max_size=40))
def test_plain_is_idempotent(text):
    assert plain(plain(text)) == plain(text)


def test_wrong_vocabularies_are_sentences(tmp_path):
    units = pieces(tmp_path)
    russian = units.encode(["Добрый день, коллеги"])
    with pytest.raises(DragomanError, match=r"of the 'ru' units .* its \d+ units are too few"):
        units.check(russian, "'ru'")  # nobody has given this one, so there is no right one to give
    units.units = replace(units.units, model="given.model")
    with pytest.raises(DragomanError, match="another language or script"):
        units.check(russian, "'ru'")
    with pytest.raises(DragomanError, match="There is no vocabulary"):
        Pieces(tmp_path / "no.model", Units())
    (tmp_path / "no.model").write_text("no model")
    with pytest.raises(DragomanError, match="not a SentencePiece model"):
        Pieces(tmp_path / "no.model", Units())
    with pytest.raises(DragomanError, match="no text"):
        train_pieces(["", " "], Units(plain=True), tmp_path / "x.model")
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_prefix=str(tmp_path / "other"), vocab_size=60,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    with pytest.raises(DragomanError, match="special units"):
        Pieces(tmp_path / "other.model", Units())

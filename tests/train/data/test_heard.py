"""Text as a recogniser hands it on."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.train.data.heard import FILLERS, Hearing, as_heard, cut_off, slip
from dragoman.train.data.texts import pack_text

TEXTS = {
    "en": "We have, I think, come a long way; thank you.",
    "de": "Wir haben, denke ich, einen weiten Weg zurückgelegt; vielen Dank.",
}
SENTENCES = st.lists(st.text("abcXYZ.,", min_size=1, max_size=6), min_size=1, max_size=30).map(
    " ".join
)


def test_nothing_is_changed_unless_asked():
    assert Hearing().change(7, TEXTS) is TEXTS


def test_the_same_row_is_always_changed_alike_and_others_otherwise():
    hearing = Hearing(heard=1.0, cut=1.0)
    assert hearing.change(7, TEXTS) == hearing.change(7, TEXTS)
    assert len({hearing.change(n, TEXTS)["en"] for n in range(20)}) > 5
    assert Hearing(heard=1.0, cut=1.0, seed=2).change(7, TEXTS) != hearing.change(7, TEXTS)


def test_shares_are_kept():
    heard = Hearing(heard=0.25).change
    changed = sum(heard(n, TEXTS) != TEXTS for n in range(1000))
    assert 200 < changed < 300
    assert all(heard(n, TEXTS)["de"] == TEXTS["de"] for n in range(100))
    cut = [Hearing(cut=0.4).change(n, TEXTS) for n in range(1000)]
    assert 330 < sum(texts != TEXTS for texts in cut) < 470


def test_every_way_of_hearing_occurs():
    heard = {as_heard("Good day, Madam President.", random.Random(n)) for n in range(200)}
    assert {
        "good day madam president",  # plain
        "good day, madam president.",  # lower
        "Good day Madam President",  # unmarked
        "Good day, Madam President",  # unended
    } <= heard
    assert any(filler in text.split() for text in heard for filler in FILLERS)
    assert any("day day" in text for text in heard)


@given(SENTENCES, st.integers(0, 99))
def test_a_heard_text_is_never_empty(text, seed):
    assert as_heard(text, random.Random(seed)).strip()


@pytest.mark.parametrize("seed", range(60))
def test_a_slip_changes_one_place(seed):
    words = ["it", "is", "a", "very", "long", "way", "to", "go"]
    slipped = slip(words, random.Random(seed))
    assert abs(len(slipped) - len(words)) <= 1
    assert set(slipped) - set(words) <= set(FILLERS)


@given(st.integers(0, 500))
def test_a_cut_off_sentence_begins_as_the_whole_one(seed):
    cut = cut_off(TEXTS, "en", random.Random(seed))
    for code, text in cut.items():
        whole, part = TEXTS[code].split(), text.split()
        assert 1 <= len(part) <= len(whole)
        assert part[:-1] == whole[: len(part) - 1]
        assert whole[len(part) - 1].startswith(part[-1])
        assert not text.endswith((",", ";"))
    # The translation stays a word behind its share of the source.
    heard = len(cut["en"].split())
    if cut != TEXTS:
        share = heard / len(TEXTS["en"].split())
        assert len(cut["de"].split()) == max(1, int(share * len(TEXTS["de"].split())) - 1)
    assert heard < len(TEXTS["en"].split()) or cut == TEXTS


def test_short_sentences_are_not_cut():
    short = {"en": "Thank you very much.", "de": "Vielen Dank."}
    assert all(cut_off(short, "en", random.Random(n)) == short for n in range(50))


@pytest.mark.parametrize("hearing", [Hearing("fr", heard=1.0), Hearing("fr", cut=1.0)])
def test_what_is_heard_must_be_a_column(tmp_path, hearing):
    text = tmp_path / "text.tsv"
    text.write_text("en\tde\n" + "\t".join(TEXTS.values()) + "\n", encoding="utf-8")
    with pytest.raises(DragomanError, match=r"no column 'fr'.*it has en, de"):
        pack_text(text, tmp_path / "pack", hearing=hearing)


def test_languages_without_spaces_are_cut_between_characters():
    texts = {"en": TEXTS["en"], "ja": "私たちは長い道のりを歩んできました。"}
    cuts = [cut_off(texts, "en", random.Random(n)) for n in range(50)]
    said = [cut["ja"] for cut in cuts]
    assert all(texts["ja"].startswith(text) for text in said)
    assert len({len(text) for text in said}) > 6
    for cut in cuts:  # no further than the English, and not far behind
        share = len(cut["en"].split()) / 10
        assert share - 0.2 < (len(cut["ja"]) + 1) / len(texts["ja"]) <= share + 0.06 or share < 0.2
    back = [cut_off(texts, "ja", random.Random(n)) for n in range(50)]
    assert len({cut["ja"] for cut in back}) > 8


def test_a_slip_in_a_language_without_spaces_is_of_a_character():
    text = "私たちは長い道のりを歩んできました。"
    heard = {as_heard(text, random.Random(n), "ja") for n in range(300)}
    assert len(heard) > 20
    assert max(map(len, heard)) < len(text) + 10  # nobody says all of it twice
    assert "私たちは長い道のりを歩んできました" in heard

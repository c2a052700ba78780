"""The sentences of speeches, found in their sound for the benchmarks."""

import pytest

sentences = pytest.importorskip("benchmarks.sentences")
from benchmarks.sentences import Noting, Spoken, paired, segments_of  # noqa: E402
from dragoman.interpreter import Interpreter  # noqa: E402
from dragoman.policies import make_policy  # noqa: E402
from tests.scripted import ScriptedModel, chunks_of  # noqa: E402


def heard(text: str, *moments: float) -> list[Spoken]:
    return [Spoken(f" {word}", ms) for word, ms in zip(text.split(), moments, strict=True)]


def test_sentences_stand_beside_those_of_their_length():
    assert paired("One two three. Four five six.", "Eins zwei drei. Vier fünf sechs.") == [
        ("One two three.", "Eins zwei drei."),
        ("Four five six.", "Vier fünf sechs."),
    ]
    long = "This is a sentence that goes on and on."
    assert paired(f"Yes. No. {long}", f"Ja nein. {long}") == [
        ("Yes. No.", "Ja nein."),
        (long, long),
    ]
    assert paired(f"{long} Yes, no.", f"{long} Ja. Nein.") == [
        (long, long),
        ("Yes, no.", "Ja. Nein."),
    ]
    assert paired("", "Ja.") == [("", "Ja.")]
    assert paired("A. B. C. D. E.", "Ja.") == [("A. B. C. D. E.", "Ja.")]  # too many for one


def test_a_sentence_begins_midway_between_its_words_and_those_before():
    spoken = heard("one two three four five six", 1000, 1400, 1800, 3000, 3400, 3800)
    found = segments_of(
        7, "a.ogg", [("One two three.", "Eins."), ("Four, five six!", "Vier.")], spoken
    )
    assert [(one.index, one.wav, one.reference) for one in found] == [
        (7, "a.ogg", "Eins."), (8, "a.ogg", "Vier.")
    ]  # fmt: skip
    # 1000 - 300; (1800 + 3000) / 2; 3800 + 300
    assert [(one.offset, one.end) for one in found] == [
        pytest.approx((0.7, 2.4)), pytest.approx((2.4, 4.1))
    ]  # fmt: skip


def test_words_that_were_misheard_or_left_out_move_nothing():
    spoken = heard("well one too three for five six", 500, 1000, 1400, 1800, 3000, 3400, 3800)
    found = segments_of(
        0, "a.ogg", [("One two three.", "Eins."), ("Four five six.", "Vier.")], spoken
    )
    # "for" is not known to be "four", so the second sentence is known from "five" on
    assert [(one.offset, one.end) for one in found] == [
        pytest.approx((0.7, 2.6)), pytest.approx((2.6, 4.1))
    ]  # fmt: skip


def test_a_sentence_that_was_not_spoken_counts_with_the_one_before():
    spoken = heard("one two three four five six", 1000, 1400, 1800, 3000, 3400, 3800)
    texts = [("Mr President.", "Herr."), ("One two three.", "Eins."), ("Ten eleven.", "Zehn."),
             ("Four five six.", "Vier.")]  # fmt: skip
    found = segments_of(0, "a.ogg", texts, spoken)
    assert [one.reference for one in found] == ["Herr. Eins. Zehn.", "Vier."]
    assert [one.offset for one in found] == pytest.approx([0.7, 2.4])


def test_where_nothing_is_known_a_speech_is_one_sentence():
    found = segments_of(0, "a.ogg", [("One two.", "Eins."), ("Three.", "Drei.")], [])
    assert [(one.reference, one.offset) for one in found] == [("Eins. Drei.", pytest.approx(0.3))]


def test_words_are_noted_when_they_become_final():
    model = ScriptedModel([("one", 400.0), ("two", 800.0), ("three", 1200.0)])
    interpreter = Interpreter(model, make_policy("local-agreement:n=2"), source="en", target="en")
    interpreter.model = noting = Noting(model)
    for chunk in chunks_of(2000, 400):
        interpreter.hear(chunk)
    assert [word.text.strip() for word in noting.words] == ["one", "two", "three"]
    assert [word.ms for word in noting.words] == pytest.approx([400, 800, 1200], abs=40)


def test_clips_are_taken_evenly_or_by_number(monkeypatch):
    from benchmarks.speech import some

    assert some("abcdefg") == list("abcdefg")
    monkeypatch.setenv("DRAGOMAN_BENCH_CLIPS", "3")
    assert some("abcdefg") == ["a", "c", "e"]  # 0, 7 // 3, 14 // 3
    monkeypatch.setenv("DRAGOMAN_BENCH_TAKE", "5 1")
    assert some("abcdefg") == ["f", "b"]

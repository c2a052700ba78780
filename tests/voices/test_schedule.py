"""The schedule's promises, held over random talks."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.voices import schedule as module
from dragoman.voices.schedule import Pace, Phrase, Schedule

SECONDS_PER_CHARACTER = 0.06


@dataclass(frozen=True)
class Spoken:
    phrase: Phrase
    end: float


def perform(texts: list[tuple[float, str]], pace: Pace | None = None) -> list[Spoken]:
    """Speak texts that come at their moments, each character taking its time."""
    schedule, spoken, free = Schedule(pace), [], 0.0

    def speak_before(moment: float) -> None:
        nonlocal free
        while (due := schedule.due(free)) is not None and due < moment:
            phrase = schedule.take(due, due)
            free = due + len(phrase.text) * SECONDS_PER_CHARACTER / phrase.speed
            spoken.append(Spoken(phrase, free))

    for at, text in texts:
        speak_before(at)
        schedule.add(text, at)
    schedule.end()
    speak_before(float("inf"))
    return spoken


words = st.text("abcäß字。.,;!?\"'–-1", min_size=1, max_size=12)
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)
waits = st.floats(0, 4)
talks = st.lists(st.tuples(waits, texts), max_size=40).map(
    lambda steps: [
        (sum(wait for wait, _ in steps[: n + 1]), text) for n, (_, text) in enumerate(steps)
    ]
)


@given(talks)
def test_nothing_is_lost_and_the_order_is_kept(talk):
    said = "".join(text for _, text in talk)
    spoken = "".join(piece.phrase.text for piece in perform(talk))
    assert "".join(spoken.split()) == "".join(said.split())


@given(talks)
def test_speech_never_overlaps(talk):
    spoken = perform(talk)
    for before, after in pairwise(spoken):
        assert after.phrase.start >= before.end


@given(talks)
def test_no_word_is_spoken_before_its_time(talk):
    said = [(at, letter) for at, text in talk for letter in text if not letter.isspace()]
    spoken = [
        (piece.phrase.start, letter)
        for piece in perform(talk)
        for letter in piece.phrase.text
        if not letter.isspace()
    ]
    for (at, letter), (start, same) in zip(said, spoken, strict=True):
        assert letter == same
        assert start >= at


@given(talks)
def test_the_speed_stays_within_its_limits(talk):
    pace = Pace(fastest=1.3)
    assert all(1.0 <= piece.phrase.speed <= 1.3 for piece in perform(talk, pace))


@given(talks)
def test_a_free_voice_waits_no_longer_than_its_patience(talk):
    """Each phrase begins at the end of the one before or within the patience of its first word."""
    spoken, letters = (
        perform(talk),
        [at for at, text in talk for letter in text if not letter.isspace()],
    )
    free, position = 0.0, 0
    for piece in spoken:
        assert piece.phrase.start <= max(free, letters[position] + Pace().patience)
        free = piece.end
        position += sum(not letter.isspace() for letter in piece.phrase.text)


@given(st.floats(1.5, 8), st.integers(1, 60))
def test_it_catches_up_with_a_talk_that_is_slower_than_its_speech(interval, burst):
    """After a burst, one short sentence per interval: in the end each is spoken when it comes."""
    sentence = "Nineteen letters it is."
    talk = [(0.0, sentence)] * burst + [(n * interval, sentence) for n in range(1, 200)]
    last = perform(talk)[-1].phrase
    assert last.start == pytest.approx(talk[-1][0], abs=1.5)
    assert last.speed == 1.0


def test_it_hurries_only_when_late():
    pace = Pace(on_time=1, late=5, fastest=1.4)
    assert [pace.speed(lag) for lag in (0, 1, 3, 5, 60)] == pytest.approx([1, 1, 1.2, 1.4, 1.4])


def test_words_are_gathered_up_to_the_comma():
    talk = [(0.0, "We"), (0.1, "all,"), (0.15, "I"), (0.2, "think"), (5.0, "agree.")]
    spoken = [(piece.phrase.text, piece.phrase.start) for piece in perform(talk)]
    assert spoken == [("We all,", 0.1), ("I think", pytest.approx(0.85)), ("agree.", 5.0)]


def test_words_that_wait_for_the_voice_become_one_phrase():
    talk = [
        (0.0, "A rather long sentence to begin with."),
        (0.5, "one"),
        (1, "two"),
        (1.5, "three"),
    ]
    assert [piece.phrase.text for piece in perform(talk)][1:] == ["one two three"]


def test_a_title_does_not_end_a_phrase():
    assert [p.phrase.text for p in perform([(0, "Here is Dr."), (0.1, "Smith.")])] == [
        "Here is Dr. Smith."
    ]


def test_scripts_without_spaces_stay_without():
    assert [p.phrase.text for p in perform([(0, "我们"), (0.1, "都同意。"), (0.1, "你")])] == [
        "我们都同意。",
        "你",
    ]


def test_punctuation_joins_its_word():
    assert perform([(0, "yes"), (0.1, ".")])[0].phrase.text == "yes."


def test_long_text_is_spoken_in_several_phrases():
    spoken = perform([(0, " ".join(["word"] * 200))])
    assert all(len(piece.phrase.text) <= Pace().longest for piece in spoken)
    assert spoken[0].phrase.speed == 1.0
    assert spoken[-1].phrase.speed == pytest.approx(1.4)


def test_a_full_queue_joins_what_comes_and_loses_nothing(monkeypatch):
    monkeypatch.setattr(module, "MOST_WORDS", 5)
    schedule = Schedule(Pace(longest=10))
    for number in range(100):
        schedule.add(f"w{number}", float(number))
    assert len(schedule._words) == 5
    texts = []
    while not schedule.is_empty:
        texts.append(schedule.take(1000, 1000).text)
    assert " ".join(texts).split() == [f"w{number}" for number in range(100)]

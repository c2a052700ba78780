"""The promises of live speech, held over random talks."""

import re
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.voices import phrases as module
from dragoman.voices.phrases import Pace, Phrase
from dragoman.voices.schedule import Schedule

SECONDS_PER_CHARACTER = 0.06
PACE = Pace()


@dataclass(frozen=True)
class Spoken:
    phrase: Phrase
    end: float


def perform(texts: list[tuple[float, str]], pace: Pace | None = None) -> list[Spoken]:
    """Speak texts that come at their moments, each character taking its time."""
    schedule, spoken, free, now = Schedule(pace), [], 0.0, 0.0

    def speak_before(moment: float) -> None:
        nonlocal free, now
        while (due := schedule.due(free)) is not None and max(now, due) < moment:
            now = max(now, due)
            phrase = schedule.take(now, now)
            free = now + len(phrase.text) * SECONDS_PER_CHARACTER / phrase.speed
            spoken.append(Spoken(phrase, free))
        now = max(now, moment)

    for at, text in texts:
        speak_before(at)
        schedule.add(text, at)
    schedule.end()
    speak_before(float("inf"))
    return spoken


def told(texts, pace=None):
    return [piece.phrase.text for piece in perform(texts, pace)]


words = st.text("abcäß字。.,;!?\"'–-1", min_size=1, max_size=12)
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)
waits = st.floats(0, 4)
talks = st.lists(st.tuples(waits, texts), max_size=40).map(
    lambda steps: [
        (sum(wait for wait, _ in steps[: n + 1]), text) for n, (_, text) in enumerate(steps)
    ]
)


def letters(texts):
    return "".join(letter for text in texts for letter in text if letter.isalnum())


@given(talks)
def test_nothing_is_lost_and_the_order_is_kept(talk):
    assert letters(told(talk)) == letters(text for _, text in talk)


@given(talks)
def test_a_phrase_begins_when_the_one_before_is_over(talk):
    for before, after in pairwise(perform(talk)):
        assert after.phrase.start >= before.end


@given(st.floats(0, 10), st.floats(0, 10))
def test_due_is_never_before_the_voice_is_free(said, free):
    schedule = Schedule()
    schedule.add("Four words it has.", said)
    assert schedule.due(free) == max(said, free)


@given(talks)
def test_no_word_is_spoken_before_its_time(talk):
    said = [(at, letter) for at, text in talk for letter in text if letter.isalnum()]
    spoken = [
        (piece.phrase.start, letter)
        for piece in perform(talk)
        for letter in piece.phrase.text
        if letter.isalnum()
    ]
    for (at, letter), (start, same) in zip(said, spoken, strict=True):
        assert letter == same
        assert start >= at


@given(talks)
def test_the_speed_stays_within_its_limits_and_is_that_of_the_lag(talk):
    pace = Pace(fastest=1.3)
    for piece in perform(talk, pace):
        phrase = piece.phrase
        assert 1.0 <= phrase.speed <= 1.3
        assert phrase.speed == pytest.approx(pace.speed(phrase.start - phrase.at))


@given(talks)
def test_a_free_voice_waits_no_longer_than_its_patience(talk):
    """Few words wait until nobody says more; a phrase waits a little for its end."""
    free = 0.0
    for piece in perform(talk):
        said_so_far = [at for at, _ in talk if at <= piece.phrase.start]
        assert piece.phrase.start <= max(
            free, piece.phrase.at + PACE.wait, max(said_so_far) + PACE.pause
        )
        free = piece.end


@given(talks)
def test_phrases_are_no_fragments_while_somebody_speaks(talk):
    """Fewer than three words only where nothing was said for a while, or at the end."""
    spoken = perform(talk)
    for piece in spoken[:-1]:
        # Words that begin or end with marks have no space between them: count them either way.
        text = piece.phrase.text
        count = max(len(text.split()), len(re.findall(r"\w+", text)))
        if count < PACE.few and text.isascii():
            after = [at for at, _ in talk if at > piece.phrase.start - PACE.pause + 1e-6]
            silent = all(at >= piece.phrase.start for at in after)
            too_long = len(piece.phrase.text) > PACE.longest - 13
            assert silent or too_long


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
    talk = [(0.0, "We"), (0.1, "all are,"), (0.15, "I"), (0.2, "think so"), (9.0, "to agree.")]
    spoken = [(piece.phrase.text, piece.phrase.start) for piece in perform(talk)]
    assert spoken == [
        ("We all are,", 0.1),
        ("I think so", pytest.approx(0.2 + PACE.pause)),
        ("to agree.", 9.0),
    ]


def test_a_phrase_that_waited_goes_to_its_last_comma_not_its_first():
    talk = [
        (0.0, "A rather long sentence to begin with, so it is."),
        (0.5, "one two three, four five six, seven eight"),
    ]
    assert told(talk)[1:] == ["one two three, four five six,", "seven eight"]


def test_words_that_wait_for_the_voice_become_one_phrase():
    talk = [
        (0.0, "A rather long sentence to begin with."),
        (0.5, "one"),
        (1, "two"),
        (1.5, "three."),
    ]
    assert told(talk)[1:] == ["one two three."]


def test_a_short_sentence_waits_for_the_next():
    assert told([(0.0, "Yes."), (0.5, "I think so.")]) == ["Yes. I think so."]
    assert told([(0.0, "Yes."), (5.0, "I think so.")]) == ["Yes.", "I think so."]


def test_a_pause_is_measured_from_the_last_word():
    talk = [(0.5 * n, word) for n, word in enumerate(("there", "is", "no"))]
    spoken = perform([*talk, (9.0, "way.")])
    assert spoken[0].phrase.text == "there is no"
    assert spoken[0].phrase.start == pytest.approx(1.0 + PACE.pause)


def test_words_that_waited_long_are_cut_at_the_best_place():
    words = ("all", "of", "us", "want", "to", "go", "to", "the")
    talk = [(0.4 * n, word) for n, word in enumerate(words)]
    first = perform([*talk, (3.4, "beach."), (3.5, "now")])[0].phrase
    assert first.start == pytest.approx(PACE.wait)
    assert first.text == "all of us want to go"


def test_a_title_does_not_end_a_phrase():
    assert told([(0, "Here is Dr."), (0.1, "Smith.")]) == ["Here is Dr. Smith."]


def test_scripts_without_spaces_stay_without():
    pace = Pace(few=1)
    assert told([(0, "我们"), (0.1, "都同意。"), (0.1, "你")], pace) == ["我们都同意。", "你"]


def test_punctuation_joins_its_word():
    assert told([(0, "yes it is"), (0.1, "."), (0.2, "No")]) == ["yes it is.", "No"]


def test_a_stop_that_comes_when_its_sentence_was_spoken_is_not_spoken():
    assert told([(0, "yes it is"), (5.0, "."), (5.1, "No")]) == ["yes it is", "No"]


def test_what_is_tied_to_a_word_stays_tied():
    assert told([(0, "the Euro"), (0.1, "-zone"), (0.1, "is large.")]) == [
        "the Euro-zone is large."
    ]


def test_long_text_is_spoken_in_several_phrases():
    spoken = perform([(0, " ".join(["word"] * 200))])
    assert all(len(piece.phrase.text) <= PACE.longest for piece in spoken)
    assert spoken[0].phrase.speed == 1.0
    assert spoken[-1].phrase.speed == pytest.approx(PACE.fastest)


def test_a_phrase_may_be_as_long_as_the_longest_and_no_longer():
    text = "one two three four five six"
    schedule = Schedule(Pace(longest=len("one two three four")))
    schedule.add(text, 0.0)
    assert schedule.take(9.0, 9.0).text == "one two three four"
    schedule = Schedule(Pace(longest=len("one two three four") - 1))
    schedule.add(text, 0.0)
    assert schedule.take(9.0, 9.0).text == "one two three"


def test_a_full_queue_joins_what_comes_and_loses_nothing(monkeypatch):
    monkeypatch.setattr(module, "MOST_WORDS", 5)
    schedule = Schedule(Pace(longest=10))
    for number in range(100):
        schedule.add(f"w{number}", float(number))
    assert len(schedule._words.waiting) == 5
    texts = []
    while not schedule.is_empty:
        texts.append(schedule.take(1000, 1000).text)
    assert " ".join(texts).split() == [f"w{number}" for number in range(100)]


def test_what_is_cleared_is_gone():
    schedule = Schedule()
    schedule.add("Not this.", 0.0)
    schedule.clear()
    assert schedule.is_empty
    assert schedule.due(0.0) is None


def test_text_after_an_end_waits_again():
    schedule = Schedule()
    schedule.end()
    schedule.add("so", 1.0)
    assert schedule.due(0.0) == pytest.approx(1.0 + PACE.pause)
    schedule.end()
    assert schedule.due(0.0) == 1.0


def test_a_phrase_is_due_when_its_first_part_ends_whatever_follows():
    schedule = Schedule()
    schedule.add("one two three,", 0.0)
    schedule.add("four five six,", 5.0)
    assert schedule.due(0.0) == 0.0


def test_words_too_many_for_a_phrase_are_cut_at_the_best_place_though_no_more_come():
    text = "one two three four of the five six seven eight"
    assert told([(0.0, text)], Pace(longest=27)) == [
        "one two three four",
        "of the five six seven eight",
    ]

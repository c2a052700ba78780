"""Where in the recording words belong, by when they were said and how far behind they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.word_times import TranscriptTimes, WordTimes


def starts(words):
    return [word.start for word in words]


def test_without_a_lag_words_stand_where_they_were_said():
    times = WordTimes()
    assert starts(times.place([" Good", " morning"], 3000)) == [3.0, 3.0]


def test_words_lie_around_the_moment_that_they_look_at():
    """Half a second before and after 2 s: two seconds behind on average, after four seconds."""
    times = WordTimes()
    times.place(["so"], 1500, 0.0)
    words = times.place([" abcdefghi", " klmnopqrs"], 4000, 2000.0)
    assert [(w.start, w.end) for w in words] == [
        (pytest.approx(1.5), pytest.approx(2.0)),
        (pytest.approx(2.0), pytest.approx(2.5)),
    ]


def test_after_a_pause_words_do_not_reach_back_into_it():
    """Twelve letters take a second, however much silence there is."""
    words = WordTimes().place([" abcde", " ghijk"], 14000, 4000.0)
    assert [(w.start, w.end) for w in words] == [
        (pytest.approx(9.5), pytest.approx(10.0)),
        (pytest.approx(10.0), pytest.approx(10.5)),
    ]


def test_words_may_lie_before_what_was_heard_when_others_were_said():
    """Those lie around half a second; these around 0.9 s, though a second had been heard."""
    times = WordTimes()
    times.place([" a"], 1000, 500.0)
    (word,) = times.place([" b"], 1500, 600.0)
    assert (word.start + word.end) / 2 == pytest.approx(0.9)


def test_words_just_heard_are_not_spread_into_the_future():
    (word,) = WordTimes().place([" now"], 5000, 100.0)
    assert (word.start, word.end) == (pytest.approx(4.8), pytest.approx(5.0))


def test_a_piece_without_a_space_joins_the_word_before():
    assert [w.joined for w in WordTimes().place([" yes", ".", " no"], 1000)] == [False, True, False]


@given(
    st.lists(
        st.tuples(
            st.lists(st.text(" ab.", max_size=6), max_size=5),
            st.floats(0, 5000),
            st.none() | st.floats(0, 9000),
        ),
        max_size=20,
    )
)
def test_times_never_go_back_nor_beyond_what_was_heard(steps):
    times, heard, latest = WordTimes(), 0.0, 0.0
    for words, step, lag in steps:
        heard += step
        for word in times.place(words, heard, lag):
            assert latest - 1e-9 <= word.start <= word.end + 1e-9 <= heard / 1000 + 2e-9
            latest = word.end


def test_words_of_a_transcript_stand_where_they_were_heard_or_since_the_words_before():
    times = TranscriptTimes()
    (told,) = times.place([" eins"], 2000.0, 1500.0)
    assert (told.start + told.end) / 2 == pytest.approx(0.5)
    assert times.place([], 3000.0, None) == []
    (guessed,) = times.place([" zwei"], 4000.0, None)
    assert (guessed.start + guessed.end) / 2 == pytest.approx(3.0)  # between 2 and 4 s
    (first,) = TranscriptTimes().place([" eins"], 2000.0, None)
    assert (first.start + first.end) / 2 == pytest.approx(1.0)  # since the talk began


def test_a_transcript_of_unknown_age_does_not_reach_back_over_a_pause():
    """It was shown in the middle of the pause, before anybody had spoken."""
    times = TranscriptTimes()
    times.place([" Guten", " Morgen."], 4000, None)
    placed = times.place([" Wir", " beginnen", " jetzt."], 60_000, None)
    assert 54 < placed[0].start < placed[-1].end <= 60
    letters = len(" Wir beginnen jetzt.")
    middle = (placed[0].start + placed[-1].end) / 2
    assert middle == pytest.approx(60 - 4 - letters / 12 / 2)  # written within four seconds

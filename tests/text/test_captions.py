import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.captions import CaptionSettings, TimedWord, make_cues, width

PLAIN = CaptionSettings()


def spoken(text, start=0.0, pace=0.3):
    """Words one after the other, each `pace` seconds long."""
    return [
        TimedWord(word, start + i * pace, start + (i + 1) * pace)
        for i, word in enumerate(text.split())
    ]


def lines(words, language="en", how=PLAIN):
    return [cue.lines for cue in make_cues(words, language, how)]


def bare(texts):
    return "".join("".join(texts).split())


def test_a_short_sentence_is_one_line():
    (cue,) = make_cues(spoken("Good morning, everybody."))
    assert cue.lines == ("Good morning, everybody.",)
    assert cue.start == 0.0
    assert cue.end == pytest.approx(24 / 20)  # as long as it takes to read


def test_two_lines_are_about_equally_long():
    text = "The committee has decided to meet again next Thursday."
    assert lines(spoken(text, pace=0.1)) == [
        ("The committee has decided to", "meet again next Thursday.")
    ]


def test_a_sentence_that_fills_a_line_ends_its_cue():
    text = "This sentence ends right here. Another one begins"
    assert lines(spoken(text)) == [("This sentence ends right here.",), ("Another one begins",)]


def test_a_pause_ends_a_cue_and_the_cue_ends_with_the_time_to_read_it():
    one, two = make_cues([*spoken("Yes, of course."), *spoken("And then", start=10.0)])
    assert (one.start, one.end) == (0.0, pytest.approx(0.9))
    assert two.start == 10.0


def test_a_slow_speaker_gets_a_new_cue_before_the_old_one_has_to_go():
    cues = list(make_cues(spoken("one two three four five six seven eight nine ten", pace=1.0)))
    assert [cue.lines for cue in cues] == [
        ("one two three four five six seven",),
        ("eight nine ten",),
    ]
    assert [(cue.start, cue.end) for cue in cues] == [(0.0, 7.0), (7.0, 10.0)]


def test_a_burst_is_spread_out_and_catches_up():
    burst = [TimedWord(word, 5.0, 5.0) for word in ("word " * 60).split()]
    cues = list(make_cues([*burst, *spoken("And now", start=60.0)]))
    assert cues[0].start == 5.0
    assert all(one.end == pytest.approx(one.start + 0.8) for one in cues[:-2])
    assert cues[-1].start == 60.0


def test_languages_without_spaces():
    (cue,) = make_cues(
        [TimedWord("我们", 0, 1), TimedWord("用", 1, 1.2), TimedWord("iPhone", 1.2, 2)], "zh"
    )
    assert cue.lines == ("我们用iPhone",)
    (cue,) = make_cues([TimedWord("会议" * 20, 0, 5)], "zh")
    assert [width(line) for line in cue.lines] == [40, 40]


def test_a_word_wider_than_a_line_is_cut():
    assert [len(line) for cue in lines([TimedWord("a" * 100, 0, 1)]) for line in cue] == [
        42,
        42,
        16,
    ]


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)
LATIN = st.text("abcdefg,.!?-'", min_size=1, max_size=14)
TIMED = st.lists(st.tuples(WORD | LATIN | LATIN, st.floats(-1, 3), st.floats(0, 3)), max_size=40)


@given(
    TIMED,
    st.sampled_from(["en", "zh", "th", "fr"]),
    st.builds(CaptionSettings, columns=st.integers(2, 50), lines=st.integers(1, 3)),
)
def test_cues_are_readable_whatever_is_said(steps, language, how):
    now, words = 0.0, []
    for text, step, length in steps:
        now += step
        words.append(TimedWord(text, now, now + length))
    cues = list(make_cues(words, language, how))
    said = "".join(c for word in words for c in word.text if unicodedata.category(c) != "Cc")
    assert bare(line for cue in cues for line in cue.lines) == bare(said)
    for cue in cues:
        assert 1 <= len(cue.lines) <= how.lines
        assert all(line and width(line) <= how.columns for line in cue.lines)
        assert how.min_seconds - 1e-6 <= cue.end - cue.start <= how.max_seconds + 1e-6
        assert cue.start >= 0
    for one, two in pairwise(cues):
        assert one.end <= two.start


@given(st.lists(st.tuples(LATIN, st.floats(0, 3)), max_size=40))
def test_no_cue_comes_before_its_words(steps):
    now, words = 0.0, []
    for text, step in steps:
        now += step
        words.append(TimedWord(text, now, now))
    rest = [word for word in words if word.text.split()]
    for cue in make_cues(words):
        letters = len(bare(cue.lines))
        assert cue.start >= rest[0].start
        while letters > 0:
            letters -= len(rest.pop(0).text)


@pytest.mark.parametrize("start", [float("nan"), float("inf")])
def test_times_that_are_none(start):
    with pytest.raises(DragomanError, match="has no time"):
        list(make_cues([TimedWord("a", start, 1)]))


@pytest.mark.parametrize(
    "how", [{"columns": 1}, {"lines": 0}, {"min_seconds": 0}, {"min_seconds": 9}]
)
def test_settings_that_are_none(how):
    with pytest.raises(DragomanError, match="Captions need"):
        CaptionSettings(**how)

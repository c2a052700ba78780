"""The rules of broadcasters, held over whatever may be said; and what good cues look like."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.captions import (
    CaptionMaker,
    CaptionSettings,
    TimedWord,
    _Track,
    make_cues,
    width,
)

PLAIN = CaptionSettings()
MARK = re.compile(r"[.,;:!?…。、，；：！？)\]}]|[”’»]+(?!\w)")


def spoken(text, start=0.0, pace=0.3):
    """Words one after the other, each `pace` seconds long."""
    return [
        TimedWord(word, start + i * pace, start + (i + 1) * pace)
        for i, word in enumerate(text.split())
    ]


def lines(words, language="en", how=PLAIN):
    return [cue.lines for cue in make_cues(words, language, how)]


def letters(texts):
    return "".join(char for text in texts for char in text if char.isalnum())


def test_a_date_stays_in_one_cue():
    words = spoken("Diese Sorte wurde am 8. September zugelassen.")
    assert lines(words, "de") == [("Diese Sorte wurde", "am 8. September zugelassen.")]
    assert len(lines(words, "en")) == 2  # there it would be the end of a sentence


def test_a_short_sentence_is_one_line_for_as_long_as_it_takes_to_read():
    (cue,) = make_cues(spoken("Good morning, everybody.", pace=0.1))
    assert cue.lines == ("Good morning, everybody.",)
    assert cue.start == 0.0
    assert cue.end == pytest.approx(24 / 20)


def test_a_cue_stays_while_its_words_are_spoken():
    (cue,) = make_cues(spoken("Good morning, everybody.", pace=1.0))
    assert cue.end == pytest.approx(3.0)


def test_a_word_that_is_drawn_out_is_not_shown_for_ever():
    (cue,) = make_cues([TimedWord("Weeeell", 0.0, 9.0)])
    assert cue.end == pytest.approx(7.0)


def test_the_last_cue_outlasts_the_sound():
    (cue,) = make_cues([TimedWord("Thanks.", 9.0, 9.1)])
    assert cue.end - cue.start == pytest.approx(PLAIN.min_seconds)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "The committee has decided to meet again next Thursday.",
            ("The committee has decided", "to meet again next Thursday."),
        ),
        (
            "When the rain had stopped, all the children went out.",
            ("When the rain had stopped,", "all the children went out."),
        ),
        (
            "Wir haben lange auf die Entscheidung der Kommission gewartet.",
            ("Wir haben lange auf die Entscheidung", "der Kommission gewartet."),
        ),
        (
            "We met the president and members of the whole council.",
            ("We met the president", "and members of the whole council."),
        ),
    ],
)
def test_lines_break_at_phrases(text, wanted):
    assert lines(spoken(text, pace=0.1)) == [wanted]


def test_a_line_that_is_full_needs_no_second():
    text = "a" * 20 + " " + "b" * 21
    assert lines(spoken(text)) == [(text,)]
    assert lines(spoken(text + "b")) == [("a" * 20, "b" * 22)]


def test_a_sentence_that_fills_half_a_line_ends_its_cue():
    text = "This sentence ends right here. Another one begins"
    assert lines(spoken(text)) == [("This sentence ends right here.",), ("Another one begins",)]


def test_an_article_is_not_taken_for_a_relative_pronoun():
    text = "Dennoch sind wir der Meinung, dass der Bericht nicht so ehrgeizig ist wie sein sollte."
    first, *_ = lines(spoken(text), "de")
    assert first == ("Dennoch sind wir der Meinung,",)


def test_short_sentences_share_a_cue():
    assert lines(spoken("Yes. I do. It is so.")) == [("Yes. I do. It is so.",)]


def test_a_cue_does_not_end_within_what_belongs_together():
    text = (
        "The honourable members who have spoken before me in this debate have all said that the "
        "report of the committee should be adopted without any further delay by the plenary."
    )
    for cue in lines(spoken(text)):
        assert cue[-1].split()[-1] not in ("the", "of", "in", "that", "by", "any")


def test_rather_another_cue_than_a_line_that_ends_with_an_article():
    text = "Eine neue Bewertung sollte folgen, bis die Bürger Europas ordnungsgemäß informiert"
    assert lines(spoken(text), "de") == [
        ("Eine neue Bewertung sollte folgen,",),
        ("bis die Bürger Europas", "ordnungsgemäß informiert"),
    ]


def test_a_mark_that_comes_late_stays_with_its_sentence():
    words = [
        *spoken("They were all found", pace=0.5),
        TimedWord(".", 9.0, 9.0, joined=True),
        *spoken("They always are, he said", start=9.0),
    ]
    one, two = make_cues(words)
    assert one.lines == ("They were all found.",)
    assert two.lines == ("They always are, he said",)
    assert one.end < 9.0


def test_a_mark_alone_needs_no_hint_that_it_is_joined():
    assert lines([TimedWord("Yes", 0, 1), TimedWord("!", 1, 1)]) == [("Yes!",)]


def test_marks_at_the_head_of_a_word_belong_to_the_word_before():
    words = [*spoken("I was thinking"), TimedWord("...and then", 1.0, 2.0)]
    assert lines(words) == [("I was thinking... and then",)]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Es sind 58 % der Bürger, 3% mehr."),
        ("de", "Er sagte »Ja« und ging."),
        ("sv", "Han sade ”ja” till dem."),
        ("en", "Get ’em now."),
        ("fr", "Vraiment ? Oui ! C’est « bien » ; 58 % : voilà."),
        ("fr", "Il y a 10\u202f000 voix\xa0!"),
    ],
)
def test_captions_are_spaced_as_the_text_is(language, text):
    fast = CaptionSettings(columns=46, columns_per_second=1000.0)
    words = [TimedWord(f" {word}", 0.0, 0.0) for word in re.split("[ \n]", text)]
    assert " ".join(line for cue in lines(words, language, fast) for line in cue) == text


def test_what_is_set_apart_stays_with_its_word():
    assert lines([TimedWord("%", 0, 1)]) == [("%",)]  # nothing is before it
    words = [TimedWord("a" * 42, 0, 1), TimedWord("%", 1, 1)]
    assert letters(line for cue in lines(words) for line in cue) == "a" * 42
    narrow = CaptionSettings(columns=14)
    for cue in lines(spoken("Il y avait alors 10 000 voix ! Et « toi » ?"), "fr", narrow):
        for line in cue:
            assert line[0] not in "!?»"
            assert line[-1] != "«"
            assert not line.startswith("000")


def test_a_number_without_its_zero_gets_one():
    assert lines(spoken(".5 percent")) == [("0.5 percent",)]
    assert lines([TimedWord("3", 0, 0), TimedWord(".5", 0, 0, joined=True)]) == [("3.5",)]


def test_what_goes_on_without_a_space_is_joined():
    words = [TimedWord("Euro", 0, 1), TimedWord("-zone", 1, 2, joined=True)]
    assert lines(words) == [("Euro-zone",)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_where_nothing_sets_words_apart_lines_break_as_they_read(size):
    """What is said there goes on without a space, all of it."""
    text = "我们今天讨论欧洲联盟的能源政策，特别是在气候方面的政策。首先，我想感谢委员会的报告。"
    words = [
        TimedWord(text[at : at + size], at / 5, (at + size) / 5, joined=True)
        for at in range(0, len(text), size)
    ]
    cues = list(make_cues(words, "zh"))
    assert "".join(line for cue in cues for line in cue.lines) == text
    assert all(cue.lines[-1][-1] in "，。" for cue in cues)
    assert cues[-1].start == pytest.approx(text.index("首") / 5, abs=size / 5)  # where it was said


def test_a_pause_ends_a_cue_and_the_cue_ends_with_the_time_to_read_it():
    one, two = make_cues([*spoken("Yes, of course"), *spoken("And then", start=10.0)])
    assert (one.start, one.end) == (0.0, pytest.approx(0.9))
    assert two.start == 10.0


def pausing(words, now, silence, *, source=None, free_from=0.0):
    """The cues that need not wait for whoever speaks next; `source`: the speaker's words."""
    maker = CaptionMaker("en", None, None if source is None else "de", free_from)
    for word in words:
        maker.say(word)
    for word in source or ():
        maker.say_source(word)
    return maker.pause(now, silence)


ENDED, OPEN = spoken("Yes, of course."), spoken("Yes, of course")  # until 0.9 s, read by then


@pytest.mark.parametrize(
    ("words", "now", "silence", "over"),
    [
        (ENDED, 2.9, 2.0, True),
        (ENDED, 2.9, 1.99, False),
        (ENDED, 2.8, 5.0, False),  # the words may come later than the silence did
        (OPEN, 8.8, 8.0, False),
        (OPEN, 8.9, 7.9, False),
        (OPEN, 8.9, 8.0, True),
        ([], 99.0, 99.0, False),
    ],
)
def test_a_cue_waits_for_no_word_once_the_pause_is_long_enough(words, now, silence, over):
    """Two seconds behind a sentence; behind anything else, eight."""
    assert bool(pausing(words, now, silence)) == over


def test_with_two_languages_the_pause_is_long_for_both_have_to_be_told():
    german = spoken("Ja, natürlich.", pace=0.6)  # until 1.2 s
    assert not pausing(ENDED, 2.9, 2.0, source=[])
    assert pausing(ENDED, 8.9, 8.0, source=[])
    assert not pausing(ENDED, 9.15, 9.0, source=german)
    (cue,) = pausing(ENDED, 9.25, 9.0, source=german)
    assert cue.lines == ("Yes, of course.", "Ja, natürlich.")
    assert pausing([], 9.25, 9.0, source=german)
    many = spoken("word " * 40, pace=0.01)  # 199 columns are read in ten seconds
    assert not pausing(ENDED, 10.3, 9.4, source=many)
    assert pausing(ENDED, 10.5, 9.6, source=many)


def test_in_a_pause_a_cue_waits_until_it_can_have_been_read():
    """Else what comes next, though late, would be told that there is no room for it."""
    ended = [TimedWord("word", 1.0, 1.0)] * 7 + [TimedWord("end.", 1.0, 1.0)]  # 39 columns
    assert not pausing(ended, 3.44, 9.0)
    assert pausing(ended, 3.46, 9.0)  # 1.0 s, 39 / 20 s to read, half a second for the next
    assert not pausing(ended, 5.44, 9.0, free_from=3.0)
    assert pausing(ended, 5.46, 9.0, free_from=3.0)


def test_before_a_pause_no_word_is_left_alone_that_leads_to_what_follows():
    words = [*spoken("Wir müssen handeln, um"), *spoken("das Klima zu schützen.", start=5.0)]
    one, two = make_cues(words, "de")
    assert (one.lines, two.lines) == (("Wir müssen handeln,",), ("um das Klima zu schützen.",))
    assert two.start == 5.0
    (alone,) = make_cues([*spoken("The"), *spoken("house", start=5.0)])
    assert (alone.lines, alone.start) == (("The house",), 5.0)


def test_a_pause_is_measured_from_the_end_of_a_word():
    drawn_out = [TimedWord("Well", 0.0, 3.0), TimedWord("yes", 3.1, 3.5)]
    assert lines(drawn_out) == [("Well yes",)]
    long_next = [TimedWord("Well", 0.0, 0.5), TimedWord("yeees", 1.0, 6.0)]
    assert lines(long_next) == [("Well yeees",)]
    paused = [TimedWord("Well", 0.0, 0.5), TimedWord("yes", 2.5, 6.0)]
    assert lines(paused) == [("Well",), ("yes",)]


def test_times_that_go_back_make_no_pause():
    words = [TimedWord("Well", 5.0, 6.0), TimedWord("yes", 1.0, 2.0), TimedWord("then", 6.5, 7.0)]
    assert lines(words) == [("Well yes then",)]


def test_a_small_gap_between_cues_is_closed():
    one, two = make_cues([*spoken("This is the first of them.", pace=0.3), *spoken("Two", 2.1)])
    assert one.end == two.start == 2.1


def test_a_slow_speaker_gets_a_new_cue_before_the_old_one_has_to_go():
    cues = list(make_cues(spoken("one two three four five six seven eight nine ten", pace=1.0)))
    assert max(cue.end - cue.start for cue in cues) <= 7.0
    assert len(cues) == 2


def test_a_burst_is_read_at_reading_speed_and_caught_up_with():
    burst = [TimedWord(word, 5.0, 5.0) for word in ("word " * 60).split()]
    cues = list(make_cues([*burst, *spoken("And now", start=60.0)]))
    assert cues[0].start == 5.0
    assert all(one.end == two.start for one, two in pairwise(cues[:-1]))
    assert cues[-2].end == pytest.approx(5.0 + 300 / 20, abs=0.5)
    assert cues[-1].start == 60.0


@pytest.mark.parametrize(("columns", "full"), [(336, False), (337, True)])
def test_four_full_cues_wait_for_a_full_stop_and_no_more(columns, full):
    maker = CaptionMaker()
    text = "word " * 66 + "w" * (columns - 330)
    assert not any(map(maker.say, spoken(text, pace=0.2)))
    assert bool(maker.say(TimedWord("next", 13.4, 13.6))) == full


def test_in_a_language_without_spaces_letters_of_another_script_make_one_word():
    """Between Chinese letters a line may break, though no space sets them apart."""
    track = _Track("zh", PLAIN)
    for text, joined in (("i", False), ("Pad", True), ("好", True), ("的", True)):
        track.words += track.pieces(TimedWord(text, 0.0, 1.0, joined))
    assert [word.text for word in track.words] == ["iPad", "好", "的"]
    track = _Track("en", PLAIN)
    for text, joined in (("i", False), ("好", True)):
        track.words += track.pieces(TimedWord(text, 0.0, 1.0, joined))
    assert [word.text for word in track.words] == ["i好"]


def test_a_talk_without_a_full_stop_does_not_wait_for_one():
    maker, cues = CaptionMaker(), []
    for word in spoken("and so on " * 100):
        new = maker.say(word)
        waiting = sum(len(w.text) + 1 for w in maker._tracks[0].words)
        assert waiting <= 5 * 84
        assert not new or waiting > 42  # the last of them may still change
        cues += new
    assert len(cues) > 10


def test_languages_without_spaces():
    (cue,) = make_cues(
        [TimedWord("我们", 0, 1), TimedWord("用", 1, 1.2), TimedWord("iPhone", 1.2, 2)], "zh"
    )
    assert cue.lines == ("我们用iPhone",)
    (cue,) = make_cues([TimedWord("会议" * 16, 0, 5)], "zh")
    assert [len(line) for line in cue.lines] == [16, 16]  # sixteen wide characters fill a line


def test_a_word_wider_than_a_line_is_cut_and_its_mark_stays_with_a_letter():
    cut = [len(line) for cue in lines([TimedWord("a" * 100, 0, 1)]) for line in cue]
    assert cut == [42, 42, 16]
    assert lines([TimedWord("a" * 42 + "!", 0, 1)]) == [("a" * 41, "a!")]
    words = [TimedWord("a" * 42, 0, 1), TimedWord("!", 1, 1)]
    assert lines(words) == [("a" * 41, "a!")]


# Both languages in one file.


def both(said, source, how=PLAIN, languages=("en", "de")):
    maker, cues = CaptionMaker(languages[0], how, languages[1]), []
    events = [(w.start, 1, w) for w in source] + [(w.start, 2, w) for w in said]
    for _, which, word in sorted(events, key=lambda event: event[:2]):
        cues += maker.say_source(word) if which == 1 else maker.say(word)
    return cues + maker.finish()


def test_both_languages_have_a_line_each():
    said = spoken("Good morning, everybody. We begin with the first report.")
    source = spoken("Guten Morgen, alle zusammen. Wir beginnen mit dem ersten Bericht.")
    cues = both(said, source)
    assert [cue.lines[0] for cue in cues] == [
        "Good morning, everybody.",
        "We begin with the first report.",
    ]
    assert "Guten Morgen" in cues[0].lines[1]
    assert cues[-1].lines[1].endswith("Bericht.")


def test_a_sentence_and_its_translation_share_a_cue_though_one_is_late():
    """The speaker's words are written down a second later, and are shown where they belong."""
    said = [*spoken("One sentence is said right here."), *spoken("Another one is over there.", 3.0)]
    source = [
        *spoken("Ein Satz wird genau hier gesagt.", 0.8),
        *spoken("Ein anderer ist dort drüben.", 3.9),
    ]
    assert [cue.lines for cue in both(said, source)] == [
        ("One sentence is said right here.", "Ein Satz wird genau hier gesagt."),
        ("Another one is over there.", "Ein anderer ist dort drüben."),
    ]


def test_a_date_is_no_end_at_which_both_languages_meet():
    said = spoken("Es war am 8. September sehr schön. Dann gingen wir.")
    source = [*spoken("It was a nice day."), *spoken("Then we went away.", 1.6)]
    one, two = both(said, source, languages=("de", "en"))
    assert one.lines == ("Es war am 8. September sehr schön.", "It was a nice day.")
    assert two.lines == ("Dann gingen wir.", "Then we went away.")


def test_words_of_the_speaker_that_come_much_later_are_shown_where_they_belong():
    maker, cues = CaptionMaker("en", PLAIN, "de"), []
    for word in spoken("One whole sentence is here. Another one is there."):
        cues += maker.say(word)
    for word in spoken("Ein Satz ist hier. Ein anderer ist dort."):
        cues += maker.say_source(word)
    cues += maker.finish()
    assert [cue.lines[1] for cue in cues] == ["Ein Satz ist hier.", "Ein anderer ist dort."]


def test_a_long_talk_in_both_languages_does_not_wait_for_its_end():
    maker, cues = CaptionMaker("en", PLAIN, "de"), []
    for one, two in zip(spoken("It is so. " * 60), spoken("So ist es. " * 60), strict=True):
        cues += maker.say_source(two) + maker.say(one)
    assert len(cues) > 10


def test_a_speaker_of_whom_nothing_is_translated_is_shown_while_he_speaks():
    maker = CaptionMaker("en", PLAIN, "de")
    cues = [cue for word in spoken("So ist es. " * 60) for cue in maker.say_source(word)]
    assert len(cues) > 5


def test_a_cue_stays_until_either_language_goes_on():
    said = [*spoken("One sentence is said right here."), *spoken("Another one is over there.", 4.0)]
    source = [
        *spoken("Ein Satz wird genau hier gesagt."),
        *spoken("Ein anderer ist dort drüben.", 2.2),
    ]
    one, two = both(said, source)
    assert one.end == two.start == pytest.approx(2.2)


def test_marks_without_end_are_three():
    assert lines([TimedWord("What!?!?!?!?", 0, 1)]) == [("What!?!",)]
    one_by_one = [TimedWord(" .", at, at) for at in range(2, 120)]  # as of many silent pauses
    assert lines([TimedWord("Yes", 0, 1), *one_by_one]) == [("Yes...",)]


@pytest.mark.parametrize("source", [None, "en"])
def test_words_that_wait_fit_into_the_lines_of_another_language(source):
    maker = CaptionMaker("en", source_language=source)
    say = maker.say if source is None else maker.say_source
    assert say(TimedWord("a" * 40, 0, 1)) == []
    maker.spoken_in("ja")
    shown = [line for cue in maker.finish() for line in cue.lines]
    assert "".join(shown) == "a" * 40
    assert max(map(width, shown)) <= PLAIN.wide_columns


def test_without_a_second_language_the_speaker_is_not_shown():
    maker = CaptionMaker("en")
    assert maker.say_source(TimedWord("Guten", 0, 1)) == []
    assert maker.finish() == []


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)
LATIN = st.text("abcdefg,.!?-'", min_size=1, max_size=14)
STEPS = st.tuples(WORD | LATIN | LATIN, st.floats(-1, 3), st.floats(0, 3), st.booleans())
TALKS = st.lists(STEPS, max_size=40)


def timed(steps):
    now, words = 0.0, []
    for text, step, length, joined in steps:
        now += step
        words.append(TimedWord(text, now, now + length, joined))
    return words


def check_rules(cues, how, columns, languages=1):
    for cue in cues:
        assert 1 <= len(cue.lines) <= how.lines
        assert all(line.strip() == line != "" for line in cue.lines)
        assert all(width(line) <= columns for line in cue.lines)
        assert how.min_seconds - 1e-6 <= cue.end - cue.start <= how.max_seconds + 1e-6
        read = " ".join(cue.lines) if languages == 1 else max(cue.lines, key=width)
        assert width(read) <= how.columns_per_second * (cue.end - cue.start) + 1e-6
        assert not MARK.match(cue.lines[0])
        assert cue.start >= 0
    for one, two in pairwise(cues):
        assert one.end <= two.start


@given(
    TALKS,
    st.sampled_from(["en", "zh", "th", "fr"]),
    st.builds(CaptionSettings, columns=st.integers(8, 46), lines=st.integers(1, 3)),
)
def test_cues_keep_every_rule_and_every_word_whatever_is_said(steps, language, how):
    words = timed(steps)
    cues = list(make_cues(words, language, how))
    check_rules(cues, how, min(how.columns, how.wide_columns) if language == "zh" else how.columns)
    shown = letters(line for cue in cues for line in cue.lines)
    said = letters(re.sub(r"(?<!\S)(?=[.,]\d)", "0", word.text) for word in words)
    assert shown.replace("0", "") == said.replace("0", "")


@given(TALKS, TALKS)
def test_both_languages_keep_the_rules(said, source):
    cues = both(timed(said), timed(source))
    check_rules(cues, PLAIN, 42, languages=2)
    shown = sorted(letters(line for cue in cues for line in cue.lines).replace("0", ""))
    assert shown == sorted(letters(step[0] for step in said + source).replace("0", ""))


@given(st.lists(st.tuples(st.text("abcdefg", min_size=1, max_size=14), st.floats(0, 3))))
def test_no_cue_comes_before_its_words(steps):
    words = timed((text, step, 0.0, False) for text, step in steps)
    rest = list(words)
    for cue in make_cues(words):
        left = len(letters(cue.lines))
        assert cue.start >= rest[0].start
        while left > 0:
            left -= len(rest.pop(0).text)


@pytest.mark.parametrize("moment", [float("nan"), float("inf")])
def test_times_that_are_none(moment):
    for word in (TimedWord("a", moment, 1), TimedWord("a", 1, moment)):
        with pytest.raises(DragomanError, match="has no time"):
            list(make_cues([word]))


@pytest.mark.parametrize(
    "how",
    [
        {"columns": 7},
        {"lines": 0},
        {"min_seconds": 0},
        {"min_seconds": 9},
        {"columns": 80, "wide_columns": 80},
    ],
)
def test_settings_that_are_none(how):
    with pytest.raises(DragomanError, match="Captions"):
        CaptionSettings(**how)

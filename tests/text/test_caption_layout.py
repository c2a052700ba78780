"""The cheapest way to cut words into cues and lines, against all ways, counted out one by one."""

from itertools import accumulate, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text import caption_layout as module
from dragoman.text.caption_layout import CaptionSettings, Passage, TimedWord, cut, width
from dragoman.text.phrases import INSIDE, SENTENCE, break_cost

SETTINGS = CaptionSettings(columns=10, wide_columns=8, max_seconds=3.0, pause_seconds=1.0)
WORDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "the", "of", "and", "word", "longer,", "end.", "Begin", "lengthy"]),
        st.floats(0, 1.5),
    ),
    min_size=1,
    max_size=9,
)


def timed(steps):
    now, words = 0.0, []
    for text, step in steps:
        now += step
        words.append(TimedWord(text, now, now + 0.2))
    return words


def ways_to_cut(count, parts):
    """Every way to cut so many things into some parts, as lists of (first, last)."""
    for places in combinations(range(1, count), parts - 1):
        yield list(pairwise((0, *places, count)))


def text_of(words):
    return " ".join(word.text for word in words)


def line_break(one, two):
    """What it costs to end a line between two words."""
    cost = break_cost(one.text, two.text)
    return module.TORN if cost == INSIDE else cost


def cheapest_lines(words, most=2):
    """(cost, lines), of as few lines as it takes; None if these are too many."""
    for parts in range(1, most + 1):
        found = []
        for way in ways_to_cut(len(words), parts):
            lines = [text_of(words[first:last]) for first, last in way]
            if max(map(len, lines)) <= SETTINGS.columns:
                cost = 0.0
                for (one, two), (_, place) in zip(pairwise(lines), way, strict=False):
                    cost += line_break(words[place - 1], words[place])
                    cost += module.UNEVEN * abs(len(one) - len(two)) / SETTINGS.columns
                found.append((cost, lines))
        if found:
            return min(found)
    return None


def price(words, first, last):
    cue = words[first:last]
    lines = cheapest_lines(cue)
    if lines is None:
        return None
    cost = module.PER_CUE + lines[0] / 2
    at_end = last == len(words) or break_cost(words[last - 1].text, words[last].text) == SENTENCE
    at_head = first == 0 or break_cost(words[first - 1].text, words[first].text) == SENTENCE
    if last < len(words):
        cost += break_cost(words[last - 1].text, words[last].text)
    if any(break_cost(one.text, two.text) == SENTENCE for one, two in pairwise(cue)):
        cost += module.MIXED * (0.3 if at_end and at_head else 1.0)
    if len(text_of(cue)) < module.SHORT_COLUMNS:
        cost += module.SHORT
    if cue[-1].end - cue[0].start > SETTINGS.max_seconds:
        cost += module.TOO_LONG
    gaps = [two.start - one.end for one, two in pairwise(cue)]
    return cost + module.PAUSE * len([gap for gap in gaps if gap >= SETTINGS.pause_seconds])


def price_of_all(words, way):
    prices = [price(words, first, last) for first, last in way]
    return None if None in prices else sum(prices)


@given(WORDS)
def test_no_other_way_to_cut_is_cheaper(steps):
    words = timed(steps)
    passage = Passage(words, "en", SETTINGS)
    found = cut([passage], [(n,) for n in range(len(words) + 1)], 2)
    way = [(start[0], end[0]) for start, end in found]
    every = [
        price_of_all(words, other)
        for parts in range(1, len(words) + 1)
        for other in ways_to_cut(len(words), parts)
    ]
    assert [first for first, _ in way] == [0, *(last for _, last in way[:-1])]
    assert way[-1][1] == len(words)
    assert price_of_all(words, way) == pytest.approx(
        min(cost for cost in every if cost is not None)
    )


def test_a_cue_costs_what_its_words_cost_counted_one_by_one():
    texts = "The end. A word of the and longer, end. Begin lengthy, end."
    steps = (0.0, 0.1, 1.3, 0.2, 0.1, 0.9, 0.3, 1.2, 0.1, 1.5, 0.2, 0.4)
    words = timed(zip(texts.split(), steps, strict=True))
    passage, possible = Passage(words, "en", SETTINGS), 0
    for first, last in combinations(range(len(words) + 1), 2):
        found, counted = passage.cost(first, last, 2), price(words, first, last)
        assert (found is None) == (counted is None)
        if found is not None:
            assert module.PER_CUE + found == pytest.approx(counted)
            possible += 1
    assert possible > 30


@given(WORDS, st.integers(1, 3))
def test_no_other_way_to_break_lines_is_cheaper(steps, most):
    words = timed(steps)
    found = Passage(words, "en", SETTINGS).lines(0, len(words), most)
    best = cheapest_lines(words, most)
    assert (found is None) == (best is None)
    if found is not None:
        assert " ".join(found) == text_of(words)
        assert len(found) == len(best[1])
        places = list(accumulate(len(line.split()) for line in found))[:-1]
        cost = sum(line_break(words[p - 1], words[p]) for p in places)
        cost += sum(module.UNEVEN * abs(len(a) - len(b)) / 10 for a, b in pairwise(found))
        assert cost == pytest.approx(best[0])


@pytest.mark.parametrize(("text", "short"), [("lengthy lengths", 0), ("lengthy length", 1)])
def test_a_cue_of_fifteen_columns_is_not_too_short(text, short):
    """The two lines differ by nothing, or by one of ten columns."""
    words = timed((word, 0.0) for word in text.split())
    uneven = short * module.UNEVEN / 10
    breaks = break_cost(*text.split())
    found = Passage(words, "en", SETTINGS).cost(0, 2, 2)
    assert found == pytest.approx((breaks + uneven) / 2 + short * module.SHORT)


def test_as_many_lines_as_are_allowed():
    words = timed((text, 0.1) for text in ["lengthy", "word", "longer,", "lengthy"])
    passage = Passage(words, "en", SETTINGS)
    assert passage.lines(0, 4, 3) is None
    assert passage.lines(0, 4, 4) == ["lengthy", "word", "longer,", "lengthy"]


def test_lines_are_about_as_long_as_the_next():
    words = timed((text, 0.1) for text in ["word", "end.", "word", "lengthy"])
    lines = Passage(words, "en", SETTINGS).lines(0, 4, 3)
    assert lines == ["word", "end. word", "lengthy"]


def test_parts_of_a_passage_have_no_space_at_their_head():
    words = timed((text, 0.1) for text in ["one", "two", "three"])
    passage = Passage(words, "en", SETTINGS)
    assert passage.text(1, 3) == "two three"
    assert passage.width(1, 3) == len("two three")
    assert passage.width(1, 1) == 0


def test_two_languages_are_cut_at_the_same_places_and_each_keeps_its_line():
    said = [TimedWord("word", n, n) for n in (0.0, 1.0, 2.0, 3.0)]
    source = [TimedWord("longer", n, n) for n in (0.5, 1.5)]
    passages = [Passage(words, "en", SETTINGS) for words in (said, source)]
    places = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (4, 2)]
    spans = cut(passages, places, 1)
    assert spans[0][0] == (0, 0)
    assert spans[-1][1] == (4, 2)
    for (i, j), (k, m) in spans:
        assert passages[0].width(i, k) <= 10
        assert passages[1].width(j, m) <= 10


@pytest.mark.parametrize(("end", "meetings"), [(1.2, [(1, 1)]), (4.0, [])])
def test_a_sentence_of_the_speaker_meets_one_of_the_translation(end, meetings):
    said = [TimedWord("Ja.", 0.0, 1.0), TimedWord("Gut.", 1.0, 1.5)]
    source = [TimedWord("Yes.", 0.0, end)]  # at 4 s it is too far from both
    passages = [Passage(words, "en", SETTINGS) for words in (said, source)]
    assert module._meetings(*passages) == meetings


@given(WORDS)
def test_a_text_beside_itself_is_cut_as_it_is_alone(steps):
    words = timed(steps)
    passage = Passage(words, "en", SETTINGS)
    alone = cut([passage], [(n,) for n in range(len(words) + 1)], 2)
    twice = cut([passage, passage], [(n, n) for n in range(len(words) + 1)], 2)
    assert [(start[0], end[0]) for start, end in twice] == [(i, j) for (i,), (j,) in alone]


class Counted(list):
    """Words, and how many of them somebody has looked at."""

    looks = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        self.looks += len(found) if isinstance(place, slice) else 1
        return found


def test_what_a_cue_costs_takes_no_look_at_all_its_words():
    """There are many more cues than words, and most are thrown away."""
    words = Counted(timed((text, 0.3) for text in ["a", "word", "of", "the", "end."] * 20))
    passage, counts = Passage(words, "en", CaptionSettings()), [1, 2, 5, 15]
    words.looks = 0
    assert all(passage.cost(7, 7 + count, 2) is not None for count in counts)
    assert words.looks <= 2 * len(counts)


def test_whole_sentences_share_a_cue_more_cheaply_than_an_end_and_a_beginning():
    words = timed((text, 0.1) for text in ["Ja", "so.", "Ah.", "Nein", "es"])
    passage = Passage(words, "en", SETTINGS)
    assert passage.cost(0, 3, 1) == pytest.approx(module.SHORT + 0.3 * module.MIXED)
    end = break_cost("Nein", "es")
    assert passage.cost(1, 4, 2) > module.SHORT + module.MIXED + end - 1e-9


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("你好", 4), ("ｈｉ", 4), ("né", 2), ("한국", 4)]
)
def test_a_wide_character_counts_as_two(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(("language", "columns"), [("en", 10), ("zh", 8), ("ja", 8), ("ko", 8)])
def test_lines_of_wide_characters_are_shorter(language, columns):
    assert module.line_columns(language, SETTINGS) == columns


def test_the_rules_are_those_of_broadcasters():
    rules = CaptionSettings()
    assert (rules.columns, rules.lines, rules.max_seconds) == (42, 2, 7.0)
    assert rules.columns_per_second == 20.0
    assert 0.83 <= rules.min_seconds <= 0.85

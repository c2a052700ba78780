"""The window's text by hand: what is taken, what settles, and where it is cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models import Draft
from dragoman.models.drafting import Ending, Span, finished, nothing, prolonged
from dragoman.models.exported.pieces import Pieces
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.search import Found
from dragoman.models.window import Bounds, Window, boundary, quietest

from .toy_net import FIRST, pieces

BOUNDS = Bounds(long=12_000, too_long=20_000, kept=6_000, full=26_000, context=3)
SPAN = Span(1000.0, 10, 40.0)  # ten frames from 1000 ms on


def tokens(*words: int) -> tuple[int, ...]:
    return tuple(word + FIRST for word in words)


def window(said=(), looks=(), **more) -> Window:
    return Window(BOUNDS, pieces(), list(tokens(*said)), list(looks), **more)


def found(*words: int, at=(), ended=True, silence=None, log_prob=-0.1) -> Found:
    looks = tuple(np.eye(12, dtype=np.float32)[place] for place in at or range(len(words)))
    return Found(tokens(*words), (log_prob,) * len(words), looks, ended, silence)


def drafted(one: Window, made: Found, **manner) -> Draft:
    return finished(one, made, SPAN, Ending(**{"final": False, **manner}), looks=True)


def test_what_is_taken_is_said_with_the_moment_that_it_looks_at():
    one = window([1], [500.0])
    draft = drafted(one, found(2, 3, 5, at=(4, 7, 9), ended=False))
    assert draft.words == (" w2", " w3", " w5")
    assert draft.looks(0, 3) == [1160.0, 1280.0, 1360.0]
    one.take(draft, 2)
    assert one.said == list(tokens(1, 2, 3))
    assert one.looks == [500.0, 1160.0, 1280.0]
    assert one.rest.tokens == tokens(5)
    assert one.unfinished == []


def test_attention_ends_with_the_span_whatever_the_decoder_saw():
    one = window()
    draft = drafted(one, found(1, 2, at=(3, 11)))  # the second looks behind all sound
    assert draft.attention.shape == (2, 10)
    assert draft.attention.sum(axis=1).tolist() == [1.0, 0.0]
    longer = prolonged(draft, Span(1000.0, 13, 40.0))
    assert longer.attention.shape == (2, 13)
    assert longer.attention[:, 10:].sum() == 0


def test_settled_words_come_first_and_look_at_the_beginning():
    one = window([1], [900.0], before=[9])
    one.settle(tokens(2, 3), [-0.5, -0.25])
    assert one.rest == one.settled
    assert (one.said, one.looks) == ([], [])
    assert one.before == [*tokens(1, 2, 3)]  # three tokens of context
    draft = drafted(one, found(5, at=(6,), ended=False))
    assert draft.words == (" w2", " w3", " w5")
    assert draft.log_probs == (-0.5, -0.25, -0.1)
    assert draft.attention.argmax(axis=1).tolist() == [0, 0, 6]
    assert draft.attention[:, 0].tolist() == [1.0, 1.0, 0.0]
    one.take(draft, 1)
    assert one.settled.tokens == tokens(3)
    assert (one.said, one.looks) == ([], [])  # it was of sound that is gone
    one.take(drafted(one, found(5, at=(6,))), 2)
    assert one.settled.tokens == ()
    assert (one.said, one.looks) == (list(tokens(5)), [1240.0])


def test_nothing_is_drafted_of_silence_but_what_waits():
    one = window()
    draft = nothing(one, SPAN)
    assert (draft.tokens, draft.ended, draft.silence) == ((), True, 1.0)
    one.settle(tokens(7), [-0.1])
    assert nothing(one, SPAN).words == (" w7",)


def test_what_nobody_spoke_is_not_drafted():
    assert drafted(window(), found(1, 2, silence=0.9, log_prob=-2.0)).tokens == ()
    assert drafted(window(), found(1, 2, silence=0.9, log_prob=-0.5)).words == (" w1", " w2")


def test_a_loop_is_cut_and_its_text_has_not_ended():
    draft = drafted(window(), found(1, *[2] * 6))
    assert draft.tokens == tokens(1, 2)
    assert not draft.ended
    # What was said of it counts.
    assert drafted(window([1, 2, 2, 2, 2], [0.0] * 5), found(2, 2)).tokens == ()
    assert drafted(window([1, 2, 2], [0.0] * 3), found(2, 2)).tokens == tokens(2, 2)


def test_whole_sentences_make_a_cut_in_a_long_window():
    # The toy's words 4 and 9 end a sentence.
    one = window([1, 4, 2, 9, 3], [1000, 2000, 3000, 4000, 6000])
    assert one.due(0.0, 12_000.0) is None  # not long yet
    assert one.due(0.0, 12_001.0) == (4, 4250.0)
    one.drop(4)
    assert (one.said, one.looks) == (list(tokens(3)), [6000])
    assert one.before == list(tokens(4, 2, 9))


def test_old_words_make_a_cut_in_a_window_that_is_too_long():
    one = window([1, 2, 3], [1000, 14_000, 15_000])
    assert one.due(0.0, 20_000.0) is None
    assert one.due(0.0, 20_001.0) == (2, 14_250.0)  # six seconds stay: all before 14,001
    assert window([1, 2], [14_002, 14_500]).due(0.0, 20_001.0) is None
    assert window().due(0.0, 30_000.0) is None


def test_a_window_is_as_long_as_its_sound_wherever_it_begins():
    one = window([4, 2], [6000, 9000])
    assert one.due(5000.0, 17_000.0) is None
    assert one.due(5000.0, 17_001.0) == (1, 6250.0)  # one word may be a sentence
    # Behind a sentence, even where the window is too long and more words are old.
    assert window([4, 1, 2], [1000, 2000, 3000]).due(0.0, 21_000.0) == (1, 1250.0)
    # Words as old as what is kept stay: 6000 ms before 20,000.
    assert window([1, 2], [1000, 14_000]).due(-1.0, 20_000.0) == (1, 1250.0)


def test_a_cut_heeds_what_is_said_and_what_is_still_to_be_said():
    one = window([1, 4], [1000, 2000])
    rest = np.eye(300, dtype=np.float32)[[52, 225]]  # frames of 40 ms: at 2080 and 9000 ms
    one.rest = Draft(tokens(2, 3), attention=rest, frame_ms=40.0)
    assert one.due(0.0, 13_000.0) == (2, 2040.0)  # midway between 2000 and 2080
    # Of what goes, only that: the words that stay look at 1500 and 3000.
    assert window([1, 4, 2, 3], [1000, 2000, 1500, 3000]).due(0.0, 13_000.0) == (2, 1250.0)


@pytest.mark.parametrize(
    ("dropped", "kept", "last_word", "cut"),
    [
        ([2000], [], None, 2250),  # a quarter of a second is left to the last word
        ([2000], [2400], None, 2200),  # midway
        ([1000, 2000], [3000], None, 2250),
        ([1000], [1000, 3000], None, 1250),  # the next one comes after it
        ([1000, 9000, 2000], [3000, 4000, 5000], None, 2250),  # one look is astray
        ([2000], [1000, 3000, 4000], None, 2250),
        # The last word looks more than a second back: it may be anywhere up to the next.
        ([1000, 2000], [6000], 999, 5500),
        ([1000, 2000], [6000], 1000, 2250),
        ([2000], [2400], 500, 2200),
        ([1000, 5000], [], 500, 5250),  # nothing follows
        ([1000, 5000], [9000], 3000, 8500),
        # Looks at the same moment all count.
        ([1000, 2000, 2000], [1500, 3000], None, 2250),
        ([1000, 2000], [2000, 2000, 4000], None, 1250),
    ],
)
def test_the_boundary_between_what_goes_and_what_stays(dropped, kept, last_word, cut):
    assert boundary(dropped, kept, last_word) == cut


def test_without_context_nothing_before_the_window_is_told():
    one = Window(Bounds(12_000, 20_000, 6_000, 26_000), pieces(), list(tokens(1, 2)), [0.0, 1.0])
    one.drop(1)
    assert (one.before, one.said) == ([], list(tokens(2)))
    one.settle(tokens(3), [-0.5])
    assert (one.before, one.said) == ([], [])


def test_an_unfinished_word_is_never_cut_off():
    one = window([1, 4], [1000, 2000], unfinished=list(tokens(4)))
    assert one.due(0.0, 13_000.0) is None


@pytest.mark.parametrize(
    ("said", "rest", "over"),
    [
        ([1, 4], Draft(ended=True), True),
        ([4], Draft(ended=True), True),
        ([1, 4, 2], Draft(ended=True), False),  # the last sentence goes on
        ([1, 4], Draft(ended=False), False),
        ([1, 4], Draft(tokens=(5,), ended=True), False),
        ([], Draft(ended=True), False),
    ],
)
def test_when_all_was_said(said, rest, over):
    assert window(said, [0.0] * len(said), rest=rest).all_said() == over


def test_nothing_is_all_said_while_something_waits():
    one = window([1, 4], [0.0, 0.0], rest=Draft(ended=True))
    one.settled = Draft(tokens=(5,))
    assert not one.all_said()
    one = window([1, 4], [0.0, 0.0], rest=Draft(ended=True), unfinished=[7])
    assert not one.all_said()


def test_a_closed_window_is_empty():
    one = window([1], [0.0], before=[2], unfinished=[3], rest=Draft((5,)), settled=Draft((6,)))
    one.close()
    assert one == window()
    assert one.untouched
    assert not window([1], [0.0]).untouched
    assert not window(before=[1]).untouched
    assert not window(settled=Draft((6,))).untouched


def test_the_quietest_moment():
    levels = np.ones(200, np.float32)
    levels[100:140] = 0.0  # 400 ms of silence; a quarter of a second fits first at frame 100
    assert quietest(levels, 10.0) == 1120.0
    levels[160:190] = -1.0
    assert quietest(levels, 10.0) == 1720.0
    assert quietest(levels[:20], 10.0) == 100.0  # too short to tell: its middle
    assert quietest(np.ones(25, np.float32), 10.0) == 125.0
    assert quietest(np.float32([1, 0, 0.9, 1]), 500.0) == 500.0  # a frame is longer than a moment


IN, TER, PRE, T, STOP = range(3, 8)
PARTS = MoonshineUnits(("", "", "", "▁in", "ter", "▁pre", "t", "."))  # words of several tokens


def test_words_may_have_begun_before():
    def words(unfinished, *more):
        return Window(BOUNDS, PARTS, unfinished=unfinished).words(more, ended=False)

    assert words([IN], TER, PRE).words == (" inter",)
    assert words([IN], TER, PRE).ends == (1,)  # of the tokens that follow
    assert words([IN, TER], PRE).ends == (0,)
    assert words([IN, TER, PRE], T).ends == (0,)
    assert words([IN], TER, PRE).tail == " pre"


def test_a_word_that_was_said_as_whole_may_go_on():
    old, en, s = range(4, 7)
    units = Pieces(("", "", "", "", "▁alt", "en", "s"), "prefix")

    def words(said, unfinished, *more):
        return Window(BOUNDS, units, said, unfinished=unfinished).words(more, ended=True).words

    assert words([old], [], en) == ("en",)
    assert words([old, en], [en], s) == ("ens",)  # some of what is added is held
    assert words([old, old], [old], en) == (" alten",)
    assert words([], [], en) == (" en",)
    assert words([en, s], [en, en, s], s) == (" enenss",)  # it began with what had settled


def test_of_a_word_that_is_said_in_part_the_tokens_are_remembered():
    one = Window(BOUNDS, PARTS)
    one.take(Draft((IN, TER, PRE, T, STOP), (" inter", " pret."), (2, 5)), 4)
    assert (one.said, one.unfinished) == ([IN, TER, PRE, T], [PRE, T])
    one.take(Draft((STOP, STOP)), 1)
    assert one.unfinished == [PRE, T, STOP]
    one.take(Draft((STOP, IN), (" pret...",), (1,)), 1)
    assert one.unfinished == []


def test_half_a_word_that_does_not_go_on_is_drafted_once():
    """Also where the next draft is the same, since nobody spoke."""
    one = Window(BOUNDS, PARTS, [IN, TER], [1000, 1100], unfinished=[IN, TER])
    draft = drafted(one, Found((PRE, T), (-0.1, -0.2), (np.ones(12, np.float32),) * 2, True))
    assert (draft.words, draft.ends) == ((" inter", " pret"), (0, 2))
    one.take(draft, 0)
    assert prolonged(one.rest, SPAN).words == (" pret",)


def test_what_the_last_word_looks_at_moves_the_cut():
    one = Window(BOUNDS, PARTS, [IN, TER, STOP, PRE], [5000, 1000, 5200, 9000])
    assert one.due(0.0, 13_000.0) == (3, 8500.0)  # the stop is no word; "ter" looks astray
    one = Window(BOUNDS, PARTS, [STOP, PRE, T], [5000, 9000, 1000])
    assert one.due(0.0, 13_000.0) == (1, 5250.0)  # there is no last word


def test_a_word_that_may_go_on_is_not_old():
    one = Window(BOUNDS, PARTS, [IN, TER, PRE], [1000, 2000, 3000])
    assert one.due(0.0, 21_000.0) == (2, 2250.0)


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=12), st.lists(st.integers(0, 12), max_size=12)
)
def test_as_few_looks_as_can_be_lie_on_the_wrong_side_of_a_cut(dropped, kept):
    dropped, kept = ([1000.0 * look for look in looks] for looks in (dropped, kept))
    cut = boundary(dropped, kept)

    def wrong(moment):
        return sum(look > moment for look in dropped) + sum(look <= moment for look in kept)

    assert wrong(cut) == min(map(wrong, dropped))

"""From what a decoder found to a draft, by hand: the late stop, what settled, where tokens look."""

from dataclasses import replace

import numpy as np
import pytest

from dragoman.models import Draft
from dragoman.models.drafting import Ending, Span, finished, nothing, prolonged
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.search import Found
from dragoman.models.window import Bounds, Window

IN, TER, PRE, T, STOP, APART = range(3, 9)
PARTS = MoonshineUnits(("", "", "", "▁in", "ter", "▁pre", "t", ".", "▁."))
SPAN = Span(1000.0, 4, 40.0)


def window(**more) -> Window:
    return Window(Bounds(12_000, 20_000, 6_000, 26_000), PARTS, **more)


def found(*tokens: int, ended=True, frames=4) -> Found:
    """The tokens look at one frame after another, with probabilities that tell them apart."""
    looks = tuple(np.eye(frames, dtype=np.float32)[at % frames] for at in range(len(tokens)))
    return Found(tokens, tuple(-0.1 * at for at in range(len(tokens))), looks, ended, 0.25)


def drafted(one: Found, final=False, looks=True, of=None, **manner) -> Draft:
    return finished(of or window(), one, SPAN, Ending(final, **manner), looks=looks)


@pytest.mark.parametrize(
    ("tokens", "manner", "words", "ends"),
    [
        ((IN, TER, STOP), {}, (" inter",), (2,)),  # the stop waits until something follows,
        ((IN, TER, STOP), {"rested": True}, (" inter", "."), (2, 3)),  # or until the pause is long
        ((IN, TER, STOP), {"final": True}, (" inter.",), (3,)),
        ((IN, TER, STOP), {"late_stop": False}, (" inter.",), (3,)),
        ((IN, TER, STOP), {"late_stop": False, "rested": True}, (" inter.",), (3,)),
        ((IN, TER, PRE, T, STOP), {"rested": True}, (" inter", " pret", "."), (2, 4, 5)),
        ((IN, TER, STOP, STOP), {"rested": True}, (" inter", ".."), (2, 4)),
        ((IN, STOP), {"rested": True}, (" in", "."), (1, 2)),
        ((IN, TER, PRE), {"rested": True}, (" inter", " pre"), (2, 3)),
        ((IN, STOP, PRE), {}, (" in.", " pre"), (2, 3)),
        ((STOP,), {"rested": True}, (".",), (1,)),  # a stop that follows no word is not cut
        ((IN, TER, APART), {"rested": True}, (" inter", " ."), (2, 3)),  # nor one that is a word
    ],
)
def test_a_stop_may_be_late(tokens, manner, words, ends):
    draft = drafted(found(*tokens), **manner)
    assert (draft.words, draft.ends, draft.tail) == (words, ends, "")
    assert draft.ended
    count = ends[-1]
    assert draft.tokens == tokens[:count]
    assert draft.log_probs == found(*tokens).log_probs[:count]
    assert draft.attention.argmax(axis=1).tolist() == [at % 4 for at in range(count)]


def test_a_text_that_has_not_ended_keeps_its_last_word_open():
    draft = drafted(found(IN, TER, STOP, ended=False))
    assert (draft.words, draft.ends, draft.tail) == ((), (), " inter.")
    assert (draft.ended, len(draft.tokens), draft.silence) == (False, 3, 0.25)
    draft = drafted(found(IN, TER, STOP, ended=False), final=True)
    assert (draft.words, draft.ends, draft.ended) == ((" inter.",), (3,), False)


def test_tokens_look_at_the_sound_of_the_span():
    draft = drafted(found(IN, TER, ended=False))
    assert (draft.start_ms, draft.frame_ms) == (1000.0, 40.0)
    blind = drafted(found(IN, TER, ended=False), looks=False)
    assert blind.attention is None
    assert blind.start_ms == 1160.0  # who does not look stands for the end of the sound
    for frames, row in ((2, [0.1, 0.2, 0, 0]), (6, [0.1, 0.2, 0.3, 0.4])):
        look = np.float32([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])[:frames]
        one = Found((IN,), (0.0,), (look,), ended=False)
        assert drafted(one).attention[0].tolist() == pytest.approx(row)


def test_what_settled_comes_first_and_looks_at_the_beginning():
    settled = Draft((IN, TER), log_probs=(-0.5, -0.6))
    draft = drafted(found(PRE, T), of=window(settled=settled))
    assert (draft.words, draft.ends) == ((" inter", " pret"), (2, 4))
    assert draft.log_probs == pytest.approx((-0.5, -0.6, 0.0, -0.1))
    rows = [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert draft.attention.tolist() == rows
    blind = drafted(found(PRE, T), looks=False, of=window(settled=settled))
    assert (len(blind.tokens), blind.attention) == (4, None)


def test_a_draft_of_silence():
    draft = nothing(window(), SPAN)
    assert (draft.tokens, draft.words, draft.ended, draft.silence) == ((), (), True, 1.0)
    assert draft.attention.shape == (0, 4)
    assert (draft.start_ms, draft.frame_ms) == (1000.0, 40.0)
    waiting = nothing(window(settled=Draft((IN,), log_probs=(-0.5,))), SPAN)
    assert (waiting.words, waiting.ends, waiting.tail) == ((" in",), (1,), "")
    assert waiting.attention.tolist() == [[1, 0, 0, 0]]


def test_more_silence_makes_a_draft_longer_and_never_shorter():
    draft = drafted(found(IN, TER))
    assert prolonged(draft, replace(SPAN, frames=6)).attention.shape == (2, 6)
    assert prolonged(draft, SPAN).attention.shape == (2, 4)
    assert prolonged(draft, replace(SPAN, frames=3)).attention.shape == (2, 4)
    blind = drafted(found(IN, TER), looks=False)
    assert prolonged(blind, SPAN) is blind


def test_a_word_is_as_probable_as_its_tokens_on_average():
    logs = tuple(np.log((0.2, 0.4, 0.9, 0.5)))
    draft = Draft((IN, TER, PRE, T), (" inter", " pre"), (2, 3), "t", log_probs=logs)
    assert draft.word_probabilities(3) == pytest.approx((0.3, 0.9, 0.5))
    assert draft.word_probabilities(1) == pytest.approx((0.3,))


def test_what_is_left_of_a_draft_keeps_what_belongs_to_its_tokens():
    looks = np.eye(4, dtype=np.float32)
    draft = Draft(
        (IN, TER, PRE, T), (" inter", " pre"), (2, 3), "t", (-1.0, -2.0, -3.0, -4.0), True, 0.25,
        looks, 40.0, 1000.0,
    )  # fmt: skip
    rest = draft.after(1)  # of the first word some is left
    assert (rest.tokens, rest.words, rest.ends) == ((TER, PRE, T), (" inter", " pre"), (1, 2))
    rest = draft.after(2)
    assert (rest.tokens, rest.words, rest.ends, rest.tail) == ((PRE, T), (" pre",), (1,), "t")
    assert (rest.log_probs, rest.ended, rest.silence) == ((-3.0, -4.0), True, 0.25)
    assert rest.looks(0, 2) == [1080.0, 1120.0]
    assert draft.after(4).tail == "t"
    assert draft.after(0) is draft


def test_a_word_that_no_more_tokens_belong_to_is_not_left():
    """It had begun before, and is whole since another follows."""
    draft = Draft((PRE, T), (" in", " pret"), (0, 2))
    rest = draft.after(0)
    assert (rest.tokens, rest.words, rest.ends) == ((PRE, T), (" pret",), (2,))

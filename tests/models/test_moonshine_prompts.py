"""What Moonshine's search is told, how many texts it follows, and how sure it must be."""

import pytest

from dragoman.models import Ask, Draft, Sound
from dragoman.models.moonshine.units import START
from dragoman.models.search import Found

from .toy_moonshine import spoken, toy


def test_what_was_said_and_what_may_come_is_told_to_the_search():
    model, engine = toy()
    stream = model.open("en", "en")
    model.hear([stream], [Sound(spoken([5, 6, 7]))])
    draft = model.draft([stream], [Ask()])[0]
    model.commit(stream, draft, 1)
    model.hear([stream], [Sound(spoken([8]))])
    model.draft([stream], [Ask(max_tokens=2)])
    prompt = engine.prompts[-1]
    assert (prompt.start, prompt.said, prompt.most) == ((START,), (8,), 2)
    assert prompt.guess == (9,)  # of the last draft's rest, one less than may be made
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].most == 10 + int(7 * 4.0) - 1


def test_a_draft_follows_three_beams_and_what_is_final_all_of_them():
    model, engine = toy(beams=4)
    streams = [model.open("en", "en") for _ in range(3)]
    for words in ([1, 2], [3]):
        sounds = [Sound(spoken([word + place for word in words])) for place in range(3)]
        model.hear(streams, sounds)
        drafts = model.draft(streams, [Ask(), Ask(final=True), Ask()])
        for stream, draft in zip(streams, drafts, strict=True):
            model.commit(stream, draft, 0)
    said = [draft.text.strip() for draft in drafts]
    assert said == ["w1 w2 w3", "w2 w3 w4.", "w3 w4 w5"]
    assert engine.beams == [3, 3, 4] * 2
    guesses = [prompt.guess for prompt in engine.prompts[3:]]
    assert guesses == [(4, 5), (6, 7), ()]


def test_a_draft_goes_on_from_what_was_computed_of_the_one_before():
    """But not what is final, and not when the window begins elsewhere."""
    model, engine = toy(beams=4)
    stream = model.open("en", "en")

    def past_of_next(word: int, ask: Ask, say: int = 0) -> tuple[int, ...] | None:
        model.hear([stream], [Sound(spoken([word]))])
        model.commit(stream, model.draft([stream], [ask])[0], say)
        past = engine.pasts[-1]
        return None if past is None else past.tokens

    assert past_of_next(1, Ask()) == ()
    assert past_of_next(2, Ask(), say=1) == (START,)
    assert past_of_next(3, Ask()) == (START, 4)  # what was a guess, of which all was said
    assert past_of_next(4, Ask()) == (START, 4, 5)
    assert past_of_next(5, Ask(final=True)) is None
    assert past_of_next(6, Ask()) == ()  # what is final was searched otherwise
    assert past_of_next(7, Ask()) != ()
    stream.window.drop(1)
    stream.forget(1000.0)
    assert past_of_next(8, Ask()) == ()


@pytest.mark.parametrize(
    ("ask", "beams"),
    [
        (Ask(), 3),
        (Ask(hasty=True), 1),
        (Ask(final=True), 5),
        (Ask(final=True, hasty=True), 1),  # in haste, what is final is not searched, either
    ],
)
def test_what_is_final_is_searched_with_all_beams_if_there_is_time(ask, beams):
    model, engine = toy(beams=5)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]), last=ask.final, closing=ask.final)])
    (draft,) = model.draft([stream], [ask])
    assert draft.text.strip().strip(".") == "w4 w7"
    assert engine.beams == [beams]


def test_one_draft_for_many_and_few_beams_gives_each_stream_its_own():
    model, engine = toy(beams=5)
    streams = [model.open(None, "en") for _ in range(4)]
    model.hear(streams, [Sound(spoken([word])) for word in range(4)])
    asks = [Ask(), Ask(final=True), Ask(), Ask(final=True)]
    drafts = model.draft(streams, asks)
    assert [draft.text.strip().strip(".") for draft in drafts] == ["w0", "w1", "w2", "w3"]
    assert sorted(engine.beams) == [3, 3, 5, 5]


def test_a_prompt_asks_for_as_many_tokens_as_fit_and_as_are_wanted():
    model, engine = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7, 9]))])
    (draft,) = model.draft([stream], [Ask()])
    assert engine.prompts[-1].most == 10 + 7 * 3  # ten, and seven a second
    assert engine.prompts[-1].guess == ()
    model.commit(stream, draft, 1)
    model.hear([stream], [Sound(spoken([2]))])
    model.draft([stream], [Ask()])
    prompt = engine.prompts[-1]
    assert (prompt.start, prompt.said) == ((START,), (3 + 4,))
    assert prompt.most == 10 + 7 * 4 - 1
    assert prompt.guess == (3 + 7, 3 + 9)  # what was drafted and not said; a stop comes again
    model.hear([stream], [Sound(spoken([5]))])
    model.draft([stream], [Ask(max_tokens=2)])
    assert engine.prompts[-1].most == 2
    assert len(engine.prompts[-1].guess) == 1
    assert not engine.prompts[-1].avoid_end
    model.hear([stream], [Sound(spoken([6]))])
    model.draft([stream], [Ask(avoid_end=True)])
    assert engine.prompts[-1].avoid_end


def test_a_prompt_is_for_the_window_and_for_what_has_not_settled():
    model, engine = toy(beams=5)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7, 9, 2]))])
    stream.forget(2000.0)  # rounded to a state: 24 ms or less are left before
    model.hear([stream], [Sound(spoken([1]))])
    stream.window.settled = Draft((5, 6), log_probs=(-0.1, -0.1))
    stream.window.rest = Draft((5, 6, 3 + 9, 3 + 2))
    for limit, most in ((None, 31), (500, 31), (5, 3), (1, 0)):
        stream.fresh = True
        model.draft([stream], [Ask(max_tokens=limit)])
        assert engine.prompts[-1].most == most  # ten, and seven for each of three seconds
        assert engine.prompts[-1].guess == (3 + 9, 3 + 2)[: max(0, most - 1)]
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].guess == ()  # of what is final nothing is guessed


def test_one_beam_follows_its_guess_to_the_end():
    model, engine = toy(beams=1)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    stream.window.rest = Draft((3 + 4, 3 + 7))
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].guess == (3 + 4, 3 + 7)


def unsure(*log_probs: float) -> Found:
    return Found((5,) * len(log_probs), log_probs, (), True)


def test_the_newest_tokens_of_a_draft_say_nothing_about_the_language():
    """Twelve tokens are enough to judge by, the mean shall be -1 or more."""
    model, _ = toy()
    stream = model.open(None, "en")
    edge = unsure(*[-0.9] * 12, -9.0, -9.0)  # the last two are at the edge of the sound
    assert model._if_understood(stream, edge, final=False) is edge
    assert stream.doubted == ()
    assert model._if_understood(stream, edge, final=True) == Found()  # nothing follows them
    assert stream.doubted == edge.log_probs
    foreign = unsure(*[-1.1] * 12, 0.0, 0.0)
    assert model._if_understood(stream, foreign, final=False) == Found()
    assert stream.doubted == (-1.1,) * 12
    stream.sureness = (-0.1,) * 3  # what was said before counts: the mean is -0.9
    assert model._if_understood(stream, foreign, final=False) is foreign


def test_what_was_said_tells_how_sure_one_is():
    model, _ = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    draft = Draft((7, 10, 12), (" w4", " w7", " w9"), (1, 2, 3), log_probs=(-0.1, -0.2, -0.3))
    model.commit(stream, draft, 2)
    assert stream.sureness == (-0.1, -0.2)
    model.commit(stream, draft.after(2), 1)
    assert stream.sureness == (-0.1, -0.2, -0.3)
    stream.trust([-0.5] * 23)
    assert stream.sureness == (-0.3, *[-0.5] * 23)  # the newest 24


def stalled_stream(model):
    """Somebody has spoken on for a second since the net last said that nobody does."""
    stream = model.open("en", "en")
    model.hear([stream], [Sound(spoken([5, 6]))])
    stream.mute_from = 1000.0
    assert stream.stalled
    return stream


def test_who_was_silent_too_long_after_a_pause_has_to_say_something():
    model, _ = toy()
    stream = stalled_stream(model)
    assert model._prompt(stream, Ask()).least == 1
    assert model._prompt(stream, Ask(max_tokens=0)).least == 0
    assert model._prompt(stream, Ask(final=True)).least == 0
    stream.window.said = [8]  # it has heard somebody
    assert model._prompt(stream, Ask()).least == 0
    stream.window.said, stream.mute_from = [], None
    assert model._prompt(stream, Ask()).least == 0


def test_who_had_to_say_something_must_know_what():
    """Of noise that sounds like speech: whatever was understood before, this is not."""
    model, _ = toy()
    stream = stalled_stream(model)
    stream.trust([-0.1] * 24)
    unsure, sure = Found((7, 8, 9), (-2.0, -1.0, -0.5)), Found((7, 8, 9), (-0.5, -0.4, -0.2))
    assert model._if_understood(stream, unsure, final=False) == Found(ended=True)
    assert model._if_understood(stream, sure, final=False) == sure
    assert model._if_understood(stream, unsure, final=True) == unsure
    stream.mute_from = None
    assert model._if_understood(stream, unsure, final=False) == unsure
    assert stream.sureness == (-0.1,) * 24

"""What an utterance counts and remembers, by values worked out by hand."""

import pytest

from dragoman.models import Draft
from dragoman.policies import Greedy, Heard, LocalAgreement, Said, WaitK
from dragoman.utterance import Utterance
from tests.scripted import spell


def test_time_and_words_count_from_its_start():
    utterance = Utterance(start_ms=1000.0, start_words=3)
    assert utterance.heard(2000.0, 400.0, 5) == Heard(1000.0, 400.0, 2)
    # The chunk that began in what came before counts from where this began.
    assert utterance.heard(1600.0, 800.0, 4) == Heard(600.0, 600.0, 1)
    fresh = Utterance()
    assert fresh.heard(200.0, 200.0, 1) == Heard(200.0, 200.0, 1)
    assert (fresh.start_ms, fresh.said, fresh.letters, fresh.over) == (0.0, Said(), 0, False)


@pytest.mark.parametrize(
    ("silence_ms", "paused"),
    [(399.0, False), (400.0, True), (999.0, True), (1000.0, False), (1500.0, False)],
)
def test_a_pause_follows_speech(silence_ms, paused):
    """1000 ms of it were heard: a silence as old as it is, or older, follows nothing."""
    assert Utterance(start_ms=500.0).paused(silence_ms, 400.0, heard_ms=1500.0) is paused


def test_what_was_said_adds_up():
    utterance = Utterance()
    utterance.commit(spell([" ab", " c"], 2, False), 3, Greedy())  # half of the second word
    assert utterance.said == Said(words=1, tokens=3)
    assert utterance.letters == 2
    utterance.commit(spell([" c", " d e"], 2, False, skip=1), 3, Greedy())
    assert utterance.said == Said(words=3, tokens=6)
    assert utterance.letters == 5  # spaces are no letters


@pytest.mark.parametrize(
    ("ended", "tokens", "go_on", "over"),
    [
        (True, 2, False, True),
        (True, 2, True, False),
        (True, 1, False, False),  # not all of it was said
        (False, 2, False, False),
    ],
)
def test_it_is_over_when_all_of_an_ended_draft_was_said_and_nobody_goes_on(
    ended, tokens, go_on, over
):
    utterance = Utterance()
    policy = WaitK(force_finish=go_on)
    utterance.commit(spell([" a", " b"], 1, ended), tokens, policy)
    assert utterance.over is over


def test_silence_ends_nothing():
    utterance = Utterance()
    policy = WaitK(force_finish=False)
    utterance.commit(Draft(ended=True), 0, policy)
    assert not utterance.over
    utterance.commit(spell([" a"], 1, False), 1, policy)
    utterance.commit(Draft(ended=True), 0, policy)  # something was said before
    assert utterance.over


def test_it_remembers_as_many_drafts_as_the_policy_compares():
    utterance = Utterance()
    texts = [[" a"], [" a", " b"], [" a", " b", " c"]]
    for words in texts:
        utterance.commit(spell(words, 1, False), 0, LocalAgreement(n=3))
    assert [draft.words for draft in utterance.past] == [(" a", " b"), (" a", " b", " c")]
    utterance.commit(spell([" x"], 1, False), 0, Greedy())
    assert utterance.past == ()


def test_it_forgets_drafts_that_began_otherwise_and_cuts_the_others():
    utterance, policy = Utterance(), LocalAgreement(n=4)
    utterance.commit(spell([" a", " b", " x"], 2, False), 0, policy)
    utterance.commit(spell([" a", " y"], 2, False), 0, policy)
    utterance.commit(spell([" a", " b", " c"], 2, False), 4, policy)
    assert [draft.words for draft in utterance.past] == [(" x",), (" c",)]
    assert [draft.tokens for draft in utterance.past] == [(4, 5), (4, 5)]
    utterance.commit(spell([" x", " y"], 2, False), 2, policy)
    assert [draft.words for draft in utterance.past] == [(), (" y",)]

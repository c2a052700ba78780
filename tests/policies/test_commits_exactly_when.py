"""When each policy commits, by values worked out by hand: a flipped comparison must show."""

from dataclasses import replace

import numpy as np
import pytest

from dragoman.models import Draft, Feature
from dragoman.policies import (
    KSN,
    AgreeAtt,
    AlignAtt,
    Allowance,
    Confidence,
    Consensus,
    EDAtt,
    Follow,
    Greedy,
    Heard,
    LocalAgreement,
    Offline,
    Said,
    WaitK,
    ages,
)


def draft(*words: str, tail: str = "", **more) -> Draft:
    """A token a word; a tail has one more."""
    tokens = tuple(range(len(words) + bool(tail)))
    return Draft(
        tokens, tuple(f" {w}" for w in words), tuple(range(1, len(words) + 1)), tail, **more
    )


def looking(*frames: int, of: int = 10, sure: float = 1.0) -> Draft:
    """Words that look at frames of 20 ms, all with the same probability."""
    words = [f"w{i}" for i in range(len(frames))]
    attention = np.eye(of, dtype=np.float32)[list(frames)]
    log_probs = (float(np.log(sure)),) * len(frames)
    return draft(*words, attention=attention, frame_ms=20.0, log_probs=log_probs)


def test_greedy_says_whole_words_offline_nothing_follow_every_token():
    one = draft("a", "b", tail=" c")
    assert Greedy().commit(one, ()) == 2
    assert Follow().commit(one, ()) == 3
    assert Offline().allow(Heard(9e9, 1, 10**6), Said()).nothing
    assert not Greedy().allow(Heard(0, 0, 0), Said()).nothing


# "abcd" and "abcx": one of four letters differs, so they are 0.75 alike.
@pytest.mark.parametrize(
    ("before", "now", "alpha", "commits"),
    [
        ("abcd", "abcx", 0.75, True),
        ("abcd", "abcx", 0.76, False),
        ("abcd", "abcd", 1.0, True),
        ("abcd", "wxyz", 0.0, True),
        ("abcd", "wxyz", 0.01, False),
        ("ab", "abcd", 0.5, True),  # two letters more of four
        ("ab", "abcd", 0.51, False),
    ],
)
def test_consensus_speaks_before_the_end_when_two_drafts_are_alike(before, now, alpha, commits):
    policy = Consensus(alpha=alpha)
    assert policy.commit(draft(now), (draft(before),)) == (1 if commits else 0)
    assert policy.commit(draft(now), ()) == 0
    assert policy.memory == 1


def test_consensus_compares_the_last_draft_and_the_unfinished_word():
    policy = Consensus(alpha=0.9)
    same, other = draft("abcdefgh"), draft("zzzzzzzz")
    assert policy.commit(same, (other, same)) == 1
    assert policy.commit(same, (same, other)) == 0
    assert policy.commit(draft("ab", tail=" cd"), (draft("ab", tail=" cd"),)) == 1
    assert policy.commit(draft("ab", tail=" cd"), (draft("ab", tail=" xy"),)) == 0


def test_local_agreement_says_the_beginning_that_all_share():
    drafts = [draft("a", "b", "c"), draft("a", "b", "x"), draft("a", "y", "c")]
    assert LocalAgreement(n=2).commit(drafts[0], (drafts[1],)) == 2
    assert LocalAgreement(n=2).commit(drafts[0], (drafts[1], drafts[2])) == 1
    assert LocalAgreement(n=2).commit(drafts[0], (drafts[2], drafts[1])) == 2  # the last counts
    assert LocalAgreement(n=2).commit(drafts[0], (draft("a"),)) == 1
    assert LocalAgreement(n=2).commit(draft("a"), (drafts[0],)) == 1
    assert LocalAgreement(n=3).commit(drafts[0], (drafts[2], drafts[1])) == 1
    assert LocalAgreement(n=3).commit(drafts[0], (drafts[1],)) == 0
    assert LocalAgreement(n=2).commit(drafts[0], ()) == 0
    assert LocalAgreement(n=4).memory == 3


def test_confidence_speaks_at_its_threshold():
    spoken = draft("a", tail=" b", silence=0.25, log_probs=(np.log(0.4), np.log(0.8)))
    assert Confidence(gamma=0.75).commit(spoken, ()) == 1
    assert Confidence(gamma=0.76).commit(spoken, ()) == 0
    assert Confidence(gamma=0.59, measure="tokens").commit(spoken, ()) == 1
    assert Confidence(gamma=0.61, measure="tokens").commit(spoken, ()) == 0
    assert Confidence(gamma=1.0).commit(draft("a", silence=None), ()) == 1


def test_alignatt_stops_at_the_first_word_that_looks_at_the_newest_sound():
    # Ten frames of 20 ms; the last 60 ms are frames 7, 8 and 9.
    assert AlignAtt(last=60).commit(looking(0, 6, 7, 2), ()) == 2
    assert AlignAtt(last=40).commit(looking(0, 6, 7, 2), ()) == 4
    assert AlignAtt(last=40).commit(looking(0, 6, 8, 2), ()) == 2
    assert AlignAtt(last=0).commit(looking(0, 9), ()) == 2
    coarse = Draft(
        (0, 1), (" a", " b"), (1, 2), attention=np.eye(10, dtype=np.float32)[[7, 8]], frame_ms=40.0
    )
    assert AlignAtt(last=80).commit(coarse, ()) == 1  # the same sound in frames twice as long
    # Nobody knows how long a frame lasts.
    timeless = replace(coarse, attention=np.eye(10, dtype=np.float32)[[7, 9]], frame_ms=0.0)
    assert AlignAtt(last=80).commit(timeless, ()) == 2


def test_edatt_stops_at_the_first_word_that_leans_on_the_newest_sound():
    attention = np.zeros((3, 10), np.float32)
    attention[0, [0, 8]] = 0.9, 0.1
    attention[1, [0, 8, 9]] = 0.5, 0.25, 0.25
    attention[2, 0] = 1
    one = draft("a", "b", "c", attention=attention, frame_ms=20.0)
    assert EDAtt(alpha=0.2, last=40).commit(one, ()) == 1
    assert EDAtt(alpha=0.5, last=40).commit(one, ()) == 1  # half is enough to be held back
    assert EDAtt(alpha=0.51, last=40).commit(one, ()) == 3
    assert EDAtt(alpha=0.2, last=20).commit(one, ()) == 1
    assert EDAtt(alpha=0.3, last=20).commit(one, ()) == 3
    assert EDAtt(alpha=0.05, last=40).commit(one, ()) == 0
    for less in (2, 20):  # a share of what it spends in all
        some = draft("a", "b", "c", attention=attention / less, frame_ms=20.0)
        assert EDAtt(alpha=0.5, last=40).commit(some, ()) == 1
    assert EDAtt(alpha=0.3, last=1).commit(one, ()) == 3  # less than a frame is a frame


def test_how_old_the_sound_is_that_a_word_leans_on():
    rows = np.zeros((3, 10), np.float32)
    rows[0, 4] = 1  # frame 4 of 10 is six frames old
    rows[1, [1, 8, 9]] = 0.4, 0.3, 0.3  # a glance astray: half of it is spent with frame 8
    rows[2, [2, 7]] = 0.5, 0.5  # half of it is spent with frame 2
    assert ages(rows, 20.0).tolist() == [120.0, 40.0, 160.0]
    assert ages(rows * 3, 20.0).tolist() == [120.0, 40.0, 160.0]  # however much it spends
    assert ages(rows / 3, 20.0).tolist() == [120.0, 40.0, 160.0]


def test_agreeatt_by_age_agreement_and_probability():
    policy = AgreeAtt(old=100, alone=160, sure=0.8)
    agreed = (looking(0, 0, 0),)
    # Ages by frame: 0 is 200 ms, 2 is 160 ms, 3 is 140, 5 is 100, 6 is 80.
    assert policy.commit(looking(0, 5, 6, sure=0.5), agreed) == 2  # agreed and old enough
    assert policy.commit(looking(0, 6, 5, sure=0.5), agreed) == 1
    assert policy.commit(looking(9, 9, 9, sure=0.8), agreed) == 3  # agreed and sure enough
    assert policy.commit(looking(9, 9, 9, sure=0.79), agreed) == 0
    assert policy.commit(looking(0, 2, 3, sure=0.9), ()) == 2  # alone, at 160 ms and more
    assert policy.commit(looking(3, 2, 2, sure=0.9), ()) == 0
    other = draft("x", "y", "z")
    assert policy.commit(looking(9, 9, 9, sure=1.0), (other,)) == 0
    easy = AgreeAtt(old=100, alone=160, sure=0.0)  # no word is too unlikely
    with np.errstate(all="raise"):  # and nobody is warned of the logarithm of nothing
        assert easy.commit(looking(9, 9, 9, sure=0.01), agreed) == 3
    assert policy.memory == 1
    assert AgreeAtt(n=4).memory == 3


@pytest.mark.parametrize(
    ("k", "strict", "heard", "said", "words"),
    [
        (3, False, 0, 0, 0),  # less than nothing is due
        (3, False, 2, 0, 0),
        (3, False, 3, 0, 1),
        (3, False, 6, 2, 2),
        (3, True, 3, 0, 0),
        (3, True, 4, 0, 1),
        (1, False, 5, 5, 0),
    ],
)
def test_wait_k_allows_what_is_due(k, strict, heard, said, words):
    allowance = WaitK(k=k, strict=strict).allow(Heard(1000, 100, heard), Said(words=said))
    assert (allowance.words or 0) == words
    assert allowance.nothing == (words == 0)
    assert allowance == Allowance(words=words)


@pytest.mark.parametrize(
    ("ms", "new_ms", "tokens"),
    [
        (1990, 100, 0),  # k is 200 frames
        (1999, 100, 0),
        (2000, 10, 2),
        (2000 - 1e-10, 10, 2),  # as a sum of steps may have it
        (2000, 500, 2),  # no step was due before
        (2190, 100, 0),
        (2200, 10, 2),
        (2400, 400, 4),
        (2400, 410, 6),
    ],
)
def test_ksn_allows_n_tokens_a_step(ms, new_ms, tokens):
    allowance = KSN(k=200, s=20, n=2).allow(Heard(ms, new_ms, 0), Said())
    assert allowance == (Allowance(tokens=tokens) if tokens else Allowance(words=0))


def test_an_allowance_of_nothing():
    assert Allowance(words=0).nothing
    assert Allowance(tokens=0).nothing
    assert Allowance(words=-1).nothing  # as of a policy of somebody's own that subtracts
    assert Allowance(words=2, tokens=-3).nothing
    assert not Allowance(words=1, tokens=1).nothing
    assert not Allowance().nothing
    assert Said() == Said(words=0, tokens=0)  # nothing was said


def test_what_the_policies_ask_of_a_model():
    attention, silence = {Feature.ATTENTION}, {Feature.SILENCE}
    wanted = {
        AlignAtt(): attention,
        EDAtt(): attention,
        AgreeAtt(): attention,
        Confidence(): silence,
        Confidence(measure="tokens"): set(),
        Follow(): {Feature.DECISIONS},
    }
    free = (Greedy(), Offline(), WaitK(), KSN(), Consensus(), LocalAgreement())
    assert [policy.needs for policy in free] == [frozenset()] * 6
    assert {policy: set(policy.needs) for policy in wanted} == wanted
    assert [policy for policy in (*free, *wanted) if policy.counts_words] == [WaitK()]


def test_wait_k_goes_on_and_avoids_the_end_as_its_knobs_say():
    assert (WaitK().avoid_end, WaitK().go_on) == (False, True)
    assert WaitK(avoid_eos_while_reading=True).avoid_end
    assert not WaitK(force_finish=False).go_on
    assert (Greedy().avoid_end, Greedy().go_on, Greedy().memory) == (False, True, 0)

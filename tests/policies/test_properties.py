"""What must hold for every policy, whatever the model drafts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.detectors import FixedStep
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft
from dragoman.policies import (
    KSN,
    AgreeAtt,
    AlignAtt,
    Confidence,
    Consensus,
    EDAtt,
    Follow,
    Greedy,
    LocalAgreement,
    Offline,
    Policy,
    WaitK,
)
from dragoman.policies.agreement import likeness
from dragoman.trace import Trace
from tests.scripted import DiaryModel, ScriptedStream, chunks_of

POLICIES = st.one_of(
    st.just(Greedy()),
    st.just(Offline()),
    st.just(Follow()),
    st.builds(WaitK, k=st.integers(1, 5), strict=st.booleans()),
    st.builds(KSN, k=st.integers(1, 120), s=st.integers(1, 40), n=st.integers(1, 4)),
    st.builds(Confidence, gamma=st.floats(0, 1), measure=st.sampled_from(["speech", "tokens"])),
    st.builds(Consensus, alpha=st.floats(0, 1)),
    st.builds(LocalAgreement, n=st.integers(2, 4)),
    st.builds(AlignAtt, last=st.floats(0, 240)),
    st.builds(
        AgreeAtt,
        old=st.floats(0, 200),
        alone=st.floats(200, 600),
        sure=st.floats(0, 1),
        n=st.integers(2, 3),
    ),
    st.builds(EDAtt, alpha=st.floats(0, 1), last=st.floats(1, 80)),
)


def random_drafter(seed: int, words: int = 4, stable: float = 0.7):
    """Drafts of few words that are mostly, but not always, those of the draft before."""
    rng = np.random.default_rng(seed)
    memory: dict[int, str] = {}

    def draft(stream: ScriptedStream, ask: Ask) -> Draft:
        count = int(rng.integers(0, words + 1))
        said, texts, ends, tokens = len(stream.committed), [], [], 0
        for position in range(said, said + count):
            if position not in memory or rng.random() > stable:
                memory[position] = " " + str(rng.choice(["a", "bb", "ccc"]))
            texts.append(memory[position])
            tokens += int(rng.integers(1, 4))
            ends.append(tokens)
        tail = int(rng.integers(0, 3)) if count else 0
        tokens += tail
        return Draft(
            tokens=tuple(range(tokens)),
            words=tuple(texts),
            ends=tuple(ends),
            tail=" zz"[: tail + 1] if tail else "",
            log_probs=tuple(float(x) for x in -rng.exponential(0.3, tokens)),
            ended=bool(rng.random() < 0.3),
            silence=float(rng.random()),
            attention=rng.random((tokens, 12)).astype(np.float32),
            frame_ms=20.0,
        )

    return draft


def interpret(policy: Policy, seed: int, total_ms: int = 3000, step_ms: int = 200, **knobs):
    model = DiaryModel(random_drafter(seed, **knobs))
    trace = Trace()
    interpreter = Interpreter(model, policy, detector=FixedStep(280), record=trace)
    updates = list(interpreter.run(chunks_of(total_ms, step_ms)))
    return trace, interpreter.stream, updates


@given(POLICIES, st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_what_is_committed_is_never_taken_back(policy, seed):
    trace, stream, updates = interpret(policy, seed)
    said, before = "", ""
    for update in updates:
        said += "".join(update.said)
        assert said.startswith(before)
        before = said
    assert trace.prediction == said.strip()
    # Every commit took the start of the draft that was made at that moment.
    assert len(stream.commits) == len(stream.drafts)
    committed = []
    for (_, _, draft), (_, tokens, _) in _pairs(stream):
        committed += draft.words[: draft.words_within(tokens)]
    assert committed == stream.committed


@given(POLICIES, st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_nothing_heard_is_lost_at_the_end(policy, seed):
    trace, stream, _ = interpret(policy, seed)
    heard_ms, ask, last = stream.drafts[-1]
    assert heard_ms == 3000
    assert ask.final
    assert stream.commits[-1] == (3000, len(last.tokens), True)
    assert trace.prediction.endswith(last.text.strip())


@given(POLICIES, st.integers(0, 10**6), st.sampled_from([100, 230, 700, 5000]))
@settings(max_examples=200, deadline=None)
def test_delays_never_decrease_and_never_pass_the_source(policy, seed, step_ms):
    trace, _, _ = interpret(policy, seed, step_ms=step_ms)
    for unit in ("word", "char"):
        instance = trace.instance(unit)
        for clock in (instance.delays, instance.ends, instance.elapsed):
            assert list(clock) == sorted(clock)
        assert all(d <= e for d, e in zip(instance.delays, instance.ends, strict=True))
        assert all(0 < delay <= 3000 for delay in instance.delays)
        wanted = trace.prediction.split() if unit == "word" else trace.prediction
        assert len(instance.delays) == len(wanted)


@given(st.integers(0, 10**6))
def test_offline_says_nothing_before_the_end_and_pays_for_one_draft(seed):
    trace, stream, _ = interpret(Offline(), seed)
    assert len(stream.drafts) == 1
    assert all(delay == 3000 for delay in trace.instance().delays)


@given(st.integers(1, 6), st.booleans(), st.integers(0, 10**6), st.sampled_from([140, 280, 700]))
@settings(deadline=None)
def test_wait_k_never_speaks_ahead_of_its_schedule(k, strict, seed, step_ms):
    _, _, updates = interpret(WaitK(k=k, strict=strict), seed, step_ms=step_ms)
    said = 0
    for update in updates[:-1]:
        said += len(update.said)
        heard = int(update.hearing.audio_ms / 280 + 1e-9)
        assert said <= max(0, heard - k + (0 if strict else 1))


@given(st.integers(2, 4), st.integers(0, 10**6))
@settings(deadline=None)
def test_local_agreement_commits_only_what_was_agreed(n, seed):
    _, stream, _ = interpret(LocalAgreement(n=n), seed, stable=0.85)
    history = []  # for each draft: the whole text it stood for, committed words included
    said: list[str] = []
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        history.append(said + list(draft.words))
        said = said + list(draft.words[: draft.words_within(tokens)])
        if ask.final:
            continue
        for text in history[-n:]:
            assert len(history) >= n or not said
            assert text[: len(said)] == said
    assert len(history) > 2


@given(st.floats(0.01, 1), st.integers(0, 10**6))
@settings(deadline=None)
def test_consensus_commits_only_what_was_agreed(alpha, seed):
    _, stream, _ = interpret(Consensus(alpha=alpha), seed, stable=0.85)
    previous = None
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        if not ask.final and tokens:
            assert previous is not None
            assert likeness(previous.text, draft.text) >= alpha
            assert tokens == draft.whole(len(draft.tokens))
        previous = draft.after(tokens)


@given(st.floats(0, 1), st.sampled_from(["speech", "tokens"]), st.integers(0, 10**6))
@settings(deadline=None)
def test_confidence_commits_exactly_when_sure(gamma, measure, seed):
    _, stream, _ = interpret(Confidence(gamma=gamma, measure=measure), seed)
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        if ask.final:
            continue
        probability = np.mean([np.exp(p) for p in draft.log_probs]) if draft.tokens else 1.0
        sure = 1 - draft.silence if measure == "speech" else probability
        assert tokens == (draft.whole(len(draft.tokens)) if sure >= gamma else 0)


@given(st.integers(0, 12), st.integers(0, 10**6))
@settings(deadline=None)
def test_alignatt_holds_back_what_looks_at_the_newest_frames(f, seed):
    _, stream, _ = interpret(AlignAtt(last=20.0 * f), seed)
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        if ask.final:
            continue
        peaks = [int(np.argmax(row)) for row in draft.attention]
        allowed = next((i for i, p in enumerate(peaks) if p >= 12 - f), len(peaks))
        assert tokens == max([e for e in draft.ends if e <= allowed], default=0)


@given(st.floats(0, 1), st.integers(1, 4), st.integers(0, 10**6))
@settings(deadline=None)
def test_edatt_holds_back_what_leans_on_the_newest_frames(alpha, frames, seed):
    _, stream, _ = interpret(EDAtt(alpha=alpha, last=20.0 * frames), seed)
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        if ask.final:
            continue
        share = [float(r[-frames:].sum() / r.sum()) for r in draft.attention]
        if any(abs(s - alpha) < 1e-5 for s in share):
            continue  # on the edge, rounding decides
        allowed = next((i for i, s in enumerate(share) if s >= alpha), len(share))
        assert tokens == max([e for e in draft.ends if e <= allowed], default=0)


@given(st.floats(0, 500), st.floats(0, 500), st.floats(0, 1), st.integers(0, 10**6))
@settings(deadline=None)
def test_agreeatt_asks_for_agreement_and_age_or_more_age(old, more, sure, seed):
    policy = AgreeAtt(old=old, alone=old + more, sure=sure)
    _, stream, _ = interpret(policy, seed, stable=0.85)
    previous: list[str] = []
    for (_, ask, draft), (_, tokens, _) in _pairs(stream):
        if not ask.final:
            assert tokens == _agreeatt_by_words(policy, draft, previous)
        previous = list(draft.after(tokens).words)


def _agreeatt_by_words(policy: AgreeAtt, draft: Draft, previous: list[str]) -> int:
    """The rule spelled out word by word: an independent reading of the docstring."""

    def token_age(row) -> float:
        spent, middle = 0.0, 0
        while spent + row[middle] < 0.5 * row.sum():
            spent += row[middle]
            middle += 1
        return (len(row) - max(middle, int(np.argmax(row)))) * draft.frame_ms

    ages = [token_age(row) for row in draft.attention]
    probable = [p >= np.log(max(policy.sure, 1e-9)) for p in draft.log_probs]
    count, agreed, alone = 0, True, True
    for i, (word, end) in enumerate(zip(draft.words, draft.ends, strict=True)):
        begin = draft.ends[i - 1] if i else 0
        fine = all(ages[t] >= policy.old or probable[t] for t in range(begin, end))
        agreed = agreed and i < len(previous) and previous[i] == word and fine
        alone = alone and all(ages[t] >= policy.alone for t in range(begin, end))
        if agreed or alone:
            count = end
    return count


def test_the_ends_of_the_attention_scale():
    draft = random_drafter(3, words=6)(ScriptedStream(), Ask())
    assert draft.words
    assert AlignAtt(last=0).commit(draft, ()) == draft.ends[-1]
    assert EDAtt(alpha=0.0).commit(draft, ()) == 0


@pytest.mark.parametrize("go_on", [True, False])
def test_without_force_finish_the_models_end_is_the_end(go_on):
    def once(stream: ScriptedStream, ask: Ask) -> Draft:
        return Draft((0,), (" word",), (1,), log_probs=(0.0,), ended=True)

    model, trace = DiaryModel(once), Trace()
    policy = WaitK(k=1, force_finish=go_on)
    list(Interpreter(model, policy, record=trace).run(chunks_of(1400, 280)))
    # Without it the rest is said when the source ends.
    assert [said.chunk for said in trace.sayings] == ([0, 1, 2, 3, 4] if go_on else [0, 4])


def test_avoid_eos_while_reading_is_asked_of_the_model_until_the_end():
    model = DiaryModel(random_drafter(0))
    policy = WaitK(k=1, avoid_eos_while_reading=True)
    interpreter = Interpreter(model, policy)
    list(interpreter.run(chunks_of(1400, 280)))
    asks = [ask for _, ask, _ in interpreter.stream.drafts]
    assert [ask.avoid_end for ask in asks] == [True] * (len(asks) - 1) + [False]


def _pairs(stream: ScriptedStream):
    return list(zip(stream.drafts, stream.commits, strict=True))

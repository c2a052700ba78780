"""The loop itself, on a scripted model."""

import io
import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import Chunk
from dragoman.clock import RealClock
from dragoman.detectors import Boundaries, CtcWords, FixedStep
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, step
from dragoman.models import Feature
from dragoman.policies import (
    AlignAtt,
    Allowance,
    Confidence,
    Follow,
    Greedy,
    LocalAgreement,
    Offline,
    WaitK,
    make_policy,
)
from dragoman.trace import Trace, TraceWriter
from tests.scripted import (
    FRAME_MS,
    SCRIPT,
    TEXT,
    DiaryModel,
    ScriptedEar,
    ScriptedModel,
    chunks_of,
    interpret,
    spell,
    steady,
)


def test_greedy_says_each_word_with_the_chunk_that_brought_it():
    trace, _, _ = interpret(ScriptedModel(SCRIPT), Greedy())
    assert trace.prediction == TEXT
    assert list(trace.instance().delays) == [400, 800, 1200, 2000, 2400]
    assert [heard.arrival_ms for heard in trace.hearings] == list(range(200, 3001, 200))


def test_words_carry_how_long_ago_they_were_spoken():
    _, updates, _ = interpret(ScriptedModel(SCRIPT), Greedy())
    lags = [update.lag_ms for update in updates if update.said]
    spoken = [end for _, end in SCRIPT]
    heard = [400, 800, 1200, 2000, 2400]
    for lag, end, now in zip(lags, spoken, heard, strict=True):
        assert lag == pytest.approx(now - end, abs=FRAME_MS)
    assert all(update.lag_ms is None for update in updates if not update.said)


@given(
    spec=st.sampled_from(
        ["greedy", "offline", "consensus", "local-agreement", "wait-k:k=2", "alignatt", "edatt",
         "agreeatt", "confidence", "ksn:k=100,s=20,n=2", "follow"]
    ),
    step_ms=st.sampled_from([50, 130, 400, 1000, 9000]),
    tokens_per_word=st.integers(1, 3),
)  # fmt: skip
@settings(deadline=None)
def test_every_policy_says_the_whole_text_of_a_steady_model(spec, step_ms, tokens_per_word):
    model = ScriptedModel(SCRIPT, tokens_per_word=tokens_per_word)
    trace, _, _ = interpret(model, make_policy(spec), step_ms=step_ms)
    assert trace.prediction == TEXT


def test_local_agreement_ignores_words_that_flicker():
    invented = itertools.count()
    model = ScriptedModel(SCRIPT, flicker=lambda ms: [f"guess{next(invented)}"])
    assert interpret(model, LocalAgreement())[0].prediction == TEXT
    greedy = interpret(ScriptedModel(SCRIPT, flicker=lambda ms: ["guess"]), Greedy())[0]
    assert "guess" in greedy.prediction


def test_reading_costs_no_draft():
    model = ScriptedModel(SCRIPT)
    _, updates, interpreter = interpret(model, WaitK(k=5), detector=FixedStep(400))
    assert sum(model.batches) == len(interpreter.stream.drafts) < len(updates)


def test_interim_text_is_what_the_policy_held_back():
    _, updates, _ = interpret(ScriptedModel(SCRIPT), LocalAgreement())
    assert updates[1].said == ()
    assert updates[1].interim == " the"
    assert updates[2].said == (" the",)
    assert updates[2].interim == ""
    assert updates[-1].interim == ""


def test_updates_tell_final_from_interim_text():
    trace, _, _ = interpret(ScriptedModel(SCRIPT), LocalAgreement())
    assert trace.updates()[1:5] == [("", " the"), (" the", ""), ("", " old"), (" old", "")]
    assert "".join(final for final, _ in trace.updates()).strip() == TEXT


def test_what_flickers_counts_as_erased():
    invented = itertools.count()
    model = ScriptedModel(SCRIPT, flicker=lambda ms: [f"guess{next(invented)}"])
    trace, updates, _ = interpret(model, LocalAgreement())
    assert trace.instance().erased == sum("guess" in update.interim for update in updates)
    assert interpret(ScriptedModel(SCRIPT), LocalAgreement())[0].instance().erased == 0


def test_a_policy_that_needs_what_the_model_has_not_is_refused_with_a_sentence():
    bare = ScriptedModel(SCRIPT, features=frozenset())
    for policy in (AlignAtt(), Confidence(), Follow()):
        with pytest.raises(DragomanError, match=r"This policy needs .* 'scripted' does not have"):
            Interpreter(bare, policy)
    with pytest.raises(DragomanError, match="This detector needs a CTC head"):
        Interpreter(bare, WaitK(), detector=CtcWords())
    running = Interpreter(bare, Greedy())
    with pytest.raises(DragomanError, match="attention"):
        running.policy = AlignAtt()
    assert running.policy == Greedy()


def test_knobs_can_be_turned_while_the_stream_runs():
    interpreter = Interpreter(ScriptedModel(SCRIPT), Offline())
    chunks = chunks_of(3000, 200)
    said = [interpreter.hear(chunk).said for chunk in chunks[:5]]
    assert not any(said)
    interpreter.policy = Greedy()
    assert interpreter.hear(chunks[5]).said == (" the", " old", " man")


def test_a_pause_ends_the_utterance_even_for_the_offline_policy():
    model = ScriptedModel([("one", 300.0), ("two", 600.0), ("three", 2900.0)])
    trace, _, interpreter = interpret(
        model,
        Offline(),
        utterance_pause_ms=700,
        detector=Boundaries((300.0, 600.0, 2900.0)),
        ear=ScriptedEar((300.0, 600.0, 2900.0)),
    )
    assert list(trace.instance().delays)[:2] == [1400, 1400]
    assert [closed for _, _, closed in interpreter.stream.commits].count(True) == 2


def test_wait_k_counts_from_the_start_of_each_utterance():
    ends = (200.0, 400.0, 600.0, 2000.0, 2200.0, 2400.0)
    script = [(f"w{i}", end) for i, end in enumerate(ends)]
    trace, _, _ = interpret(
        ScriptedModel(script),
        WaitK(k=2),
        utterance_pause_ms=600,
        detector=Boundaries(ends),
        ear=ScriptedEar(ends),
    )
    # w0 and w1 are said two words behind, w2 with the pause at 1200; then it waits for two again.
    assert list(trace.instance().delays) == [400, 600, 1200, 2200, 2400, 3000]


def test_words_that_the_model_counts_are_counted_with_the_chunk_that_brought_them():
    model = ScriptedModel(SCRIPT)
    trace, _, interpreter = interpret(model, WaitK(k=2), detector=CtcWords())
    # One behind the words that end at 300, 700, 1100, 1900 and 2400 ms; the last one at the end.
    assert list(trace.instance().delays) == [800, 1200, 2000, 2400, 3000]
    assert len(interpreter.stream.drafts) == 5


def test_many_speakers_in_one_batch_hear_what_each_would_alone():
    scripts = [[(f"{name}{i}", 250.0 * (i + 1)) for i in range(8)] for name in "abc"]
    alone = [interpret(ScriptedModel(s), WaitK(k=1 + n))[0] for n, s in enumerate(scripts)]
    names = iter("abc")
    model = _Multiplexed(scripts)
    traces = [Trace() for _ in scripts]
    speakers = [
        Interpreter(model, WaitK(k=1 + n), source=next(names), record=t)
        for n, t in enumerate(traces)
    ]
    for chunk in chunks_of(3000, 200):
        step(speakers, [chunk] * 3)
    assert [t.prediction for t in traces] == [t.prediction for t in alone]
    assert [t.instance().delays for t in traces] == [t.instance().delays for t in alone]
    assert max(model.batches) == 3


def test_who_hears_little_waits_for_nobody_who_hears_much():
    """A long chunk is heard in pieces, of which a short one has fewer."""
    scripts = [[(f"{name}{i}", 250.0 * (i + 1)) for i in range(8)] for name in "ab"]
    model = _Multiplexed(scripts)
    speakers = [Interpreter(model, Greedy(), source=name) for name in "ab"]
    chunks = [Chunk(np.zeros(16 * ms, np.float32), False) for ms in (12_000, 1000)]
    updates = step(speakers, chunks)
    assert [update.error for update in updates] == [None, None]
    assert [update.hearing.audio_ms for update in updates] == [12_000, 1000]
    assert [len(update.said) for update in updates] == [8, 4]


class _Multiplexed(DiaryModel):
    """Three scripts behind one model; the source 'language' picks the script."""

    def __init__(self, scripts):
        self._models = [ScriptedModel(script) for script in scripts]
        self._of = {}
        super().__init__(lambda stream, ask: self._of[id(stream)]._continue(stream, ask))

    def open(self, source, target, *, transcript=False):
        stream = super().open(source, target)
        self._of[id(stream)] = self._models["abc".index(source)]
        return stream


def test_a_finished_stream_refuses_more():
    _, _, interpreter = interpret(ScriptedModel(SCRIPT), Greedy())
    assert interpreter.finished
    with pytest.raises(DragomanError, match="has ended"):
        interpreter.hear(Chunk(np.zeros(10, np.float32), last=True))


def test_memory_stays_flat_over_a_long_talk():
    # A second a chunk, a word every two chunks; the diary is emptied as a real model would.
    samples = np.zeros(16000, np.float32)
    model = DiaryModel(lambda stream, ask: _one_word())
    writer = TraceWriter(_Nowhere())
    writer.begin(0, "talk")
    interpreter = Interpreter(model, WaitK(k=3), detector=FixedStep(2000), record=writer)
    peaks = []
    tracemalloc.start()
    for chunk in range(2 * 3600):
        interpreter.hear(Chunk(samples, last=False))
        for diary in (interpreter.stream.drafts, interpreter.stream.commits, model.batches):
            diary.clear()
        interpreter.stream.committed.clear()
        if chunk % 900 == 100:
            peaks.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert interpreter.stream.heard_ms == 2 * 3600 * 1000
    # In the first hour, what is kept is kept for the first time.
    assert peaks[0] < 200_000
    assert max(peaks) - peaks[4] < 5_000


def _one_word():
    from dragoman.models import Draft

    return Draft((1,), (" word",), (1,), log_probs=(0.0,))


class _Nowhere(io.TextIOBase):
    def write(self, text):
        return len(text)


def test_what_was_said_of_a_draft_decides_which_past_drafts_still_count():
    """Of three drafts the first said another first word: once that is committed, it is dropped."""
    texts = iter([["x", "b", "c"], ["a", "b", "c"], ["a", "b", "c"], ["b", "c"]])
    seen = []

    class Watching(LocalAgreement):
        def commit(self, draft, past):
            seen.append([old.words for old in past])
            return super().commit(draft, past)

    model = DiaryModel(lambda stream, ask: spell([f" {w}" for w in next(texts)], 1, False))
    interpreter = Interpreter(model, Watching(n=3))
    for chunk in chunks_of(1000, 200)[:2]:
        assert interpreter.hear(chunk).said == ()
    interpreter.policy = Watching(n=2)  # two that agree are enough now
    assert interpreter.hear(chunks_of(1000, 200)[2]).said == (" a", " b", " c")
    assert seen[-1] == [(" x", " b", " c"), (" a", " b", " c")]
    interpreter.policy = Watching(n=3)
    interpreter.hear(chunks_of(1000, 200)[3])
    assert seen[-1] == [()]  # of the two that were remembered, what they said beyond


def test_a_count_that_shrinks_is_not_believed():
    counts = iter([3, 1, 4])

    class Shrinking:
        needs = frozenset()

        def count(self, heard_ms, stream):
            return next(counts)

    believed = []

    class Noting(WaitK):
        def allow(self, heard, said):
            believed.append(heard.words)
            return super().allow(heard, said)

    model = DiaryModel(lambda stream, ask: spell([" w"] * (ask.max_words or 0), 1, False))
    interpreter = Interpreter(model, Noting(k=1), detector=Shrinking())
    said = [len(interpreter.hear(chunk).said) for chunk in chunks_of(2000, 200)[:3]]
    assert said == [3, 0, 1]
    assert believed == [3, 3, 4]


def test_silence_from_the_start_is_no_pause():
    model = ScriptedModel([("one", 900.0)])
    trace, _, interpreter = interpret(
        model, Offline(), total_ms=1800, utterance_pause_ms=400, ear=ScriptedEar((900.0,))
    )
    assert [(ms, closed) for ms, _, closed in interpreter.stream.commits] == [
        (1400.0, True),  # the word ended at 900 ms; 400 ms later comes the chunk at 1400
        (1800.0, True),
    ]
    assert trace.prediction == "one"


def test_an_ended_draft_that_is_committed_in_part_silences_nobody():
    """The model believes the sentence over, but the policy took only the first of two words."""

    def two(stream, ask):
        return spell([" a", " b"][len(stream.committed) :], 1, ended=True)

    model = DiaryModel(two)
    policy = WaitK(k=1, force_finish=False)
    interpreter = Interpreter(model, policy, detector=FixedStep(200))
    said = [interpreter.hear(chunk).said for chunk in chunks_of(1000, 200)[:4]]
    assert said == [(" a",), (" b",), (), ()]
    assert len(interpreter.stream.drafts) == 2  # after the second nothing was asked


def test_another_policy_speaks_on_after_one_that_took_the_end_for_the_end():
    interpreter = Interpreter(steady(), WaitK(k=1, force_finish=False), detector=FixedStep(200))
    chunks = chunks_of(4000, 400)
    assert [interpreter.hear(chunk).said for chunk in chunks[:3]] == [(" word0",), (), ()]
    interpreter.policy = Greedy()
    assert interpreter.hear(chunks[3]).said == (" word1", " word2", " word3")


def test_an_allowance_in_words_and_tokens_is_kept_whatever_is_drafted():
    model = DiaryModel(lambda stream, ask: spell([" a", " b", " c"], 2, False))
    interpreter = Interpreter(model, WaitK(k=1), detector=FixedStep(200))
    assert interpreter.hear(chunks_of(2000, 200)[0]).said == (" a",)
    interpreter = Interpreter(model, make_policy("ksn:k=20,s=20,n=3"))
    update = interpreter.hear(chunks_of(2000, 200)[0])
    assert update.said == (" a",)
    assert update.interim == " b c"
    assert interpreter.stream.commits == [(200.0, 3, False)]


@pytest.mark.parametrize("held_back", [2, 3, 100])
def test_a_policy_that_counts_below_nothing_commits_nothing(held_back):
    """`all but the last so many`, of a draft that is shorter."""

    class AllButTheLast(Greedy):
        def commit(self, draft, past):
            return len(draft.tokens) - held_back

    model = DiaryModel(lambda stream, ask: spell([" a", " b"], 1, False))
    interpreter = Interpreter(model, AllButTheLast())
    update = interpreter.hear(chunks_of(2000, 200)[0])
    assert (update.said, update.interim) == ((), " a b")
    assert interpreter.stream.commits == [(200.0, 0, False)]


def test_time_and_words_are_counted_from_the_start_of_an_utterance():
    heard = []

    class Watching(Greedy):
        def allow(self, now, said):
            heard.append((now.ms, now.new_ms, now.words, said.words, said.tokens))
            return super().allow(now, said)

    ends = (200.0, 400.0, 2000.0)
    model = ScriptedModel([(f"w{i}", end) for i, end in enumerate(ends)], tokens_per_word=2)
    interpret(
        model,
        Watching(),
        total_ms=2400,
        step_ms=400,
        utterance_pause_ms=700,
        detector=Boundaries(ends),
        ear=ScriptedEar(ends),
    )
    # The pause at 1200 closes the first utterance; at 1600 the silence is older than the second.
    assert heard == [
        (400.0, 400.0, 2, 0, 0),
        (800.0, 400.0, 2, 2, 4),
        (400.0, 400.0, 0, 0, 0),
        (800.0, 400.0, 1, 0, 0),
    ]


def test_updates_tell_the_language_and_the_words_of_the_source():
    class Telling(ScriptedModel):
        def hear(self, streams, sounds):
            super().hear(streams, sounds)
            for stream in streams:
                stream.transcript = (f" heard{stream.words_heard}",)

    interpreter = Interpreter(Telling(SCRIPT), Greedy(), source="de", transcript=True)
    update = interpreter.hear(chunks_of(3000, 400)[0])
    assert (update.language, update.transcript) == ("de", (" heard1",))


def test_words_of_the_source_that_become_final_in_mid_chunk_are_told():
    """A stream tells what became final with the last piece; a long chunk has several."""

    class Telling(ScriptedModel):
        def hear(self, streams, sounds):
            super().hear(streams, sounds)
            for stream in streams:
                stream.transcript = (f" until{stream.heard_ms:.0f}",)
                stream.transcript_ms = (stream.heard_ms - 1000,)

    interpreter = Interpreter(Telling(SCRIPT), Greedy(), transcript=True)
    long, short = chunks_of(14_000, 12_000)
    update = interpreter.hear(long)
    assert update.transcript == (" until5000", " until10000", " until12000")
    assert update.transcript_lag_ms == 12_000 - (4000 + 9000 + 11_000) / 3
    assert interpreter.hear(short).transcript == (" until14000",)


def test_a_live_chunk_is_stamped_by_the_source_and_the_clock_on_the_wall():
    """200 ms of sound that had come after 250 ms are worked on at 400."""
    now, trace = [10.0], Trace()
    clock = RealClock(lambda: now[0])
    interpreter = Interpreter(ScriptedModel(SCRIPT), Greedy(), record=trace, clock=clock)
    now[0] = 10.4
    update = interpreter.hear(replace(chunks_of(1000, 200)[0], arrival=0.25))
    assert trace.hearings == [update.hearing]
    assert update.hearing.audio_ms == 200.0
    assert update.hearing.arrival_ms == 250.0
    assert update.hearing.start_ms == update.hearing.end_ms == pytest.approx(400.0)


def test_haste_is_asked_of_the_model_while_it_lasts():
    interpreter = Interpreter(ScriptedModel(SCRIPT), WaitK(k=2), detector=FixedStep(400))
    assert not interpreter.hasty
    for number, chunk in enumerate(chunks_of(1600, 400)):
        interpreter.hasty = number in (0, 2)  # in the first nothing is asked
        interpreter.hear(chunk)
    asks = [ask for _, ask, _ in interpreter.stream.drafts]
    assert [ask.hasty for ask in asks] == [False, True, False]
    assert [ask.max_words for ask in asks] == [1, 1, None]


@pytest.mark.parametrize("avoid", [True, False])
def test_the_end_is_avoided_for_a_policy_that_wants_it_until_the_source_ends(avoid):
    policy = WaitK(k=1, avoid_eos_while_reading=avoid)
    _, _, interpreter = interpret(ScriptedModel(SCRIPT), policy, detector=FixedStep(1000))
    asks = [ask for _, ask, _ in interpreter.stream.drafts]
    assert [(ask.avoid_end, ask.final) for ask in asks] == [(avoid, False)] * 2 + [(False, True)]


def test_updates_tell_probabilities_silence_and_the_end_of_an_utterance():
    def draft(stream, ask):
        first = spell([" a", " b"], 2, False)
        return replace(first, log_probs=tuple(np.log([0.5, 0.5, 0.8, 0.6])))

    ends = (200.0,)
    interpreter = Interpreter(
        DiaryModel(draft), make_policy("ksn:k=20,s=20,n=2"), ear=ScriptedEar(ends),
        utterance_pause_ms=400,
    )  # fmt: skip
    updates = [interpreter.hear(chunk) for chunk in chunks_of(1000, 200)]
    assert [update.said for update in updates[:2]] == [(" a",), (" a",)]
    assert updates[0].probabilities == pytest.approx([0.5])
    assert [update.silence_ms for update in updates] == [0, 200, 400, 600, 800]
    assert [update.closed for update in updates] == [False, False, True, False, True]
    assert updates[2].probabilities == pytest.approx([0.5, 0.7])


def test_a_chunk_that_closes_says_the_rest_of_its_utterance():
    interpreter = Interpreter(ScriptedModel(SCRIPT), Offline())
    chunks = chunks_of(3000, 800)
    update = interpreter.hear(replace(chunks[0], closes=True))
    assert (update.said, update.closed) == ((" the", " old"), True)
    assert not interpreter.finished
    assert interpreter.hear(chunks[1]).said == ()


def test_the_model_is_asked_for_the_source_only_where_it_can_tell():
    asked = []

    class Telling(ScriptedModel):
        def open(self, source, target, *, transcript=False):
            asked.append((source, target, transcript))
            return super().open(source, target)

    Interpreter(Telling(SCRIPT), Greedy(), source="de", target="fr", transcript=True)
    Interpreter(Telling(SCRIPT, features=frozenset()), Greedy(), transcript=True)
    Interpreter(Telling(SCRIPT), Greedy())
    assert asked == [("de", "fr", True), (None, "en", False), (None, "en", False)]


def test_only_what_is_missing_is_named():
    class Demanding(Greedy):
        needs = frozenset({Feature.ATTENTION, Feature.CTC, Feature.SILENCE})

    model = ScriptedModel(SCRIPT, features=frozenset({Feature.ATTENTION}))
    missing = " and ".join(sorted([Feature.CTC, Feature.SILENCE]))
    with pytest.raises(DragomanError, match=f"This policy needs {missing}, which model"):
        Interpreter(model, Demanding())
    Interpreter(ScriptedModel(SCRIPT), Demanding())


def test_what_is_shown_is_noted_when_it_changes():
    trace, _, _ = interpret(ScriptedModel(SCRIPT), LocalAgreement(), total_ms=1000)
    shown = [(showing.text, showing.chunk) for showing in trace.showings]
    assert shown == [(" the", 1), ("", 2), (" old", 3), ("", 4)]


def test_an_allowance_in_words_and_in_tokens_holds_in_both():
    class Narrow(Greedy):
        def allow(self, heard, said):
            return Allowance(words=2, tokens=1)

    model = DiaryModel(lambda stream, ask: spell([" a", " b", " c"], 1, False))
    interpreter = Interpreter(model, Narrow())
    assert interpreter.hear(chunks_of(1000, 200)[0]).said == (" a",)


def test_a_word_that_is_not_whole_waits_and_is_shown():
    model = DiaryModel(lambda stream, ask: replace(spell([" one"], 1, False), tail=" tw"))
    interpreter = Interpreter(model, Greedy())
    update = interpreter.hear(chunks_of(1000, 200)[0])
    assert (update.said, update.interim) == ((" one",), " tw")
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" one", " tw"))  # another had said it: it is no word of this draft
    assert interpreter.hear(chunks_of(1000, 200)[0]).said == ()
    assert interpreter.stream.commits == [(200.0, 1, False)]


def test_the_end_may_come_without_sound():
    interpreter = Interpreter(ScriptedModel(SCRIPT), Offline())
    interpreter.hear(Chunk(np.zeros(16000 * 3, np.float32), last=False))
    update = interpreter.hear(Chunk(np.zeros(0, np.float32), last=True))
    assert "".join(update.said).strip() == TEXT


def test_words_of_sound_without_frames_have_no_age():
    def draft(stream, ask):
        blind = np.zeros((1, 0), np.float32)
        return replace(spell([" a"], 1, True), attention=blind, frame_ms=40.0)

    interpreter = Interpreter(DiaryModel(draft), Greedy())
    update = interpreter.hear(Chunk(np.zeros(160, np.float32), last=True))
    assert (update.said, update.lag_ms) == ((" a",), None)


def test_the_age_is_that_of_the_words_that_were_said():
    """Two words were drafted, 500 and 100 ms old, and one of them may be said."""
    interpreter = Interpreter(ScriptedModel(SCRIPT), make_policy("ksn:k=80,s=80,n=1"))
    update = interpreter.hear(chunks_of(3000, 800)[0])
    assert (update.said, update.interim) == ((" the",), " old")
    assert update.lag_ms == pytest.approx(500, abs=FRAME_MS)

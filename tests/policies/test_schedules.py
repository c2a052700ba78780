"""The schedules of wait-k and (k, s, N), against their formulas written out again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.detectors import Boundaries, CtcWords, FixedStep
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft
from dragoman.policies import KSN, WaitK
from dragoman.trace import Trace
from tests.scripted import DiaryModel, ScriptedStream, chunks_of, spell


def endless(tokens_per_word: int = 1):
    """A model that always has more to say."""

    def draft(stream: ScriptedStream, ask: Ask) -> Draft:
        most = max(ask.max_words or 0, ask.max_tokens or 0) + 5  # more than is asked for
        words = [f" w{i}" for i in range(3 if ask.final else most)]
        return spell(words, tokens_per_word, False, stream.pending)

    return draft


@given(k=st.integers(1, 8), strict=st.booleans(), words=st.integers(4, 30))
@settings(deadline=None)
def test_wait_k_with_fixed_words_says_word_i_when_k_plus_i_minus_1_were_heard(k, strict, words):
    trace = Trace()
    policy = WaitK(k=k, strict=strict)
    interpreter = Interpreter(DiaryModel(endless()), policy, detector=FixedStep(280), record=trace)
    list(interpreter.run(chunks_of(280 * words, 280)))
    first = k + 1 if strict else k
    expected = [280.0 * w for w in range(first, words)] + [280.0 * words] * 3
    assert list(trace.instance().delays) == expected


@given(
    k=st.integers(1, 5),
    gaps=st.lists(st.integers(60, 900), min_size=1, max_size=25),
    step=st.sampled_from([40, 100, 280]),
    counted_by_model=st.booleans(),
)
@settings(deadline=None)
def test_wait_k_with_word_boundaries(k, gaps, step, counted_by_model):
    ends = [float(sum(gaps[: i + 1])) for i in range(len(gaps))]
    total = int(ends[-1]) + 500
    detector = CtcWords() if counted_by_model else Boundaries(tuple(ends))
    trace = Trace()
    model = DiaryModel(endless(), ends_ms=ends)
    list(
        Interpreter(model, WaitK(k=k), detector=detector, record=trace).run(chunks_of(total, step))
    )
    # The i-th word (from 1) is said at the first chunk edge at or after the end of word k + i - 1.
    expected = []
    for end in ends[k - 1 :]:
        edge = min(total, -(-int(end) // step) * step)
        if edge < total:
            expected.append(float(edge))
    assert list(trace.instance().delays)[:-3] == expected


@given(
    k=st.integers(1, 250),
    s=st.integers(1, 40),
    n=st.integers(1, 4),
    per_word=st.integers(1, 3),
    frames=st.integers(20, 400),
)
@settings(deadline=None)
def test_ksn_follows_g_and_q(k, s, n, per_word, frames):
    """Fed frame by frame: step t happens at g(t) = min(k + (t-1) s, |X|) and writes N tokens."""
    trace = Trace()
    model = DiaryModel(endless(per_word))
    interpreter = Interpreter(model, KSN(k=k, s=s, n=n), record=trace)
    list(interpreter.run(chunks_of(frames * 10, 10)))
    steps = [g for t in range(1, frames + 1) if (g := k + (t - 1) * s) < frames]
    written = [(ms, tokens) for ms, tokens, closed in interpreter.stream.commits if not closed]
    assert [ms for ms, _ in written] == [10.0 * g for g in steps]
    assert all(tokens == n for _, tokens in written)


@given(k=st.integers(1, 100), s=st.integers(1, 30), n=st.integers(1, 3), step=st.integers(1, 60))
@settings(deadline=None)
def test_ksn_in_large_chunks_takes_the_steps_together(k, s, n, step):
    interpreter = Interpreter(DiaryModel(endless()), KSN(k=k, s=s, n=n))
    list(interpreter.run(chunks_of(3000, step * 10)))
    said = 0
    for ms, tokens, closed in interpreter.stream.commits:
        said += tokens
        frames = int(ms // 10)
        if not closed:
            assert said == n * ((frames - k) // s + 1)


def test_ksn_delays_a_word_until_it_is_whole():
    trace = Trace()
    interpreter = Interpreter(DiaryModel(endless(3)), KSN(k=100, s=10, n=1), record=trace)
    list(interpreter.run(chunks_of(1500, 100)))
    # Tokens at 1.0, 1.1, 1.2 s make the first word, 1.3 to the end the second.
    assert list(trace.instance().delays)[:2] == [1200.0, 1500.0]

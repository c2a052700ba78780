"""The three computation-aware clocks, from the chunks themselves and back from a log."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.metrics.instance import Instance
from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Rules, aware_timings, plain_timings
from tests.metrics import slow

milliseconds = st.integers(0, 4000).map(float)


@st.composite
def runs(draw):
    """What a recogniser does: chunks arrive, take a while, and some of them say words."""
    steps = draw(st.lists(st.integers(1, 2000).map(float), min_size=1, max_size=15))
    arrivals = [sum(steps[: i + 1]) for i in range(len(steps))]
    works = draw(st.lists(milliseconds, min_size=len(steps), max_size=len(steps)))
    said = draw(st.lists(st.integers(0, 3), min_size=len(steps), max_size=len(steps)))
    return arrivals, works, said


def instance_of(arrivals, works, said, *, log_only: bool) -> Instance:
    """The run as SimulEval logs it, or with all that was known."""
    chunks = [chunk for chunk, words in enumerate(said) for _ in range(words)]
    ends = slow.chunk_ends(arrivals, works)
    elapsed = [arrivals[chunk] + sum(works[: chunk + 1]) for chunk in chunks]
    known = (
        {}
        if log_only
        else {
            "works": [works[chunk] for chunk in chunks],
            "ends": [ends[chunk] for chunk in chunks],
        }
    )
    return Instance(
        index=0,
        prediction=" ".join("w" for _ in chunks),
        delays=[arrivals[chunk] for chunk in chunks],
        elapsed=elapsed,
        source_length=arrivals[-1],
        reference="w w w",
        **known,
    )


def times_of(instance, computation):
    plain = plain_timings([instance], Rules(computation=computation))
    return aware_timings(plain).times.tolist()


@given(runs())
def test_what_a_trace_knows_is_taken_as_it_is(run):
    arrivals, works, said = run
    instance = instance_of(*run, log_only=False)
    chunks = [chunk for chunk, words in enumerate(said) for _ in range(words)]
    ends = slow.chunk_ends(arrivals, works)
    assert times_of(instance, "honest") == pytest.approx([ends[c] for c in chunks])
    assert times_of(instance, "chunk") == pytest.approx([arrivals[c] + works[c] for c in chunks])
    assert times_of(instance, "cumulative") == pytest.approx(list(instance.elapsed))


@given(runs())
def test_a_log_gives_all_three_back_if_every_chunk_speaks(run):
    arrivals, works, said = run
    run = arrivals, works, [max(words, 1) for words in said]
    known, logged = instance_of(*run, log_only=False), instance_of(*run, log_only=True)
    for computation in ("honest", "chunk", "cumulative"):
        assert times_of(logged, computation) == pytest.approx(times_of(known, computation))


@given(runs())
def test_silent_chunks_make_a_log_no_earlier(run):
    """A log says when chunks that said nothing worked only with the next word: no earlier."""
    known, logged = instance_of(*run, log_only=False), instance_of(*run, log_only=True)
    pairs = zip(times_of(logged, "honest"), times_of(known, "honest"), strict=True)
    assert all(from_log >= really - 1e-6 for from_log, really in pairs)


@given(runs())
def test_the_definitions_are_ordered(run):
    """Nothing appears before its chunk's own work is done, nor later than if work and listening
    never overlapped."""
    instance = instance_of(*run, log_only=False)
    columns = [times_of(instance, c) for c in ("chunk", "honest", "cumulative")]
    for alone, honest, cumulative in zip(*columns, strict=True):
        assert alone <= honest + 1e-6
        assert honest <= cumulative + 1e-6


def test_the_example_of_the_docs():
    """A chunk every second, each worked on for 1.2 s."""
    arrivals, works = [1000.0, 2000.0, 3000.0], [1200.0, 1200.0, 1200.0]
    instance = instance_of(arrivals, works, [1, 1, 1], log_only=True)
    assert times_of(instance, "honest") == [2200, 3400, 4600]
    assert times_of(instance, "chunk") == [2200, 3200, 4200]
    assert times_of(instance, "cumulative") == [2200, 4400, 6600]


@pytest.mark.parametrize("elapsed", [None, [], [0.0, 0.0], [900.0, 1800.0]])
def test_a_log_without_a_sensible_clock_has_no_aware_latency(elapsed):
    """SimulEval's zeros for text would make latency negative: we call it undefined."""
    instance = Instance(
        index=3,
        prediction="a b",
        delays=[1000.0, 2000.0],
        elapsed=elapsed,
        source_length=2000.0,
        reference="a b",
    )
    report = score_corpus([instance], metrics=["AL", "AL_CA"])
    assert math.isnan(report.scores["AL_CA"].value)
    assert not math.isnan(report.scores["AL"].value)
    assert report.problems["no computation times that fit the delays"] == [3]


def test_compat_takes_zeros_as_they_are():
    instance = Instance(
        index=0,
        prediction="a b",
        delays=[1000.0, 2000.0],
        elapsed=[0, 0],
        source_length=2000.0,
        reference="a b",
    )
    rules = Rules(compat="simuleval", computation="cumulative")
    scores = score_corpus([instance], rules, ["AL_CA", "ATD_CA", "ATD"]).scores
    assert scores["AL_CA"].value == slow.al([0, 0], 2000.0, 2)
    assert scores["ATD_CA"].value == scores["ATD"].value


@given(runs())
def test_aware_values_are_the_metrics_on_aware_times(run):
    instance = instance_of(*run, log_only=False)
    if not instance.delays:
        return
    for computation in ("honest", "chunk", "cumulative"):
        times = times_of(instance, computation)
        scores = score_corpus([instance], Rules(computation=computation)).scores
        source = instance.source_length
        assert scores["AL_CA"].value == pytest.approx(slow.al(times, source, 3))
        assert scores["DAL_CA"].value == pytest.approx(slow.dal(times, source))
        assert scores["ATD_CA"].value == pytest.approx(slow.atd(instance.delays, times))
        assert f"ca:{computation}" in scores["AL_CA"].signature


def test_rows_with_and_without_a_clock_do_not_mix():
    """One sentence knows its ends, one only elapsed, one neither, one says nothing."""
    common = {"prediction": "a b", "delays": [1000.0, 2000.0], "source_length": 2000.0}
    corpus = [
        Instance(index=0, ends=[1500.0, 2500.0], **common),
        Instance(index=1, elapsed=[1100.0, 2200.0], **common),
        Instance(index=2, **common),
        Instance(index=3, prediction="", delays=[], source_length=2000.0),
    ]
    timings = aware_timings(plain_timings(corpus, Rules()))
    assert timings.rows.tolist() == [0, 1]
    assert timings.times.tolist() == [1500, 2500, 1100, 2100]

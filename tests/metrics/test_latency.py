"""Latency metrics against their definitions, by examples and by properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.metrics.instance import Instance
from dragoman.metrics.latency import LATENCY
from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Rules, plain_timings
from tests.metrics import slow


def sentence(delays, source_length, reference="", index=0, **more) -> Instance:
    prediction = " ".join(f"w{i}" for i in range(len(delays)))
    return Instance(
        index=index,
        prediction=prediction,
        delays=delays,
        source_length=source_length,
        reference=reference,
        **more,
    )


def words(count: int) -> str:
    return " ".join(["w"] * count)


def values(name, instances, rules=None):
    return LATENCY[name].compute(plain_timings(instances, rules or Rules()))


# Multiples of a half: delays meet source lengths exactly, as they do in logs.
halves = st.integers(0, 8000).map(lambda n: n / 2)


@st.composite
def sentences(draw):
    delays = sorted(draw(st.lists(halves, min_size=1, max_size=30)))
    source = draw(st.one_of(st.sampled_from(delays), halves).filter(lambda s: s > 0))
    return sentence(delays, source, words(draw(st.integers(1, 40))))


corpora = st.lists(sentences(), min_size=1, max_size=8)


def target_length(instance) -> int:
    return len(instance.reference.split(" "))


@given(corpora)
def test_a_corpus_equals_its_sentences_by_definition(corpus):
    expected = {
        "AL": [slow.al(i.delays, i.source_length, target_length(i)) for i in corpus],
        "LAAL": [slow.laal(i.delays, i.source_length, target_length(i)) for i in corpus],
        "YAAL": [slow.yaal(i.delays, i.source_length, target_length(i)) for i in corpus],
        "DAL": [slow.dal(i.delays, i.source_length) for i in corpus],
        "AP": [slow.ap(i.delays, i.source_length, target_length(i)) for i in corpus],
        "ATD": [slow.atd(i.delays, i.delays) for i in corpus],
        "StartOffset": [i.delays[0] for i in corpus],
        "EndOffset": [i.delays[-1] - i.source_length for i in corpus],
        "NumChunks": [len(i.delays) for i in corpus],
    }
    for name, wanted in expected.items():
        wanted = [math.nan if value is None else value for value in wanted]
        assert values(name, corpus) == pytest.approx(wanted, nan_ok=True, abs=1e-6), name


@given(st.integers(1, 12), st.integers(1, 40))
def test_ideal_wait_k_lags_by_k(k, length):
    """As many words out as in, one for one after the first k: AL = LAAL = DAL = k."""
    delays = [min(k + i, length) for i in range(length)]
    instance = sentence(delays, length, words(length))
    lag = min(k, length)
    for name in ("AL", "LAAL", "DAL"):
        assert values(name, [instance], Rules(source="text"))[0] == pytest.approx(lag)


@given(sentences())
def test_babble_is_rewarded_by_al_alone(instance):
    al, laal = values("AL", [instance])[0], values("LAAL", [instance])[0]
    if len(instance.delays) > target_length(instance):
        assert laal >= al - 1e-9
    else:
        assert laal == pytest.approx(al)


@given(sentences(), st.integers(0, 2000).map(lambda n: n / 2))
def test_whoever_is_later_everywhere_scores_no_lower(instance, shift):
    """AL, LAAL and YAAL stop at the source's end, so only metrics over all units keep this."""
    later = sentence([d + shift for d in instance.delays], instance.source_length)
    for name in ("DAL", "StartOffset", "EndOffset"):
        assert values(name, [later])[0] == pytest.approx(values(name, [instance])[0] + shift)


@given(sentences())
def test_dal_is_at_least_the_lag_of_the_first_word(instance):
    """The adjusted lags never go down, so their mean is at least the first."""
    assert values("DAL", [instance])[0] >= instance.delays[0] - 1e-9


@given(sentences(), st.sampled_from([0.5, 2.0, 8.0]))
def test_times_scale(instance, factor):
    """Milliseconds or seconds: lags scale with the unit, proportions do not change."""
    scaled = sentence(
        [d * factor for d in instance.delays],
        instance.source_length * factor,
        instance.reference,
    )
    for name, power in (("AL", 1), ("LAAL", 1), ("DAL", 1), ("YAAL", 1), ("AP", 0)):
        one, other = values(name, [instance])[0], values(name, [scaled])[0]
        assert other == pytest.approx(one * factor**power, nan_ok=True)


def test_offline_lags_by_the_whole_source():
    instance = sentence([4000.0] * 5, 4000.0, words(5))
    assert values("AL", [instance])[0] == 4000
    assert values("AP", [instance])[0] == 1
    assert math.isnan(values("YAAL", [instance])[0])  # nothing was said before the end


def test_a_worked_example():
    """Two words at 1 s, two at 2 s of 2 s; four words wanted, one every half second."""
    instance = sentence([1000, 1000, 2000, 2000], 2000, words(4))
    assert values("AL", [instance])[0] == pytest.approx((1000 + 500 + 1000) / 3)
    assert values("YAAL", [instance])[0] == pytest.approx((1000 + 500) / 2)
    assert values("DAL", [instance])[0] == pytest.approx((1000 + 1000 + 1000 + 1000) / 4)
    assert values("AP", [instance])[0] == pytest.approx(6000 / 8000)


def test_reference_lengths_are_counted_as_simuleval_counts_them():
    delays, source = [1000.0, 2000.0, 3000.0, 4000.0], 4000.0
    by_length = {n: slow.al(delays, source, n) for n in range(1, 7)}
    for reference, length in [
        ("a b c d", 4),
        ("a  b c d", 5),
        ("a b c d ", 5),
        ("a\tb c d", 3),
        ("a b\n", 2),
        ("", 1),
    ]:
        lag = values("AL", [sentence(delays, source, reference)])[0]
        assert lag == pytest.approx(by_length[length])
    rules = Rules(unit="char")
    lag = values("AL", [sentence(delays, source, " ab cd ")], rules)[0]
    assert lag == pytest.approx(by_length[5])


def test_without_a_reference_the_output_sets_the_pace():
    spoken = sentence([1000.0, 2000.0], 2000.0, None)
    wanted = sentence([1000.0, 2000.0], 2000.0, "a b")
    assert values("AL", [spoken])[0] == values("AL", [wanted])[0]
    by_output = Rules(length="hypothesis")
    long_reference = sentence([1000.0, 2000.0], 2000.0, words(9))
    assert values("AL", [long_reference], by_output)[0] == values("AL", [wanted])[0]


def test_what_has_no_value_is_undefined_and_aborts_nothing():
    """Where SimulEval divides by zero."""
    nothing_said = sentence([], 1000.0, "a b", index=0)
    no_source = sentence([0.0, 5.0], 0.0, "a b", index=1)
    fine = sentence([500.0, 1000.0], 1000.0, "a b", index=2)
    report = score_corpus([nothing_said, no_source, fine])
    assert report.scores["AL"].value == slow.al([500.0, 1000.0], 1000.0, 2)
    for name in ("AL", "LAAL", "DAL", "AP", "YAAL"):
        assert np.isnan(report.scores[name].sentences[:2]).all()
        assert report.scores[name].scored == 1
    assert report.problems["nothing said"] == [0]
    assert report.problems["a source of no length"] == [1]
    empty_reference = sentence([500.0, 1000.0], 1000.0, "")
    assert math.isnan(values("AL", [empty_reference], Rules(unit="char"))[0])
    assert values("LAAL", [empty_reference], Rules(unit="char"))[0] == 500


def test_a_corpus_of_nothing_is_all_undefined():
    report = score_corpus([sentence([], 1000.0, "a b")])
    for name, score in report.scores.items():
        if name not in ("BLEU", "chrF", "WER", "LengthDiff"):
            assert math.isnan(score.value)
            assert "undefined" in str(score)


@given(st.integers(1, 2500))
def test_blocks_of_sentences_do_not_show(size):
    """Sentences are timed in blocks; the result is that of each alone."""
    corpus = [sentence([100.0 + i, 200.0 + i], 1000.0, "a b", index=i) for i in range(size)]
    report = score_corpus(corpus, metrics=["AL"])
    wanted = [slow.al(i.delays, 1000.0, 2) for i in corpus]
    assert report.scores["AL"].sentences == pytest.approx(wanted)


def test_text_sources_have_words_of_length_one_in_atd():
    """A wait-3 over words takes 3 words, as SimulEval says while it runs."""
    delays = [min(3 + i, 9) for i in range(9)]
    instance = sentence(delays, 9, words(9))
    assert values("ATD", [instance], Rules(source="text"))[0] == pytest.approx(3)


def test_sound_takes_time():
    """Two chunks of 500 ms said at once: the second is heard after the first."""
    instance = sentence([1000.0, 1000.0], 1000.0, "a b", durations=[500.0, 500.0])
    assert values("EndOffset", [instance])[0] == 1000
    # 300, 300, 300 and 100 ms of sound against 300, 300, 300 and 100 ms of source.
    assert values("ATD", [instance])[0] == pytest.approx(1000)


def test_real_time_factor_is_compute_over_audio():
    known = sentence([1000.0], 2000.0, "a", compute=500.0)
    from_log = sentence([1000.0], 1000.0, "a", elapsed=[1400.0], index=1)
    unknown = sentence([1000.0], 1000.0, "a", index=2)
    score = score_corpus([known, from_log, unknown], metrics=["RTF"]).scores["RTF"]
    assert score.sentences == pytest.approx([0.25, 0.4, math.nan], nan_ok=True)
    assert score.value == pytest.approx(900 / 3000)
    simuleval = score_corpus([known], Rules(compat="simuleval"), ["RTF"]).scores["RTF"]
    assert simuleval.value == 0.5


def test_time_spent_on_a_sentence_of_which_nothing_was_said_counts():
    said = Instance(index=0, prediction="a", delays=[900], source_length=1000, compute=100)
    unsaid = Instance(index=1, prediction="", delays=[], source_length=3000, compute=900)
    empty = Instance(index=2, prediction="", delays=[], source_length=0, compute=5)
    unknown = Instance(index=3, prediction="", delays=[], source_length=1000)
    score = score_corpus([said, unsaid, empty, unknown], metrics=["RTF"]).scores["RTF"]
    assert score.value == pytest.approx(1000 / 4000)
    assert score.sentences[:2].tolist() == [0.1, 0.3]
    assert score.scored == 2
    simuleval = score_corpus([said, unsaid], Rules(compat="simuleval"), ["RTF"]).scores["RTF"]
    assert simuleval.scored == 1


def test_erasure_is_over_the_words_of_all():
    one = sentence([1.0] * 4, 10.0, "a", erased=1)
    other = sentence([1.0] * 6, 10.0, "a", erased=4, index=1)
    score = score_corpus([one, other], metrics=["Erasure"]).scores["Erasure"]
    assert score.value == pytest.approx(0.5)


BEYOND = "delays beyond the end of their source"
BELOW = "a source below 0.1 s (times are in milliseconds)"
SECONDS = "all delays in a 500th of their source (times are in milliseconds)"
SHRINKING = "elapsed times that are no sums of all computation so far"


@pytest.mark.parametrize(
    ("delays", "source_length", "elapsed", "doubted"),
    [
        ([1000, 3000], 3000, [1100, 3200], []),
        ([1000, 3050], 3000, None, []),  # a length that was rounded
        ([1000, 4000], 3000, None, [BEYOND]),
        ([1, 3], 3, None, [BELOW]),
        ([1, 3], 3000, None, [SECONDS]),
        ([0, 0], 3000, None, []),  # whoever says all at once before anything was heard
        ([1000, 3000], 3, None, [BEYOND, BELOW]),
        ([1000, 2000, 3000], 3000, [1500, 2100, 3400], [SHRINKING]),
        ([1000, 2000, 3000], 3000, [1500, 2499.5, 3500], []),
        ([1000, 3000], 3000, [0, 0], ["no computation times that fit the delays"]),
    ],
)
def test_times_that_can_hardly_be_right_are_told(delays, source_length, elapsed, doubted):
    """Two in other corners of the corpus are as they should be."""
    fine = [sentence([1000], 1000, "w", index, elapsed=[1100]) for index in (3, 9)]
    odd = sentence(delays, source_length, "w w", 7, elapsed=elapsed or [d + 100 for d in delays])
    report = score_corpus([fine[0], odd, fine[1]], Rules())
    assert report.problems == {what: [7] for what in doubted}


def test_words_of_a_text_are_few():
    text = sentence([1, 3], 3, "w w", elapsed=[1, 3])
    assert score_corpus([text], Rules(source="text")).problems == {}
    late = sentence([1, 4], 3, "w w", elapsed=[1, 4])
    assert score_corpus([late], Rules(source="text")).problems == {BEYOND: [0]}


def test_the_error_of_a_mean_is_196_standard_errors():
    """Latencies 1, 2, 3 and 6: their variance is 14/3, with one degree of freedom taken off."""
    instances = [
        Instance(index=i, prediction="a", delays=(delay,), source_length=10.0)
        for i, delay in enumerate([1.0, 2.0, 3.0, 6.0])
    ]
    score = score_corpus(instances, metrics=["StartOffset"]).scores["StartOffset"]
    wanted = 1.96 * (14 / 3) ** 0.5 / 2
    assert score.error() == pytest.approx(wanted)
    assert score.interval().low == pytest.approx(3 - wanted)
    assert score.interval().high == pytest.approx(3 + wanted)
    alone = score_corpus(instances[:1], metrics=["StartOffset"]).scores["StartOffset"]
    assert np.isnan(alone.error())
    both = score_corpus(instances[:2], metrics=["StartOffset"]).scores["StartOffset"]
    assert both.error() == pytest.approx(1.96 * 0.5)

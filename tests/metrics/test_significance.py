"""Intervals and tests against tables, hand computation, exact enumeration and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.metrics.significance import (
    Measure,
    Sampling,
    compare,
    confidence_intervals,
    incomplete_beta,
    mean_measure,
    paired_t_test,
    pseudo_values,
    ratio_of_sums,
    student_p,
)

values = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)

# --- Student's t ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "t", "p"),
    [  # two-sided critical values as statistical tables print them
        (1, 12.706, 0.05),
        (1, 63.657, 0.01),
        (4, 2.776, 0.05),
        (10, 2.228, 0.05),
        (10, 3.169, 0.01),
        (10, 4.587, 0.001),
        (30, 2.042, 0.05),
        (120, 1.980, 0.05),
        (1e7, 1.95996, 0.05),
    ],
)
def test_student_p_equals_the_tables(freedom, t, p):
    assert student_p(t, freedom) == pytest.approx(p, rel=1e-3)
    assert student_p(-t, freedom) == student_p(t, freedom)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 29, 500, 9999])
@pytest.mark.parametrize("t", [0.0, 0.1, 0.9, 2.3, 6.0])
def test_student_p_equals_the_integral_of_the_density(freedom, t):
    log_scale = (
        math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    )
    x = np.linspace(0, t, 20_001)
    density = np.exp(log_scale - (freedom + 1) / 2 * np.log1p(x * x / freedom))
    steps = (density[:-1] + density[1:]) / 2 * np.diff(x)
    assert student_p(t, freedom) == pytest.approx(1 - 2 * steps.sum(), abs=1e-7)


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1))
def test_incomplete_beta_equals_the_binomial_tail(a, b, x):
    n = a + b - 1
    tail = sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert incomplete_beta(a, b, x) == pytest.approx(tail, abs=1e-12)


def test_paired_t_test_by_hand():
    # Differences 1, 2, 3, 4: mean 2.5, sample variance 5/3, error sqrt(5/12), t = 2.5 / 0.6455.
    result = paired_t_test([0, 0, 0, 0], [1, 2, 3, 4])
    assert result.t == pytest.approx(2.5 / math.sqrt(5 / 12))
    assert result.freedom == 3
    assert result.p == pytest.approx(0.03047, abs=1e-5)


def test_paired_t_test_on_the_ten_points_of_a_published_table():
    """MMA against MMA-DAR at ten latencies (Zaidi et al. 2022, Table 4): +4.5 BLEU on average."""
    mma = [6.5, 10.08, 11.72, 13.33, 12.92, 12.95, 14.24, 13.98, 13.85, 16.18]
    dar = [7.9, 11.40, 16.13, 17.24, 18.32, 19.23, 19.39, 19.97, 20.23, 20.97]
    result = paired_t_test(mma, dar)
    differences = [d - m for d, m in zip(dar, mma, strict=True)]
    mean = sum(differences) / 10
    spread = math.sqrt(sum((d - mean) ** 2 for d in differences) / 9)
    assert mean == pytest.approx(4.503)
    assert result.t == pytest.approx(mean / (spread / math.sqrt(10)))
    assert result.p < 0.002


@pytest.mark.parametrize("one", [[], [1.0], [1.0, math.nan]])
def test_paired_t_test_of_fewer_than_two(one):
    found = paired_t_test(one, [5.0] * len(one))
    assert np.isnan((found.t, found.p)).all()
    assert found.freedom == 0


def test_paired_t_test_without_spread():
    assert paired_t_test([1, 2], [1, 2]).p == 1
    assert paired_t_test([1, 2], [2, 3]).p == 0
    assert math.isnan(paired_t_test([1], [2]).p)


# --- resampling -----------------------------------------------------------------------------------


@given(values)
def test_pseudo_values_of_a_mean_are_the_values(numbers):
    assert pseudo_values(mean_measure("AL", numbers)) == pytest.approx(numbers, abs=1e-6)


def test_undefined_sentences_are_left_out_of_a_mean():
    assert mean_measure("AL", [1.0, math.nan, 3.0]).value == 2.0
    assert math.isnan(mean_measure("AL", [math.nan]).value)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(7)
    covered = 0
    for trial in range(300):
        measure = mean_measure("AL", generator.exponential(1000, 80))
        (interval,) = confidence_intervals([measure], Sampling(resamples=300, seed=trial))
        covered += interval.low <= 1000 <= interval.high
    # 95 % promised; percentile intervals of skewed data fall a little short of it.
    assert 0.89 <= covered / 300 <= 0.98


def test_bootstrap_p_values_are_rarely_small_without_a_difference():
    generator = np.random.default_rng(3)
    small = {"p_bootstrap": 0, "p_randomisation": 0, "p_t_test": 0}
    for trial in range(200):
        first = mean_measure("AL", generator.normal(0, 1, 40))
        second = mean_measure("AL", generator.normal(0, 1, 40))
        (result,) = compare([first], [second], Sampling(resamples=200, seed=trial))
        for name in small:
            small[name] += getattr(result, name) < 0.1
    for name, count in small.items():
        assert 8 <= count <= 36, name  # 20 expected, give or take chance


def test_randomisation_equals_the_enumeration_of_all_swaps():
    first = np.array([10.0, 12.0, 9.0, 14.0, 11.0, 10.0])
    second = np.array([12.0, 13.0, 9.5, 13.0, 14.0, 12.5])
    observed = (second - first).sum()
    swaps = itertools.product([1, -1], repeat=6)
    exact = np.mean([abs(np.dot(signs, second - first)) >= abs(observed) for signs in swaps])
    (result,) = compare(
        [mean_measure("AL", first)], [mean_measure("AL", second)], Sampling(resamples=20_000)
    )
    assert result.p_randomisation == pytest.approx(exact, abs=0.01)


def test_a_corpus_metric_is_resampled_through_its_sums():
    """A ratio of sums: resampled by hand, sentence by sentence, it gives the same interval."""
    generator = np.random.default_rng(1)
    statistics = generator.integers(1, 30, (25, 2)).astype(float)
    sampling = Sampling(resamples=50, seed=9)
    measure = Measure("rate", statistics, ratio_of_sums)
    (interval,) = confidence_intervals([measure], sampling)
    draws = np.random.default_rng(9).integers(0, 25, (50, 25))
    rates = [statistics[draw, 0].sum() / statistics[draw, 1].sum() for draw in draws]
    assert interval.low == pytest.approx(np.quantile(rates, 0.025))
    assert interval.high == pytest.approx(np.quantile(rates, 0.975))


@given(values, st.integers(0, 99))
def test_a_system_does_not_differ_from_itself(numbers, seed):
    measure = mean_measure("AL", numbers)
    (result,) = compare([measure], [measure], Sampling(resamples=20, seed=seed))
    assert result.difference == 0
    assert result.p_bootstrap == result.p_randomisation == result.p_t_test == 1
    assert result.interval.low == result.interval.high == 0


@given(values, st.randoms())
def test_the_order_of_sentences_does_not_matter_to_the_t_test(numbers, random):
    pairs = [(x, x + random.random()) for x in numbers]
    shuffled = random.sample(pairs, len(pairs))
    first, second = zip(*pairs, strict=True)
    again, other = zip(*shuffled, strict=True)
    assert paired_t_test(first, second).p == pytest.approx(paired_t_test(again, other).p)


def test_the_same_seed_gives_the_same_result_and_small_draws_change_nothing(monkeypatch):
    generator = np.random.default_rng(5)
    first = mean_measure("AL", generator.normal(0, 1, 30))
    second = mean_measure("AL", generator.normal(0.3, 1, 30))
    whole = compare([first], [second], Sampling(resamples=100))
    assert compare([first], [second], Sampling(resamples=100)) == whole
    assert compare([first], [second], Sampling(resamples=100, seed=1)) != whole
    monkeypatch.setattr("dragoman.metrics.significance.DRAWS", 64)
    assert compare([first], [second], Sampling(resamples=100)) == whole


def test_bad_requests_are_refused():
    measure, longer = mean_measure("AL", [1, 2]), mean_measure("AL", [1, 2, 3])
    with pytest.raises(DragomanError, match="same sentences"):
        compare([measure], [longer])
    with pytest.raises(DragomanError, match="no sentence"):
        confidence_intervals([mean_measure("AL", [])])
    with pytest.raises(DragomanError, match="level"):
        Sampling(level=95)
    with pytest.raises(DragomanError, match="1000"):
        Sampling(resamples=0)


def test_where_nothing_has_a_value_there_is_no_evidence_at_all():
    nothing = mean_measure("LAAL", [np.nan] * 3)
    for one, other in itertools.permutations([nothing, mean_measure("LAAL", [1.0, 2.0, 4.0])]):
        (found,) = compare([one], [other])
        told = (found.interval.low, found.interval.high, found.p_bootstrap, found.p_randomisation)
        assert np.isnan((*told, found.p_t_test)).all()


def test_sentences_without_a_value_are_no_evidence():
    """Three differences are as uncertain among a thousand undefined sentences as alone."""
    first, second, nothing = [1.0, 2.0, 4.0], [1.5, 2.9, 4.2], [np.nan] * 1000
    (alone,) = compare([mean_measure("LAAL", first)], [mean_measure("LAAL", second)])
    (among,) = compare(
        [mean_measure("LAAL", [*first, *nothing])], [mean_measure("LAAL", [*second, *nothing])]
    )
    assert alone.p_t_test == pytest.approx(paired_t_test(first, second).p)
    assert among.p_t_test == pytest.approx(alone.p_t_test)


def test_means_are_compared_on_the_sentences_that_have_a_value_in_both():
    nan = math.nan
    first = mean_measure("LAAL", [1.0, 9.0, 4.0, nan, nan, 7.0])
    second = mean_measure("LAAL", [1.5, nan, 4.2, nan, 3.0, 7.9])
    (found,) = compare([first], [second])
    (alone,) = compare(
        [mean_measure("LAAL", [1.0, 4.0, nan, 7.0])], [mean_measure("LAAL", [1.5, 4.2, nan, 7.9])]
    )
    assert (found.first, found.second) == (pytest.approx(4.0), pytest.approx(13.6 / 3))
    assert found.difference == pytest.approx(1.6 / 3)
    assert found.p_t_test == pytest.approx(alone.p_t_test)
    assert (found.sentences, found.first_lacks, found.second_lacks) == (3, (4,), (1,))
    assert (alone.sentences, alone.first_lacks, alone.second_lacks) == (3, (), ())


def test_a_ratio_counts_every_sentence_that_is_not_known_to_lack_a_value():
    """A reference without a word: what was said against it is wrong, and silence is not."""
    one = Measure("WER", np.array([[1.0, 4.0], [0.0, 0.0]]), ratio_of_sums)
    other = Measure("WER", np.array([[1.0, 4.0], [3.0, 0.0]]), ratio_of_sums)
    (found,) = compare([one], [other])
    assert (found.first, found.second, found.sentences) == (0.25, 1.0, 2)

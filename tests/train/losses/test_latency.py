"""Latency losses against the definitions, unit after unit."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.metrics import latency as metrics
from dragoman.metrics.instance import Instance
from dragoman.metrics.timings import Rules, plain_timings
from dragoman.train.losses.latency import (
    LatencyLoss,
    average_lagging,
    differentiable_average_lagging,
    fold_heads,
    head_variance,
)
from dragoman.train.settings import convert


def al(delays, source):
    """Ma 2019, as written."""
    pace = source / len(delays)
    total = 0.0
    for i, delay in enumerate(delays):
        total += delay - i * pace
        if delay >= source:
            break
    return total / (i + 1)


def dal(delays, source):
    """Cherry & Foster 2019, as written."""
    pace = source / len(delays)
    total, previous = 0.0, -math.inf
    for i, delay in enumerate(delays):
        previous = max(delay, previous + pace)
        total += previous - i * pace
    return total / len(delays)


schedules = st.integers(1, 30).flatmap(
    lambda source: st.tuples(
        st.lists(st.integers(1, source), min_size=1, max_size=12).map(sorted), st.just(source)
    )
)


@settings(deadline=None)
@given(st.lists(schedules, min_size=1, max_size=4))
def test_losses_are_the_metrics_on_hard_alignments(batch):
    longest = max(len(delays) for delays, _ in batch)
    padded = torch.tensor([d + [99] * (longest - len(d)) for d, _ in batch], dtype=torch.float32)
    source = torch.tensor([s for _, s in batch])
    units = torch.tensor([len(d) for d, _ in batch])
    for ours, theirs in ((average_lagging, al), (differentiable_average_lagging, dal)):
        expected = torch.tensor([theirs(d, s) for d, s in batch])
        torch.testing.assert_close(ours(padded, source, units), expected, atol=1e-4, rtol=1e-4)


@settings(deadline=None)
@given(st.lists(schedules, min_size=1, max_size=4))
def test_losses_are_what_the_metrics_room_measures(batch):
    instances = [
        Instance(index=i, prediction="w " * len(d), delays=d, source_length=s)
        for i, (d, s) in enumerate(batch)
    ]
    timings = plain_timings(instances, Rules(length="hypothesis"))
    longest = max(len(delays) for delays, _ in batch)
    padded = torch.tensor([d + [0] * (longest - len(d)) for d, _ in batch], dtype=torch.float32)
    lengths = torch.tensor([s for _, s in batch]), torch.tensor([len(d) for d, _ in batch])
    for ours, theirs in (
        (average_lagging, metrics.average_lagging),
        (differentiable_average_lagging, metrics.differentiable_average_lagging),
    ):
        measured = torch.as_tensor(theirs(timings), dtype=torch.float32)
        torch.testing.assert_close(ours(padded, *lengths), measured, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_wait_k_lags_by_k(k):
    delays = torch.arange(10.0).add(k).clamp(max=10).unsqueeze(0)
    lengths = torch.tensor([10])
    assert average_lagging(delays, lengths, lengths).item() == pytest.approx(k)
    assert differentiable_average_lagging(delays, lengths, lengths).item() == pytest.approx(k)


def test_average_lagging_stops_near_the_end():
    """9.7 of 10 states is all of them, give or take; what follows is not counted."""
    delays = torch.tensor([[4.0, 9.7, 9.9, 10.0]])
    lengths = torch.tensor([10]), torch.tensor([4])
    assert average_lagging(delays, *lengths).item() == pytest.approx((4 + 9.7 - 2.5) / 2)
    delays[0, 1:3] = torch.tensor([9.3, 9.4])
    late = average_lagging(delays, *lengths)
    assert late.item() == pytest.approx(sum([4, 9.3 - 2.5, 9.4 - 5, 10 - 7.5]) / 4)


def test_folding_weighs_slow_heads_most_and_variance_compares_heads():
    delays = torch.tensor([[[1.0, 5.0], [3.0, 5.0]]])
    e1, e3 = math.exp(1), math.exp(3)
    folded = fold_heads(delays)[0]
    assert folded[0].item() == pytest.approx((e1 * 1 + e3 * 3) / (e1 + e3))
    assert folded[1].item() == pytest.approx(5)
    assert head_variance(delays, torch.tensor([2])).item() == pytest.approx((1 + 0) / 2)
    assert head_variance(delays, torch.tensor([1])).item() == pytest.approx(1)


def test_the_loss_sleeps_until_its_step_and_pushes_delays_down():
    delays = torch.full((2, 3, 4), 8.0).requires_grad_()
    loss = LatencyLoss(average=0.1, variance=0.5, metric="dal", after=100)
    lengths = torch.tensor([8, 8]), torch.tensor([4, 3])
    assert loss(delays, *lengths, step=99).item() == 0
    value = loss(delays, *lengths, step=100)
    assert value.item() == pytest.approx(0.1 * (dal([8.0] * 4, 8) + dal([8.0] * 3, 8)))
    value.backward()
    assert (delays.grad[:, :, 0] > 0).all()
    assert (delays.grad[1, :, 3] == 0).all()


def test_sentences_ahead_of_the_ideal_are_left_alone():
    delays = torch.tensor([[[0.0, 0.0, 0.0, 0.0]]], requires_grad=True)
    loss = LatencyLoss(average=1.0, metric="al")
    value = loss(delays, torch.tensor([8]), torch.tensor([4]), step=0)
    value.backward()
    assert value.item() == 0
    assert (delays.grad == 0).all()


def test_an_unknown_metric_is_named():
    with pytest.raises(DragomanError, match="metric' is 'laal'; it may be al, dal"):
        convert(LatencyLoss, {"metric": "laal"}, "latency")

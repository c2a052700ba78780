"""Equation 13 with numbers."""

import pytest
import torch

from dragoman.train.losses.multitask import JointWeights


def test_total_weighs_every_term():
    names = ("st", "kd", "car", "mt", "dar", "latency")
    terms = {name: torch.tensor(float(10**i)) for i, name in enumerate(names)}
    weights = JointWeights(kd=0.2, car=0.02, mt=0.5, dar=0.01, kd_after=5)
    expected = 0.8 * 1 + 0.2 * 10 + 0.02 * 100 + 0.5 * 1000 + 0.01 * 10000 + 100000
    assert weights.total(terms, step=5).item() == pytest.approx(expected)
    before = expected - 0.8 - 2 + 1
    assert weights.total(terms, step=4).item() == pytest.approx(before)


def test_without_text_the_speech_loss_counts_in_full():
    assert JointWeights().total({"st": torch.tensor(3.0)}, step=0).item() == 3.0

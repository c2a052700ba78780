"""Dropout by a scrambled place, as compiled code has it: as random as it must be."""

import pytest
import torch

from dragoman.train.nets.dropout import Dropout, dropout, kept, scrambled

CPU = torch.device("cpu")


def mixed(place, first, second):
    """`scrambled` of one place, by Python's own whole numbers."""
    x = (place ^ first) % 2**32
    x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
    x = ((x ^ (x >> 15)) + second) % 2**32
    x = (x ^ (x >> 16)) * 0x846CA68B % 2**32
    x ^= x >> 16
    return x - 2**32 if x >= 2**31 else x


@pytest.mark.parametrize("seeds", [(0, 0), (-5, 7), (2**31 - 1, -(2**31))])
def test_places_are_scrambled_in_32_bits(seeds):
    places = [0, 1, 2, 77, 65_536, 2**31 - 1]
    found = scrambled(
        torch.tensor(places, dtype=torch.int32), torch.tensor(seeds, dtype=torch.int32)
    )
    assert found.tolist() == [mixed(place, *seeds) for place in places]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 0.9])
def test_the_share_that_is_left_out(share):
    torch.manual_seed(1)
    mask = kept((400, 500), share, CPU).double()
    spread = (share * (1 - share)) ** 0.5
    assert mask.mean().item() == pytest.approx(1 - share, abs=5 * spread / 200_000**0.5)
    # As much in every row and column as chance would have it: no stripes.
    for dim, count in ((0, 400), (1, 500)):
        assert mask.mean(dim).std().item() == pytest.approx(spread / count**0.5, rel=0.2)


def test_neighbours_and_draws_know_nothing_of_each_other():
    torch.manual_seed(2)
    draws = torch.stack([kept((40_000,), 0.5, CPU).double() * 2 - 1 for _ in range(20)])
    limit = 5 / 40_000**0.5
    between = draws @ draws.T / 40_000 - torch.eye(20)
    assert between.abs().max() < limit
    for distance in (1, 2, 3, 8, 64, 256, 1000):
        along = (draws[0, :-distance] * draws[0, distance:]).mean()
        assert abs(along) < limit, distance


def test_gradients_pass_where_numbers_passed(monkeypatch):
    """As under a compiler, without one."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.manual_seed(3)
    x = torch.ones(50, 60, requires_grad=True)
    y = dropout(x, 0.25)
    assert y.unique().tolist() == pytest.approx([0.0, 4 / 3])
    (back,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(back, y)
    again = dropout(x, 0.25)
    assert not torch.equal(again, y)


def test_nothing_is_left_out_where_nothing_is_to_be():
    x = torch.ones(3, 4)
    assert dropout(x, 0.0) is x  # exported graphs have no pass for it


def test_the_module_leaves_nothing_out_at_work(monkeypatch):
    x = torch.ones(50, 60)
    for compiling in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda on=compiling: on)
        assert torch.equal(Dropout(0.5).eval()(x), x)
        assert 0.3 < (Dropout(0.5).train()(x) == 0).double().mean() < 0.7

"""CAAT's loss against the list of all paths."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.losses.transducer import NEVER, arc_scores, lag_cost, transducer


def paths(groups, units):
    """Every path as its arcs: ('label', g, u) writes token u + 1 in group g, ('blank', g, u)."""
    for stops in itertools.combinations_with_replacement(range(groups), units):
        arcs, g = [], 0
        for u, group in enumerate(stops):
            arcs += [("blank", step, u) for step in range(g, group)] + [("label", group, u)]
            g = group
        yield [*arcs, *(("blank", step, units) for step in range(g, groups))]


def cost(g, u, groups, units):
    """c(g, u), counted from one."""
    return max(0.0, g * units / groups - (u + 1)) / units


def enumerated(blank, label):
    """log sum of paths, and the mean cost under their posterior: blank [G, U + 1], label [G, U]"""
    groups, units = label.shape
    scores, costs = [], []
    for arcs in paths(groups, units):
        writes = [(g + 1, u + 1) for kind, g, u in arcs if kind == "label"]
        costs.append(sum(cost(g, u, groups, units) for g, u in writes))
        scores.append(sum((label if kind == "label" else blank)[g, u] for kind, g, u in arcs))
    scores = torch.stack(scores)
    return scores.logsumexp(0), (scores.softmax(0) * torch.tensor(costs).to(scores)).sum()


def arcs(groups, units, seed=0):
    generator = torch.Generator().manual_seed(seed)
    blank = torch.randn(groups, units + 1, generator=generator, dtype=torch.float64)
    label = torch.randn(groups, units, generator=generator, dtype=torch.float64)
    return blank.requires_grad_(), label.requires_grad_()


@pytest.mark.parametrize(("groups", "units"), [(4, 3), (1, 3), (3, 1), (2, 5), (1, 1)])
def test_lattice_equals_all_paths_with_gradients(groups, units):
    blank, label = arcs(groups, units)
    ours = transducer(blank[None], label[None], torch.tensor([groups]), torch.tensor([units]))
    for a, b in zip(ours, enumerated(blank, label), strict=True):
        torch.testing.assert_close(a[0], b, rtol=1e-6, atol=1e-7)  # costs are single precision
        for x, y in zip(
            torch.autograd.grad(a.sum(), (blank, label), retain_graph=True),
            torch.autograd.grad(b, (blank, label), retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-7)


def rnnt(blank: np.ndarray, label: np.ndarray) -> float:
    """Graves 2012: backward variables of an RNN transducer, cell by cell, in log space."""
    groups, units = label.shape
    beta = np.full((groups + 1, units + 1), -np.inf)
    beta[groups, units] = 0.0  # past the last blank
    for t in range(groups - 1, -1, -1):
        for u in range(units, -1, -1):
            reads = blank[t, u] + beta[t + 1, u]
            writes = label[t, u] + beta[t, u + 1] if u < units else -np.inf
            beta[t, u] = np.logaddexp(reads, writes)
    return float(beta[0, 0])


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), min_size=1, max_size=3),
       seed=st.integers(0, 2**31), spread=st.sampled_from([0.1, 1.0, 8.0]))  # fmt: skip
def test_a_batch_equals_an_ordinary_rnnt_with_gradients_by_differences(sizes, seed, spread):
    """Padding holds noise; where differences are taken is drawn too."""
    random = np.random.default_rng(seed)
    groups, units = (max(size) for size in zip(*sizes, strict=True))
    blank = spread * random.standard_normal((len(sizes), groups, units + 1))
    label = spread * random.standard_normal((len(sizes), groups, units))
    ours = [torch.tensor(x, requires_grad=True) for x in (blank, label)]
    lengths = (torch.tensor(size) for size in zip(*sizes, strict=True))
    log_p, _ = transducer(*ours, *lengths)
    log_p.sum().backward()

    def alone(item: int) -> float:
        g, u = sizes[item]
        return rnnt(blank[item, :g, : u + 1], label[item, :g, :u])

    np.testing.assert_allclose(log_p.detach(), [alone(n) for n in range(len(sizes))], rtol=1e-9)
    for given_arcs, tensor in ((blank, ours[0]), (label, ours[1])):
        for place in random.integers(given_arcs.size, size=3) if given_arcs.size else ():
            at, step = np.unravel_index(place, given_arcs.shape), 1e-5
            kept, ends = given_arcs[at], []
            for moved in (kept + step, kept - step):
                given_arcs[at] = moved
                ends.append(alone(at[0]))
            given_arcs[at] = kept
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(tensor.grad[at], slope, rtol=1e-4, atol=1e-7)


def test_nothing_to_write_is_reading_to_the_end():
    blank, label = arcs(3, 0)
    log_p, expected = transducer(blank[None], label[None], torch.tensor([3]), torch.tensor([0]))
    torch.testing.assert_close(log_p[0], blank.sum())
    assert expected[0] == 0


def test_one_group_is_cross_entropy_and_a_final_blank():
    blank, label = arcs(1, 4)
    log_p, expected = transducer(blank[None], label[None], torch.tensor([1]), torch.tensor([4]))
    torch.testing.assert_close(log_p[0], label.sum() + blank[0, -1])
    assert expected[0] == sum(cost(1, u, 1, 4) for u in range(1, 5))


def test_expected_latency_is_how_the_total_answers_to_a_tilt():
    """d log Z / d lambda when every label arc is tilted by lambda c."""
    blank, label = arcs(4, 3, seed=1)
    tilt = torch.zeros((), dtype=torch.float64, requires_grad=True)
    sizes = torch.tensor([4]), torch.tensor([3])
    tilted = label + tilt * lag_cost(*sizes, 4, 3)[0]
    log_p, _ = transducer(blank[None], tilted[None], *sizes)
    _, expected = transducer(blank[None], label[None], *sizes)
    torch.testing.assert_close(torch.autograd.grad(log_p.sum(), tilt)[0], expected[0])


def test_gradcheck():
    blank, label = arcs(3, 2, seed=2)
    sizes = torch.tensor([3]), torch.tensor([2])
    assert torch.autograd.gradcheck(
        lambda b, y: transducer(b[None], y[None], *sizes), (blank, label)
    )


def test_a_short_sentence_in_a_batch_is_itself():
    blank, label = (x[None].expand(2, -1, -1) for x in arcs(4, 3, seed=3))
    log_p, expected = transducer(blank, label, torch.tensor([4, 2]), torch.tensor([3, 1]))
    alone = transducer(blank[1:, :2, :2], label[1:, :2, :1], torch.tensor([2]), torch.tensor([1]))
    torch.testing.assert_close(log_p[1], alone[0][0])
    torch.testing.assert_close(expected[1], alone[1][0])


def test_long_lattices_stay_finite():
    torch.manual_seed(4)
    blank = (8 * torch.randn(2, 60, 121)).log_softmax(-1).requires_grad_()
    label = (8 * torch.randn(2, 60, 120)).log_softmax(-1).requires_grad_()
    log_p, expected = transducer(blank, label, torch.tensor([60, 31]), torch.tensor([120, 64]))
    (expected - log_p).sum().backward()
    assert torch.isfinite(log_p).all()
    assert (log_p > NEVER / 2).all()
    assert (expected >= 0).all()
    assert torch.isfinite(blank.grad).all()
    assert torch.isfinite(label.grad).all()
    assert (blank.grad[1, 31:] == 0).all()


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_arc_scores_in_pieces_equal_a_log_softmax(rows):
    torch.manual_seed(5)
    hidden = torch.randn(2, 3, 5, 8, requires_grad=True)
    output = torch.nn.Linear(8, 11)
    targets = torch.randint(2, 11, (2, 4))
    blank, label = arc_scores(hidden, output, targets, blank=1, rows=rows)
    scores = output(hidden).log_softmax(-1)
    torch.testing.assert_close(blank, scores[..., 1])
    wanted = targets[:, None, :, None].expand(-1, 3, -1, -1)
    expected = scores[:, :, :-1].gather(-1, wanted).squeeze(-1)
    torch.testing.assert_close(label, expected)
    ours = torch.autograd.grad(blank.square().sum() + label.sum(), (hidden, output.weight))
    theirs = torch.autograd.grad(
        scores[..., 1].square().sum() + expected.sum(), (hidden, output.weight)
    )
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_a_text_without_a_token_costs_no_lag():
    cost = lag_cost(torch.tensor([2, 3]), torch.tensor([0, 2]), 3, 2)
    assert torch.isfinite(cost).all()
    assert cost[0].sum() == 0

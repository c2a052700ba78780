"""Expected alignment and lookback against enumeration, sampling and the plain recurrence."""

import itertools
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.nets.monotonic import (
    decide_at,
    decide_every,
    expected_alignment,
    expected_delay,
    first_stop,
    look_back,
    waitk_energy,
)


def infinite_lookback(alignment, energy, ratio=1, lengths=None):
    """The weights themselves: look back with energies for queries and one-hot keys and values."""
    states = energy.shape[-1]
    one_hot = torch.eye(states, dtype=energy.dtype).expand(*energy.shape[:2], states, states)
    lengths = full(energy) if lengths is None else lengths
    return look_back(energy, one_hot, one_hot, alignment, lengths, ratio)


def full(energy):
    return torch.full(energy.shape[:1], energy.shape[-1])


def enumerated(p):
    """Alignment of one head by listing every way to stop: p [U, G] -> [U, G]"""
    units, groups = p.shape
    p = torch.cat([p[:, :-1], torch.ones_like(p[:, :1])], 1)  # the end stops everybody
    total = [[torch.zeros((), dtype=p.dtype) for _ in range(groups)] for _ in range(units)]
    for path in itertools.combinations_with_replacement(range(groups), units):
        probability, at = torch.ones((), dtype=p.dtype), 0
        for i, stop in enumerate(path):
            for j in range(at, stop):
                probability = probability * (1 - p[i, j])
            probability, at = probability * p[i, stop], stop
        for i, stop in enumerate(path):
            total[i][stop] = total[i][stop] + probability
    return torch.stack([torch.stack(row) for row in total])


def recurrence(energy):
    """The definition, state after state, in double precision: [N, U, G] -> [N, U, G]"""
    p = energy.detach().double().sigmoid()
    p[..., -1] = 1
    row = torch.zeros_like(p[:, 0])
    row[:, 0] = 1
    rows = []
    for i in range(p.shape[1]):
        q, out = torch.zeros_like(p[:, 0, 0]), []
        for j in range(p.shape[2]):
            stayed = 1 - p[:, i, j - 1] if j else torch.zeros_like(q)
            q = stayed * q + row[:, j]
            out.append(p[:, i, j] * q)
        row = torch.stack(out, -1)
        rows.append(row)
    return torch.stack(rows, 1)


def in_logs(energy):
    """The same by the textbook's logarithms, in double precision: [U, G] -> [U, G]"""
    energy = torch.cat([energy[:, :-1], torch.full_like(energy[:, :1], 1e4)], 1)
    stop, go = (torch.nn.functional.logsigmoid(s * energy.double()) for s in (1, -1))
    passed = go.cumsum(-1) - go
    rows = [torch.tensor([0.0] + [-1e6] * (energy.shape[1] - 1), dtype=torch.float64)]
    for i in range(len(energy)):
        rows.append(stop[i] + passed[i] + (rows[-1] - passed[i]).logcumsumexp(-1))
    return torch.stack(rows[1:]).exp()


def looked_back(alignment, energy):
    """b_ij = sum_k a_ik softmax(u_i1..u_ik)_j, prefix after prefix: [U, S]"""
    out = torch.zeros_like(alignment)
    for k in range(energy.shape[-1]):
        prefix = energy[:, : k + 1].softmax(-1)
        out = out + torch.nn.functional.pad(
            alignment[:, k : k + 1] * prefix, (0, energy.shape[-1] - k - 1)
        )
    return out


def test_alignment_is_the_sum_over_all_paths_with_its_gradient():
    torch.manual_seed(0)
    energy = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 5, dtype=torch.float64)
    ours = expected_alignment(energy[None, None], torch.tensor([5]))[0, 0]
    theirs = enumerated(energy.sigmoid())
    assert torch.allclose(ours, theirs, atol=1e-12)
    gradients = [torch.autograd.grad((a * weight).sum(), energy)[0] for a in (ours, theirs)]
    assert torch.allclose(*gradients, atol=1e-12)


def test_alignment_is_what_sampling_gives():
    generator = torch.Generator().manual_seed(1)
    energy = torch.randn(6, 40, generator=generator) - 1
    samples, units, groups = 100_000, 6, 40
    counted = torch.zeros(units, groups)
    at = torch.zeros(samples, dtype=torch.long)
    for i in range(units):
        coin = torch.rand(samples, groups, generator=generator) < energy[i].sigmoid()
        coin[:, -1] = True
        coin &= torch.arange(groups) >= at[:, None]
        at = coin.int().argmax(1)
        counted[i] = at.bincount(minlength=groups) / samples
    ours = expected_alignment(energy[None, None], torch.tensor([groups]))[0, 0]
    assert (ours - counted).abs().max() < 5 * 0.5 / samples**0.5


def test_lookback_mixes_the_softmax_of_every_prefix_with_its_gradient():
    torch.manual_seed(2)
    alignment = torch.rand(3, 6, dtype=torch.float64).softmax(-1).requires_grad_()
    energy = (4 * torch.randn(3, 6, dtype=torch.float64)).requires_grad_()
    weight = torch.randn(3, 6, dtype=torch.float64)
    ours = infinite_lookback(alignment[None, None], energy[None, None])[0, 0]
    theirs = looked_back(alignment, energy)
    assert torch.allclose(ours, theirs, atol=1e-12)
    for a, b in zip(
        torch.autograd.grad((ours * weight).sum(), (alignment, energy)),
        torch.autograd.grad((theirs * weight).sum(), (alignment, energy)),
        strict=True,
    ):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("ratio", [1, 3])
def test_gradcheck(ratio):
    torch.manual_seed(3)
    lengths = torch.tensor([7, 4])
    groups = -(-7 // ratio)
    shapes = ((3, groups), (3, 2), (7, 2), (7, 2))  # energies, queries, keys, values
    inputs = [
        torch.randn(2, 2, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes
    ]

    def context(energy, query, key, value):
        alignment = expected_alignment(energy, -(-lengths // ratio))
        return look_back(query, key, value, alignment, lengths, ratio)

    assert torch.autograd.gradcheck(context, inputs)


@pytest.mark.parametrize("ratio", [2, 3, 7])
def test_looking_back_by_groups_equals_state_by_state(ratio):
    torch.manual_seed(10)
    lengths = torch.tensor([20, 13])
    decisions = decide_every(ratio, lengths, 20)
    energy, soft = torch.randn(2, 2, 4, -(-20 // ratio)), 5 * torch.randn(2, 2, 4, 20)
    alignment = expected_alignment(energy, decisions.counts).requires_grad_()
    soft.requires_grad_()
    grouped = infinite_lookback(alignment, soft, ratio, lengths)
    single = infinite_lookback(decisions.spread(alignment, 20), soft, 1, lengths)
    assert torch.allclose(grouped, single, atol=1e-6)
    weight = torch.randn(2, 2, 4, 20)
    ours = torch.autograd.grad((grouped * weight).sum(), (alignment, soft))
    theirs = torch.autograd.grad((single * weight).sum(), (alignment, soft))
    for item, count in enumerate(decisions.counts.tolist()):  # padding's gradient goes nowhere
        assert torch.allclose(ours[0][item, ..., :count], theirs[0][item, ..., :count], atol=1e-5)
    assert torch.allclose(ours[1], theirs[1], atol=1e-5)


def test_dropping_out_weights_keeps_their_mean_and_gradient():
    """The mask drawn in the forward pass is the one of the backward pass."""
    torch.manual_seed(11)
    alignment = torch.rand(1, 1, 50, 40).softmax(-1)
    query, key, value = (torch.randn(1, 1, n, 8, requires_grad=True) for n in (50, 40, 40))
    lengths = torch.tensor([40])
    dropped = look_back(query, key, value, alignment, lengths, dropout=0.25)
    plain = look_back(query, key, value, alignment, lengths)
    assert not torch.allclose(dropped, plain)
    assert (dropped.mean() - plain.mean()).abs() < 0.05
    ones = torch.ones_like(value, requires_grad=True)
    total = look_back(query, key, ones, alignment, lengths, dropout=0.25)
    total.sum().backward()  # linear in the values: the gradient must give the sum back
    assert torch.allclose((ones.grad * ones).sum(), total.sum(), rtol=1e-4)


@pytest.mark.parametrize("sharp", [1.0, 8.0, 30.0])
def test_two_thousand_states_stay_exact(sharp):
    torch.manual_seed(4)
    energy = sharp * torch.randn(1, 2, 5, 2000) - 3
    soft = sharp * torch.randn(1, 2, 5, 2000)
    ours = expected_alignment(energy, full(energy))
    exact = recurrence(energy[0])
    assert (ours[0] - exact).abs().max() < 2e-6
    assert (ours.sum(-1) - 1).abs().max() < 1e-5
    attention = infinite_lookback(ours, soft)
    total = soft[0].double().logcumsumexp(-1)
    back = (exact.log() - total).flip(-1).logcumsumexp(-1).flip(-1)
    assert (attention[0] - (soft[0] + back).exp()).abs().max() < 1e-4
    assert (attention.sum(-1) - 1).abs().max() < 1e-3


@pytest.mark.parametrize("offset", [-50.0, 0.0, 50.0])
def test_gradients_at_two_thousand_states_are_finite_and_right(offset):
    torch.manual_seed(5)
    energy = torch.randn(1, 1, 5, 2000) + offset
    weight = torch.randn(5, 2000)
    single, double = energy.clone().requires_grad_(), energy.double().requires_grad_()
    (expected_alignment(single, full(energy))[0, 0] * weight).sum().backward()
    (in_logs(double[0, 0]) * weight).sum().backward()
    assert torch.isfinite(single.grad).all()
    assert (single.grad - double.grad).abs().max() < 1e-5


def test_half_precision_energies_are_walked_in_single():
    torch.manual_seed(6)
    half = (5 * torch.randn(1, 2, 4, 2000) - 4).bfloat16().requires_grad_()
    soft = torch.randn(1, 2, 4, 2000).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = expected_alignment(half, full(half))
        attention = infinite_lookback(ours, soft)
    assert ours.dtype == torch.float32
    assert (ours[0] - recurrence(half[0])).abs().max() < 2e-6
    exact = infinite_lookback(ours.detach(), soft.float())
    assert attention.dtype == torch.bfloat16  # rounded once, at the end
    assert ((attention - exact).abs() <= exact / 2**8 + 1e-9).all()
    attention.float().square().sum().backward()
    assert half.grad.dtype == torch.bfloat16
    assert torch.isfinite(half.grad).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 30), st.floats(-200, 200), st.floats(0, 50), st.integers(0)
)
def test_rows_are_distributions_and_delays_never_fall(units, groups, mean, spread, seed):
    generator = torch.Generator().manual_seed(seed % 2**63)
    energy = mean + spread * torch.randn(2, 3, units, groups, generator=generator)
    counts = torch.tensor([groups, 1 + seed % groups])
    alignment = expected_alignment(energy, counts)
    assert (alignment >= 0).all()
    assert (alignment.sum(-1) - 1).abs().max() < 1e-5
    assert (alignment[1, ..., counts[1] :] == 0).all()
    delay = expected_delay(alignment, torch.arange(1, groups + 1).expand(2, -1))
    assert (delay.diff(dim=-1) > -1e-3).all()


def test_padding_does_not_matter():
    torch.manual_seed(7)
    energy, soft = torch.randn(2, 2, 4, 9), torch.randn(2, 2, 4, 9)
    padded = expected_alignment(energy, torch.tensor([9, 5]))
    alone = expected_alignment(energy[1:, ..., :5], torch.tensor([5]))
    assert torch.equal(padded[1:, ..., :5], alone)
    attention = infinite_lookback(padded, soft)
    assert torch.equal(attention[1:, ..., 5:], torch.zeros(1, 2, 4, 4))
    assert torch.allclose(
        attention[1:, ..., :5], infinite_lookback(alone, soft[1:, ..., :5]), atol=1e-7
    )


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 9))
def test_wait_k_is_a_walk_of_zeros_and_ones(k, units, groups):
    energy = waitk_energy(k, units, groups)[None, None]
    alignment = expected_alignment(energy, torch.tensor([groups]))[0, 0]
    due = [min(k + u, groups) - 1 for u in range(units)]
    assert torch.equal(alignment, torch.nn.functional.one_hot(torch.tensor(due), groups).float())
    stops, _ = first_stop(energy, torch.zeros(1, 1, dtype=torch.long), torch.tensor([groups]))
    assert stops[0, 0].tolist() == due


def test_real_stops_are_certain_alignments():
    """Energies pushed to certainty make the expectation equal the pointers of inference."""
    torch.manual_seed(8)
    energy = torch.randn(3, 4, 6, 11) - 1
    counts = torch.tensor([11, 7, 1])
    alignment = expected_alignment(1e4 * energy.sign(), counts)
    stops, wanted = first_stop(energy, torch.zeros(3, 4, dtype=torch.long), counts)
    assert torch.equal(alignment.argmax(-1), stops)
    chosen = energy.gather(-1, stops.unsqueeze(-1)).squeeze(-1)
    assert torch.equal(wanted, chosen >= 0)


def test_a_head_never_goes_back():
    stops, wanted = first_stop(
        torch.tensor([[[[1.0, -1, -1, 1, -1]]]]), torch.tensor([[2]]), torch.tensor([5])
    )
    assert stops.item() == 3
    assert wanted.item()
    stops, wanted = first_stop(
        torch.tensor([[[[1.0, -1, -1, 1, -1]]]]), torch.tensor([[2]]), torch.tensor([3])
    )
    assert stops.item() == 2
    assert not wanted.item()


def test_fixed_pre_decision_groups_states():
    lengths = torch.tensor([7, 3])
    decisions = decide_every(3, lengths, 8)
    assert decisions.ends.tolist() == [[3, 6, 7], [3, 3, 3]]
    assert decisions.counts.tolist() == [3, 1]
    states = torch.arange(16.0).view(2, 8, 1)
    assert decisions.pool(states)[0].flatten().tolist() == [1, 4, 6]
    assert decisions.pool(states)[1, 0].item() == 9
    assert decisions.pick(states)[0].flatten().tolist() == [2, 5, 6]
    alignment = torch.tensor([[0.5, 0.25, 0.25], [1, 0, 0]]).view(2, 1, 1, 3)
    spread = decisions.spread(alignment, 8).view(2, 8)
    assert spread[0].tolist() == [0, 0, 0.5, 0, 0, 0.25, 0.25, 0]
    assert spread[1].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_flexible_pre_decision_follows_triggers():
    triggers = torch.tensor([[0, 1, 0, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1, 0, 0]]).bool()
    decisions = decide_at(triggers, torch.tensor([7, 3]))
    assert decisions.ends.tolist() == [[2, 5, 7], [1, 3, 3]]
    assert decisions.counts.tolist() == [3, 2]
    assert decisions.pool(torch.arange(16.0).view(2, 8, 1))[0].flatten().tolist() == [0.5, 3, 5.5]


@pytest.mark.skipif(not find_spec("triton"), reason="triton is not installed")
def test_kernels_equal_plain_functions():
    """In Triton's interpreter, which needs no GPU; it must be chosen before triton is imported."""
    script = Path(__file__).with_name("walk_kernels.py")
    path = os.pathsep.join(filter(None, (str(script.parents[3]), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    subprocess.run([sys.executable, str(script)], check=True, env=environment)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("ratio", [1, 7])
@pytest.mark.parametrize("states", [1, 143, 1000, 2000])
@pytest.mark.parametrize(("kind", "close"), [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)])
def test_kernels_equal_plain_functions_on_the_device(states, ratio, kind, close):
    from tests.train.nets.walk_kernels import check

    check("cuda", 10, states, ratio, kind, close)

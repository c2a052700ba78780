"""Expected alignment and lookback against enumeration, sampling and the plain recurrence."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.nets.layers import join_heads
from dragoman.train.nets.monotonic import alignment as walk
from dragoman.train.nets.monotonic.decisions import (
    Decisions,
    decide_at,
    decide_every,
    first_stop,
    waitk_energy,
)
from dragoman.train.nets.monotonic.expectation import HeadSettings
from dragoman.train.nets.monotonic.expectation import read as read_side_by_side


def read(energy, value, decisions, soft, dropout=0.0):
    """With heads apart: what is read of values [B, H, S or G, K] under energies [B, H, U, G], and
    the delays; soft: queries [B, H, U, K] and keys [B, H, S, K], or None."""
    settings = HeadSettings(energy.shape[1], soft is not None, decisions, dropout=dropout)
    memory, queries = join_heads(value), None
    if soft:
        queries = join_heads(soft[0] * value.shape[-1] ** 0.5)
        memory = torch.cat([join_heads(soft[1]), memory], -1)
    context, delays, _ = read_side_by_side(settings, memory, queries, energy=energy)
    return context.unflatten(-1, (energy.shape[1], -1)).transpose(1, 2), delays


def expected_alignment(energy, counts):
    """The weights of hard attention themselves: what is read of one-hot values."""
    groups = energy.shape[-1]
    kind = torch.float64 if energy.dtype == torch.float64 else torch.float32
    one_hot = torch.eye(groups, dtype=kind).expand(*energy.shape[:2], groups, groups)
    with torch.autocast("cpu", enabled=False):
        return read(energy, one_hot, decide_every(1, counts, groups), None)[0]


class LookBack(torch.autograd.Function):
    """The plain walk with its own gradient."""

    @staticmethod
    def forward(ctx, alignment, energy, lengths):
        ctx.save_for_backward(alignment, energy, lengths)
        return walk.look_back(alignment, energy, lengths, 1)

    @staticmethod
    def backward(ctx, grad):
        return *walk.look_back_backward(grad, *ctx.saved_tensors, 1), None


def infinite_lookback(alignment, energy):
    """The weights of soft attention under an alignment, both [B, H, U, S]"""
    lengths = full(energy).repeat_interleave(energy.shape[1])
    return LookBack.apply(alignment.flatten(0, 1), energy.flatten(0, 1), lengths).view_as(energy)


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

    def reading(energy, query, key, value):
        return read(energy, value, decide_every(ratio, lengths, 7), (query, key))

    assert torch.autograd.gradcheck(reading, inputs)


def test_gradcheck_of_hard_attention():
    torch.manual_seed(3)
    inputs = [torch.randn(2, 2, *shape, dtype=torch.float64, requires_grad=True)
              for shape in ((3, 3), (3, 2))]  # fmt: skip
    decisions = decide_every(3, torch.tensor([7, 4]), 7)
    assert torch.autograd.gradcheck(lambda *x: read(*x, decisions, None), inputs)


@pytest.mark.parametrize("ratio", [2, 3, 7])
def test_looking_back_by_groups_equals_state_by_state(ratio):
    torch.manual_seed(10)
    lengths = torch.tensor([20, 13])
    decisions = decide_every(ratio, lengths, 20)
    anywhere = Decisions(decisions.ends, decisions.counts, 20)  # as if nothing were known of them
    shapes = ((4, -(-20 // ratio)), (4, 3), (20, 3), (20, 3))
    energy, query, key, value = inputs = [
        (2 * torch.randn(2, 2, *shape)).requires_grad_() for shape in shapes
    ]
    grouped, single = (read(energy, value, d, (query, key)) for d in (decisions, anywhere))
    for ours, theirs in zip(grouped, single, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
        weight = torch.randn_like(ours)
        gradients = (
            torch.autograd.grad((x * weight).sum(), inputs, retain_graph=True, allow_unused=True)
            for x in (ours, theirs)
        )
        for a, b in zip(*gradients, strict=True):
            assert torch.allclose(a, b, atol=1e-4)


def test_delays_are_what_is_read_on_average():
    torch.manual_seed(12)
    energy, lengths = torch.randn(2, 3, 4, 3), torch.tensor([7, 4])
    decisions = decide_every(3, lengths, 7)
    _, delays = read(energy, torch.zeros(2, 3, 3, 1), decisions, None)
    alignment = expected_alignment(energy, decisions.counts)
    assert torch.allclose(delays, (alignment * decisions.ends[:, None, None]).sum(-1))


def test_little_is_kept_for_the_gradient():
    """Of all that has the size of the energies, only the energies."""
    shapes = ((5, 64), (5, 8), (64, 8), (64, 8))
    inputs = [torch.randn(2, 2, *shape, requires_grad=True) for shape in shapes]
    energy, query, key, value = inputs
    kept = {}

    def note(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        read(energy, value, decide_every(1, torch.tensor([64, 50]), 64), (query, key), 0.1)
    sizes = [t.numel() for t in kept.values() if t.is_floating_point()]
    assert sorted(sizes) == sorted(x.numel() for x in inputs)


def test_dropping_out_weights_keeps_their_mean_and_gradient():
    """The mask drawn in the forward pass is the one of the backward pass."""
    torch.manual_seed(11)
    energy = torch.randn(1, 1, 50, 40) - 3
    query, key, value = (torch.randn(1, 1, n, 8, requires_grad=True) for n in (50, 40, 40))
    decisions, soft = decide_every(1, torch.tensor([40]), 40), (query, key)
    dropped, _ = read(energy, value, decisions, soft, dropout=0.25)
    plain, _ = read(energy, value, decisions, soft)
    assert not torch.allclose(dropped, plain)
    assert (dropped.mean() - plain.mean()).abs() < 0.05
    ones = torch.ones_like(value, requires_grad=True)
    total, _ = read(energy, ones, decisions, soft, dropout=0.25)
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
    delay = (alignment * torch.arange(1, groups + 1)).sum(-1)
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


def test_flexible_pre_decision_follows_triggers():
    triggers = torch.tensor([[0, 1, 0, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1, 0, 0]]).bool()
    whole = decide_at(triggers, torch.tensor([7, 3]))
    assert whole.ends.shape == (2, 8)
    decisions = whole.trimmed()
    assert decisions.ends.tolist() == [[2, 5, 7], [1, 3, 3]]
    assert decisions.counts.tolist() == [3, 2]
    assert decisions.pool(torch.arange(16.0).view(2, 8, 1))[0].flatten().tolist() == [0.5, 3, 5.5]


on_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
KINDS = [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)]


@on_device
@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("ratio", [1, 3, 7, None])
@pytest.mark.parametrize("states", [1, 37, 143, 1000])
@pytest.mark.parametrize(("kind", "close"), KINDS)
def test_kernels_equal_plain_functions_on_the_device(soft, states, ratio, kind, close):
    from tests.train.nets.monotonic_kernels import check

    sizes = {"units": 40, "states": states, "head": 64, "noise": 1.0, "dropout": 0.1}
    check("cuda", kind, close, soft=soft, ratio=ratio, **sizes)


@on_device
@pytest.mark.parametrize(("kind", "close"), KINDS)
@pytest.mark.parametrize("head", [16, 24, 32, 128])
def test_kernels_take_heads_of_any_size(head, kind, close):
    from tests.train.nets.monotonic_kernels import check

    for soft in (True, False):
        check("cuda", kind, close, soft=soft, ratio=3, states=150, head=head, dropout=0.1)


@on_device
@pytest.mark.parametrize(("kind", "close"), KINDS)
def test_kernels_take_given_and_large_energies_and_seeds_on_the_device(kind, close):
    from tests.train.nets import monotonic_kernels

    for soft in (True, False):
        monotonic_kernels.check_given_energies("cuda", kind, close, soft)
    monotonic_kernels.check_large_energies("cuda", kind)
    monotonic_kernels.check_random("cuda")
    monotonic_kernels.check_seeds("cuda")
    monotonic_kernels.check_little_is_kept("cuda")
    monotonic_kernels.check_trial("cuda")


@on_device
@pytest.mark.parametrize("attention", ["infinite", "hard"])
@pytest.mark.parametrize("policy", [{"energy_bias": -1.0}, {"wait": 2}])
@pytest.mark.parametrize("ratio", [1, 3])
def test_a_decoder_with_kernels_equals_one_without(attention, policy, ratio):
    from tests.train.nets.monotonic_kernels import check_decoder

    check_decoder("cuda", attention=attention, ratio=ratio, **policy)

"""Triton's kernels against autograd through plain functions. Random numbers are taken out of the
kernels and given to the plain functions."""

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import torch

from dragoman.train.nets.layers import LayerConfig, join_heads, split_heads
from dragoman.train.nets.mma import MonotonicDecoder
from dragoman.train.nets.monotonic import alignment as walk
from dragoman.train.nets.monotonic import expectation as monotonic
from dragoman.train.nets.monotonic import expectation_plain, expectation_triton
from dragoman.train.nets.monotonic.attention import MonotonicConfig
from dragoman.train.nets.monotonic.decisions import decide_at, decide_every, waitk_energy
from dragoman.train.nets.monotonic.expectation import HeadSettings
from dragoman.train.nets.monotonic.expectation_plain import stop_energies
from dragoman.train.nets.monotonic.products_triton import multiply, one_by_one, side_by_side

SEED = 5


def decisions_of(ratio, lengths, states):
    if ratio:
        return decide_every(ratio, lengths, states)
    triggers = torch.rand(len(lengths), states, device=lengths.device) < 0.3
    return decide_at(triggers, lengths).trimmed()


def problem(device, kind, soft, ratio, units=5, states=37, head=16, heads=2, sharp=1.0, **rates):
    """How to read, and memory, queries, stop keys and a bias, of two items."""
    torch.manual_seed(0)
    lengths = torch.tensor([states, (states + 1) // 2], device=device)
    decisions = decisions_of(ratio, lengths, states)
    size, groups = heads * head, decisions.ends.shape[1]
    shapes = [
        (2, states, 2 * size) if soft else (2, groups, size),
        (2, units, 2 * size if soft else size),
        (2, groups, size),
    ]
    inputs = [torch.randn(shape, device=device).to(kind) for shape in shapes]
    inputs[1] *= sharp
    bias = torch.tensor(-0.5, device=device)
    settings = HeadSettings(heads, soft, decisions, **rates, energies=True)
    return settings, [x.requires_grad_() for x in (*inputs, bias)]


def drawn(device, what, seed, amount, like):
    """Noise, or what dropout multiplies with, as kernels draw it for [B, H, U, S or G]."""
    batch, heads, units, places = like
    out = torch.empty(like, device=device)
    one, many = (torch.full((batch, n, heads), float(what != "noise"), device=device)
                 for n in (units, places))  # fmt: skip
    left, right = side_by_side(one, heads), side_by_side(many, heads).transposed
    multiply(left, right, one_by_one(out), random=(what, seed, amount))
    return out


def explicit(kind, settings, memory, queries, stop_key, bias, energy):
    """The same by autograd, in double precision, with energies of stopping rounded to a kind."""
    torch.manual_seed(SEED)
    noise_seed, drop_seed = expectation_triton.draw_seeds(memory.device)
    heads, decisions = settings.heads, settings.decisions
    clean = energy
    if energy is None:
        clean = stop_energies(queries[..., -stop_key.shape[-1] :], stop_key, bias, heads)
    shape = (len(memory), heads, *clean.shape[2:])
    energy = clean.expand(shape)
    if settings.noise:
        energy = energy + drawn(memory.device, "noise", noise_seed, settings.noise, shape)
    energy = energy + (energy.to(kind) - energy).detach()
    ends, counts = (x.repeat_interleave(heads, 0) for x in (decisions.ends, decisions.counts))
    alignment = walk.align(energy.flatten(0, 1), counts)
    weights = alignment
    if settings.soft:
        key, memory = memory.chunk(2, -1)
        query = split_heads(queries[..., : key.shape[-1]], heads)
        key = split_heads(key, heads)
        soft = (query @ key.transpose(2, 3) * key.shape[-1] ** -0.5).flatten(0, 1)
        place = (ends - 1).unsqueeze(1).expand_as(alignment)
        weights = torch.zeros_like(soft).scatter_add(-1, place, alignment)
        weights = walk.look_back(weights, soft, ends[:, -1], 1)
    weights = weights.unflatten(0, shape[:2])
    if settings.dropout:
        weights = weights * drawn(
            memory.device, "drop out", drop_seed, settings.dropout, weights.shape
        )
    delays = (alignment * ends.unsqueeze(1)).sum(-1).unflatten(0, shape[:2])
    return join_heads(weights @ split_heads(memory, heads)), delays, clean


def results(read, settings, inputs, energy=None):
    """Outputs and gradients of all that was given."""
    torch.manual_seed(SEED)
    outputs = read(settings, *inputs, energy)
    generator = torch.Generator().manual_seed(1)
    loss = sum(
        (x.double() * torch.randn(x.shape, generator=generator).to(x.device)).sum() / size
        for x, size in zip(outputs, (1, settings.decisions.states, 1), strict=True)
        if x is not energy
    )
    given = [x for x in (*inputs, energy) if x is not None and x.requires_grad]
    return [x.detach() for x in (*outputs, *torch.autograd.grad(loss, given))]


def check(device, kind, close, **settings):
    """Every number, or in half precision most of what is there."""
    settings, inputs = problem(device, kind, **settings)
    compare(results(expectation_triton.read, settings, inputs), settings, inputs, None, close)


def compare(found, settings, inputs, energy, close):
    doubles = [None if x is None else x.detach().double().requires_grad_() for x in inputs]
    if energy is not None:
        energy = energy.detach().double().requires_grad_(energy.requires_grad)
    expected = results(partial(explicit, inputs[0].dtype), settings, doubles, energy)
    for x, y in zip(found, expected, strict=True):
        if x.dtype == torch.float32 and close < 1e-3:
            torch.testing.assert_close(x.double(), y, atol=close, rtol=close)
        else:
            many = 20.0 if y.ndim == 0 else 1e-4  # the bias's: a long sum of both signs
            assert (x - y).norm() <= close * (y.norm() + many), ((x - y).norm(), y.norm())


def check_given_energies(device, kind, close, soft):
    """Wait-k, the same for all heads, and any others."""
    settings, (memory, queries, _, _) = problem(device, kind, soft, ratio=3)
    query = queries.detach()[..., : settings.heads * 16].clone().requires_grad_()
    inputs = [memory, query if soft else None, None, None]
    groups = settings.decisions.ends.shape[1]
    fixed = waitk_energy(2, queries.shape[1], groups, device)[None, None]
    free = torch.randn(2, settings.heads, queries.shape[1], groups, device=device).to(kind)
    for energy in (fixed, free.requires_grad_()):
        found = results(expectation_triton.read, settings, inputs, energy)
        compare(found, settings, inputs, energy, close)


def check_large_energies(device, kind):
    """Nothing overflows; what is read is a mean."""
    settings, inputs = problem(device, kind, soft=True, ratio=3, sharp=20.0)
    memory, size = inputs[0], inputs[2].shape[-1]
    found = results(expectation_triton.read, settings, inputs)
    assert all(torch.isfinite(x).all() for x in found)
    with torch.no_grad():
        memory[..., size:] = 1.0
        context, _, _ = expectation_triton.read(settings, *inputs, None)
    assert (context - 1).abs().max() < 1e-2


def check_random(device):
    """The draws have the right distribution, and depend on the seed, the head and the place."""
    shape = (2, 2, 30, 60)
    for what, amount in (("noise", 1.0), ("drop out", 0.25)):
        seed, other = torch.tensor([3, 4], dtype=torch.int32, device=device).split(1)
        x = drawn(device, what, seed, amount, shape)
        assert torch.equal(x, drawn(device, what, seed, amount, shape))
        assert not torch.equal(x, drawn(device, what, other, amount, shape))
        heads = x.flatten(0, 1).flatten(1)
        assert (torch.corrcoef(heads) - torch.eye(4, device=device)).abs().max() < 0.1
        count = x.numel() ** 0.5
        if what == "noise":
            assert x.mean().abs() < 5 / count
            assert (x.square().mean() - 1).abs() < 5 * 2**0.5 / count
            assert (x.pow(4).mean() - 3).abs() < 5 * 96**0.5 / count
        else:
            assert set(x.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
            assert ((x > 0).float().mean() - 0.75).abs() < 5 * 0.1875**0.5 / count


def check_seeds(device):
    """The same state of torch's generator, the same noise and dropout."""
    few = {"units": 2, "states": 9, "noise": 1.0, "dropout": 0.3}
    settings, inputs = problem(device, torch.float32, True, 3, **few)
    first, second = (results(expectation_triton.read, settings, inputs) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    drawn_since = [*expectation_triton.draw_seeds(device), *expectation_triton.draw_seeds(device)]
    assert len({int(seed) for seed in drawn_since}) == 4  # others for every step, and for both uses
    calm = expectation_triton.read(replace(settings, noise=0.0, dropout=0.0), *inputs, None)
    assert not torch.allclose(first[0], calm[0], atol=1e-2)


def check_decoder(device, **settings):
    """A whole decoder: logits, delays, energies and the gradients of all its weights."""
    torch.manual_seed(0)
    config = LayerConfig(32, 2, 16, 0.0, 0.0, 0.0)
    decoder = MonotonicDecoder(9, 2, config, MonotonicConfig(noise=0.0, **settings)).to(device)
    tokens, lengths = torch.tensor([[1, 4, 5], [1, 7, 8]]), torch.tensor([13, 8])
    states = torch.randn(2, 13, 32, device=device)
    found = []
    for implementation in (expectation_triton, expectation_plain):
        with patch.object(monotonic, "_implementation", return_value=implementation):
            decisions = decide_every(settings["ratio"], lengths.to(device), 13)
            aligned = decoder.align(tokens.to(device), states, decisions, energies=True)
        loss = aligned.logits.square().sum() + aligned.delays.square().mean()
        loss = loss + sum(e.square().sum() for e in aligned.energies)
        decoder.zero_grad()
        loss.backward()
        gradients = [p.grad for p in decoder.parameters() if p.grad is not None]
        found.append([aligned.logits, aligned.delays, *aligned.energies, *gradients])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, atol=2e-4, rtol=2e-4)


@torch.inference_mode()
def check_trial(device):
    """What kernels must show before they are used, also if validation comes before training."""
    for soft in (True, False):
        found, expected = (
            monotonic._try(x, soft, device) for x in (expectation_triton, expectation_plain)
        )
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def check_little_is_kept(device):
    """Nothing of the size of the energies, where a decision is taken at every state."""
    settings, inputs = problem(device, torch.float32, True, 1, noise=1.0, dropout=0.3)
    kept = {}

    def note(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        expectation_triton.read(replace(settings, energies=False), *inputs, None)
    assert kept.keys() == {x.untyped_storage().data_ptr() for x in inputs}


def check_all(device):
    """What the interpreter can do in bearable time; a device is asked for more."""
    single, half = (torch.float32, 2e-5), (torch.float16, 1e-2)  # bfloat16 it cannot multiply
    check_random(device)
    for soft in (True, False):
        check(device, *single, soft=soft, ratio=1, states=1)
        check(device, *single, soft=soft, ratio=1, noise=1.0, dropout=0.25)
        check(device, *single, soft=soft, ratio=3, units=18, noise=1.0, dropout=0.25, heads=1)
        check(device, *single, soft=soft, ratio=7, states=20, head=24)
        check(device, *single, soft=soft, ratio=None)
        check(device, *half, soft=soft, ratio=3, states=70, dropout=0.25)
        check_given_energies(device, *single, soft)
    check(device, *single, soft=True, ratio=3, states=67, head=64, heads=1)
    check_large_energies(device, torch.float32)
    check_seeds(device)
    check_little_is_kept(device)
    check_trial(device)
    for attention in ("infinite", "hard"):
        check_decoder(device, attention=attention, ratio=3, energy_bias=-1.0)
        check_decoder(device, attention=attention, ratio=3, wait=2)

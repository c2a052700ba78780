"""Triton's kernels of losses against PyTorch."""

from functools import partial

import torch
import torch.nn.functional as F

from dragoman.train.losses import ctc_triton, entropy_triton

PAD = 0


def plain_ctc(logits, lengths, targets, target_lengths, blank, kind=torch.double):
    """By PyTorch, in double precision."""
    return F.ctc_loss(
        logits.to(kind).log_softmax(-1).transpose(0, 1),
        targets,
        lengths,
        target_lengths,
        blank=blank,
        reduction="sum",
        zero_infinity=True,
    )


def both(function, plain, logits, *rest):
    """Value and gradient on the logits, times a number that is given, of both."""
    found = []
    for f in (function, plain):
        x = logits.clone().requires_grad_()
        value = f(x, *rest)
        (gradient,) = torch.autograd.grad(0.25 * value, x)
        found.append((value.detach().double(), gradient.double()))
    return found


def check_ctc(device, kind, close, states=23, units=40, wanted=9):
    """Items of many lengths: repeats, one label, no room for all labels, labels to the last."""
    torch.manual_seed(0)
    lengths = torch.tensor(
        [states, states, states - 3, wanted - 1, 5, min(2 * wanted, states), 1, 1]
    )
    target_lengths = torch.tensor([wanted, wanted - 2, 1, wanted, 5, wanted, 1, 2])
    items = len(lengths)
    logits = 3 * torch.randn(items, states, units + 1)
    targets = torch.randint(1, units, (items, wanted))
    targets[1] = 7  # the same unit again and again: every time a blank between
    targets[5, ::2] = targets[5, 1]
    targets[torch.arange(wanted) >= target_lengths[:, None]] = PAD
    given = (t.to(device) for t in (logits, lengths, targets, target_lengths))
    logits, *rest = given
    logits = logits.to(kind)
    ours, theirs = both(ctc_triton.ctc, plain_ctc, logits, *rest, units)
    # Sums over hundreds of states round more, PyTorch's as well.
    in_floats, _ = both(partial(plain_ctc, kind=torch.float), plain_ctc, logits, *rest, units)
    rounded = float((in_floats[1] - theirs[1]).abs().max())
    torch.testing.assert_close(ours[0], theirs[0], rtol=close, atol=close)
    torch.testing.assert_close(ours[1], theirs[1], rtol=0, atol=max(close, 2 * rounded))
    assert ours[1].abs().max() > 0.05
    assert not ours[1][3].any()  # no path: counts as nothing


def check_ctc_of_one(device):
    """Alone, an item has the gradient that it has in a batch, wherever that is padded to."""
    torch.manual_seed(1)
    logits, target = torch.randn(1, 6, 11, device=device), torch.tensor([[3, 3, 5]], device=device)
    lengths = [torch.tensor([n], device=device) for n in (6, 3)]
    alone = logits.clone().requires_grad_()
    ctc_triton.ctc(alone, lengths[0], target, lengths[1], 10).backward()
    padded = F.pad(logits, (0, 0, 0, 4)).requires_grad_()
    wide = F.pad(target, (0, 30))
    ctc_triton.ctc(padded, lengths[0], wide, lengths[1], 10).backward()
    torch.testing.assert_close(padded.grad[:, :6], alone.grad)
    assert not padded.grad[:, 6:].any()


def check_entropy(device, kind, close, units=50):
    torch.manual_seed(0)
    logits = (2 * torch.randn(3, 7, units)).to(device).to(kind)
    labels = torch.randint(1, units, (3, 7)).to(device)
    labels[0, 4:] = PAD
    labels[1, 0] = logits[1, 0].argmax()
    for smoothing in (0.0, 0.1):

        def plain(x, labels, smoothing=smoothing):
            flat = x.flatten(0, 1).double()
            return F.cross_entropy(
                flat, labels.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
            )

        def fused(x, labels, smoothing=smoothing):
            return entropy_triton.entropy(x, labels, smoothing, PAD)[0]

        ours, theirs = both(fused, plain, logits, labels)
        torch.testing.assert_close(ours[0], theirs[0], rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(ours[1], theirs[1], rtol=0, atol=close)
        _, nll, right = entropy_triton.entropy(logits, labels, smoothing, PAD)
        wanted = plain(logits, labels, 0.0)
        torch.testing.assert_close(nll.double(), wanted, rtol=1e-4, atol=1e-3)
        best = (logits.argmax(-1) == labels) & (labels != PAD)
        assert int(right) == int(best.sum()) >= 1


def check_all(device, kind=torch.float32, close=1e-4):
    check_ctc(device, kind, close)
    check_ctc(device, kind, close, states=25, units=1100, wanted=12)
    check_ctc_of_one(device)
    check_entropy(device, kind, close)
    check_entropy(device, kind, close, units=2500)

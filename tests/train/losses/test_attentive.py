"""CAR and DAR against loops over the papers' equations, one sentence at a time."""

import pytest
import torch

from dragoman.train.losses.attentive import cross_attentive, decision_attentive


def unit(v):
    return v / v.norm()


def mix(weights, vectors):
    """sum_i softmax(weights)_i vectors_i"""
    return sum(w * v for w, v in zip(torch.stack(weights).softmax(0), vectors, strict=True))


def looped_car(speech, text):
    """speech [K, D], text [L, D]"""
    speech, text = [unit(y) for y in speech], [unit(x.detach()) for x in text]
    total = 0
    for x in text:
        from_speech = mix([x @ y for y in speech], speech)
        from_text = mix([x @ z for z in text], text)
        total = total + (from_speech - from_text).norm()
    return total


def looped_dar(speech, text, per_head, unit_values):
    """One layer of one sentence, equations 7-11: speech [H, U, K], text [H, U, L]"""

    def columns(energies):  # (7), (8): the heads' columns side by side
        return [energies[h][:, j] for h in range(len(energies)) for j in range(energies.shape[2])]

    if per_head:
        pairs = zip(speech, text, strict=True)
        heads = [looped_dar(s[None], t[None], False, unit_values) for s, t in pairs]
        return sum(heads) / len(heads)
    source, reference = columns(speech), columns(text.detach())
    total = 0
    for column in reference:
        rebuilt = []
        for side in (source, reference):
            cosines = [a @ column / (a.norm() * column.norm()) for a in side]  # (9)
            values = [unit(a) for a in side] if unit_values else side
            rebuilt.append(mix(cosines, values))  # (10)
        total = total + (rebuilt[0] - rebuilt[1]).norm() / len(reference)  # (11)
    return total


LENGTHS = [(6, 3), (4, 2)]  # of speech and text, two sentences


def test_car_equals_the_loop_and_leaves_the_text_alone():
    torch.manual_seed(0)
    speech = torch.randn(2, 6, 4, requires_grad=True)
    text = torch.randn(2, 3, 4, requires_grad=True)
    k, n = (torch.tensor(column) for column in zip(*LENGTHS, strict=True))
    loss = cross_attentive(speech, k, text, n)
    expected = sum(looped_car(speech[b, :i], text[b, :j]) for b, (i, j) in enumerate(LENGTHS))
    torch.testing.assert_close(loss, expected)
    ours = torch.autograd.grad(loss, (speech, text), allow_unused=True)
    theirs = torch.autograd.grad(expected, speech)[0]
    torch.testing.assert_close(ours[0], theirs)
    assert ours[1] is None


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("unit_values", [False, True])
def test_dar_equals_the_loop_and_leaves_the_text_alone(per_head, unit_values):
    torch.manual_seed(1)
    speech = [torch.randn(2, 2, 5, 6, requires_grad=True) for _ in range(3)]
    text = [torch.randn(2, 2, 5, 3, requires_grad=True) for _ in range(3)]
    k, n = (torch.tensor(column) for column in zip(*LENGTHS, strict=True))
    units = torch.tensor([5, 4])
    options = {"per_head": per_head, "unit_values": unit_values}
    loss = decision_attentive(speech, text, k, n, units, **options)
    expected = 0
    for s, t in zip(speech, text, strict=True):
        for b, (i, j) in enumerate(LENGTHS):
            u = units[b]
            layer = looped_dar(s[b, :, :u, :i], t[b, :, :u, :j], per_head, unit_values)
            expected = expected + layer / 3  # (12)
    torch.testing.assert_close(loss, expected)
    ours = torch.autograd.grad(loss, [*speech, *text], allow_unused=True)
    theirs = torch.autograd.grad(expected, speech)
    for a, b in zip(ours[:3], theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert ours[3:] == (None, None, None)


def test_dar_of_equal_decisions_is_zero_and_order_does_not_matter():
    torch.manual_seed(2)
    text, speech = torch.randn(1, 2, 4, 5), torch.randn(1, 2, 4, 7)
    n, k, units = torch.tensor([5]), torch.tensor([7]), torch.tensor([4])
    same = decision_attentive([text.clone().requires_grad_()], [text], n, n, units)
    assert same.item() == pytest.approx(0, abs=1e-5)
    shuffled = speech[..., torch.randperm(7)]
    torch.testing.assert_close(
        decision_attentive([shuffled], [text], k, n, units),
        decision_attentive([speech], [text], k, n, units),
    )


def test_identical_sides_give_no_nan():
    text = torch.randn(1, 4, 3)
    speech = text.clone().requires_grad_()
    lengths = torch.tensor([4])
    cross_attentive(speech, lengths, text, lengths).backward()
    assert torch.isfinite(speech.grad).all()

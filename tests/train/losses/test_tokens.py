"""Token losses against sums written out by hand."""

import math

import torch

from dragoman.train.losses.tokens import boundaries, cross_entropy, ctc, distillation


def test_cross_entropy_is_the_smoothed_sum_over_real_tokens():
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 3, 5), torch.tensor([[4, 2, 0], [3, 0, 0]])
    expected = 0.0
    for b, u, token in ((0, 0, 4), (0, 1, 2), (1, 0, 3)):
        log_p = logits[b, u].log_softmax(-1)
        expected -= sum((0.9 * (v == token) + 0.1 / 5) * log_p[v].item() for v in range(5))
    assert math.isclose(cross_entropy(logits, targets, 0.1).item(), expected, rel_tol=1e-5)


def test_cross_entropy_of_half_logits_is_single():
    logits = torch.randn(2, 3, 5).bfloat16().requires_grad_()
    loss = cross_entropy(logits, torch.tensor([[4, 2, 0], [3, 0, 0]]))
    assert loss.dtype == torch.float32
    loss.backward()
    assert (logits.grad[1, 1:] == 0).all()


def test_ctc_sums_over_alignments():
    """Two states, one unit: 'a-', '-a', 'aa'."""
    logits = torch.randn(1, 2, 3, generator=torch.Generator().manual_seed(1))
    p = logits[0].softmax(-1)
    paths = p[0, 1] * p[1, 2] + p[0, 2] * p[1, 1] + p[0, 1] * p[1, 1]
    one = torch.tensor([1])
    loss = ctc(logits, torch.tensor([2]), torch.tensor([[1]]), one, blank=2)
    assert math.isclose(loss.item(), -paths.log().item(), rel_tol=1e-5)


def test_ctc_without_a_path_is_zero_and_gives_no_gradient():
    logits = torch.randn(1, 2, 4, requires_grad=True)
    loss = ctc(logits, torch.tensor([2]), torch.tensor([[1, 2, 1]]), torch.tensor([3]), blank=3)
    loss.backward()
    assert loss.item() == 0
    assert (logits.grad == 0).all()


def test_distillation_teaches_the_student_only():
    torch.manual_seed(2)
    student = torch.randn(1, 3, 4, requires_grad=True)
    teacher = torch.randn(1, 3, 4, requires_grad=True)
    loss = distillation(student, teacher, torch.tensor([[3, 2, 0]]))
    expected = -sum(
        (teacher[0, u].softmax(-1) * student[0, u].log_softmax(-1)).sum() for u in range(2)
    )
    assert math.isclose(loss.item(), expected.item(), rel_tol=1e-5)
    loss.backward()
    assert teacher.grad is None
    assert (student.grad[0, 2] == 0).all()


def test_boundaries_count_real_states_and_emphasise_ends():
    logits = torch.tensor([[2.0, -1.0, 9.0]])
    loss = boundaries(logits, torch.tensor([[1, 0, 1]]), torch.tensor([2]), emphasis=3.0)
    expected = 3 * math.log1p(math.exp(-2)) + math.log1p(math.exp(-1))
    assert math.isclose(loss.item(), expected, rel_tol=1e-5)

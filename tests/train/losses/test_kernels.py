"""CTC and cross entropy as Triton kernels, on a GPU."""

import pytest
import torch

on_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@on_device
@pytest.mark.parametrize(("kind", "close"), [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)])
def test_kernels_equal_pytorch_on_the_device(kind, close):
    from tests.train.losses import loss_kernels

    loss_kernels.check_all("cuda", kind, close)
    for states, units, wanted in ((300, 5000, 70), (500, 200, 260), (60, 31, 15)):
        loss_kernels.check_ctc("cuda", kind, close, states, units, wanted)
    loss_kernels.check_entropy("cuda", kind, close, units=8000)


@on_device
def test_losses_use_the_kernels_on_a_device():
    from dragoman.train.losses import tokens

    assert tokens._kernels() is not None

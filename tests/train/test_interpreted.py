"""Triton's kernels where there is no GPU to run them."""

from importlib.util import find_spec

import pytest
import torch

from tests.train.interpreted import check_interpreted


@pytest.mark.skipif(not find_spec("triton"), reason="triton is not installed")
@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run for real, beside their nets")
@pytest.mark.slow
def test_kernels_equal_plain_functions():
    """All in one process: to start one takes as long as half of them."""
    check_interpreted(
        *("nets.monotonic_kernels", "losses.loss_kernels"),
        *("nets.depthwise_kernels", "nets.residual_kernels"),
    )

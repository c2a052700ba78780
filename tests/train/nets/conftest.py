import pytest
import torch

from dragoman.train.nets.base import Net
from tests.train.nets.tiny_nets import TINY, tiny

torch.set_num_threads(1)  # tiny products: threads that wait for each other only cost


@pytest.fixture(params=TINY, ids=lambda label: label.replace(", ", "-"))
def net(request) -> Net:
    """Every tiny net in turn."""
    return tiny(request.param)

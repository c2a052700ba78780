import pytest
from tiny_nets import TINY, tiny

from dragoman.train.nets.base import Net


@pytest.fixture(params=TINY, ids=lambda label: label.replace(", ", "-"))
def net(request) -> Net:
    """Every tiny net in turn."""
    return tiny(request.param)

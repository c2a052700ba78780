"""The kernels of the depthwise convolution against PyTorch's."""

from unittest.mock import patch

import torch

from dragoman.train.nets import depthwise_triton
from dragoman.train.nets.depthwise import trial


def check_all(device):
    device = torch.device(device)
    trial(device)
    trial(device, batch=2, time=33, size=70, taps=31)  # more taps than rows on either side
    trial(device, batch=1, time=1, size=1, taps=3)
    with patch.object(depthwise_triton, "PARTS", 8):  # of three rows each, and two for the last
        trial(device, batch=4, time=5, size=8, taps=7)

"""The kernels between branches against PyTorch's."""

import torch

from dragoman.train.nets.residual import trial


def check_all(device):
    device = torch.device(device)
    trial(device)
    trial(device, rows=5, size=192, last=True)
    trial(device, rows=1100, size=6)  # more rows than one program of the backward pass takes
    trial(device, rows=40, size=64, kind=torch.bfloat16)
    trial(device, rows=40, size=64, kind=torch.bfloat16, last=True)
    trial(device, rows=400, size=256, kind=torch.bfloat16)  # such a one once failed by itself

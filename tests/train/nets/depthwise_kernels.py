"""The kernels of the depthwise convolution against PyTorch's; as a script, in the interpreter."""

import torch

from dragoman.train.nets.depthwise import trial


def check_all(device):
    trial(device)
    trial(device, batch=3, time=33, size=70, taps=31)  # more taps than rows on either side
    trial(device, batch=1, time=1, size=1, taps=3)
    trial(device, batch=40, time=17, size=8, taps=7)


if __name__ == "__main__":
    check_all(torch.device("cpu"))

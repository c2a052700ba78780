"""What a GPU works on: kernels by their share of its time, and how much of the time it waits."""

import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile


def show_kernels(work: Callable[[], None]) -> None:
    """What the device does in a pass, and for how long it has nothing to do."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        wall = time.perf_counter() - begun
    kernels = sorted(profiled.key_averages(), key=lambda k: -k.self_device_time_total)
    busy = sum(kernel.self_device_time_total for kernel in kernels) / 1e6
    count = sum(kernel.count for kernel in kernels)
    print(f"  {count} kernels, device busy {busy / wall:.0%} of {1000 * wall:.0f} ms")
    for kernel in kernels[:28]:
        share = kernel.self_device_time_total / 1e6 / busy
        print(f"  {share:6.1%} {kernel.count:5} x {kernel.key[:110]}", flush=True)

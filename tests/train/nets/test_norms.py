"""Batch normalisation over two processes is that of one with both their batches."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from dragoman.train.nets.norms import MaskedBatchNorm
from tests.train.copies import METHOD


def example() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x, mask = torch.randn(4, 6, 3) * 2 + 1, torch.ones(4, 6, 1)
    mask[1, 2:] = 0
    mask[3, 5:] = 0
    return x, mask


def gradients(x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a loss that is a sum over items: with respect to x, and the running mean after it."""
    norm, x = MaskedBatchNorm(3), x.clone().requires_grad_()
    (torch.sin(norm(x, mask)) * mask).sum().backward()
    return x.grad, norm.running_mean


def one_of_two(rank: int, folder: str) -> None:
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    x, mask = example()
    mine = slice(0, 1) if rank == 0 else slice(1, 4)
    torch.save(gradients(x[mine], mask[mine]), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_are_one():
    with tempfile.TemporaryDirectory() as folder:
        processes.start_processes(one_of_two, (folder,), nprocs=2, start_method=METHOD)
        first, second = (torch.load(Path(folder) / f"{rank}.pt") for rank in range(2))
    gradient, mean = gradients(*example())
    torch.testing.assert_close(torch.cat([first[0], second[0]]), gradient, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(first[1], mean)
    torch.testing.assert_close(second[1], mean)

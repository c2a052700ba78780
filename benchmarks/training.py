"""How fast Conformer + CTC (35.7 M) trains, next to what the machine's arithmetic and memory allow.

A step is what a run does with a batch: log-mel features and masks from sound that waits on the
device, forward, backward, clipping, Adam. Two ceilings are printed with it:

operations   the step's floating-point operations, counted, at the rate of a large matrix product
bytes        what the step must move at least (weights, gradients, Adam's moments, every saved
             activation written once and read once) at the rate of a large copy
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.train.compiled import compile_layers
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Batch
from dragoman.train.data.plan import Place
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Augment
from dragoman.train.tasks.base import Task
from dragoman.train.tasks.registry import build_task

RATE = 16_000
SMALL = {
    **{"conv_channels": 64, "size": 64, "encoder_layers": 2, "decoder_layers": 1},
    **{"encoder_ffn": 128, "decoder_ffn": 128, "ctc_layer": 1},
}


@dataclass(frozen=True)
class Size:
    """One bucket of a batch: items of so many seconds, with texts of so many units."""

    items: int
    seconds: float
    units: int


# Batches of 3,200 s of speech as MuST-C's lengths would fill them; for a CPU, a toy.
ON_GPU = (Size(1024, 3.1, 24), Size(512, 6.2, 40), Size(320, 10.0, 64))
ON_CPU = (Size(4, 3.0, 16), Size(2, 6.0, 24))


def run(compiled: bool | None = None) -> dict[str, float]:
    """Print and return hours of speech per second of training, and the two ceilings."""
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    task = make_task({} if gpu else SMALL, device)
    batches = [
        make_batch(size, number, device) for number, size in enumerate(ON_GPU if gpu else ON_CPU)
    ]
    hours = sum(float(batch.samples.sum()) for batch in batches) / RATE / 3600
    step = make_step(task, device)
    millions = parameters(task) / 1e6
    print(f"{millions:.1f} M parameters, {hours:.3f} h of speech in {len(batches)} batches")
    flops, saved = count_work(task, batches, device)
    bytes_moved = saved * 2 + len(batches) * parameters(task) * 4 * 10
    found: dict[str, float] = {}

    def note(name: str, value: float) -> None:
        found[name] = value
        print(f"{name:24} {value:10.4f} hours of speech per second", flush=True)

    note("ceiling by operations", hours * peak_flops(device) / flops)
    note("ceiling by bytes", hours * peak_bytes(device) / bytes_moved)
    note("front end alone", hours / seconds(lambda: [task.features(b) for b in batches], device))
    note("training", hours / seconds(lambda: [step(batch) for batch in batches], device))
    if gpu if compiled is None else compiled:
        compile_layers(task.net, "default")
        note("training, compiled", hours / seconds(lambda: [step(b) for b in batches], device))
    if gpu:
        print(f"most memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    return found


def make_task(settings: dict[str, object], device: torch.device) -> Task:
    torch.manual_seed(0)
    net = build("conformer", settings, Vocabularies(target=8000, source=5000))
    front = FrontEnd(80, Augment(spec="LD"), seed=0)
    task = build_task("offline", {}, net, front).to(device)
    return task.train()


def make_batch(size: Size, number: int, device: torch.device) -> Batch:
    """Noise for speech and random units for text: speed depends on neither."""
    random = torch.Generator().manual_seed(number)
    samples = int(size.seconds * RATE)
    shape, units = (size.items, samples), size.units

    def ints(low: int, high: int, *dims: int) -> torch.Tensor:
        return torch.randint(low, high, dims, generator=random)

    batch = Batch(
        place=Place(0, 0),
        number=number,
        items=np.arange(size.items),
        width=samples,
        perturbed=False,
        sound=ints(-3000, 3000, *shape).to(torch.int16),
        samples=torch.full((size.items,), samples),
        speeds=torch.ones(size.items),
        source=ints(4, 5000, size.items, units),
        source_lengths=torch.full((size.items,), units),
        tokens=ints(4, 8000, size.items, units),
        labels=ints(4, 8000, size.items, units),
        target_lengths=torch.full((size.items,), units),
        word_ends=torch.zeros(size.items, 1, dtype=torch.long),
    )
    return batch.to(device)


def make_step(task: Task, device: torch.device) -> Callable[[Batch], None]:
    fused = device.type == "cuda"
    optimiser = torch.optim.Adam(task.parameters(), lr=1e-4, fused=fused)

    def step(batch: Batch) -> None:
        forward_backward(task, batch, device)
        torch.nn.utils.clip_grad_norm_(task.parameters(), 10.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def forward_backward(task: Task, batch: Batch, device: torch.device) -> None:
    with torch.autocast(device.type, torch.bfloat16):
        terms = task(batch)
    (terms.total / batch.labels.numel()).backward()


def parameters(task: Task) -> int:
    return sum(parameter.numel() for parameter in task.parameters())


def count_work(task: Task, batches: list[Batch], device: torch.device) -> tuple[int, int]:
    """Operations of one step over all batches, and bytes of activations kept for its backward."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    flops = saved = 0
    for batch in batches:
        kept.clear()
        with FlopCounterMode(display=False) as counter, \
             torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):  # fmt: skip
            forward_backward(task, batch, device)
        flops += counter.get_total_flops()
        saved += sum(kept.values())
        task.zero_grad(set_to_none=True)
    return flops, saved


def peak_flops(device: torch.device) -> float:
    """Operations per second of a large bf16 matrix product (float32 on a CPU)."""
    size, kind = (8192, torch.bfloat16) if device.type == "cuda" else (1024, torch.float32)
    a, b = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    return 2 * size**3 / seconds(lambda: a @ b, device)


def peak_bytes(device: torch.device) -> float:
    """Bytes read and written per second by a large copy."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / seconds(lambda: target.copy_(source), device)


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """The median time of some work, after warming up."""
    taken = []
    for _ in range(repeats + 2):
        synchronise(device)
        begun = time.perf_counter()
        work()
        synchronise(device)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[2:]))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    run()

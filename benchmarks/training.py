"""How fast nets train here, next to what the machine's arithmetic and memory allow.

A step is what a run does with a batch: log-mel features and masks from sound that waits on the
device, forward, backward, clipping, Adam; plain, captured as CUDA graphs, and compiled by layers
besides. On a GPU: Conformer + CTC of paper 001 (35.7 M), a smaller one (20 M) and a text
Transformer; what the first spends its time on is shown by kernels. Two ceilings are printed:

operations   the step's floating-point operations, counted, at the rate of a large matrix product
bytes        what the step must move at least (weights, gradients, Adam's moments, every saved
             activation written once and read once) at the rate of a large copy
"""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.kernels import show_kernels
from dragoman.train.capture import CapturedStep
from dragoman.train.compiled import compile_layers
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Batch
from dragoman.train.data.plan import Place, aligned
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Augment, Data, Machine, Recipe
from dragoman.train.step import Step
from dragoman.train.tasks.base import Task
from dragoman.train.tasks.registry import build_task

RATE = 16_000
PAPERS = Vocabularies(target=8000, source=5000)


@dataclass(frozen=True)
class Size:
    """One bucket of a batch: items of so many seconds (0: text), with texts of so many units."""

    items: int
    seconds: float
    units: int


@dataclass(frozen=True)
class Subject:
    """A net to be timed, and its batches."""

    name: str
    net: str
    sizes: tuple[Size, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    task: str = "offline"
    units: Vocabularies = PAPERS


# Batches of 3,200 s of speech as MuST-C's lengths would fill them; for a CPU, a toy.
SPEECH = (Size(1024, 3.1, 24), Size(512, 6.2, 40), Size(320, 10.0, 64))
TEXT = (Size(1536, 0, 16), Size(768, 0, 32), Size(384, 0, 64))
SMALLER = {
    **{"encoder_layers": 8, "decoder_layers": 3, "ctc_layer": 6, "positions": "rotary"},
    **{"encoder_ffn": 1024, "decoder_ffn": 1024},
}
LADDERS = Vocabularies(target=4000, source=2000)  # of recipes/claims
TOY = {
    **{"conv_channels": 64, "size": 64, "encoder_layers": 2, "decoder_layers": 1},
    **{"encoder_ffn": 128, "decoder_ffn": 128, "ctc_layer": 1},
}
ON_GPU = (
    Subject("Conformer + CTC", "conformer", SPEECH),
    Subject("smaller Conformer", "conformer", SPEECH, SMALLER, units=LADDERS),
    Subject("text Transformer", "text-transformer", TEXT, {}, "mt"),
)
ON_CPU = (Subject("toy", "conformer", (Size(4, 3.0, 16), Size(2, 6.0, 24)), TOY),)


def run(compiled: bool | None = None) -> dict[str, float]:
    """Print and return the speed of training every way, and the two ceilings."""
    gpu = torch.cuda.is_available()
    subjects = ON_GPU if gpu else ON_CPU
    found: dict[str, float] = {}
    tries = [(subject, way) for subject in subjects for way in ("plain", "captured")]
    if gpu if compiled is None else compiled:
        tries += [(subject, "compiled, captured") for subject in subjects]
    for subject, way in tries:
        try:
            found |= time_training(subject, way, shown=gpu and subject is subjects[0])
        except Exception:  # one way that fails here says nothing about the others
            traceback.print_exc()
        clean_up()
    try:
        found |= ceilings(subjects[0])
    except Exception:
        traceback.print_exc()
    return found


def time_training(subject: Subject, way: str, shown: bool) -> dict[str, float]:
    """Speed of one net trained one way; where it is `shown`, by kernels as well."""
    begun = time.perf_counter()
    fabric, task = make_fabric(), make_task(subject)
    if way.startswith("compiled"):
        compile_layers(task.net, "default")
    step = (Step if way == "plain" else CapturedStep)(fabric, make_recipe(subject), task)
    batches = [make_batch(s, n, fabric.device) for n, s in enumerate(subject.sizes)]
    amount, unit = amount_of(batches)

    def work() -> None:
        for batch in batches:
            step.learn(batch, 1 / batch.labels.numel(), last=True)
            step.update(1e-4)

    taken = seconds(work, fabric.device, warm_up=4)
    name = f"{subject.name}, {way}"
    rest = f"{amount / taken:10.4f} {unit} per second, {1000 * taken / len(batches):7.1f} ms a step"
    ready = time.perf_counter() - begun
    print(f"{name:38} {rest}, {parameters(task) / 1e6:.1f} M, after {ready:.0f} s", flush=True)
    if fabric.device.type == "cuda":
        print(f"  most memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB", flush=True)
    if shown:
        show_kernels(work)
    return {name: amount / taken}


def ceilings(subject: Subject) -> dict[str, float]:
    """What arithmetic and memory would allow, and how fast the front end is alone."""
    device, task = make_fabric().device, make_task(subject)
    task = task.to(device)
    batches = [make_batch(size, number, device) for number, size in enumerate(subject.sizes)]
    hours, unit = amount_of(batches)
    flops, saved = count_work(task, batches, device)
    bytes_moved = saved * 2 + len(batches) * parameters(task) * 4 * 10
    found = {
        "ceiling by operations": hours * peak_flops(device) / flops,
        "ceiling by bytes": hours * peak_bytes(device) / bytes_moved,
        "front end alone": hours / seconds(lambda: [task.features(b) for b in batches], device),
    }
    for name, value in found.items():
        print(f"{name:38} {value:10.4f} {unit} per second", flush=True)
    return found


def clean_up() -> None:
    """Leave the device to whoever comes next."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def make_fabric() -> Fabric:
    precision = "bf16-mixed" if torch.cuda.is_available() else "32-true"
    return Fabric(accelerator="auto", devices=1, precision=precision)


def make_recipe(subject: Subject) -> Recipe:
    return Recipe(subject.net, Data(("nothing",)), subject.task, machine=Machine(capture=True))


def make_task(subject: Subject) -> Task:
    torch.manual_seed(0)
    net = build(subject.net, subject.settings, subject.units)
    front = FrontEnd(80, Augment(spec="LD"), seed=0) if subject.task != "mt" else None
    return build_task(subject.task, {}, net, front).train()


def amount_of(batches: list[Batch]) -> tuple[float, str]:
    """Hours of speech, or thousands of target units of text."""
    if batches[0].sound.shape[1]:
        return sum(float(b.samples.sum()) for b in batches) / RATE / 3600, "hours of speech"
    return sum(b.labels.numel() for b in batches) / 1000, "thousand units"


def make_batch(size: Size, number: int, device: torch.device) -> Batch:
    """Noise for speech and random units for text: speed depends on neither."""
    random = torch.Generator().manual_seed(number)
    samples = int(size.seconds * RATE)
    width = aligned(samples) if samples else 0
    shape, units = (size.items, width), size.units

    def ints(low: int, high: int, *dims: int) -> torch.Tensor:
        return torch.randint(low, high, dims, generator=random)

    batch = Batch(
        place=Place(0, 0),
        number=number,
        items=np.arange(size.items),
        width=width,
        perturbed=False,
        sound=ints(-3000, 3000, *shape).to(torch.int16),
        samples=torch.full((size.items,), samples),
        speeds=torch.ones(size.items),
        source=ints(4, 2000, size.items, units),
        source_lengths=torch.full((size.items,), units),
        tokens=ints(4, 4000, size.items, units),
        labels=ints(4, 4000, size.items, units),
        target_lengths=torch.full((size.items,), units),
        word_ends=torch.zeros(size.items, 1, dtype=torch.long),
    )
    return batch.to(device)


def forward_backward(task: Task, batch: Batch, device: torch.device) -> None:
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
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


def seconds(
    work: Callable[[], object], device: torch.device, repeats: int = 5, warm_up: int = 2
) -> float:
    """The median time of some work, after warming up."""
    taken = []
    for _ in range(repeats + warm_up):
        synchronise(device)
        begun = time.perf_counter()
        work()
        synchronise(device)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[warm_up:]))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    run()

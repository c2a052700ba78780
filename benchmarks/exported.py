"""What exported nets cost on one CPU thread, at the papers' sizes (weights are random).

Conformer + CTC looks at the whole utterance again whenever more is heard; the incremental encoder
hears a chunk of 320 ms, at the same cost after ten minutes as after ten seconds. CPU seconds, so
that other work on the machine counts little.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from dragoman.models.exported.net import OnnxNet
from dragoman.train.export import export
from dragoman.train.exporting import Surroundings
from dragoman.train.nets.base import Net, Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.quantise import quantise

CHUNKS_IN_TEN_MINUTES = 1875


def cpu_ms(work: Callable[[], object], repeat: int = 5) -> float:
    """The least CPU time of one call, in milliseconds."""
    times = []
    for _ in range(repeat + 1):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return 1000 * min(times)


def make(name: str, scratch: Path) -> tuple[Net, dict[str, OnnxNet]]:
    """A net, and what became of it in full precision and in eight bits."""
    torch.manual_seed(0)
    net = build(name, {}, Vocabularies(target=8000, source=5000))
    export(net, scratch / name, Surroundings())
    small = shutil.copytree(scratch / name, scratch / f"{name}-int8")
    quantise(small)
    made = {"float32": OnnxNet(scratch / name, threads=1), "int8": OnnxNet(small, threads=1)}
    for precision, folder in zip(made, (scratch / name, small), strict=True):
        megabytes = sum(path.stat().st_size for path in folder.glob("*.onnx")) / 1e6
        print(f"{name} {precision}: {megabytes:.0f} MB")
    return net, made


@torch.no_grad()
def whole_utterances(scratch: Path) -> None:
    net, made = make("conformer", scratch)
    for seconds in (5, 10, 20):
        source = np.random.default_rng(0).standard_normal((1, 100 * seconds, 80), np.float32)
        lengths = np.array([100 * seconds])
        there = torch.from_numpy(source), torch.from_numpy(lengths)
        eager = cpu_ms(lambda there=there: net.encode(*there))
        line = f"  encode {seconds:2d} s: torch {eager:4.0f} ms"
        for precision, one in made.items():
            spent = cpu_ms(lambda one=one, s=source, n=lengths: one.encode(s, n))
            line += f", {precision} {spent:4.0f} ms ({eager / spent:.1f} x)"
        print(line)
    for precision, one in made.items():
        heard = one.encode(source, lengths)
        cache = one.step(np.full((1, 30), 5), heard.memory, heard.lengths, one.begin(1)).cache
        token = np.full((1, 1), 5)
        spent = cpu_ms(lambda: one.step(token, heard.memory, heard.lengths, cache))  # noqa: B023
        print(f"  one decoder step, {precision}: {spent:.1f} ms")


def chunks(scratch: Path) -> None:
    _, made = make("incremental", scratch)
    for precision, one in made.items():
        window = one.config.chunks.window
        source = np.random.default_rng(0).standard_normal((1, window, 80), np.float32)
        frames, stream = np.array([window]), one.begin_stream(1)
        for _ in range(3):
            _, stream = one.hear(source, frames, stream)
        early = cpu_ms(lambda: one.hear(source, frames, stream), 20)  # noqa: B023
        for _ in range(CHUNKS_IN_TEN_MINUTES):
            _, stream = one.hear(source, frames, stream)
        late = cpu_ms(lambda: one.hear(source, frames, stream), 20)  # noqa: B023
        speech = one.config.chunks.chunk * one.config.state_ms
        print(
            f"  a chunk of {speech:.0f} ms, {precision}: {early:.1f} ms after a second, "
            f"{late:.1f} ms after ten minutes ({late / early:.2f} x)"
        )


def run() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        whole_utterances(Path(scratch))
        chunks(Path(scratch))

"""What monotonic attention costs in training: an MMA decoder against the plain one.

Forward and backward of a six-layer decoder (256 wide, 4 heads) over 1,000 source states and 60
target units, with the loss on 8,000 units, as ratios of time and of peak memory. On CUDA in
bfloat16 with a batch of 32; elsewhere in single precision with a small batch.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from dragoman.train.nets.decoder import TransformerDecoder
from dragoman.train.nets.layers import LayerConfig, padding_bias
from dragoman.train.nets.mma import MonotonicDecoder
from dragoman.train.nets.monotonic import decide_every
from dragoman.train.nets.monotonic_attention import MonotonicConfig

STATES, UNITS, VOCABULARY, LAYERS = 1000, 60, 8000, 6
KINDS = {
    "infinite, ratio 1": MonotonicConfig("infinite", ratio=1),
    "infinite, ratio 7": MonotonicConfig("infinite", ratio=7),
    "hard, ratio 1": MonotonicConfig("hard", ratio=1),
    "hard, ratio 7": MonotonicConfig("hard", ratio=7),
}
Pass = Callable[[], None]


def make(kind: str, device: str, batch: int) -> Pass:
    """A training pass of the decoder `kind`, "plain" or one of KINDS."""
    torch.manual_seed(0)
    config = LayerConfig(size=256, heads=4, ffn=2048)
    plain = kind == "plain"
    decoder = (
        TransformerDecoder(VOCABULARY, LAYERS, config)
        if plain
        else MonotonicDecoder(VOCABULARY, LAYERS, config, KINDS[kind])
    ).to(device)
    states = torch.randn(batch, STATES, 256, device=device, requires_grad=True)
    tokens = torch.randint(4, VOCABULARY, (batch, UNITS), device=device)
    lengths = torch.full((batch,), STATES, device=device)

    def decode() -> torch.Tensor:
        if plain:
            return decoder(tokens, states, padding_bias(lengths, STATES))
        decisions = decide_every(KINDS[kind].ratio, lengths, STATES)
        aligned = decoder.align(tokens, states, decisions)
        return aligned.logits + 0 * aligned.delays.sum()

    def one_pass() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            loss = F.cross_entropy(decode().float().flatten(0, 1), tokens.flatten())
        loss.backward()
        decoder.zero_grad(set_to_none=True)
        states.grad = None

    return one_pass


def measure(kind: str, device: str, batch: int, repeats: int) -> tuple[float, float]:
    """Median seconds of a pass, and the peak of memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_pass = make(kind, device, batch)
    one_pass()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        one_pass()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated() / 2**20
    else:
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return statistics.median(times), peak


def run() -> dict[str, float]:
    """Ratios to the plain decoder, e.g. {"infinite, ratio 7: time": 1.2, ...}."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, repeats = (32, 20) if device == "cuda" else (2, 3)
    measured = {}
    for kind in ("plain", *KINDS):
        # Each in a process of its own, so that a peak is its own.
        command = [sys.executable, "-m", "benchmarks.mma", kind, device, str(batch), str(repeats)]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        measured[kind] = [float(number) for number in result.stdout.split()[-2:]]
    seconds, peak = measured["plain"]
    ratios = {}
    for kind in KINDS:
        ratios[f"{kind}: time"] = measured[kind][0] / seconds
        ratios[f"{kind}: memory"] = measured[kind][1] / peak
    return ratios


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    else:
        for name, ratio in run().items():
            print(f"{name:28} {ratio:.2f} x the plain decoder")

"""What monotonic attention costs in training: an MMA decoder against the plain one.

Forward and backward of a six-layer decoder (256 wide, 4 heads) with 60 target units and the loss on
8,000, as ratios of time and of peak memory, over 250 source states (10 s: 1,000 frames) and over
1,000 states. On CUDA in bfloat16 and with batches of 3,200 s as `recipes/voiced.en-de.yaml` has
them; elsewhere in single precision, with a small batch and without the kernels.
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

SIZE, UNITS, VOCABULARY, LAYERS = 256, 60, 8000, 6
KINDS = {
    "infinite, ratio 7": MonotonicConfig("infinite", ratio=7),
    "hard, ratio 7": MonotonicConfig("hard", ratio=7),
    "infinite, ratio 1": MonotonicConfig("infinite", ratio=1),
    "hard, ratio 1": MonotonicConfig("hard", ratio=1),
}
Pass = Callable[[], None]


def make(kind: str, device: str, batch: int, size: int) -> Pass:
    """A training pass of the decoder `kind`, "plain" or one of KINDS, over `size` states."""
    torch.manual_seed(0)
    config = LayerConfig(size=SIZE, heads=4, ffn=2048)
    plain = kind == "plain"
    decoder = (
        TransformerDecoder(VOCABULARY, LAYERS, config)
        if plain
        else MonotonicDecoder(VOCABULARY, LAYERS, config, KINDS[kind])
    ).to(device)
    states = torch.randn(batch, size, SIZE, device=device, requires_grad=True)
    tokens = torch.randint(4, VOCABULARY, (batch, UNITS), device=device)
    lengths = torch.full((batch,), size, device=device)

    def decode() -> torch.Tensor:
        if plain:
            return decoder(tokens, states, padding_bias(lengths, size))
        decisions = decide_every(KINDS[kind].ratio, lengths, size)
        aligned = decoder.align(tokens, states, decisions)
        return aligned.logits + 0 * aligned.delays.sum()  # as a latency loss would

    def one_pass() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            loss = F.cross_entropy(decode().float().flatten(0, 1), tokens.flatten())
        loss.backward()
        decoder.zero_grad(set_to_none=True)
        states.grad = None

    return one_pass


def measure(kind: str, device: str, batch: int, size: int, repeats: int) -> tuple[float, float]:
    """Median seconds of a pass, and the peak of memory it adds in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_pass = make(kind, device, batch, size)
    one_pass()
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


def measured_alone(*arguments: object) -> tuple[float, float]:
    """`measure` in a process of its own, so that a peak is its own."""
    command = [sys.executable, "-m", "benchmarks.mma", *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, peak = map(float, output.split()[-2:])
    return seconds, peak


def run() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for size, batch in ((250, 320), (1000, 80)) if device == "cuda" else ((250, 4), (1000, 2)):
        plain = measured_alone("plain", device, batch, size, 5)
        print(
            f"plain decoder, {batch} x {size} states on {device}: "
            f"{1000 * plain[0]:.1f} ms, {plain[1]:.0f} MiB"
        )
        for kind in KINDS:
            seconds, peak = measured_alone(kind, device, batch, size, 5)
            print(
                f"  MMA {kind:18} {seconds / plain[0]:5.2f} x time {peak / plain[1]:5.2f} x memory"
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
    else:
        run()

"""What monotonic attention costs in training: MMA against the plain Transformer.

Forward and backward with 60 target units and the loss on 8,000, as ratios of time and of peak
memory: of a net of 12 + 6 layers that hears 1,000 frames (256 wide, 4 heads), and of its decoder
alone over 250 source states (1,000 frames) and over 1,000 states. On CUDA in bfloat16 and with
batches of 3,200 s; elsewhere in single precision, with a small batch and without the kernels.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.decoder import TransformerDecoder
from dragoman.train.nets.layers import LayerConfig, padding_bias
from dragoman.train.nets.mma import MonotonicDecoder
from dragoman.train.nets.monotonic.attention import MonotonicConfig
from dragoman.train.nets.monotonic.decisions import decide_every
from dragoman.train.nets.registry import build

SIZE, UNITS, VOCABULARY, LAYERS, BANDS = 256, 60, 8000, 6, 80
KINDS = {
    "infinite, ratio 7": MonotonicConfig("infinite", ratio=7),
    "hard, ratio 7": MonotonicConfig("hard", ratio=7),
    "infinite, ratio 1": MonotonicConfig("infinite", ratio=1),
    "hard, ratio 1": MonotonicConfig("hard", ratio=1),
}
Pass = Callable[[], None]


def make(kind: str, device: str, batch: int, size: int, whole: bool) -> Pass:
    """A training pass of `kind`, "plain" or one of KINDS: of a `whole` net that hears `size`
    frames, or of its decoder over `size` states."""
    torch.manual_seed(0)
    tokens = torch.randint(4, VOCABULARY, (batch, UNITS), device=device)
    lengths = torch.full((batch,), size, device=device)
    part = whole_net(kind) if whole else decoder_alone(kind)
    given = torch.randn(batch, size, BANDS if whole else SIZE, device=device)
    given.requires_grad_(not whole)
    part.module.to(device)

    def one_pass() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            logits, delays = part.decode(tokens, given, lengths)
            loss = F.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())
            loss = loss + 0 * delays.sum()  # as a latency loss would
        loss.backward()
        part.module.zero_grad(set_to_none=True)
        given.grad = None

    return one_pass


@dataclass(frozen=True)
class Part:
    """What is measured: tokens, what they are made of, its lengths -> logits and delays."""

    module: torch.nn.Module
    decode: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def decoder_alone(kind: str) -> Part:
    config = LayerConfig(size=SIZE, heads=4, ffn=2048)
    if kind == "plain":
        plain = TransformerDecoder(VOCABULARY, LAYERS, config)

        def attend(tokens: Tensor, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
            logits = plain(tokens, states, padding_bias(lengths, states.shape[1]))
            return logits, logits.new_zeros(1)

        return Part(plain, attend)
    decoder = MonotonicDecoder(VOCABULARY, LAYERS, config, KINDS[kind])

    def read(tokens: Tensor, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        decisions = decide_every(KINDS[kind].ratio, lengths, states.shape[1])
        aligned = decoder.align(tokens, states, decisions)
        return aligned.logits, aligned.delays

    return Part(decoder, read)


def whole_net(kind: str) -> Part:
    vocabularies, ears = Vocabularies(VOCABULARY, VOCABULARY), {"ctc_layer": 0}
    if kind == "plain":
        plain = build("transformer", dict(ears), vocabularies)

        def attend(tokens: Tensor, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
            logits = plain.decode(tokens, plain.encode(features, lengths))
            return logits, logits.new_zeros(1)

        return Part(plain, attend)
    settings = {"attention": KINDS[kind].attention, "ratio": KINDS[kind].ratio}
    net = build("mma", {"encoder_settings": ears, **settings}, vocabularies)

    def read(tokens: Tensor, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        aligned = net.align(tokens, net.encode(features, lengths))
        return aligned.logits, aligned.delays

    return Part(net, read)


def measure(
    kind: str, device: str, batch: int, size: int, whole: int, repeats: int
) -> tuple[float, float]:
    """Median seconds of a pass, and the peak of memory it adds in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_pass = make(kind, device, batch, size, bool(whole))
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
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    for what, size, batch in (
        ("net, {} x {} frames", 1000, 320 if gpu else 2),
        ("decoder, {} x {} states", 250, 320 if gpu else 4),
        ("decoder, {} x {} states", 1000, 80 if gpu else 2),
    ):
        setting = (device, batch, size, int(what.startswith("net")), 5)
        seconds, peak = measured_alone("plain", *setting)
        name = what.format(batch, size)
        print(f"plain {name} on {device}: {1000 * seconds:.1f} ms, {peak:.0f} MiB")
        for kind in KINDS:
            own_seconds, own_peak = measured_alone(kind, *setting)
            times = f"{own_seconds / seconds:5.2f} x time {own_peak / peak:5.2f} x memory"
            print(f"  MMA {kind:18} {times}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
    else:
        run()

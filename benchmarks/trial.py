"""What a number of streams took, and whether the machine keeps up with them."""

import statistics
import sys
from dataclasses import dataclass

BAR, REAL_TIME = 0.5, 1.0  # seconds of work, for a second of sound


@dataclass(frozen=True)
class Trial:
    """So many streams, and the work of each step in seconds, of the clock and of the processor."""

    streams: int
    works: list[float]  # of every process
    processor: float
    steps: int
    step: float = 1.0  # seconds of sound in a step

    @property
    def p95(self) -> float:
        return sorted(self.works)[max(0, -(-95 * len(self.works) // 100) - 1)]

    @property
    def holds(self) -> bool:
        return self.p95 < BAR * self.step

    @property
    def keeps_up(self) -> bool:
        return self.p95 < REAL_TIME * self.step

    def __str__(self) -> str:
        share = 1000 * self.processor / self.streams / self.steps / self.step
        verdict = "holds" if self.holds else "real time" if self.keeps_up else "too many"
        return (
            f"{self.streams:5} streams: step p50 {statistics.median(self.works):.3f} s, "
            f"p95 {self.p95:.3f} s, most {max(self.works):.3f} s; "
            f"{share:.2f} ms of processor per stream and second; {verdict}{gpu_memory()}"
        )


def gpu_memory() -> str:
    """The most memory of the GPU that was in use since the last time, where there is one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return ""
    used = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return f"; {used / 1e9:.1f} GB of GPU memory"

"""Whether a long talk costs what a short one does: the work of chunks, early and late.

    python -m benchmarks steady

Speeches in a row, as one talk of DRAGOMAN_BENCH_MINUTES (default: 10), by the default model and
policy for English into German; `benchmarks/speech.py` says which other choices there are. The means
of twenty chunks around the tenth and around the hundredth are compared, and those of each fifth of
the talk; the bar is that none is more than a quarter above the first.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.speech import DATA, setup_for, told
from dragoman.audio.chunk import RATE, Chunk, Samples
from dragoman.audio.source import read_audio
from dragoman.clock import SimulatedClock
from dragoman.setup import System
from dragoman.trace import Trace

PARTS, AROUND, MORE = 5, 10, 1.25


def run() -> dict[str, float]:
    """Print what chunks cost along the talk."""
    path = Path(os.environ.get("DRAGOMAN_BENCH_SPEECHES", DATA / "esic.en-x.jsonl"))
    if not path.is_file():
        print("No speeches: name a JSONL file of them in DRAGOMAN_BENCH_SPEECHES.")
        return {}
    minutes = float(os.environ.get("DRAGOMAN_BENCH_MINUTES", 10))
    system, trace = System(setup_for("de")), Trace()
    interpreter = system.interpreter(trace, SimulatedClock(time.process_time))
    for chunk in chunks(path, minutes, system.setup.step_ms):
        interpreter.hear(chunk)
    work = [hearing.compute_ms / 1000 for hearing in trace.hearings]
    print(f"{minutes:g} minutes by {system.setup.model}, {system.setup.policy}, {len(work)} chunks")
    fifths = [float(np.mean(part)) for part in np.array_split(work, PARTS)]
    print("  seconds of work a chunk, by fifths: " + ", ".join(f"{one:.3f}" for one in fifths))
    early, late = around(work, 10), around(work, 100)
    told("around the hundredth to around the tenth", late / early, MORE, most=True)
    told("the dearest fifth to the first", max(fifths) / fifths[0], MORE, most=True)
    return {"late": late / early, "dearest": max(fifths) / fifths[0]}


def around(work: Sequence[float], place: int) -> float:
    """The mean of twenty chunks around one."""
    return float(np.mean(work[max(0, place - AROUND) : place + AROUND]))


def chunks(path: Path, minutes: float, step_ms: float) -> Iterator[Chunk]:
    """The speeches of a corpus in a row."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    left, size = int(minutes * 60 * RATE), int(step_ms * RATE / 1000)
    waiting: Samples = np.zeros(0, np.float32)
    for row in rows:
        waiting = np.concatenate([waiting, read_audio(path.parent / row["audio"])])[:left]
        while len(waiting) > size:
            yield Chunk(waiting[:size], False)
            waiting, left = waiting[size:], left - size
        if len(waiting) == left:
            break
    yield Chunk(waiting, True)


if __name__ == "__main__":
    run()

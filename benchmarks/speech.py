"""What the benchmarks of interpreted speech share: which clips, by which system, kept where.

DRAGOMAN_BENCH_MODEL names the model (default: the one for the languages), DRAGOMAN_BENCH_POLICY
the policy and DRAGOMAN_BENCH_STEP the ms of a step (default: what is tuned for a lag of 2 s),
DRAGOMAN_BENCH_CLIPS takes so many clips (default: all), evenly over the corpus; DRAGOMAN_BENCH_TAKE
names them by number, from 0.
DRAGOMAN_BENCH_RUNS is a folder in which traces are kept, so that a run goes on where it stopped.
DRAGOMAN_BENCH_TOGETHER interprets so many clips at the same time (1): a GPU does all their steps as
one batch.

Work is processor time, so that it does not matter who else uses the machine; of several clips at
the same time it is a share of the time that passes, and what it adds to the lag says nothing.
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from dragoman.audio.source import open_audio
from dragoman.clock import SimulatedClock
from dragoman.corpora import Clip
from dragoman.evaluate.run import Failure, interpret_clips
from dragoman.setup import Setup, System
from dragoman.trace import Trace, TraceWriter, read_traces

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "eval"
OFFLINE_STEP_MS = 640.0
T = TypeVar("T")


def setup_for(target: str) -> Setup:
    """English speech into a language: the default, or as the environment says."""
    step = os.environ.get("DRAGOMAN_BENCH_STEP")
    setup = Setup(source="en", target=target, threads=1)
    setup = setup.with_changes(model=os.environ.get("DRAGOMAN_BENCH_MODEL")).settled()
    return setup.tuned(2000.0).with_changes(
        policy=os.environ.get("DRAGOMAN_BENCH_POLICY"), step_ms=float(step) if step else None
    )


def offline(system: System) -> System:
    """The same model, which hears all before it speaks, whatever the steps of the live one."""
    return system.changed(policy="offline", step_ms=OFFLINE_STEP_MS)


def some(items: Sequence[T]) -> list[T]:
    """Those that the environment names, or as many as it says, evenly spread."""
    if named := os.environ.get("DRAGOMAN_BENCH_TAKE"):
        return [items[int(number)] for number in named.split()]
    count = min(int(os.environ.get("DRAGOMAN_BENCH_CLIPS", len(items))), len(items))
    return [items[index * len(items) // count] for index in range(count)]


def interpret_all(system: System, clips: Sequence[Clip], name: str) -> list[Trace]:
    """Every clip, interpreted now or before; `name` is that of the corpus."""
    folder = os.environ.get("DRAGOMAN_BENCH_RUNS")
    if not folder:
        return list(_traces(system, clips, {}, None))
    setup = system.setup
    words = [name, setup.model, setup.target, setup.policy, f"{setup.step_ms:g}"]
    path = Path(folder) / (re.sub(r"[^\w.=-]+", "_", "-".join(words)) + ".jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read_traces(path, unfinished=False) if path.exists() else []
    done = {trace.index: trace for trace in known}
    return list(_traces(system, clips, done, path))


def _traces(
    system: System, clips: Sequence[Clip], done: dict[int, Trace], path: Path | None
) -> Iterator[Trace]:
    together = int(os.environ.get("DRAGOMAN_BENCH_TOGETHER", "1"))
    target = system.setup.target
    done = {clip.index: done[clip.index] for clip in clips
            if clip.index in done and _is_of(done[clip.index], clip, target)}  # fmt: skip
    left = [clip for clip in clips if clip.index not in done]
    with TraceWriter.open(path) if path else nullcontext() as writer:
        for begin in range(0, len(left), together):
            for trace in _interpreted(system, left[begin : begin + together]):
                done[trace.index] = trace
                if writer is not None:
                    writer.write(trace)
            print(f"  {len(done)} of {len(clips)}", file=sys.stderr, flush=True)
    return (done[clip.index] for clip in clips)


def _is_of(trace: Trace, clip: Clip, target: str) -> bool:
    """Whether a trace that was kept is of this clip, and not of another corpus."""
    return (trace.source, trace.reference) == (clip.audio.name, clip.texts[target])


def _interpreted(system: System, clips: Sequence[Clip]) -> list[Trace]:
    """What is said of clips, of which several are heard side by side."""
    if len(clips) == 1:
        return [_interpreted_alone(system, clips[0])]
    traces = []
    for outcome in interpret_clips(system, clips):
        if isinstance(outcome, Failure):
            raise SystemExit(str(outcome))
        traces.append(outcome)
    return traces


def _interpreted_alone(system: System, clip: Clip) -> Trace:
    trace = Trace(clip.index, clip.audio.name, clip.texts[system.setup.target])
    interpreter = system.interpreter(trace, SimulatedClock(time.process_time))
    step_ms = system.setup.step_ms
    for chunk in open_audio(clip.audio, start=clip.start or 0.0, end=clip.end, step_ms=step_ms):
        interpreter.hear(chunk)
    return trace


def cost(traces: Sequence[Trace]) -> float:
    """Seconds of processor time per second of audio."""
    work = sum(heard.compute_ms for trace in traces for heard in trace.hearings)
    return work / sum(trace.source_length for trace in traces)


def told(what: str, value: float, bar: float, *, most: bool, form: str = ".2f") -> None:
    """A line that says whether a bar is met."""
    met = value <= bar if most else value >= bar
    sign = "at most" if most else "at least"
    print(f"  {what}: {value:{form}} (bar: {sign} {bar:{form}}) {'met' if met else 'NOT met'}")

"""python recipes/claims/work.py RUN WAY... [--test packs/claims-test.en-de] [--clips 30]

How much of the lag is work (paper 000): some clips of the test set through the loop of live use on
this machine's CPU, one after another, under ways to wait as ask.py has them, such as
5,fixed,120,120 5,fixed,520,520 or follow@280. Prints a row for each: the lag (LAAL) in seconds,
the same with work, and the difference, with work as the loop has it (a chunk waits for the work
before it) and as SimulEval counts it (all work so far). Goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ask import Deciding, as_setup, slug
from claims import OUT, TEST

from dragoman.corpora import read_corpus
from dragoman.errors import DragomanError
from dragoman.evaluate.run import run_corpus
from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Computation, Rules
from dragoman.models.load import load_model
from dragoman.setup import System
from dragoman.trace import Trace

COUNTED: tuple[Computation, ...] = ("honest", "cumulative")
HEAD = ("run", "way", "LAAL", "with work", "difference", "SimulEval's", "difference")


def lags(traces: list[Trace]) -> list[float]:
    """The lag without work, then with it as it is counted, in seconds."""
    instances = [trace.instance() for trace in traces]
    names = ("LAAL", "LAAL_CA")
    reports = [score_corpus(instances, Rules(computation=one), names) for one in COUNTED]
    plain, *aware = [reports[0].scores["LAAL"], *(one.scores["LAAL_CA"] for one in reports)]
    return [one.value / 1000 for one in (plain, *aware)]


def row(run: Path, way: str, traces: list[Trace]) -> str:
    plain, *aware = lags(traces)
    cells = [f"{plain:.2f}"]
    for one in aware:
        cells += [f"{one:.2f}", f"{one - plain:.2f}"]
    return f"| {run.name} | {way} | {' | '.join(cells)} |"


def as_it_is(run: Path, way: str) -> bool:
    """Whether the loop can do what is asked with the run alone."""
    decided = Deciding.of(way)
    return not (decided and decided.changes) and as_setup(run, way).model == str(run)


def work(run: Path, ways: list[str], test: Path, clips: int, threads: int) -> None:
    if other := [way for way in ways if not as_it_is(run, way)]:
        raise DragomanError(
            f"The loop takes neither true ends nor changes of the net: leave {' '.join(other)} out."
        )
    setups = [as_setup(run, way).with_changes(device="cpu", threads=threads) for way in ways]
    chosen = read_corpus(test / "corpus.tsv", "en", "de")[:clips]
    model = load_model(str(run), threads=threads, beams=1, device="cpu")
    print(f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|", sep="\n", flush=True)
    for way, setup in zip(ways, setups, strict=True):
        folder = OUT / "work" / f"{run.name}-{slug(way)}-{clips}"
        done = run_corpus(chosen, setup, folder, system=System(setup, model)).checked()
        print(row(run, way, done.traces), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("ways", nargs="+")
    parser.add_argument("--test", type=Path, default=TEST)
    parser.add_argument("--clips", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    try:
        work(asked.run, asked.ways, asked.test, asked.clips, asked.threads)
    except DragomanError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()

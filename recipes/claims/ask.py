"""python recipes/claims/ask.py RUN PACK OUT WAY...

What a run says of a pack under ways to wait, side by side on the device: in OUT scores.tsv, for
every way a log that `dragoman score` and `compare` read, and with --report a report. A way is
K,WORDS,WORD_MS,STEP_MS, such as 3,fixed,280,280 or 3,ctc; words are fixed, ctc, learned (a head
for their ends), words or phones (their true ends); `offline` waits for the end. Nets whose decoder
goes on from its own past are asked POLICY@STEP_MS, such as follow@280 or ksn:k=100,s=10,n=1@100;
behind it may stand how they work, such as follow@80,decision=8 (CAAT: groups of 320 ms).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dragoman.errors import DragomanError
from dragoman.evaluate.report import SystemResult, write_report, write_scores
from dragoman.evaluate.result import Scorer, system_result
from dragoman.evaluate.run import Run
from dragoman.metrics import simuleval_log
from dragoman.models.exported.pieces import Pieces
from dragoman.policies import make_policy
from dragoman.setup import Setup
from dragoman.trace import Trace
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import Faults
from dragoman.train.nets.base import Net
from dragoman.train.nets.caat import Caat
from dragoman.train.recipe import Data
from dragoman.train.simulate import Clips, Simulation, Waiting
from dragoman.train.simulate_past import PastSimulation
from dragoman.train.simulate_transducer import TransducerSimulation
from dragoman.train.trained import open_run


def waiting(text: str) -> tuple[Waiting, str]:
    """A way to wait, and whose ends are true for it."""
    if text == "offline":
        return Waiting(0), "words"
    k, words, *times = text.split(",")
    kind = "ends" if words in ("words", "phones") else words
    return Waiting(int(k), kind, *map(float, times)), "phones" if words == "phones" else "words"


@dataclass(frozen=True)
class Deciding:
    """A policy and its step, and what the net does otherwise than in training."""

    policy: str
    step_ms: float
    changes: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Deciding | None:
        """Where a way is one."""
        policy, at, rest = text.partition("@")
        step_ms, *changes = rest.split(",")
        return cls(policy, float(step_ms), tuple(changes)) if at else None


def slug(text: str) -> str:
    """A way as the name of a folder."""
    return re.sub(r"[,:@=]+", "-", text)


def as_setup(run: Path, text: str, to: str = "de") -> Setup:
    """The setup of the loop that says the same."""
    if decided := Deciding.of(text):
        return Setup(str(run), "en", to, decided.policy, beams=1, step_ms=decided.step_ms)
    way, ends = waiting(text)
    policy = f"wait-k:k={way.k}" if way.k else "offline"
    detector = "fixed" if way.words == "ends" else way.words
    if way.words == "fixed":
        detector += f":{way.word_ms:g}"
    setup = Setup(str(run), "en", to, policy, detector, beams=1, step_ms=way.step_ms)
    return setup if way.words != "ends" else setup.with_changes(model=f"{run}, true ends of {ends}")


def decided_by(net: Net, pieces: Pieces, clips: Clips, way: Deciding) -> list[Trace]:
    """What a net says whose decoder goes on from its own past."""
    if isinstance(net, Caat):
        if way.policy != "follow":
            raise DragomanError(f"A transducer decides itself: ask it follow, not {way.policy}.")
        return TransducerSimulation(net, pieces, clips, way.step_ms).run()
    return PastSimulation(net, pieces, clips, make_policy(way.policy), way.step_ms).run()


def scored(run: Path, text: str, traces: list[Trace], to: str) -> SystemResult:
    """A way that changes the net has that in its name."""
    result = system_result(as_setup(run, text, to), Run(traces, []), Scorer.of(to))
    decided = Deciding.of(text)
    told = (result.name, *decided.changes) if decided else (result.name,)
    return replace(result, name=", ".join(told))


def ask(run: Path, pack: Path, out: Path, ways: Sequence[str], limit: int, report: bool) -> None:
    """Try every way; print and write what comes of it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trained = open_run(run)
    task = trained.task.eval().to(device)
    marks = trained.source.word_ends(extra=1)
    ends_source = None if marks is None else torch.tensor(marks, device=device)
    to, suffix = trained.recipe.data.target, trained.recipe.vocabulary.target.suffix
    pieces = Pieces.load(run / "target.model", len(trained.target), suffix=suffix, language=to)
    clips: dict[str, Clips] = {}

    def simulated(text: str) -> list[Trace]:
        if decided := Deciding.of(text):
            net = open_run(run, changes=decided.changes).task.net.eval().to(device)
            return decided_by(net, pieces, clips["words"], decided)
        way, ends = waiting(text)
        return Simulation(task.net, ends_source, pieces, clips[ends], way).run()

    results = []
    for text in ways:
        begun = time.perf_counter()
        ends = "words" if Deciding.of(text) else waiting(text)[1]
        if ends not in clips:
            whole = open_set([pack], Data((str(pack),), target=to, ends=ends), Faults())
            clips[ends] = Clips.of(task, whole.subset(range(min(limit, len(whole)))), device)
        ready = time.perf_counter()
        traces = simulated(text)
        log = out / slug(text)
        log.mkdir(parents=True, exist_ok=True)
        simuleval_log.write(log, [trace.instance() for trace in traces])
        results.append(scored(run, text, traces, to))
        scores = results[-1].scores
        print(
            f"{text:20} BLEU {scores['BLEU']:5.2f}  AL {scores['AL'] / 1000:5.2f} s  "
            f"LAAL {scores['LAAL'] / 1000:5.2f} s  (after {ready - begun:.1f} and "
            f"{time.perf_counter() - ready:.1f} s)",
            flush=True,
        )
        write_scores(out / "scores.tsv", results)
    if report:
        write_report(out / "report.html", str(run), str(pack), results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("ways", nargs="+")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--limit", type=int, default=10**9)
    asked = parser.parse_args()
    ask(asked.run, asked.pack, asked.out, asked.ways, asked.limit, asked.report)


if __name__ == "__main__":
    main()

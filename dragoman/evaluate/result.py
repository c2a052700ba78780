"""From a run to what the report shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from dragoman.evaluate.report import SystemResult
from dragoman.evaluate.run import Run
from dragoman.metrics.instance import Unit
from dragoman.metrics.score import Report, score_corpus
from dragoman.metrics.timings import Rules
from dragoman.setup import Setup
from dragoman.trace import Trace


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores traces; what is undefined is None."""

    unit: Unit = "word"
    tokenizer: str = "13a"

    def report(self, traces: Sequence[Trace]) -> Report:
        instances = [trace.instance(self.unit) for trace in traces]
        return score_corpus(instances, Rules(unit=self.unit), tokenizer=self.tokenizer)

    def values(self, traces: Sequence[Trace]) -> Mapping[str, float | None]:
        """The corpus value of every metric."""
        return _defined({name: s.value for name, s in self.report(traces).scores.items()})


def system_result(setup: Setup, run: Run, scorer: Scorer) -> SystemResult:
    """A run, scored, as the report wants it."""
    report = scorer.report(run.traces)
    step = f"{setup.step_ms / 1000:g} s"
    rows = zip(*(s.sentences.tolist() for s in report.scores.values()), strict=True)
    sentences = [
        {"index": trace.index} | _defined(dict(zip(report.scores, row, strict=True)))
        for trace, row in zip(run.traces, rows, strict=True)
    ]
    failures = f"{len(run.failures)} clips failed" if run.failures else ""
    return SystemResult(
        name=f"{setup.policy}, {step} steps",
        curve=f"{setup.policy.partition(':')[0]} {step}",
        scores=_defined({name: score.value for name, score in report.scores.items()}),
        signature={name: score.signature for name, score in report.scores.items()},
        sentences=sentences,
        traces=run.traces,
        intervals={
            name: (interval.low, interval.high)
            for name, score in report.scores.items()
            if not isnan((interval := score.interval()).low)
        },
        notes=failures,
    )


def _defined(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if isnan(value) else value for name, value in values.items()}

"""From a run to what the report shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from math import isnan

from dragoman.evaluate.report import SystemResult
from dragoman.evaluate.run import Run
from dragoman.metrics.instance import Unit
from dragoman.metrics.score import Report, score_corpus
from dragoman.metrics.timings import Rules
from dragoman.metrics.tokenize import tokenizer_for
from dragoman.setup import Setup
from dragoman.text.languages import find_language
from dragoman.trace import Trace


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores traces as their language wants it; what is undefined is None."""

    unit: Unit = "word"
    tokenizer: str = "13a"

    @classmethod
    def of(cls, target: str, unit: Unit | None = None) -> Scorer:
        """The scorer for a target language: its unit of latency and BLEU's tokenizer."""
        return cls(unit or find_language(target).unit, tokenizer_for(target))

    def report(self, traces: Sequence[Trace]) -> Report:
        instances = [trace.instance(self.unit) for trace in traces]
        return score_corpus(instances, Rules(unit=self.unit), tokenizer=self.tokenizer)

    def values(self, traces: Sequence[Trace]) -> Mapping[str, float | None]:
        """The corpus value of every metric."""
        return _defined({name: s.value for name, s in self.report(traces).scores.items()})


def system_name(setup: Setup) -> str:
    """What a report calls a system among others with the same model."""
    return f"{setup.policy}, {_step(setup)} steps"


def system_words(setup: Setup) -> str:
    """How words are counted, where that is not as usual and a policy may ask."""
    return "" if setup.detector == Setup.detector else f", words by {setup.detector}"


def _step(setup: Setup) -> str:
    return f"{setup.step_ms / 1000:g} s"


def system_result(setup: Setup, run: Run, scorer: Scorer) -> SystemResult:
    """A run, scored, as the report wants it."""
    report = scorer.report(run.traces)
    rows = zip(*(s.sentences.tolist() for s in report.scores.values()), strict=True)
    sentences = [
        {"index": trace.index} | _defined(dict(zip(report.scores, row, strict=True)))
        for trace, row in zip(run.traces, rows, strict=True)
    ]
    silent = report.problems.get("nothing said", ())
    notes = (
        f"{_clips(run.failures)} could not be interpreted" * bool(run.failures),
        f"nothing was said of {_clips(silent)}" * bool(silent),
    )
    return SystemResult(
        name=system_name(setup),
        curve=f"{setup.policy.partition(':')[0]} {_step(setup)}",
        scores=_defined({name: score.value for name, score in report.scores.items()}),
        signature={name: score.signature for name, score in report.scores.items()},
        sentences=sentences,
        traces=run.traces,
        unit=scorer.unit,
        intervals={
            name: (interval.low, interval.high)
            for name, score in report.scores.items()
            if not isnan((interval := score.interval()).low)
        },
        notes=", ".join(filter(None, notes)),
        left_out=[failure.index for failure in run.failures],
    )


def _clips(some: Sized) -> str:
    return f"{len(some)} clip{'' if len(some) == 1 else 's'}"


def _defined(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if isnan(value) else value for name, value in values.items()}

"""Tuning: the best policy and knobs for a language and a latency budget.

Paper 002 ends by asking practitioners to tune their systems for each language. This does it by
successive halving: every candidate interprets a few clips, the better half goes on with more, the
last ones see the whole corpus. A candidate far over the budget drops out at once, and so does one
of the user's own whose code fails. Where all of the last are over it after all, those that were
dropped within it are tried, the best first. A clip that cannot be interpreted is named and left
out, for every candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.evaluate.grid import slug
from dragoman.evaluate.run import Failure, Run, nothing_heard, run_corpus
from dragoman.setup import Setup, System
from dragoman.trace import Trace
from dragoman.workers import Workers

ScoreTraces = Callable[[Sequence[Trace]], Mapping[str, float | None]]
# Scores on a few clips are noisy: a candidate this far over the budget may still come back.
SLACK = 1.25


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate and what it scored on as many clips as it was given."""

    setup: Setup
    clips: int
    quality: float
    latency_ms: float
    whole: bool  # it was given the whole corpus


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner, and every candidate's last trial, best first."""

    best: Trial
    trials: list[Trial]


def tune(
    clips: Sequence[Clip],
    candidates: Sequence[Setup],
    budget_ms: float,
    folder: Path,
    score: ScoreTraces,
    *,
    latency: str = "LAAL",
    quality: str = "BLEU",
    first: int = 12,
    seed: int = 1,
    workers: Workers | None = None,
    together: int = 1,
    system: System | None = None,
    on_trial: Callable[[Trial, int, int], None] = lambda trial, done, total: None,
    on_clip: Callable[[int, int], None] = lambda done, total: None,
    on_failure: Callable[[Failure, Setup], None] = lambda failure, setup: None,
) -> Tuned:
    """Find the candidate with the best quality whose latency keeps to the budget.

    `system` lends its loaded model to every candidate. `on_trial` hears of each finished trial,
    `on_clip` of the clips of the one that runs, `on_failure` of each clip that is left out.
    """
    order = [clip.index for clip in clips]
    Random(seed).shuffle(order)
    size, remaining, trials = min(first, len(order)), list(candidates), dict[Setup, Trial]()
    judge = partial(_trial, score=score, latency=latency, quality=quality)
    rounds = _Rounds(clips, folder, workers, together, system, on_clip, on_failure)
    while True:
        runs: dict[Setup, Run] = {}
        whole = size == len(order)
        for done, setup in enumerate(remaining, start=1):
            if (run := rounds.interpret(setup, order[:size])) is None:
                trials.pop(setup, None)
                continue
            runs[setup] = run
            on_trial(judge(setup, run.traces, whole=whole), done, len(remaining))
        remaining = list(runs)
        for setup, run in runs.items():
            trials[setup] = judge(setup, rounds.heard_by_all(run), whole=whole)
        if whole:
            break
        if any(trials[s].clips for s in remaining):
            remaining = _better_half([trials[s] for s in remaining], budget_ms)
        size = len(order) if len(remaining) <= 2 else min(size * 2, len(order))
    while not _kept(trials.values(), budget_ms) and (again := _dropped(trials.values(), budget_ms)):
        if (run := rounds.interpret(again.setup, order)) is None:
            del trials[again.setup]
            continue
        trials[again.setup] = judge(again.setup, rounds.heard_by_all(run), whole=True)
        on_trial(trials[again.setup], 1, 1)
    if not trials:
        raise DragomanError("No policy could be tried: each failed in code of its own.")
    ranked = sorted(trials.values(), key=lambda t: _rank(t, budget_ms))
    if ranked[0].latency_ms > budget_ms:
        raise _none_kept(budget_ms, min(trials.values(), key=lambda t: t.latency_ms))
    return Tuned(ranked[0], ranked)


@dataclass(slots=True)
class _Rounds:
    """Interprets clips with candidates; a clip that one of them cannot hear is left out for all."""

    clips: Sequence[Clip]
    folder: Path
    workers: Workers | None
    together: int
    system: System | None
    on_clip: Callable[[int, int], None]
    on_failure: Callable[[Failure, Setup], None]
    broken: dict[int, Failure] = field(default_factory=dict)

    def interpret(self, setup: Setup, indices: Sequence[int]) -> Run | None:
        """Nothing of a candidate whose own code fails."""
        run = run_corpus(
            *(self.clips, setup, self.folder / slug(setup)),
            workers=self.workers,
            together=self.together,
            system=None if self.system is None else self.system.changed(**asdict(setup)),
            only=[index for index in indices if index not in self.broken],
            on_clip=self.on_clip,
        )
        for failure in run.failures:
            self.on_failure(failure, setup)
            if failure.own:
                return None
            self.broken[failure.index] = failure
        if len(self.broken) == len(self.clips):
            raise nothing_heard(list(self.broken.values()))
        return run

    def heard_by_all(self, run: Run) -> list[Trace]:
        return [trace for trace in run.traces if trace.index not in self.broken]


def _trial(
    setup: Setup,
    traces: Sequence[Trace],
    score: ScoreTraces,
    latency: str,
    quality: str,
    whole: bool,
) -> Trial:
    scores = score(traces) if traces else {}
    latency_ms, value = scores.get(latency), scores.get(quality)
    if latency_ms is None:  # nothing was said
        latency_ms = float("inf")
    return Trial(setup, len(traces), value or 0.0, latency_ms, whole)


def _none_kept(budget_ms: float, nearest: Trial) -> DragomanError:
    if nearest.latency_ms == float("inf"):
        return DragomanError(
            "No policy said anything on this corpus; is it in the language of --from, and does "
            "'dragoman translate' say something for one of its recordings?"
        )
    return DragomanError(
        f"No policy kept to {budget_ms:g} ms; the fastest, {nearest.setup.policy}, needs "
        f"{nearest.latency_ms:.0f} ms. Allow more with --max-latency."
    )


def _kept(trials: Iterable[Trial], budget_ms: float) -> bool:
    """Whether one has kept to the budget over the whole corpus."""
    return any(trial.whole and trial.latency_ms <= budget_ms for trial in trials)


def _dropped(trials: Iterable[Trial], budget_ms: float) -> Trial | None:
    """The best of those that kept to the budget on a few clips, where none did over them all."""
    within = [t for t in trials if t.latency_ms <= budget_ms]
    return min(within, key=_by_quality, default=None)


def _better_half(trials: Sequence[Trial], budget_ms: float) -> list[Setup]:
    fitting = [t for t in trials if t.latency_ms <= budget_ms * SLACK]
    pool = fitting or sorted(trials, key=lambda t: t.latency_ms)[:2]
    ranked = sorted(pool, key=_by_quality)
    half = max(2, (len(ranked) + 1) // 2)
    kept = ranked[:half]
    # The best that keeps to the budget already stays, whatever the quality of those just over it.
    safe = next((t for t in ranked if t.latency_ms <= budget_ms), None)
    if safe is not None and safe not in kept:
        kept.append(safe)
    return [trial.setup for trial in kept]


def _by_quality(trial: Trial) -> tuple[float, float]:
    """The best first, and of those that are as good the fastest."""
    return -trial.quality, trial.latency_ms


def _rank(trial: Trial, budget_ms: float) -> tuple[bool, bool, float, float]:
    """Those that saw the whole corpus first, of these the fitting ones, of these the best."""
    return not trial.whole, trial.latency_ms > budget_ms, *_by_quality(trial)

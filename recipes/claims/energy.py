"""Energy of one offline net against the nets that learned to wait (paper 001, section 4).

Runs that were trained side by side share what the meter of their machine has read: every moment is
divided among those that were under way. What was asked meanwhile is counted as training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from claims import plan_001

from dragoman.train.carbon import INTENSITY, footprint, read_sessions

NETS = [f"waitk-{words}-{k}" for k in (3, 5, 7, 9, 11) for words in ("fixed", "ctc")]


@dataclass(frozen=True)
class Session:
    """One stretch of a run; energy in kWh, None where nothing was read."""

    begun: float  # in hours
    hours: float
    kwh: float | None

    @property
    def end(self) -> float:
        return self.begun + self.hours

    def share(self, every: Sequence[Session]) -> float:
        """How much of it was its own, by all that were under way at the time."""
        inner = (m for one in every for m in (one.begun, one.end) if self.begun < m < self.end)
        moments = sorted({self.begun, self.end, *inner})
        parts = [
            (end - begin) / sum(one.begun <= begin and end <= one.end for one in every)
            for begin, end in pairwise(moments)
        ]
        return sum(parts) / self.hours if self.hours else 1.0


@dataclass(frozen=True)
class Spent:
    """What training has taken."""

    hours: float
    kwh: float | None

    def __add__(self, other: Spent) -> Spent:
        missing = self.kwh is None or other.kwh is None
        kwh = None if missing else (self.kwh or 0.0) + (other.kwh or 0.0)
        return Spent(self.hours + other.hours, kwh)

    def times(self, factor: float) -> Spent:
        return Spent(factor * self.hours, None if self.kwh is None else factor * self.kwh)


def sessions(folder: Path) -> list[Session]:
    """Of a run, those of which it is known when they were."""
    found = read_sessions(folder / "carbon.json")
    known = [one for one in found if "begun" in one]
    return [Session(one["begun"] / 3600, one["hours"], one.get("kwh")) for one in known]


def spent(folders: Sequence[Path], every: Sequence[Session]) -> Spent:
    """On several runs, each with its own share."""
    total = Spent(0.0, 0.0)
    for one in (one for folder in folders for one in sessions(folder)):
        total += Spent(one.hours, one.kwh).times(one.share(every))
    return total


def line(told: str, one: Spent) -> str:
    cells = ["not read", "not read"] if one.kwh is None else []
    if one.kwh is not None:
        cells = [f"{1000 * one.kwh:.3g}", f"{1000 * one.kwh * INTENSITY:.3g}"]
    return f"| {told} | {3600 * one.hours:.0f} | {' | '.join(cells)} |"


def how_known(folders: Sequence[Path]) -> str:
    """Whether a meter was there."""
    if any(one.kwh is None for folder in folders for one in sessions(folder)):
        return "No energy was read in some of these runs: there was no codecarbon."
    kinds = sorted({footprint(folder).measured for folder in folders})
    return f"Energy is {' and '.join(kinds)}; runs side by side share what their machine took."


def energy(runs: Path) -> Iterator[str]:
    """The lines of the table; none without the offline net, or without nets to compare it with."""
    plan = plan_001()
    before = plan["offline"].after
    common = [runs / plan[before].after, runs / before]
    nets = [runs / name for name in NETS if sessions(runs / name)]
    if not nets or not all(map(sessions, (*common, runs / "offline"))):
        return
    every = [one for folder in sorted(runs.iterdir()) for one in sessions(folder)]
    begin, offline, waiting = (spent(some, every) for some in (common, [runs / "offline"], nets))
    here = waiting.times(len(NETS) / len(nets))
    of = f"{len(NETS)} nets that learned to wait"
    if len(nets) < len(NETS):
        of += f" ({len(nets)} trained, as many times as much)"
    yield "| | s of training | Wh | g CO2eq |"
    yield "|---|---|---|---|"
    yield line("the offline net: ears, trunk, branch", begin + offline)
    yield line(f"{of}: ears and trunk once, a branch each", begin + here)
    yield line(f"{of}: each from the beginning (computed)", begin.times(len(NETS)) + here)
    yield ""
    yield how_known([*common, runs / "offline", *nets])

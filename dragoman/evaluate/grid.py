"""Many systems from one line: policies with alternatives, such as `wait-k:k=1|3|5`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import product

from dragoman.detectors import NoEndsError
from dragoman.errors import DragomanError
from dragoman.setup import Setup, System

# Every policy that an offline model can follow, over the range in which it is of use.
STANDARD = (
    "greedy",
    "offline",
    "confidence:gamma=0.5|0.9",
    "consensus:alpha=0.5|0.75",
    "local-agreement:n=2|3",
    "wait-k:k=1|3|5|7",
    "alignatt:last=500|1000|1500",
    "edatt:alpha=0.2|0.1,last=500",
    "agreeatt:old=500|1000|1500",
)


def expand(spec: str) -> list[str]:
    """`wait-k:k=1|3` becomes `wait-k:k=1` and `wait-k:k=3`; several knobs make all pairs."""
    name, colon, tail = spec.partition(":")
    if not colon:
        return [name]
    knobs = []
    for pair in tail.split(","):
        key, equals, values = pair.partition("=")
        if not equals:
            raise DragomanError(f"'{pair}' in '{spec}' should read key=value or key=one|other.")
        knobs.append([f"{key.strip()}={value.strip()}" for value in values.split("|")])
    return [f"{name}:{','.join(choice)}" for choice in product(*knobs)]


def grid(base: Setup, specs: Sequence[str], steps_ms: Sequence[float]) -> list[Setup]:
    """A setup for every policy and step, once each, which checks the policy before anything is
    run."""
    setups = []
    for step_ms in steps_ms:
        for spec in specs:
            for policy in expand(spec):
                setups.append(base.with_changes(policy=policy, step_ms=step_ms))
    return list(dict.fromkeys(setups))


def fitting(system: System, setups: Sequence[Setup], recording: str) -> dict[Setup, str]:
    """For every setup what keeps the model of a system from following it; nothing where it can."""
    told = {}
    for setup in setups:
        told[setup] = ""
        try:
            with suppress(NoEndsError):  # of this recording: the run tells of it
                system.changed(**asdict(setup)).interpreter(recording=recording)
        except DragomanError as error:
            told[setup] = str(error)
    return told


def slug(setup: Setup) -> str:
    """A folder name that tells setups of one grid apart."""
    text = f"{setup.policy}-{setup.step_ms:g}ms"
    return "".join(c if c.isalnum() or c in "-.=" else "_" for c in text)

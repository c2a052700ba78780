"""Data faults: named, counted and skipped up to a limit, never silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path

import msgspec

from dragoman.errors import DragomanError
from dragoman.files import whole_file

FAULTS = "faults.jsonl"  # of a pack


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with the data: what kind, where, and the details."""

    kind: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} ({self.why})"


class Faults:
    """The faults met so far. More than `limit` of the items (a share of 1) stops the work."""

    # A small corpus is not stopped by its first fault, nor a huge one before it was well sampled.
    GRACE = 20

    def __init__(self, limit: float = 0.02) -> None:
        self.limit = limit
        self.items = 0
        self.found: list[Fault] = []
        self.left: list[Fault] = []
        self._met: set[Hashable] = set()

    def is_new(self, *what: Hashable) -> bool:
        """Whether something is met for the first time: who trains on a pack may validate on it,
        too, and its faults count once."""
        new = what not in self._met
        self._met.add(what)
        return new

    def seen(self, items: int = 1) -> None:
        """Count items that were looked at, good or bad."""
        self.items += items

    def add(self, faults: Iterable[Fault]) -> None:
        """Count faults; beyond the limit, raise with the counts and the first examples."""
        self.found.extend(faults)
        if len(self.found) > max(self.GRACE, self.limit * self.items):
            examples = "; ".join(str(fault) for fault in self.found[:3])
            raise DragomanError(
                f"{len(self.found)} of {self.items} items are faulty, more than the limit of "
                f"{100 * self.limit:g}%: {self.summary()}. The first: {examples}. "
                "Mend the data, or raise the limit if you can do without them."
            )

    def recall(self, faults: Iterable[Fault]) -> None:
        """Mention faults that were counted, and held against the limit, when they were met."""
        self.left.extend(faults)

    def leave_out(self, fault: Fault) -> None:
        """Count an item that is sound but unwanted, such as one too long: no limit applies."""
        self.left.append(fault)

    def check_small(self) -> None:
        """At the end: the grace does not excuse a corpus of which most is faulty."""
        if self.items and len(self.found) * 2 > self.items:
            examples = "; ".join(str(fault) for fault in self.found[:3])
            raise DragomanError(
                f"{len(self.found)} of {self.items} items are faulty: {examples}. Mend the data."
            )

    def summary(self) -> str:
        """`3 corrupt recording, 1 empty text`, or `none`."""
        return summary_of([*self.found, *self.left])


def summary_of(faults: Iterable[Fault]) -> str:
    """`3 corrupt recording, 1 empty text`, or `none`."""
    counts = Counter(fault.kind for fault in faults)
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) or "none"


def read_faults(path: Path) -> list[Fault]:
    """What `write_faults` wrote; none where there is no such file."""
    if not path.exists():
        return []
    try:
        return [msgspec.json.decode(line, type=Fault) for line in path.read_bytes().splitlines()]
    except msgspec.MsgspecError as error:
        raise DragomanError(f"{path} is damaged ({error}); make the pack again.") from error


def write_faults(path: Path, faults: Iterable[Fault]) -> None:
    """Every fault as one JSON line."""
    with whole_file(path, "wb") as stream:
        stream.writelines(msgspec.json.encode(fault) + b"\n" for fault in faults)

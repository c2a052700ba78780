"""What exports of all kinds of nets have in common: what a net does not know about itself, and how
far the written graphs may be from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DragomanError

TOLERANCE = 1e-3
MOST_OFF = 0.25  # in eight bits


@dataclass(frozen=True)
class Surroundings:
    """What a net does not know about itself."""

    source: str = ""  # languages
    target: str = ""
    target_units: Path | None = None  # SentencePiece models
    source_units: Path | None = None
    suffix: bool = False  # the space is at the end of a target word's last piece
    source_suffix: bool = False
    source_plain: bool = False  # lower case, no punctuation
    encoder: str = ""  # the model of the store whose encoder the net has left as it was


def refuse_difference(graph: str, off: float, *, int8: bool) -> None:
    """Refuse a graph that is off by such a share of the net's numbers; nan is too much."""
    if int8 and not off <= MOST_OFF:
        raise DragomanError(
            f"In eight bits the {graph} is off by {off:.0%} of the net's numbers, more than "
            f"{MOST_OFF:.0%}: export it without --int8."
        )
    if not int8 and not off <= TOLERANCE:
        raise DragomanError(f"The exported {graph} differs from the net by {off:.2g}.")

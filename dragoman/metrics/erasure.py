"""How much of what was shown was taken back again: the flicker that a reader sees."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.metrics.instance import Unit


def erased_units(updates: Iterable[tuple[str, str]], unit: Unit = "word") -> int:
    """The words or characters that were shown and then taken back.

    An update is the text that became final, with its spacing, and the interim text shown after
    it. Only interim text can be taken back: units that the next update does not begin with.
    """
    erased = 0
    interim: list[str] = []
    for final, shown in updates:
        following = _units(final + shown, unit)
        kept = 0
        while kept < min(len(interim), len(following)) and interim[kept] == following[kept]:
            kept += 1
        erased += len(interim) - kept
        interim = _units(shown, unit)
    return erased


def _units(text: str, unit: Unit) -> list[str]:
    return text.split() if unit == "word" else list(text.strip())

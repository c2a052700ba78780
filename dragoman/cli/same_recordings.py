"""Whether two logs are of the same recordings, as far as the lengths of these tell."""

from __future__ import annotations

from pathlib import PurePath

from dragoman.cli.notes import tell
from dragoman.cli.report import first_of
from dragoman.metrics.doubts import SAME_LENGTH, SLACK
from dragoman.metrics.instance import Instance
from dragoman.metrics.lines import Log
from dragoman.metrics.timings import Medium


def tell_other_lengths(one: Log, other: Log, *, talks: bool) -> None:
    """Say on standard error which recordings are longer in one log than in the other. It may be
    right: the same text in two voices is compared, too."""
    slack = SLACK if talks else SAME_LENGTH
    first, second = (_recordings(log, talks=talks) for log in (one, other))
    pairs = [(first[key], second[key]) for key in first if key in second]
    pairs = [pair for pair in pairs if all(instance.source_length > 0 for instance in pair)]
    differ = [(a, b) for a, b in pairs if abs(a.source_length - b.source_length) > slack]
    if differ:
        indices = sorted(a.index for a, _ in differ)
        a, b = min(differ, key=lambda pair: pair[0].index)
        tell(
            f"{'Talks' if talks else 'Sentences'} of other lengths in {one.path} and {other.path}, "
            f"{len(differ)} of {len(pairs)}: {first_of(indices)}; {a.index} is "
            f"{lengths_of(a, b, one.source)} long. Are both logs of one corpus?"
        )


def lengths_of(one: Instance, other: Instance, source: Medium) -> str:
    unit = "ms" if source == "speech" else "words"
    return f"{one.source_length:,.0f} and {other.source_length:,.0f} {unit}"


def _recordings(log: Log, *, talks: bool) -> dict[int | str, Instance]:
    """Whole talks go by their names, as their segments do, and sentences by their numbers."""
    if talks and all(instance.source for instance in log.instances):
        return {PurePath(instance.source).stem: instance for instance in log.instances}
    return {instance.index: instance for instance in log.instances}

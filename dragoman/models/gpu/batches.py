"""Things of different lengths in batches that are filled up to few lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


def batches(
    lengths: Sequence[int], filled: Callable[[int], int], most: Callable[[int], float]
) -> Iterator[list[int]]:
    """The places of things that go together, the shortest first.

    `filled` is the length that one is filled up to, `most` how many of such a length there is
    memory for; one goes in any case.
    """
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        length = filled(lengths[place])
        if group and (length > filled(lengths[group[-1]]) or len(group) >= most(length)):
            yield group
            group = []
        group.append(place)
    if group:
        yield group

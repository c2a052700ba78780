"""The alignments of texts with the most similarity, several texts at once, in bounded memory.

Rows are reference tokens, columns are tokens of the output. A path from the top left to the bottom
right corner pairs tokens (a diagonal step, which gains their similarity) or passes over one of
either side (a step down or right, which is free).

As a step right is free, a row is a running maximum of what comes from above: a few vectorised
operations, and no rounding differs from doing it cell by cell. The rows of several texts are
computed side by side, since one alone is too short to keep a processor busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.instance import Unit
from dragoman.metrics.similarity import Floats, Similarities, Texts

Bools = NDArray[np.bool_]

# Texts side by side at most, and cells of all their tables.
SIDE_BY_SIDE = 16
GROUP_CELLS = 4_000_000
# Cells held at a time: most talks fit at once, a longer one is filled again in blocks.
BLOCK_CELLS = 50_000_000
# Similarities computed at a time: what stays in a processor's cache until it is used.
STRIP_CELLS = 16_000


@dataclass(frozen=True, slots=True)
class Path:
    """The best path: where it came down into each row, and whether by a pair of tokens.

    Rows count from 1; row 0 is the start and row `rows + 1` the end. `entered[r]` columns were
    used up before the step into row r; `paired[r]` says that this step used up one more. Columns
    from `entered[r] + paired[r]` to `entered[r + 1]` are passed over in row r.
    """

    entered: list[int]
    paired: list[bool]


def align(texts: Texts, unit: Unit) -> list[Path]:
    """The best path of each text.

    Of equally good steps back from the end a pair comes first, then a step down, then one right.
    """
    paths: dict[int, Path] = {}
    for group in _groups(texts):
        paths |= zip(group, _align_group([texts[index] for index in group], unit), strict=True)
    return [paths[index] for index in range(len(texts))]


def _groups(texts: Texts) -> Iterator[list[int]]:
    """Texts of like size, to be aligned side by side."""
    sizes = [len(reference) * len(output) for reference, output in texts]
    group: list[int] = []
    for index in sorted(range(len(texts)), key=sizes.__getitem__, reverse=True):
        full = group and len(group) * sizes[group[0]] >= GROUP_CELLS
        if full or len(group) == SIDE_BY_SIDE:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _align_group(texts: Texts, unit: Unit) -> list[Path]:
    """Fill downwards and walk back up; blocks but the last are filled twice."""
    rows = max(len(reference) for reference, _ in texts)
    columns = max(len(output) for _, output in texts)
    paths = [Path([0] * (len(r) + 1) + [len(o)], [False] * (len(r) + 2)) for r, o in texts]
    if not rows or not columns:
        return paths
    similarities = Similarities(texts, unit)
    step = max(1, BLOCK_CELLS // (columns * len(texts)))
    begins = range(0, rows, step)
    tops = [np.zeros((columns + 1, len(texts)))]
    for begin in begins[:-1]:
        tops.append(_fill(similarities, tops[-1], begin, begin + step)[2])
    at = [len(output) for _, output in texts]
    for begin in reversed(begins):
        leaves, paired, _ = _fill(similarities, tops.pop(), begin, min(begin + step, rows))
        for index, path in enumerate(paths):
            end = len(path.entered) - 2 - begin
            if end > 0:
                block = leaves[:end, :, index], paired[:end, :, index]
                at[index] = _walk_back(*block, begin, at[index], path)
    return paths


def _fill(
    similarities: Similarities, top: Floats, begin: int, end: int
) -> tuple[Bools, Bools, Floats]:
    """Where rows are entered and where by a pair, [rows, columns, texts]; and the last row."""
    shape = end - begin, len(top) - 1, top.shape[1]
    paired, leaves = np.empty(shape, dtype=bool), np.empty(shape, dtype=bool)
    above, here, pair = top.copy(), np.zeros_like(top), np.empty(shape[1:])
    strip = max(1, STRIP_CELLS // pair.size)
    for first in range(begin, end, strip):
        gains = similarities(first, min(first + strip, end))
        for row, gain in enumerate(gains, start=first - begin):
            np.add(above[:-1], gain, out=pair)
            np.maximum(pair, above[1:], out=here[1:])
            # Numbers that are not negative are ordered as their bits, which compare faster.
            np.maximum.accumulate(here.view(np.int64), axis=0, out=here.view(np.int64))
            np.equal(pair, here[1:], out=paired[row])
            np.equal(above[1:], here[1:], out=leaves[row])
            above, here = here, above
    leaves |= paired
    return leaves, paired, above


def _walk_back(leaves: Bools, paired: Bools, begin: int, column: int, path: Path) -> int:
    """Follow the best steps from a block's last row up to its first; returns the column there."""
    rows, columns = leaves.shape
    flat, pairs = leaves.tobytes(), paired.tobytes()
    for row in range(rows - 1, -1, -1):
        place = flat.rfind(1, row * columns, row * columns + column)
        pair = place >= 0 and bool(pairs[place])
        column = place - row * columns + 1 - pair if place >= 0 else 0
        path.entered[begin + row + 1] = column
        path.paired[begin + row + 1] = pair
    return column

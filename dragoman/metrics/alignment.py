"""The alignment of two token sequences with the most similarity, by rows, in bounded memory.

Rows are reference tokens, columns are hypothesis tokens. A path from the top left to the bottom
right corner pairs tokens (a diagonal step, which gains their similarity) or passes over one of
either side (a step down or right, which is free).

As a step right is free, a row is a running maximum of what comes from above: three vectorised
operations, and no rounding differs from doing it cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Scores held at a time: an hour of talk fits at once, a longer one is filled again in blocks.
BLOCK_CELLS = 16_000_000
# Gains computed at a time: what stays in a processor's cache until it is used.
STRIP_CELLS = 16_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What to align: how many tokens there are, and what pairing them gains."""

    rows: int
    columns: int
    gain: Callable[[int, int], float]  # of one row and column, at most 1
    gains: Callable[[int, int], Floats]  # (begin, end) -> gain[row - begin, column]


@dataclass(frozen=True, slots=True)
class Path:
    """The best path: where it came down into each row, and whether by a pair of tokens.

    Rows count from 1; row 0 is the start and row `rows + 1` the end. `entered[r]` columns were
    used up before the step into row r; `paired[r]` says that this step used up one more. Columns
    from `entered[r] + paired[r]` to `entered[r + 1]` are passed over in row r.
    """

    entered: list[int]
    paired: list[bool]


def best_path(problem: Problem) -> Path:
    """Fill the scores downwards and walk back up; blocks but the last are filled twice.

    Of equally good steps back a pair comes first, then a step down, then one right.
    """
    step = max(1, BLOCK_CELLS // (problem.columns + 1))
    begins = range(0, problem.rows, step)
    tops = [np.zeros(problem.columns + 1)]
    for begin in begins[:-1]:
        tops.append(_fill(problem, tops[-1], begin, begin + step)[-1].copy())
    path = Path([0] * (problem.rows + 2), [False] * (problem.rows + 2))
    path.entered[-1] = column = problem.columns
    for begin in reversed(begins):
        scores = _fill(problem, tops.pop(), begin, min(begin + step, problem.rows))
        column = _walk_back(problem, scores, begin, column, path)
    return path


def _fill(problem: Problem, top: Floats, begin: int, end: int) -> Floats:
    """The scores of a block of rows below `top`, which becomes the block's row 0."""
    scores = np.empty((end - begin + 1, problem.columns + 1))
    scores[0] = top
    scores[:, 0] = 0
    down, right = scores[:, 1:], scores[:, :-1]
    # Numbers that are not negative are ordered as their bits are, and integers compare faster.
    bits = down.view(np.int64)
    strip = max(1, STRIP_CELLS // (problem.columns + 1))
    for first in range(begin, end, strip):
        gains = problem.gains(first, min(first + strip, end))
        for row, gain in enumerate(gains, start=first - begin):
            here, here_bits = down[row + 1], bits[row + 1]
            np.add(right[row], gain, out=here)
            np.maximum(here, down[row], out=here)
            np.maximum.accumulate(here_bits, out=here_bits)
    return scores


def _walk_back(problem: Problem, scores: Floats, begin: int, column: int, path: Path) -> int:
    """Follow the best steps from the block's last row up to its first; returns the column there."""
    for row in range(len(scores) - 1, 0, -1):
        above, here = scores[row - 1], scores[row]
        pair = False
        while column:
            score = here[column]
            down = above[column] == score
            if down or here[column - 1] == score:
                gain = problem.gain(begin + row - 1, column - 1)
                pair = bool(above[column - 1] + gain == score)
            else:
                pair = True
            if pair or down:
                break
            column -= 1
        column -= pair
        path.entered[begin + row] = column
        path.paired[begin + row] = pair
    return column

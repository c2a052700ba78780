"""The best monotone alignment of two token sequences, by rows, in bounded memory.

Rows are reference tokens, columns are hypothesis tokens. A path from the top left to the bottom
right corner pairs tokens (a diagonal step, which gains something), passes over a reference token
(a step down, which costs `skip`) or over a hypothesis token (a step right, which is free). With
a gain for similar tokens and no cost this is soft alignment; with a gain of 1 for equal tokens
and a cost of 1 it is the edit distance (hypothesis tokens minus the best score).

As a step right is free, a row is a running maximum of what comes from above: one row is three
vectorised operations, and no rounding differs from doing it cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Cells held at a time: an hour of talk fits at once, a longer one is filled again in blocks.
BLOCK_CELLS = 16_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What to align: sizes, gains, costs, and which step wins when several are equally good."""

    rows: int
    columns: int
    gains: Callable[[int, int], Floats]  # (begin, end) -> gain[row - begin, column]
    skip: float  # the cost of passing over a reference token
    head_cost: Sequence[int]  # per row: what entering it before any hypothesis token costs more
    pairs_win_ties: bool  # pair, down, right; otherwise down, right, pair


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
    """Fill the scores downwards and walk back up; blocks but the last are filled twice."""
    step = max(1, BLOCK_CELLS // (problem.columns + 1))
    begins = range(0, problem.rows, step)
    tops = [np.zeros(problem.columns + 1)]
    for begin in begins[:-1]:
        tops.append(_fill(problem, tops[-1], problem.gains(begin, begin + step), begin)[-1])
    path = Path([0] * (problem.rows + 2), [False] * (problem.rows + 2))
    path.entered[-1] = column = problem.columns
    for begin in reversed(begins):
        gains = problem.gains(begin, min(begin + step, problem.rows))
        scores = _fill(problem, tops.pop(), gains, begin)
        column = _walk_back(problem, scores, gains, begin, column, path)
    return path


def _fill(problem: Problem, top: Floats, gains: Floats, begin: int) -> Floats:
    """The scores of a block of rows below `top`, which becomes the block's row 0."""
    scores = np.empty((len(gains) + 1, problem.columns + 1))
    scores[0] = top
    pair = np.empty(problem.columns)
    for row, gain in enumerate(gains):
        above, here = scores[row], scores[row + 1]
        head = above[0] - problem.head_cost[begin + row]
        np.add(above[:-1], gain, out=pair)
        if problem.columns:
            pair[0] = head + gain[0]
        np.subtract(above, problem.skip, out=here)
        here[0] = head - problem.skip
        np.maximum(here[1:], pair, out=here[1:])
        np.maximum.accumulate(here, out=here)
    return scores


def _walk_back(
    problem: Problem, scores: Floats, gains: Floats, begin: int, column: int, path: Path
) -> int:
    """Follow the best steps from the block's last row up to its first; returns the column there."""
    for row in range(len(gains), 0, -1):
        above, here, gain = scores[row - 1], scores[row], gains[row - 1]
        while column:
            score = here[column]
            down = above[column] - problem.skip == score
            right = here[column - 1] == score
            if problem.pairs_win_ties:
                head = problem.head_cost[begin + row - 1] if column == 1 else 0
                pair = above[column - 1] - head + gain[column - 1] == score
            else:
                pair = not down and not right
            if pair or down:
                break
            column -= 1
        else:
            pair = False
        column -= pair
        path.entered[begin + row] = column
        path.paired[begin + row] = bool(pair)
    return column

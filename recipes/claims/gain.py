"""python recipes/claims/gain.py joint-plain-1 joint-dar-1 [OUT]

Table 4 of paper 004: how far the curve of one run lies above that of another at the same lag. A
curve is what claims.py, in OUT (out/claims), has found of a run trained on with weights of DAL
(RUN-dal0.01, ...). At every lag of the second the first is interpolated between its neighbours,
never beyond its ends; last, the mean, and the p-value of a paired t-test.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from answers import Answer, read_answers
from claims import OUT

from dragoman.metrics.significance import paired_t_test

Pair = tuple[float, float, float]  # lag in seconds, BLEU of the first there, and of the second


def curve(answers: Sequence[Answer], run: str) -> list[Answer]:
    """By lag."""
    return sorted(
        (one for one in answers if one.run.startswith(f"{run}-dal")), key=lambda one: one.lag
    )


def pairs(first: Sequence[Answer], second: Sequence[Answer]) -> Iterator[Pair]:
    """The points of the second at lags that the first has, too."""
    lags = [one.lag for one in first]
    for one in second:
        if lags and lags[0] <= one.lag <= lags[-1]:
            yield one.lag, float(np.interp(one.lag, lags, [p.bleu for p in first])), one.bleu


def main(first: str, second: str, out: Path = OUT) -> None:
    answers = list(read_answers(out))
    points = list(pairs(curve(answers, first), curve(answers, second)))
    print(f"| lag | {first} | {second} | BLEU | share |", "|---" * 5 + "|", sep="\n")
    for lag, before, after in points:
        gain = after - before
        print(f"| {lag:.2f} | {before:.1f} | {after:.1f} | {gain:+.1f} | {gain / before:+.0%} |")
    if len(points) < 2:
        print("The curves share fewer than two lags: nothing can be said.", file=sys.stderr)
        raise SystemExit(2)
    _, ours, theirs = zip(*points, strict=True)
    test = paired_t_test(ours, theirs)
    print(f"\nmean {np.mean(np.subtract(theirs, ours)):+.2f} BLEU, p = {test.p:.3f}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        raise SystemExit(2)
    main(*sys.argv[1:3], *map(Path, sys.argv[3:]))

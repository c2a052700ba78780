"""python recipes/claims/tables.py [OUT [RUNS]]

What claims.py has found so far, in OUT (out/claims), as tables: for every paper and question a row
for each way to wait and a column for each run; BLEU at the lag (LAAL) in seconds. Last, what the
training of RUNS (runs/claims) has cost: one offline net against those that learned to wait.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from answers import Answer, read_answers
from claims import OUT, RUNS
from energy import energy


def table(answers: list[Answer]) -> list[str]:
    runs = sorted({one.run for one in answers})
    cells = {(one.way, one.run): str(one) for one in answers}
    lines = [f"| | {' | '.join(runs)} |", "|---" * (len(runs) + 1) + "|"]
    for way in dict.fromkeys(one.way for one in answers):
        lines.append(f"| {way} | {' | '.join(cells.get((way, run), '') for run in runs)} |")
    return lines


def main(out: Path = OUT, runs: Path = RUNS) -> None:
    tables: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for one in read_answers(out):
        tables[one.paper, one.question].append(one)
    for (paper, question), answers in sorted(tables.items()):
        print(f"\n### Paper {paper}, {question}\n", *table(answers), sep="\n")
    if lines := list(energy(runs)):
        print("\n### Paper 001, energy\n", *lines, sep="\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))

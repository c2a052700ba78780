"""python recipes/claims/tables.py [OUT]

What claims.py has found so far, in OUT (out/claims), as tables: for every paper and question a row
for each way to wait and a column for each run; BLEU at the lag (LAAL) in seconds.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

Cells = dict[str, dict[str, str]]  # by way and run


def answers(folder: Path) -> dict[str, Cells]:
    """By question; a folder of a paper is called RUN-QUESTION."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(folder.glob("*/scores.tsv")):
        run, _, question = path.parent.name.rpartition("-")
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                score = f"{float(row['BLEU']):.1f} at {float(row['LAAL']) / 1000:.2f}"
                found[question][row["system"]][run] = score
    return found


def table(cells: Cells) -> list[str]:
    runs = sorted({run for row in cells.values() for run in row})
    lines = [f"| | {' | '.join(runs)} |", "|---" * (len(runs) + 1) + "|"]
    for way, row in cells.items():
        lines.append(f"| {way} | {' | '.join(row.get(run, '') for run in runs)} |")
    return lines


def main(out: Path) -> None:
    for folder in sorted(path for path in out.iterdir() if path.name.isdigit()):
        for question, cells in answers(folder).items():
            print(f"\n### Paper {folder.name}, {question}\n", *table(cells), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/claims"))

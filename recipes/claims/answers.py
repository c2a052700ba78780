"""What claims.py has found so far: scores.tsv in a folder RUN-QUESTION of each paper's folder."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """How well a run did with one way to wait."""

    paper: str
    question: str
    run: str
    way: str
    bleu: float
    lag: float  # LAAL in seconds

    def __str__(self) -> str:
        return f"{self.bleu:.1f} at {self.lag:.2f}"


def read_answers(out: Path) -> Iterator[Answer]:
    paths = sorted(out.glob("[0-9]*/*/scores.tsv"))
    if not paths:
        print(
            f"{out} holds no answers yet; recipes/claims/claims.py asks for them.", file=sys.stderr
        )
        raise SystemExit(2)
    for path in paths:
        run, _, question = path.parent.name.rpartition("-")
        paper = path.parent.parent.name
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                bleu, lag = float(row["BLEU"]), float(row["LAAL"]) / 1000
                yield Answer(paper, question, run, row["system"], bleu, lag)

"""python recipes/claims/units.py TEXT SKIP OUT

The units of all runs, learned once from the rows of TEXT after the first SKIP (those of dev and
test) into OUT: runs that are compared read and write the same ones.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

from dragoman.train.data.vocabulary import train_pieces
from dragoman.train.recipe import Units

ENGLISH = {
    "source": Units("bpe", 2000, plain=True),
    "letters": Units("char", 200, plain=True),  # of those who spell what they hear
}
TARGET = {
    "target": Units("unigram", 4000),
    "char": Units("char", 300),
    "bpe400": Units("bpe", 400),
    "bpe2000": Units("bpe", 2000),
}


def main(text: Path, skip: int, out: Path) -> None:
    with lzma.open(text, "rt", encoding="utf-8") as file:
        rows = [row.rstrip("\n").split("\t") for row in file][skip:]
    out.mkdir(parents=True, exist_ok=True)
    for column, every in enumerate((ENGLISH, TARGET)):
        texts = [row[column] for row in rows]
        for name, units in every.items():
            path = out / f"{name}.model"
            if not path.exists():
                train_pieces(texts, units, path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("Say: python recipes/claims/units.py TEXT SKIP OUT", file=sys.stderr)
        raise SystemExit(2)
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))

"""python recipes/claims/choose.py EUROPARL TATOEBA > claims.en-de.tsv.xz

Short sentences of common words, translated word by word, from which a small net learns to translate
in minutes: 4 to 14 words a side, all English words among the 6,000 most frequent of what is that
short, every English sentence once; of these the 60 % whose German words a dictionary, learned from
all of them (IBM model 1), expects most. The order is that of a hash, so that the first rows are a
sample of all.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np

COMMON, LITERAL = 6000, 0.6
FEWEST, MOST = 4, 14
ROUNDS = 5
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
NOT_SPOKEN = re.compile(r"[\d()\[\]/…:;«»\"“”„]")
Pair = tuple[str, str]


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def short_pairs(paths: list[str]) -> Iterator[Pair]:
    """English and German of all rows that are short and speakable on both sides."""
    for path in paths:
        with lzma.open(path, "rt", encoding="utf-8") as rows:
            for row in rows:
                english, german = row.rstrip("\n").split("\t")[:2]
                sizes = len(english.split()), len(german.split())
                fits = all(FEWEST <= size <= MOST for size in sizes)
                if fits and not NOT_SPOKEN.search(english + german):
                    yield english, german


def common_pairs(pairs: dict[str, str]) -> list[Pair]:
    counts = Counter(word for text in pairs for word in words(text))
    common = {word for word, _ in counts.most_common(COMMON)}
    return [pair for pair in pairs.items() if common.issuperset(words(pair[0]))]


def expected(pairs: list[Pair]) -> np.ndarray:
    """Mean log probability of the German words of each pair, by IBM model 1."""
    names: dict[str, int] = {"": 0}  # the empty English word
    rows, sides = [], []
    for number, pair in enumerate(pairs):
        here, there = ([names.setdefault(w, len(names)) for w in words(text)] for text in pair)
        grid = np.array(np.meshgrid([0, *here], there, indexing="ij")).reshape(2, -1)
        place = np.tile(np.arange(len(there)), len(here) + 1)
        sides.append(grid)
        rows.append(number * MOST * 2 + place)  # which German word of which pair
    english, german = np.concatenate(sides, axis=1)
    _, row = np.unique(np.concatenate(rows), return_inverse=True)
    _, both = np.unique(english * len(names) + german, return_inverse=True)
    first = np.zeros(both.max() + 1, np.int64)
    first[both] = english
    likely = np.ones(len(first))
    for _ in range(ROUNDS):
        share = likely[both]
        share /= np.bincount(row, share)[row]
        counts = np.bincount(both, share)
        likely = counts / np.bincount(first, counts)[first]
    sizes = np.array([1 + len(words(pair[0])) for pair in pairs])
    count = np.array([len(words(pair[1])) for pair in pairs])
    found = np.log(np.bincount(row, likely[both]))
    ends = np.cumsum(count)
    sums = np.diff(np.concatenate([[0.0], np.cumsum(found)])[np.concatenate([[0], ends])])
    return sums / count - np.log(sizes)


def chosen(paths: list[str]) -> list[Pair]:
    pairs = [pair for pair in common_pairs(dict(short_pairs(paths))) if all(map(words, pair))]
    scores = expected(pairs)
    least = np.quantile(scores, 1 - LITERAL)
    literal = [pair for pair, score in zip(pairs, scores, strict=True) if score >= least]
    return sorted(literal, key=lambda pair: hashlib.sha256(pair[0].encode()).digest())


if __name__ == "__main__":
    lines = "".join(f"{english}\t{german}\n" for english, german in chosen(sys.argv[1:]))
    sys.stdout.buffer.write(lzma.compress(lines.encode(), preset=6))

"""Which of the decoder's heads tell where it looks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

Head = tuple[int, int]  # layer, head

# As OpenAI published them, by layers and heads of the decoder and tokens of the vocabulary: 51,864
# are English only, 51,866 are version 3's. The first large model had the shape of its second
# version, and other heads.
# fmt: off
PUBLISHED: dict[tuple[int, int, int], list[Head]] = {
    # tiny.en, tiny
    (4, 6, 51864): [(1, 0), (2, 0), (2, 5), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)],
    (4, 6, 51865): [(2, 2), (3, 0), (3, 2), (3, 3), (3, 4), (3, 5)],
    # base.en, base
    (6, 8, 51864): [(3, 3), (4, 7), (5, 1), (5, 5), (5, 7)],
    (6, 8, 51865): [(3, 1), (4, 2), (4, 3), (4, 7), (5, 1), (5, 2), (5, 4), (5, 6)],
    # small.en, small
    (12, 12, 51864): [(6, 6), (7, 0), (7, 3), (7, 8), (8, 2), (8, 5), (8, 7), (9, 0), (9, 4),
                      (9, 8), (9, 10), (10, 0), (10, 1), (10, 2), (10, 3), (10, 6), (10, 11),
                      (11, 2), (11, 4)],
    (12, 12, 51865): [(5, 3), (5, 9), (8, 0), (8, 4), (8, 7), (8, 8), (9, 0), (9, 7), (9, 9),
                      (10, 5)],
    # medium.en, medium
    (24, 16, 51864): [(11, 4), (14, 1), (14, 12), (14, 14), (15, 4), (16, 0), (16, 4), (16, 9),
                      (17, 12), (17, 14), (18, 7), (18, 10), (18, 15), (20, 0), (20, 3), (20, 9),
                      (20, 14), (21, 12)],
    (24, 16, 51865): [(13, 15), (15, 4), (15, 15), (16, 1), (20, 0), (23, 4)],
    # large-v2, large-v3, turbo
    (32, 20, 51865): [(10, 12), (13, 17), (16, 11), (16, 12), (16, 13), (17, 15), (17, 16),
                      (18, 4), (18, 11), (18, 19), (19, 11), (21, 2), (21, 3), (22, 3), (22, 9),
                      (22, 12), (23, 5), (23, 7), (23, 13), (25, 5), (26, 1), (26, 12), (27, 15)],
    (32, 20, 51866): [(7, 0), (10, 17), (12, 18), (13, 12), (16, 1), (17, 14), (19, 11), (21, 4),
                      (24, 1), (25, 6)],
    (4, 20, 51866): [(2, 4), (2, 11), (3, 3), (3, 6), (3, 11), (3, 14)],
}
# fmt: on


def alignment_heads(
    given: Iterable[Head] | None, *, layers: int, heads: int, words: int
) -> list[Head]:
    """The heads that a folder names, as far as the decoder has them; else those published for its
    shape; else all in the later half of its layers.

    Distilled models come with the heads of their teacher, of which they have few or none.
    """
    there = [(x, y) for x, y in given or [] if 0 <= x < layers and 0 <= y < heads]
    later = list(product(range(layers // 2, layers), range(heads)))
    return there or PUBLISHED.get((layers, heads, words), later)

"""Counting the n-grams that many sentence pairs share, with a single sort.

Each position of each text becomes one integer: the pair it is in, then the `order` symbols that
start there. Sorted, equal n-grams of one pair lie together for every n at once, since an n-gram
is the beginning of a longer one.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dragoman.metrics.ragged import Ints, Ragged

BLOCK = 1 << 15  # symbols counted at a time: what fits a processor's cache is much faster


def ngram_totals(lengths: Ints, order: int) -> Ints:
    """How many n-grams texts of these lengths have, for n = 1 … order. [texts, order]"""
    totals: Ints = np.maximum(lengths[:, None] - np.arange(order), 0)
    return totals


def shared_ngrams(symbols: Ints, lengths: Ints, order: int) -> Ints:
    """For n = 1 … order the n-grams that the two texts of each pair share. [pairs, order]

    An n-gram that occurs twice in both counts twice. The texts come as numbered symbols (from 1),
    one text after the other, the two of a pair together; `lengths` are their lengths.
    """
    ends = np.cumsum(lengths)[1::2]  # [pairs]
    blocks = np.unique(np.searchsorted(ends, np.arange(BLOCK, len(symbols), BLOCK))) + 1
    cuts = [0, *blocks[blocks < len(ends)].tolist(), len(ends)]
    shared = np.zeros((len(ends), order), dtype=np.int64)
    for first, last in pairwise(cuts):
        begin = ends[first - 1] if first else 0
        end = ends[last - 1] if last else 0
        shared[first:last] = _shared_in_block(
            symbols[begin:end], lengths[2 * first : 2 * last], order
        )
    return shared


def _shared_in_block(symbols: Ints, lengths: Ints, order: int) -> Ints:
    pairs = len(lengths) // 2
    shared = np.zeros((pairs, order), dtype=np.int64)
    if not len(symbols):
        return shared
    symbols, bits = _fit(symbols, lengths, order)
    keys = _keys(symbols, lengths, order, bits)
    keys.sort()
    in_second = np.concatenate(([0], np.cumsum(keys & 1)))
    grams, groups = keys >> 1, np.arange(len(keys) + 1)
    for n in range(order, 0, -1):
        # `grams` are the different n-grams, equal ones at the places from `groups` on.
        begins = np.flatnonzero(np.append(True, grams[1:] != grams[:-1]))
        grams, groups = grams[begins], np.append(groups[begins], len(keys))
        second = np.diff(in_second[groups])
        common = np.minimum(second, np.diff(groups) - second)
        shared[:, n - 1] = np.bincount(grams >> (bits * n), weights=common, minlength=pairs)
        grams = grams >> bits
    return shared


def _keys(symbols: Ints, lengths: Ints, order: int, bits: int) -> Ints:
    """Every position as a number: its pair, the symbols from here on, and its side.

    Past its end the first text goes on with 0 and the second with the highest number, so that
    n-grams that are not whole are never shared.
    """
    shape = Ragged(lengths)
    texts = shape.spread(np.arange(len(lengths)))
    remaining = shape.spread(lengths) - shape.positions
    sides = texts & 1
    past_end = sides * ((1 << bits) - 1)
    padded = np.append(symbols, np.zeros(order, dtype=np.int64))
    keys = texts >> 1
    for k in range(order):
        keys <<= bits
        keys |= np.where(remaining > k, padded[k : k + len(symbols)], past_end)
    keys <<= 1
    keys |= sides
    return keys


def _fit(symbols: Ints, lengths: Ints, order: int) -> tuple[Ints, int]:
    """Symbols that leave room for `order` of them in a key, and the bits that one takes."""
    room = (62 - (len(lengths) // 2).bit_length()) // order
    if (int(symbols.max()) + 1).bit_length() > room:
        symbols = _renumber(symbols, lengths)
    bits = (int(symbols.max()) + 1).bit_length()
    if bits > room:
        raise OverflowError(f"{symbols.max()} different symbols in one pair of texts are too many")
    return symbols, bits


def _renumber(symbols: Ints, lengths: Ints) -> Ints:
    """Number the symbols of each pair of texts anew, from 1."""
    sizes = lengths[0::2] + lengths[1::2]
    pairs = np.repeat(np.arange(len(sizes)), sizes)
    stride = int(symbols.max()) + 1
    known, numbers = np.unique(pairs * stride + symbols, return_inverse=True)
    firsts = np.searchsorted(known, np.arange(len(sizes)) * stride)
    renumbered: Ints = numbers.reshape(-1) - firsts[pairs] + 1
    return renumbered

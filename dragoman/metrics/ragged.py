"""Rows of different lengths in one flat array, so that a whole corpus is computed at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


def flatten(rows: Sequence[Sequence[float]]) -> Floats:
    """All numbers of all rows, one after the other.

    Arrays are arrays of doubles, as the log readers make them: they are joined as they are.
    """
    if set(map(type, rows)) == {array}:
        return np.frombuffer(b"".join(rows), dtype=np.float64)  # type: ignore[arg-type]
    return np.fromiter(chain.from_iterable(rows), dtype=np.float64)


class Ragged:
    """The shape of rows of different lengths, none of them empty, kept in a flat array.

    The methods take flat values of this shape, one per unit, and give one value per unit again
    or one per row.
    """

    def __init__(self, lengths: Ints) -> None:
        self.lengths = lengths  # [rows]
        self.firsts: Ints = np.cumsum(lengths) - lengths  # [rows] where each row begins

    @cached_property
    def lasts(self) -> Ints:
        """Where each row's last value is. [rows]"""
        return self.firsts + self.lengths - 1

    @cached_property
    def rows(self) -> Ints:
        """The row that every value is in. [units]"""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def positions(self) -> Ints:
        """The position of every value in its row, from 0. [units]"""
        return np.arange(len(self.rows)) - self.spread(self.firsts)

    def spread(self, per_row: NDArray[T]) -> NDArray[T]:
        """Give every unit the value of its row."""
        return per_row[self.rows]

    def sums(self, values: Floats) -> Floats:
        """The sum of each row."""
        return np.add.reduceat(values, self.firsts) if len(self.firsts) else np.zeros(0)

    def sums_of_first(self, values: Floats, counts: Ints) -> Floats:
        """The sum of the first values of each row, as many as said; NaN for none."""
        edges = np.stack((self.firsts, self.firsts + counts), axis=1).reshape(-1)
        sums: Floats = np.add.reduceat(np.append(values, 0.0), edges)[::2]
        return np.where(counts > 0, sums, np.nan)

    def smallest(self, values: NDArray[T]) -> NDArray[T]:
        """The smallest value of each row."""
        if not len(self.firsts):
            return values[:0]
        smallest: NDArray[T] = np.minimum.reduceat(values, self.firsts)
        return smallest

    def first_where(self, found: Bools) -> Ints:
        """The position of each row's first True, or the row's length where there is none."""
        places = np.append(np.flatnonzero(found), len(found))
        following = places[np.searchsorted(places, self.firsts)]
        return np.minimum(following - self.firsts, self.lengths)

    def previous(self, values: Floats) -> Floats:
        """The value before each in its row, 0 before the first."""
        before = np.zeros_like(values)
        before[1:] = values[:-1]
        before[self.firsts] = 0.0
        return before

    def running_sums(self, values: Floats) -> Floats:
        """The sum of each value and all before it in its row."""
        sums = np.cumsum(values)
        return sums - self.spread(sums[self.firsts] - values[self.firsts])

    def running_max(self, values: Floats) -> Floats:
        """The largest of each value and all before it in its row."""
        self._by_row.imag = values
        return np.maximum.accumulate(self._by_row, out=self._by_row).imag.copy()

    @cached_property
    def _by_row(self) -> NDArray[np.complex128]:
        """Room for values with their rows as real parts. [units]

        Complex numbers are compared by their real parts first: so no value of an earlier row is
        ever larger than one of a later row.
        """
        pairs = np.empty(len(self.rows), dtype=np.complex128)
        pairs.real = self.rows
        return pairs

    def finish_times(self, arrivals: Floats, done: Floats) -> Floats:
        """When each piece of work ends if it starts at its arrival or after the work before it.

        `done` is the work of a piece and of all before it. The rule "end = max(arrival, previous
        end) + work", unrolled: end = done + the largest (arrival - work before it) so far.
        """
        return done + self.running_max(arrivals - self.previous(done))

"""Average token delay (Kano et al., 2023): how long after its source word a target word ends.

What was heard and said between two moments of speaking is a chunk. Within the chunks heard so
far, the t-th target word belongs to the t-th source word, moved back by as many words as earlier
chunks said more than they heard. Speech is cut into words of 300 ms, the last of a chunk shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.metrics.ragged import Bools, Floats, Ints, Ragged
from dragoman.metrics.timings import Timings

SPOKEN_WORD = 300.0  # milliseconds


@dataclass(frozen=True)
class Targets:
    """The target words: their shape, the chunk (of all chunks) each is in, when each ends."""

    shape: Ragged
    chunks: Ints  # [words]
    ends: Floats  # [words]


def average_token_delay(timings: Timings) -> Floats:
    """ATD of each sentence; undefined where delays go down."""
    # From a log, SimulEval takes every source for speech and every output for text.
    plain_log = timings.rules.compat == "simuleval"
    text_source = timings.rules.source == "text" and not plain_log
    word = 1.0 if text_source else SPOKEN_WORD
    begins = _chunk_begins(timings)
    chunks = Ragged(np.add.reduceat(begins.astype(np.int64), timings.shape.firsts))
    if timings.says_speech and not plain_log:
        targets = _spoken_targets(timings, begins, chunks)
    else:
        targets = _written_targets(timings, begins, word if text_source else 0.0)
    source_ends = _source_ends(chunks, timings.delays[begins], word, targets)
    delays = targets.shape.sums(targets.ends - source_ends) / targets.shape.lengths
    downwards = timings.shape.smallest(_steps(timings)) < 0
    return np.where(downwards, np.nan, delays)


def _chunk_begins(timings: Timings) -> Bools:
    """Which units are the first that were said at their moment. [units]"""
    begins: Bools = _steps(timings) != 0
    begins[timings.shape.firsts] = True
    return begins


def _steps(timings: Timings) -> Floats:
    return timings.delays - timings.shape.previous(timings.delays)


def _written_targets(timings: Timings, begins: Bools, length: float) -> Targets:
    """Every unit is a word; words of text have a length only where the source is text too."""
    shape, ends = timings.shape, timings.times
    if timings.aware and timings.rules.compat == "simuleval":
        ends = _simuleval_ends(timings)
    if length:
        ends = shape.finish_times(ends, shape.running_sums(np.full(len(ends), length)))
    return Targets(shape, np.cumsum(begins) - 1, ends)


def _simuleval_ends(timings: Timings) -> Floats:
    """Each word ends its own computation after it arrived or the word before it ended."""
    shape = timings.shape
    computed = timings.times - timings.delays  # `times` are elapsed here
    unknown = shape.spread(shape.sums(np.abs(timings.times)) == 0)
    return shape.finish_times(timings.delays, np.where(unknown, 0.0, computed))


def _spoken_targets(timings: Timings, begins: Bools, chunks: Ragged) -> Targets:
    """The sound said at one moment, cut into words of 300 ms."""
    sounds = np.add.reduceat(timings.durations, np.flatnonzero(begins))  # [chunks]
    sizes = np.maximum(np.ceil(sounds / SPOKEN_WORD), 1).astype(np.int64)
    words = Ragged(sizes)  # the words of each chunk
    lengths = np.clip(words.spread(sounds) - words.positions * SPOKEN_WORD, 0, SPOKEN_WORD)
    shape = Ragged(np.add.reduceat(sizes, chunks.firsts))
    arrivals = words.spread(timings.times[begins])
    ends = shape.finish_times(arrivals, shape.running_sums(lengths))
    return Targets(shape, words.spread(np.arange(len(sizes))), ends)


def _source_ends(chunks: Ragged, arrivals: Floats, word: float, targets: Targets) -> Floats:
    """When the source word that belongs to each target word was over."""
    durations = arrivals - chunks.previous(arrivals)
    whole, rest = np.divmod(durations, word)
    sizes = np.maximum(whole + (rest != 0), 0)  # [chunks] source words in each chunk
    heard = chunks.running_sums(sizes)
    said_here = np.bincount(targets.chunks, minlength=len(sizes)).astype(float)
    ahead = np.maximum(chunks.running_sums(said_here) - said_here - (heard - sizes), 0)
    words = np.minimum(targets.shape.positions + 1 - ahead[targets.chunks], heard[targets.chunks])
    # Source words are numbered through the whole corpus, to find the chunk that holds each.
    last_words = np.cumsum(sizes)
    before_row = chunks.spread((last_words - sizes)[chunks.firsts])
    numbers = before_row[targets.chunks] + words
    holders = np.searchsorted(last_words, numbers)
    nth = numbers - (last_words - sizes)[holders]
    starts = chunks.previous(arrivals)[holders]
    ends = starts + np.minimum(nth * word, durations[holders])
    return np.where(words > 0, ends, 0.0)

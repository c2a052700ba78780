"""The sentences on which StreamLAAL is computed, as its two tools see them.

simulstream computes in seconds and lets a word be earlier than its sentence. FBK's older script
computes in milliseconds and takes no word for earlier than its sentence's beginning; for time
with computation it reads SimulEval's elapsed times in a way of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.pieces import Piece
from dragoman.metrics.ragged import Floats
from dragoman.metrics.segments import Talk
from dragoman.metrics.timings import Rules


def simulstream_sentences(talks: Sequence[Sequence[Piece]]) -> list[Instance]:
    """The pieces in seconds: a word that ends with its sentence may round to either side of it."""
    return [_in_seconds(piece) for pieces in talks for piece in pieces]


def _in_seconds(piece: Piece) -> Instance:
    begin = piece.segment.offset - piece.zero / 1000
    return Instance(
        index=piece.segment.index,
        prediction="",
        delays=(piece.delays / 1000 - begin).tolist(),
        source_length=piece.segment.duration,
        reference=piece.segment.reference,
        elapsed=None if piece.aware is None else (piece.aware / 1000 - begin).tolist(),
    )


def simulstream_length(reference: str, unit: Unit) -> int:
    """A reference's length by simulstream: double spaces make no words, but are characters."""
    return sum(map(bool, reference.split(" "))) if unit == "word" else len(reference)


def fbk_sentences(
    talks: Sequence[Sequence[Piece]], sources: Sequence[Talk], rules: Rules
) -> list[Instance]:
    """The pieces in milliseconds, nothing said before its sentence begins."""
    return [
        sentence
        for pieces, source in zip(talks, sources, strict=True)
        for sentence in _fbk_talk(pieces, source.instance, rules)
    ]


def _fbk_talk(pieces: Sequence[Piece], talk: Instance, rules: Rules) -> list[Instance]:
    sentences = [_clamped(piece) for piece in pieces]
    if rules.computation != "chunk" or talk.works is not None or not talk.elapsed:
        return sentences
    aware = _fbk_elapsed(pieces, np.asarray(talk.elapsed, dtype=float))
    return [replace(sentence, elapsed=own) for sentence, own in zip(sentences, aware, strict=True)]


def _clamped(piece: Piece) -> Instance:
    aware = piece.aware
    return Instance(
        index=piece.segment.index,
        prediction="",
        delays=np.maximum(piece.delays - piece.begin, 0.0).tolist(),
        source_length=piece.segment.duration * 1000,
        reference=piece.segment.reference,
        elapsed=None if aware is None else np.maximum(aware - piece.begin, 0.0).tolist(),
    )


def _fbk_elapsed(pieces: Sequence[Piece], elapsed: Floats) -> list[array[float]]:
    """What was spent since the unit before, on top of that unit's delay.

    Units that appeared together share the cost of the first, as it came out for that one.
    """
    aware: list[array[float]] = []
    first = position = len(elapsed) - sum(len(piece.delays) for piece in pieces)
    delay_before = shown_before = cost = 0.0
    for piece in pieces:
        own = array("d")
        for delay in piece.delays.tolist():
            shown = float(elapsed[position])
            if position == first:
                time = shown
            elif shown == shown_before:
                time = delay + cost
            else:
                time = shown - shown_before + delay_before
            own.append(max(0.0, time - piece.begin))
            cost = own[-1] - max(0.0, delay - piece.begin)
            delay_before, shown_before = delay, shown
            position += 1
        aware.append(own)
    return aware

"""What an exported MMA writes of what it has heard: until a head wants to read on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.models.onnx_net import BOS, EOS, PAD, UNK, Arrays, OnnxNet

NEVER = (PAD, BOS, UNK)  # not words


@dataclass(frozen=True, slots=True)
class Point:
    """Where the decoder stands: the token it reads next, and what it remembers from before it."""

    token: int
    cache: Arrays


@dataclass(frozen=True, slots=True)
class Writing:
    """Tokens that may be written now; `points[n]` is where to go on once n of them are said."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    points: tuple[Point, ...]
    ended: bool  # the net ended the sentence


def beginning(net: OnnxNet) -> Point:
    return Point(BOS, net.begin(1))


def write(
    net: OnnxNet,
    memory: Arrays,
    states: int,
    start: Point,
    *,
    final: bool,
    most: int,
    avoid_end: bool = False,
) -> Writing:
    """Write from `start` on, at most `most` tokens.

    memory: what was heard, `states` long, of one stream. A step that would have to read further is
    forgotten: it will be taken again when more was heard. Where the net would end the sentence
    before the source has ended it waits, or (`avoid_end`) takes the next best token.
    """
    points = [start]
    tokens: list[int] = []
    log_probs: list[float] = []
    ended = False
    lengths, over = np.array([states]), np.array([final])
    while states and len(tokens) < most:
        at = points[-1]
        step = net.step(np.array([[at.token]]), memory, lengths, at.cache, over)
        if step.write is not None and not step.write[0, -1]:
            break
        row = step.log_probs[0, -1].copy()
        row[list(NEVER)] = -np.inf
        if avoid_end and not final:
            row[EOS] = -np.inf
        token = int(row.argmax())
        if token == EOS:
            ended = final
            break
        tokens.append(token)
        log_probs.append(float(row[token]))
        points.append(Point(token, step.cache))
    return Writing(tuple(tokens), tuple(log_probs), tuple(points), ended)

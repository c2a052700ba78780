"""Listening: from the features of several streams to what a decoder reads, as one batch.

A net that looks at the whole utterance encodes it anew when more was heard; one that hears in
chunks takes the chunks that have become complete, and all the rest when its source has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.models.exported.counting import Evidence
from dragoman.models.exported.net import Encoding, OnnxNet
from dragoman.models.exported.search import cache_row
from dragoman.models.exported.stream import OnnxStream

FEWEST_FRAMES = 10


def listen(
    net: OnnxNet, streams: Sequence[OnnxStream], flush: Sequence[bool] | None = None
) -> None:
    """Bring every stream's `ears` up to date; `flush`: leave nothing for a later chunk."""
    if net.config.chunks is None:
        _encode(net, streams)
        return
    asked = flush or [False] * len(streams)
    ending = [ended or stream.ended for ended, stream in zip(asked, streams, strict=True)]
    while _hear_chunk(net, streams, ending):
        pass


def _encode(net: OnnxNet, streams: Sequence[OnnxStream]) -> None:
    """Whole utterances, padded to the longest."""
    stale = [
        stream
        for stream in streams
        if stream.features.end != stream.ears.frames
        and len(stream.features.frames) >= FEWEST_FRAMES
    ]
    if not stale:
        return
    lengths = np.array([len(stream.features.frames) for stream in stale], np.int64)
    features = np.zeros((len(stale), lengths.max(), net.config.bands), np.float32)
    for row, stream in zip(features, stale, strict=True):
        row[: len(stream.features.frames)] = stream.features.frames
    encoding = net.encode(features, lengths)
    for i, stream in enumerate(stale):
        states = int(encoding.lengths[i])
        ears = stream.ears
        ears.memory = net.cut(cache_row(encoding.memory, i), slice(states))
        ears.states, ears.frames = states, stream.features.end
        ears.evidence = _evidence(encoding, i)
        ears.counted = stream.new_counter().hear(ears.evidence)


def _hear_chunk(net: OnnxNet, streams: Sequence[OnnxStream], ending: Sequence[bool]) -> bool:
    """One chunk for every stream that has one; False: there was none."""
    chunks = net.config.chunks
    assert chunks is not None
    ready = [
        stream
        for stream, ends in zip(streams, ending, strict=True)
        if len(stream.features.frames) >= (1 if ends else chunks.window)
    ]
    if not ready:
        return False
    features = np.zeros((len(ready), chunks.window, net.config.bands), np.float32)
    frames = np.zeros(len(ready), np.int64)
    for i, stream in enumerate(ready):
        heard = stream.features.frames[: chunks.window]
        features[i, : len(heard)], frames[i] = heard, len(heard)
    kept = [stream.ears.kept or net.begin_stream(1) for stream in ready]
    before = tuple(np.concatenate(parts) for parts in zip(*kept, strict=True))
    encoding, after = net.hear(features, frames, before)
    for i, stream in enumerate(ready):
        states = int(encoding.lengths[i])
        ears = stream.ears
        ears.memory = net.join(ears.memory, net.cut(cache_row(encoding.memory, i), slice(states)))
        ears.states, ears.kept = ears.states + states, cache_row(after, i)
        stream.features.forget(stream.features.start + chunks.advance)
        ears.counted = stream.counter.hear(_evidence(encoding, i))
    return True


def _evidence(encoding: Encoding, item: int) -> Evidence:
    """What the heads said of one item."""
    found = Evidence()
    if encoding.labels is not None and encoding.label_lengths is not None:
        labels = encoding.labels[item, : int(encoding.label_lengths[item])]
        found = replace(found, labels=labels)
    if encoding.boundaries is not None:
        boundaries = encoding.boundaries[item, : int(encoding.lengths[item])]
        found = replace(found, boundaries=boundaries)
    return found

"""From the features of several streams to what a decoder reads, as one batch.

A net that looks at the whole window encodes it anew when more was heard; one that hears in chunks
takes the chunks that have become complete, and all the rest when the utterance ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.models.exported.counting import Evidence
from dragoman.models.exported.net import Array, Encoding, OnnxNet, row_of
from dragoman.models.exported.stream import ExportedStream

FEWEST_FRAMES = 10


def encode_windows(
    net: OnnxNet, streams: Sequence[ExportedStream], closing: Sequence[bool]
) -> None:
    """Encode what each stream has heard; `closing`: leave nothing for a later chunk."""
    if net.config.chunks is None:
        encode_at_once(net, streams, [stream.sound.frames for stream in streams])
        return
    while _encode_chunk(net, streams, closing):
        pass


def encode_at_once(
    net: OnnxNet, streams: Sequence[ExportedStream], sounds: Sequence[Array]
) -> None:
    """Whole windows, or the first part of them, padded to the longest."""
    pairs = zip(streams, sounds, strict=True)
    some = [(stream, sound) for stream, sound in pairs if len(sound) >= FEWEST_FRAMES]
    if not some:
        return
    lengths = np.array([len(sound) for _, sound in some], np.int64)
    features = np.zeros((len(some), lengths.max(), net.config.bands), np.float32)
    for row, (_, sound) in zip(features, some, strict=True):
        row[: len(sound)] = sound
    encoding = net.encode(features, lengths)
    for i, (stream, _) in enumerate(some):
        states = int(encoding.lengths[i])
        memory = net.cut(row_of(encoding.memory, i), slice(states))
        stream.encoded_anew(memory, states, _evidence(encoding, i))


def _encode_chunk(net: OnnxNet, streams: Sequence[ExportedStream], closing: Sequence[bool]) -> bool:
    """One chunk for every stream that has one; False: there was none."""
    chunks = net.config.chunks
    assert chunks is not None
    ready = [
        stream
        for stream, ends in zip(streams, closing, strict=True)
        if len(stream.sound.frames) >= (1 if ends else chunks.window)
    ]
    if not ready:
        return False
    features = np.zeros((len(ready), chunks.window, net.config.bands), np.float32)
    frames = np.zeros(len(ready), np.int64)
    for i, stream in enumerate(ready):
        heard = stream.sound.frames[: chunks.window]
        features[i, : len(heard)], frames[i] = heard, len(heard)
    kept = [stream.encoded.kept or net.begin_stream(1) for stream in ready]
    before = tuple(np.concatenate(parts) for parts in zip(*kept, strict=True))
    encoding, after = net.hear(features, frames, before)
    for i, stream in enumerate(ready):
        states = int(encoding.lengths[i])
        memory = net.cut(row_of(encoding.memory, i), slice(states))
        stream.encoded_more(memory, states, row_of(after, i), _evidence(encoding, i))
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

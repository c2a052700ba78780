"""The sound that a client keeps, encoded, for as long as it may have to be sent again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable

import numpy as np

from dragoman.audio import opus
from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import to_pcm16
from dragoman.serve.protocol import Audio, write_packet


class KeptSound:
    """Frames of sound, each with the number of the sample after its last."""

    def __init__(self, audio: Audio) -> None:
        self.before = opus.BEFORE if audio.encoding == "opus" else 0
        """Samples that are sent again with the one that is wanted: a decoder of Opus must have
        heard them to go on."""
        self.end = 0
        self.ended = False  # no more will come
        self.more = asyncio.Event()
        self._encode = _encoder(audio)
        self._frames: deque[tuple[int, bytes]] = deque()

    async def feed(self, sound: AsyncIterable[Samples]) -> None:
        """Should the sound fail, what was heard is said, and then the failure is raised."""
        try:
            async for block in sound:
                self._add(np.asarray(block, np.float32))
            self._add(None)
        finally:
            self.ended = True
            self.more.set()

    def _add(self, samples: Samples | None) -> None:
        for count, data in self._encode(samples):
            if count:
                frame = write_packet(self.end, data)
                self.end += count
                self._frames.append((self.end, frame))
                self.more.set()

    def forget(self, before: int) -> None:
        """Drop the frames that nobody will ask for."""
        while self._frames and self._frames[0][0] <= before - self.before:
            self._frames.popleft()

    def since(self, sample: int) -> list[tuple[int, bytes]]:
        """The frames that end after a sample."""
        return [frame for frame in self._frames if frame[0] > sample]


def _encoder(audio: Audio) -> Callable[[Samples | None], Iterable[tuple[int, bytes]]]:
    """How samples become frames, each with its count; None: the sound has ended."""
    if audio.encoding == "pcm16":
        return lambda samples: [] if samples is None else [(len(samples), to_pcm16(samples))]
    encoder = opus.OpusEncoder()

    def encode(samples: Samples | None) -> Iterable[tuple[int, bytes]]:
        packets = encoder.finish() if samples is None else encoder.feed(samples)
        return [(opus.count_samples(packet), packet) for packet in packets]

    return encode

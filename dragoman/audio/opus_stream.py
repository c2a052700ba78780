"""A stream of Opus that carries no numbers: bare packets, or the container that browsers record."""

from __future__ import annotations

from typing import Literal

from dragoman.audio import webm
from dragoman.audio.ogg import OggReader
from dragoman.audio.opus import HEADS, RATE, OpusDecoder, Sound, count_samples
from dragoman.audio.webm import WebmReader
from dragoman.errors import DragomanError

MOST_AT_ONCE = 20
"""Seconds: a few bytes may be long, and nobody else is heard while they are decoded."""
Container = Literal["packets", "ogg", "webm"]


def container_of(data: bytes) -> Container | None:
    """What a stream that begins so is kept in, if it is a container."""
    if data.startswith(b"OggS"):
        return "ogg"
    return "webm" if data.startswith(webm.MAGIC) else None


class OpusStream:
    """Sound at 48 kHz, numbered from 0 on, from what comes in order and without loss."""

    def __init__(self, container: Container) -> None:
        self._reader: OggReader | WebmReader | None = None  # of bare packets there is none
        if container != "packets":
            self._reader = OggReader() if container == "ogg" else WebmReader()
        self._decoder = OpusDecoder()
        self._sample = 0

    def feed(self, data: bytes) -> list[Sound]:
        """The sound that is ready; some waits for more, until `flush`."""
        began, packets = self._sample, []
        for packet in [data] if self._reader is None else self._reader.feed(data):
            if packet[:8] not in HEADS:
                packets.append((self._sample, packet))
                self._sample += count_samples(packet)
        if self._sample - began > MOST_AT_ONCE * RATE:
            raise DragomanError(f"At most {MOST_AT_ONCE} s of sound come in one message.")
        return self._decoder.feed(packets)

    def flush(self) -> list[Sound]:
        return self._decoder.flush()

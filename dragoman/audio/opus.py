"""Opus (RFC 6716), packet by packet: what a client sends over a thin line.

The library that reads and writes sound files holds Opus, too, so packets are handed to it as small
files. A decoder must have heard a voice for a moment to go on with it: packets of the last 200 ms
are decoded again each time, and what comes out is what one decoder for the whole stream would say,
but for noise 50 dB below it.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from struct import pack

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.audio.ogg import FIRST, LAST, OggReader, page
from dragoman.errors import DragomanError

RATE = 48000
"""Samples a second that packets are counted in, whatever was recorded."""
BEFORE = RATE // 5
"""Samples that are decoded again; a client that goes on sends them again, if it has them."""
_TOGETHER = RATE // 10  # samples that are decoded at once: a file has its price
_LONGEST = 120 * RATE // 1000  # a packet
_LONGEST_FRAME = 1275  # bytes
_MOST_MISSING = 10 * RATE
_CONCEALED = 5  # packets in a row that the decoder makes up for
_VOICED = (480, 960, 1920, 2880)  # samples of a frame, by the kind of coding
_MUSICAL = (120, 240, 480, 960)
HEADS = (b"OpusHead", b"OpusTags")
"""How the packets begin that come before the sound, in a container."""


class NotOpus(DragomanError):  # noqa: N818  it says what a thing is
    """Something else than a packet of Opus."""

    def __init__(self) -> None:
        super().__init__("This is no packet of Opus.")


def count_samples(packet: bytes) -> int:
    """How long a packet is; whatever its frames hold is sound, so this is all that can be wrong."""
    if not packet:
        raise NotOpus
    kind, body = packet[0] >> 3, packet[1:]
    frame = _MUSICAL[kind & 3] if kind >= 16 else _VOICED[kind & (1 if kind >= 12 else 3)]
    frames = _count_frames(packet[0] & 3, body)
    if not 1 <= frames <= _LONGEST // frame:
        raise NotOpus
    return frames * frame


def _count_frames(code: int, body: bytes) -> int:
    """The frames of a packet, if their lengths are true."""
    if code == 0:
        _check(len(body))
        return 1
    if code == 1:
        _check(len(body) / 2)
        return 2
    if code == 2:
        _check(_after(body, 1))
        return 2
    if not body:
        raise NotOpus
    count, padded, free = body[0] & 0x3F, body[0] & 0x40, body[0] & 0x80
    body = _unpadded(body[1:]) if padded else body[1:]
    if not count:
        raise NotOpus
    _check(_after(body, count - 1) if free else len(body) / count)
    return count


def _after(body: bytes, frames: int) -> int:
    """The bytes that are left for the last frame, after some whose lengths stand first."""
    told, at = 0, 0
    for _ in range(frames):
        if at >= len(body) or (body[at] >= 252 and at + 1 >= len(body)):
            raise NotOpus
        long = body[at] >= 252
        told += body[at] + 4 * body[at + 1] if long else body[at]
        at += 2 if long else 1
    return len(body) - at - told


def _unpadded(body: bytes) -> bytes:
    """The body without its padding, whose length stands first: 255 is 254, and more follows."""
    at, padding = 0, 0
    while at < len(body) and body[at] == 255:
        padding += 254
        at += 1
    if at >= len(body) or len(body) - at - 1 < padding + body[at]:
        raise NotOpus
    return body[at + 1 : len(body) - padding - body[at]]


def _check(length: float) -> None:
    if not (0 <= length <= _LONGEST_FRAME and length == int(length)):
        raise NotOpus


Sound = tuple[int, Samples]
"""The number of the first sample, and the samples."""


class OpusDecoder:
    """Packets, each with the number of its first sample, become sound at 48 kHz, one channel.

    Packets that came before are left out; those that are missing, as they are after a loss on the
    way or while an encoder keeps silent, are made up for.
    """

    def __init__(self) -> None:
        self._next: int | None = None  # the sample after the last packet
        self._before: deque[tuple[bytes, int]] = deque()  # packets and their lengths
        self._fresh: list[tuple[bytes, int]] = []

    def feed(self, packets: Iterable[tuple[int, bytes]]) -> list[Sound]:
        """The sound that is ready; some packets wait for others, until `flush`."""
        sounds = [sound for first, packet in packets for sound in self._take(first, packet)]
        waiting = sum(length for _, length in self._fresh)
        return [*sounds, *(self.flush() if waiting >= _TOGETHER else [])]

    def _take(self, first: int, packet: bytes) -> list[Sound]:
        """Put a packet with those that wait; the sound is of what came before a gap, and of it."""
        count = count_samples(packet)
        start = first if self._next is None else self._next
        if first < start:
            if first + count > start:
                raise DragomanError(f"Packets overlap: sample {start} comes next, not {first}.")
            return []
        sounds = self._miss(start, first - start) if first > start else []
        self._fresh.append((packet, count))
        self._next = first + count
        return sounds

    def flush(self) -> list[Sound]:
        """The sound of the packets that wait."""
        if not self._fresh or self._next is None:
            return []
        fresh, self._fresh = self._fresh, []
        count = sum(length for _, length in fresh)
        decoded = decode([packet for packet, _ in (*self._before, *fresh)])
        self._remember(fresh)
        return [(self._next - count, decoded[len(decoded) - count :])]

    def _remember(self, packets: list[tuple[bytes, int]]) -> None:
        self._before.extend(packets)
        kept = sum(length for _, length in self._before)
        while kept - self._before[0][1] >= BEFORE:
            kept -= self._before.popleft()[1]

    def _miss(self, start: int, count: int) -> list[Sound]:
        """Packets are missing: for some the decoder goes on with the voice, then it is silent."""
        if count > _MOST_MISSING:
            raise DragomanError(
                f"Sound is missing: sample {start} comes next, not {start + count}."
            )
        if self._fresh or self._before:
            lost = _lost((self._fresh or self._before)[-1][0])
            for _ in range(min(_CONCEALED, count // lost[1])):
                self._fresh.append(lost)
                start, count = start + lost[1], count - lost[1]
        self._next = start
        sounds = self.flush()
        if count:
            sounds.append((start, np.zeros(count, np.float32)))
            self._before.clear()
        return sounds


def _lost(packet: bytes) -> tuple[bytes, int]:
    """A packet in place of one that is lost: of the same kind, and empty."""
    empty = bytes([packet[0] & 0xFC])
    return empty, count_samples(empty)


def decode(packets: list[bytes]) -> Samples:
    """Packets that follow each other as sound at 48 kHz, one channel."""
    import soundfile

    head = b"OpusHead" + pack("<BBHIhB", 1, 1, 0, RATE, 0, 0)  # no sample is left out at first
    tags = b"OpusTags" + pack("<I8sI", 8, b"dragoman", 0)
    file, end = page([head], 0, 0, FIRST) + page([tags], 0, 1), 0
    for number, packet in enumerate(packets):
        end += count_samples(packet)
        file += page([packet], end, 2 + number, LAST * (number + 1 == len(packets)))
    try:
        samples: Samples = soundfile.read(io.BytesIO(file), dtype="float32")[0]
    except soundfile.LibsndfileError as error:
        raise NotOpus from error
    if len(samples) < end:  # whoever decodes has given up: silence, so that numbers stay true
        samples = np.concatenate([samples, np.zeros(end - len(samples), np.float32)])
    return samples


class OpusEncoder:
    """Sound at 48 kHz, one channel, becomes packets of 20 ms; for clients."""

    def __init__(self, page_ms: float = 20.0) -> None:
        import soundfile

        self._out = _Outflow()
        self._reader = OggReader()
        self._file = soundfile.SoundFile(
            self._out, "w", RATE, 1, format="OGG", subtype="OPUS", compression_level=0.9
        )
        self._hurry(page_ms)

    def feed(self, samples: Samples) -> list[bytes]:
        """The packets that are ready."""
        self._file.write(np.clip(samples, -1.0, 1.0))
        return self._packets()

    def finish(self) -> list[bytes]:
        """The rest."""
        self._file.close()
        return self._packets()

    def _packets(self) -> list[bytes]:
        packets = self._reader.feed(self._out.taken())
        return [packet for packet in packets if packet[:8] not in HEADS]

    def _hurry(self, page_ms: float) -> None:
        """A page is a second long unless that is told, for which the binding has no function."""
        import soundfile

        with suppress(AttributeError):
            told = soundfile._ffi.new("double *", page_ms)
            soundfile._snd.sf_command(self._file._file, _PAGE_LATENCY, told, 8)


_PAGE_LATENCY = 0x1302  # SFC_SET_OGG_PAGE_LATENCY_MS


class _Outflow(io.RawIOBase):
    """A file that is written once, from its beginning to its end."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._length = 0

    def write(self, data: object) -> int:
        fresh = bytes(data)  # type: ignore[call-overload]
        self._data += fresh
        self._length += len(fresh)
        return len(fresh)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._length

    def tell(self) -> int:
        return self._length

    def taken(self) -> bytes:
        """What was written since it was asked last."""
        fresh, self._data = bytes(self._data), bytearray()
        return fresh

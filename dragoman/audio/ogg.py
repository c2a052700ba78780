"""Ogg, the container of Opus and Vorbis (RFC 3533): packets in pages, numbered and checked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct, pack_into
from typing import BinaryIO

from dragoman.errors import DragomanError

_PAGE = Struct("<4sBBqIIIB")  # "OggS", version, flags, granule, serial, number, checksum, segments
_CHECKSUM_AT = 22
_CONTINUED, FIRST, LAST = 1, 2, 4  # flags of a page
_MOST = 1 << 20
"""Bytes of a packet; tags may hold a picture, and nobody needs more."""
_STRETCH = 1 << 16
"""Bytes that are looked through at once."""
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def page(packets: Sequence[bytes], granule: int, number: int, flags: int = 0) -> bytes:
    """A page with whole packets; `granule` counts the samples up to its end."""
    sizes = b"".join(b"\xff" * (len(one) // 255) + bytes([len(one) % 255]) for one in packets)
    head = _PAGE.pack(b"OggS", 0, flags, granule, 1, number, 0, len(sizes))
    made = bytearray(head + sizes + b"".join(packets))
    pack_into("<I", made, _CHECKSUM_AT, _checksum(made))
    return bytes(made)


def _checksum(data: bytes | bytearray) -> int:
    """CRC-32 with the bits in the order opposite to zlib's, from 0 on."""
    mirrored = zlib.crc32(data.translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{mirrored:032b}"[::-1], 2)


def is_intact(page: bytes | bytearray) -> bool:
    """Whether a page is what its checksum says."""
    told = int.from_bytes(page[_CHECKSUM_AT : _CHECKSUM_AT + 4], "little")
    return told == _checksum(page[:_CHECKSUM_AT] + bytes(4) + page[_CHECKSUM_AT + 4 :])


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page of a file is, and what its header tells."""

    start: int
    end: int
    flags: int
    granule: int
    """What counts the samples up to its end; negative where no packet ends in it."""
    serial: int
    number: int
    body: bytes

    @classmethod
    def read(cls, file: BinaryIO, start: int) -> Page | None:
        """The page at a place, if there is a whole one."""
        file.seek(start)
        head = file.read(_PAGE.size)
        if len(head) < _PAGE.size or not head.startswith(b"OggS"):
            return None
        _, _, flags, granule, serial, number, _, segments = _PAGE.unpack(head)
        sizes = file.read(segments)
        body = file.read(sum(sizes))
        whole = head + sizes + body
        if len(sizes) < segments or len(body) < sum(sizes) or not is_intact(whole):
            return None
        return cls(start, start + len(whole), flags, granule, serial, number, body)


def next_page(file: BinaryIO, start: int) -> Page | None:
    """The first whole page from a place on: nearly always it is there."""
    if (page := Page.read(file, start)) is not None:
        return page
    while True:
        file.seek(start)
        data = file.read(_STRETCH)
        at = data.find(b"OggS")
        if at < 0 and len(data) < _STRETCH:
            return None
        if at >= 0 and (page := Page.read(file, start + at)) is not None:
            return page
        start += at + 1 if at >= 0 else _STRETCH - 3


def links(file: BinaryIO) -> list[int]:
    """Where the recordings begin that a file has one after the other, as those of web radio do;
    none where it is no Ogg. What follows a damaged page belongs to the recording before it."""
    found: list[int] = []
    at, after_first = 0, False  # the first pages of all streams of a recording come together
    file.seek(0)
    while len(head := file.read(_PAGE.size)) == _PAGE.size and head.startswith(b"OggS"):
        first = bool(head[5] & FIRST)
        if first and not after_first:
            found.append(at)
        after_first = first
        at += _PAGE.size + head[-1] + sum(file.read(head[-1]))
        file.seek(at)
    return found


class OggReader:
    """The packets of a stream that comes in pieces of any size."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._part: bytes | None = None  # of a packet that goes on in the next page

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now."""
        self._data += data
        packets: list[bytes] = []
        while (taken := self._page()) is not None:
            packets += taken
        return packets

    def _page(self) -> list[bytes] | None:
        """The packets of the next page; None: it is not all there yet."""
        data = self._data
        if data[:4] != b"OggS"[: len(data)]:
            raise DragomanError("This is no stream of Ogg, or a part of it is missing.")
        if len(data) < _PAGE.size:
            return None
        flags, segments = data[5], data[_PAGE.size - 1]
        sizes = data[_PAGE.size : _PAGE.size + segments]
        end = _PAGE.size + segments + sum(sizes)
        if len(sizes) < segments or len(data) < end:
            return None
        whole, self._data = data[:end], data[end:]
        if not is_intact(whole):
            raise DragomanError("A page of this stream of Ogg is damaged.")
        return self._packets(bytes(whole[_PAGE.size + segments :]), sizes, flags)

    def _packets(self, body: bytes, sizes: bytes | bytearray, flags: int) -> list[bytes]:
        packets, at = [], 0
        # A part without its beginning is of no use, nor is one that does not go on.
        lost = bool(flags & _CONTINUED) and self._part is None
        held = self._part if flags & _CONTINUED and self._part is not None else b""
        for size in sizes:
            held += body[at : at + size]
            at += size
            if size < 255:
                if not lost:
                    packets.append(held)
                lost, held = False, b""
            if len(held) > _MOST:
                raise DragomanError(f"A packet of this stream has more than {_MOST} bytes.")
        self._part = held if sizes and sizes[-1] == 255 and not lost else None
        return packets

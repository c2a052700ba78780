"""Whether a compressed recording has lost its end: half a download, a disk that was full.

An ogg says which page is its last. An mp3 says at most how many bytes it has; else it is only
seen where it was cut within a frame, which is nearly everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

PAGE = 65_307  # bytes of the largest page of an ogg
LAST_PAGE = 4  # the flag
TAIL = 16_384  # bytes of an mp3 that are looked at: some frames, whatever its rate
JUNK = 65_536  # bytes that may stand before the first frame of an mp3
SYNC = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")  # how a frame of layer III begins
CHAIN = 3  # frames that follow each other are no accident
# kbit/s of layer III, by the four bits of a frame's header
RATES_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0)
RATES_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0)
HERTZ = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


def is_cut(path: Path, *, damaged: bool = False) -> bool:
    """Whether the end of an ogg or mp3 is missing, as far as that can be told without decoding.

    `damaged`: bytes may be missing in its middle, so that its size tells nothing.
    """
    with path.open("rb") as file:
        kind = kind_of(file)
        if kind == "ogg":
            return ogg_is_cut(file)
        return kind == "mp3" and _mp3_is_cut(file, damaged)


def kind_of(file: BinaryIO) -> Literal["ogg", "mp3"] | None:
    """What a file is by its beginning, if it is one of the two that are looked into here."""
    head = file.read(4)
    if head == b"OggS":
        return "ogg"
    return "mp3" if head[:3] == b"ID3" or Frame.read(head) is not None else None


def ogg_is_cut(file: BinaryIO) -> bool:
    tail = _tail(file, PAGE)
    at = tail.rfind(b"OggS")
    header = tail[at : at + 27]
    if at < 0 or len(header) < 27 or not header[5] & LAST_PAGE:
        return True
    sizes = tail[at + 27 : at + 27 + header[26]]
    return at + 27 + header[26] + sum(sizes) > len(tail)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of an mp3: a piece of sound with a header of its own."""

    version: int  # 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
    hertz: int
    size: int

    @classmethod
    def read(cls, header: bytes) -> Frame | None:
        """The frame that begins with these four bytes, if one does."""
        if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE6 != 0xE2:
            return None  # no frame, or not of layer III
        version, rate, which = header[1] >> 3 & 3, header[2] >> 4, header[2] >> 2 & 3
        kilobits = (RATES_1 if version == 3 else RATES_2)[rate]
        if version == 1 or which == 3 or not kilobits:
            return None
        hertz = HERTZ[version][which]
        size = (144_000 if version == 3 else 72_000) * kilobits // hertz + (header[2] >> 1 & 1)
        return cls(version, hertz, size)

    @property
    def seconds(self) -> float:
        return (1152 if self.version == 3 else 576) / self.hertz

    def is_like(self, other: Frame | None) -> bool:
        return other is not None and (self.version, self.hertz) == (other.version, other.hertz)


def begins_as_mp3(file: BinaryIO) -> bool:
    """Whether frames follow one another at the beginning: one by itself is found in any noise."""
    start = after_tag(file)
    file.seek(start)
    data = file.read(JUNK)
    if start or _may_be_frame(data[:4]):
        return True
    for sync in SYNC.finditer(data):
        first = Frame.read(data[sync.start() : sync.start() + 4])
        if first is not None and _chain_at(data, sync.start(), first)[0] >= CHAIN:
            return True
    return False


def _may_be_frame(header: bytes) -> bool:
    """Of layer II or III; its rate may be of its own, which nobody understands here."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return False
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    return version != 1 and layer in (1, 2) and header[2] >> 4 != 15 and header[2] >> 2 & 3 != 3


def _mp3_is_cut(file: BinaryIO, damaged: bool) -> bool:
    start = after_tag(file)
    file.seek(start)
    beginning = file.read(256)
    first = Frame.read(beginning)
    if first is None:
        return False  # nothing that is understood here
    size = file.seek(0, 2)
    if not damaged and (told := _told_bytes(beginning)) is not None:
        return start + told > size
    tail = _without_tags(_tail(file, TAIL))
    last = chain(tail, first)
    return last is not None and _would_end(tail, last[1]) > len(tail)


def _would_end(tail: bytes, at: int) -> int:
    """Where a chain of frames would end that breaks off at a place."""
    rest = tail[at : at + 4]
    begun = 0 < len(rest) < 4 and rest.startswith(b"\xff")  # less than a header is left
    return len(tail) + 1 if begun else at


def after_tag(file: BinaryIO) -> int:
    """Where the sound begins: after a tag that says how long it is, seven bits a byte."""
    file.seek(0)
    tag = file.read(10)
    if tag[:3] != b"ID3" or len(tag) < 10:
        return 0
    return 10 + sum(byte << shift for byte, shift in zip(tag[6:], (21, 14, 7, 0), strict=True))


def _told_bytes(beginning: bytes) -> int | None:
    """How many bytes the first frame says that there are, if it is one that says so."""
    for mark in (b"Xing", b"Info"):
        at = beginning.find(mark)
        flags = int.from_bytes(beginning[at + 4 : at + 8], "big")
        if 0 <= at <= 40 and flags & 2:
            skipped = at + 8 + 4 * (flags & 1)
            return int.from_bytes(beginning[skipped : skipped + 4], "big")
    return None


def _without_tags(tail: bytes) -> bytes:
    """Without what players put after the sound."""
    if tail[-128:-125] == b"TAG":
        tail = tail[:-128]
    if tail[-32:-24] == b"APETAGEX":
        tail = tail[: max(0, len(tail) - int.from_bytes(tail[-20:-16], "little"))]
    return tail


def chain(data: bytes, first: Frame) -> tuple[int, int] | None:
    """Where the first chain of frames begins, and ends, be it after the data; None without one."""
    for sync in SYNC.finditer(data):
        length, end = _chain_at(data, sync.start(), first)
        if length >= CHAIN:
            return sync.start(), end
    return None


def _chain_at(data: bytes, at: int, first: Frame) -> tuple[int, int]:
    """How many frames like the first follow each other from a place on, and where they end."""
    length = 0
    while (frame := Frame.read(data[at : at + 4])) and first.is_like(frame):
        at, length = at + frame.size, length + 1
    return length, at


def _tail(file: BinaryIO, size: int) -> bytes:
    file.seek(max(0, file.seek(0, 2) - size))
    return file.read()

"""WebM, as browsers record it: the packets of its Opus track, from pieces of any size.

Only as much of Matroska is read as that needs: elements are an identity, a size and a body, and
some bodies are elements again.
"""

from __future__ import annotations

from dragoman.errors import DragomanError

MAGIC = b"\x1a\x45\xdf\xa3"
_SEGMENT, _CLUSTER, _TRACKS, _TRACK, _GROUP = 0x18538067, 0x1F43B675, 0x1654AE6B, 0xAE, 0xA0
_NUMBER, _CODEC, _BLOCK, _SIMPLE_BLOCK = 0xD7, 0x86, 0xA1, 0xA3
_OPENED = {_SEGMENT, _CLUSTER, _TRACKS, _TRACK, _GROUP}  # their bodies are read
_READ = {_NUMBER, _CODEC, _BLOCK, _SIMPLE_BLOCK}
_MOST = 1 << 20  # bytes of a body that is read
_LACED = 0x06


class WebmReader:
    """The packets of the first track with Opus."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._skip = 0  # bytes of a body that nobody wants
        self._track = 0  # the number of the track that is described
        self._opus: int | None = None
        self._began = False

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are whole now."""
        self._data += data
        packets: list[bytes] = []
        while self._element(packets):
            pass
        return packets

    def _element(self, packets: list[bytes]) -> bool:
        """Take one element, or the head of one; False: it is not all there yet."""
        skipped = min(self._skip, len(self._data))
        del self._data[:skipped]
        self._skip -= skipped
        if not self._began and self._data[: len(MAGIC)] != MAGIC[: len(self._data)]:
            raise DragomanError("This is no stream of WebM.")
        identity, at = _number(self._data, 0, marked=True)
        size, body = _number(self._data, at) if at else (0, 0)
        if not body:
            return False
        self._began = True
        if identity in _OPENED:
            del self._data[:body]
            return True
        if _is_unsized(size, body - at) or (identity in _READ and size > _MOST):
            raise DragomanError("This stream of WebM is damaged: an element is too long.")
        if identity not in _READ:
            del self._data[:body]
            self._skip = size
            return True
        if len(self._data) < body + size:
            return False
        self._read(identity, bytes(self._data[body : body + size]), packets)
        del self._data[: body + size]
        return True

    def _read(self, identity: int, body: bytes, packets: list[bytes]) -> None:
        if identity == _NUMBER:
            self._track = int.from_bytes(body, "big")
        elif identity == _CODEC:
            if body.rstrip(b"\0") == b"A_OPUS" and self._opus is None:
                self._opus = self._track
        else:
            track, at = _number(body, 0)
            if track == self._opus and len(body) >= at + 3:
                if body[at + 2] & _LACED:
                    raise DragomanError("Blocks of this stream of WebM are laced; Opus's are not.")
                packets.append(body[at + 3 :])


def _is_unsized(size: int, length: int) -> bool:
    """Whether a size of so many bytes is what live recordings put where they know no end: the
    largest. In more bytes, as 127 is written in two, the same number is a size."""
    return size == (1 << 7 * length) - 1


def _number(data: bytes | bytearray, at: int, marked: bool = False) -> tuple[int, int]:
    """A number whose first bits tell its length, and where it ends (0: it is not all there);
    identities keep these bits (`marked`)."""
    if at >= len(data):
        return 0, 0
    if not data[at]:
        raise DragomanError("This stream of WebM is damaged, or a part of it is missing.")
    length = 9 - data[at].bit_length()
    if len(data) < at + length:
        return 0, 0
    value = int.from_bytes(data[at : at + length], "big")
    return value if marked else value & ((1 << 7 * length) - 1), at + length

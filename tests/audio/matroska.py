"""Writes WebM as a browser does: sizes that nobody knows yet, a cluster every second."""

from __future__ import annotations

UNKNOWN = b"\x01\xff\xff\xff\xff\xff\xff\xff"


def element(identity: str, body: bytes, size: bytes | None = None) -> bytes:
    told = (len(body) | 1 << 28).to_bytes(4, "big") if size is None else size
    return bytes.fromhex(identity) + told + body


def webm_of(packets: list[bytes], other: bytes = b"not for us") -> bytes:
    """Packets in the second track; the first has pictures."""
    header = element("1a45dfa3", element("4282", b"webm"))
    video = element("ae", element("d7", b"\1") + element("86", b"V_VP8"))
    sound = element(
        "ae", element("d7", b"\2") + element("63a2", b"OpusHead") + element("86", b"A_OPUS")
    )
    tracks = element("1654ae6b", video + sound)
    clusters = b""
    for at in range(0, len(packets), 50):
        blocks = element("e7", (at * 20).to_bytes(4, "big"))
        for place, packet in enumerate(packets[at : at + 50]):
            blocks += element("a3", b"\x81" + bytes(3) + other)
            block = b"\x82" + (place * 20).to_bytes(2, "big") + b"\x80" + packet
            blocks += element("a3", block) if place % 2 else element("a0", element("a1", block))
        clusters += element("1f43b675", blocks, UNKNOWN)
    info = element("1549a966", element("2ad7b1", b"\x0f\x42\x40"))
    return header + element("18538067", info + tracks + clusters, UNKNOWN)

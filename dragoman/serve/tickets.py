"""Resume tokens: who began a talk, and nobody else, goes on with it, in whatever process.

A token holds when the talk began and a number of its own, signed with a key that the processes
share. So it needs no memory to tell whether a token belongs to a talk.
"""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from struct import Struct

_BEGAN = Struct(">Q8s")  # milliseconds since 1970; what tells one process's copy from another's


class Tickets:
    """Makes tokens and knows its own, and those of every process with the same key."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def make(self, session: str, began: float | None = None) -> str:
        """A token for a talk that began now, or at that moment (seconds since 1970)."""
        moment = time.time() if began is None else began
        body = _BEGAN.pack(round(max(0.0, moment) * 1000), secrets.token_bytes(8))
        return urlsafe_b64encode(body + self._sign(session, body)).decode()

    def began(self, session: str, token: str) -> float | None:
        """When the talk of a token began, in seconds since 1970; None: it is not its token."""
        try:
            raw = urlsafe_b64decode(token.encode("ascii"))
        except (NotBase64, ValueError):
            return None
        body, signature = raw[: _BEGAN.size], raw[_BEGAN.size :]
        if len(body) < _BEGAN.size:
            return None
        if not hmac.compare_digest(signature, self._sign(session, body)):
            return None
        return float(_BEGAN.unpack(body)[0]) / 1000

    def _sign(self, session: str, body: bytes) -> bytes:
        return hmac.digest(self._key, session.encode() + b"\0" + body, "sha256")

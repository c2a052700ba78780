"""The names of rooms, and the tokens for those who speak and listen in them.

Tokens are made from secrets, not kept: processes that share these agree on them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from enum import StrEnum

_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # nothing that looks like something else
_ID = 8  # characters


class Role(StrEnum):
    """What a token lets its owner do."""

    SPEAKER = "speaker"
    LISTENER = "listener"
    PEER = "peer"  # of no room: another process that shares the secret


class Keys:
    """Makes and checks the tokens of rooms."""

    def __init__(self, *known: str | None) -> None:
        """`known`: what has to be known, all of it, to make such tokens; if nothing is, nobody else
        can."""
        secret = "\0".join(filter(None, known)).encode()
        if not secret:
            self._secret = secrets.token_bytes(32)
        else:  # slow on purpose: a listener's token must not help to guess the server's
            salt = b"dragoman rooms"
            self._secret = hashlib.scrypt(secret, salt=salt, n=1 << 14, r=8, p=1)

    def token(self, room: str, role: Role) -> str:
        made = hmac.digest(self._secret, f"{role} {room}".encode(), "sha256")
        return base64.urlsafe_b64encode(made[:18]).decode()

    def admits(self, room: str, role: Role, offered: str | None) -> bool:
        """How long this takes tells nothing about the token."""
        return hmac.compare_digest(self.token(room, role).encode(), (offered or "").encode())


def new_room() -> str:
    """A name for a room, short enough to be typed; it is no secret."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_ID))

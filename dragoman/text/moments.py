"""Places in a recording, as people write them."""

from __future__ import annotations


def shown_moment(seconds: float) -> str:
    """Minutes and seconds: 1:30."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"

"""Dragoman speaks the translation while the speaker is still talking.

import dragoman
for update in dragoman.translate("talk.mp3", source="de"):
    print(*update.said, sep="", end="", flush=True)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.interpreter import Update

__version__ = "0.1.0"


def translate(
    audio: str | Path,
    source: str | None = None,
    target: str = "en",
    max_latency_ms: float = 2000.0,
    **setup: Any,
) -> Iterator[Update]:
    """Interpret a recording ('-': standard input) as if it were spoken now, chunk by chunk.

    `source` None detects the language. `setup` changes anything else that a `dragoman.setup.Setup`
    holds: model, policy, step_ms, threads and so on.
    """
    from dragoman.audio.source import open_audio
    from dragoman.setup import Setup, System

    chosen = Setup(source=source, target=target).tuned(max_latency_ms).with_changes(**setup)
    chunks = open_audio(audio, step_ms=chosen.step_ms)
    return System(chosen).interpreter().run(chunks)

"""One speaker whom Whisper hears: the window of sound it looks at, and what was said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dragoman.audio.chunk import RATE
from dragoman.models.whisper_mel import FRAME_MS, LogMel


@dataclass(slots=True, eq=False)
class WhisperStream:
    """Bounded however long the talk: sound and text before the window are forgotten."""

    mel: LogMel
    language: str | None  # None until it is detected
    target: str
    said: list[int] = field(default_factory=list)  # committed tokens, of this window
    context: list[int] = field(default_factory=list)  # committed tokens of the windows before
    unfinished: list[int] = field(default_factory=list)  # committed tokens of a word not whole
    encoded: tuple[int, int, Any] | None = None  # the last encoding and what it was made of
    pause_ms: float = 0.0
    words_heard: int = 0

    @property
    def heard_ms(self) -> float:
        return self.mel.heard * 1000.0 / RATE

    @property
    def window_ms(self) -> float:
        """How much sound the encoder sees."""
        return (self.mel.frames - self.mel.start) * FRAME_MS

    @property
    def spaceless_target(self) -> bool:
        return self.target in {"zh", "ja", "th", "lo", "my", "yue"}

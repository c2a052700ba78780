"""How a recording is to be heard: its samples, one of its tracks, one of its channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from dragoman.cli.app import grouped
from dragoman.cli.ranges import CHANNEL

if TYPE_CHECKING:
    from dragoman.cli.sound import Part

_input = grouped("Input")


@dataclass(frozen=True, slots=True)
class Hearing:
    """What the options say of it, as they were written."""

    raw: str | None
    track: str | None
    channel: int | None

    def part(self, start: float = 0.0, end: float | None = None) -> Part:
        from dragoman.audio.pcm import RawFormat
        from dragoman.cli.sound import Part

        raw = None if self.raw is None else RawFormat.parse(self.raw)
        return Part(start, end, raw, self.track, self.channel)

    @property
    def option(self) -> str | None:
        """The first of the options that was given, if one was."""
        given = {"--raw": self.raw, "--track": self.track, "--channel": self.channel}
        return next((option for option, value in given.items() if value is not None), None)


def hearing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Hearing`, which it gets as its argument `hearing`."""

    @wraps(command)
    def with_hearing(raw: str | None, track: str | None, channel: int | None, **values: Any) -> Any:
        return command(hearing=Hearing(raw, track, channel), **values)

    decorated: Callable[..., Any] = with_hearing
    for option in (
        _input("--channel", type=CHANNEL, metavar="N",
               help="Hear one channel alone: left, right or its number (default all)."),
        _input("--track", metavar="N|LANG",
               help="Which audio track of a film is heard (default 1)."),
        _input("--raw", metavar="FORMAT", help="FILE is plain samples, such as s16le:16000:1."),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated

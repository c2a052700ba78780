"""How a model is run: the same choices for every family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.errors import DragomanError

Device = Literal["auto", "cpu", "cuda"]
Compute = Literal["int8", "float16", "bfloat16", "float32"]


@dataclass(frozen=True, slots=True)
class Options:
    """`threads` 0 leaves their number to the library; `beams` is how wide a search is; `keeps`:
    states of older sound are kept where a net would make them anew, which costs less and is nearly
    the same."""

    threads: int = 0
    beams: int = 5
    device: Device = "auto"
    compute: Compute = "int8"
    keeps: bool = True

    def __post_init__(self) -> None:
        for what, value, known in (
            ("device", self.device, get_args(Device)),
            ("compute type", self.compute, get_args(Compute)),
        ):
            if value not in known:
                raise DragomanError(f"There is no {what} '{value}'. There are: {', '.join(known)}.")
        if self.beams < 1:
            raise DragomanError(f"A search follows 1 beam or more, not {self.beams}.")


def on_cpu(options: Options, what: str) -> None:
    """Refuse a device that a family has no engine for."""
    if options.device == "cuda":
        raise DragomanError(f"{what} runs on the CPU only; leave --device cuda out.")

"""How a model is run: the same choices for every family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from dragoman.errors import DragomanError
from dragoman.models.device import gpu_found, why_no_gpu

Device = Literal["auto", "cpu", "cuda"]
Compute = Literal["int8", "float16", "bfloat16", "float32"]


class CpuOnlyError(DragomanError):
    """A GPU was asked for, and this has no engine for one."""


@dataclass(frozen=True, slots=True)
class Options:
    """`threads` 0 leaves their number to the library; `beams` is how wide a search is.

    `compute` None is what suits the device: int8 on the CPU, float16 on a GPU.
    """

    threads: int = 0
    beams: int = 5
    device: Device = "auto"
    compute: Compute | None = None

    def __post_init__(self) -> None:
        for what, value, known in (
            ("device", self.device, get_args(Device)),
            ("compute type", self.compute, (*get_args(Compute), None)),
        ):
            if value not in known:
                names = ", ".join(filter(None, known))
                raise DragomanError(f"There is no {what} '{value}'. There are: {names}.")
        if self.beams < 1:
            raise DragomanError(f"A search follows 1 beam or more, not {self.beams}.")

    def placed(self) -> Options:
        """The same options with the device and the numbers decided.

        `auto` is a GPU if there is one that can do it: int8 is the CPU's.
        """
        if self.device == "auto":
            device: Device = "cuda" if self.compute != "int8" and gpu_found() else "cpu"
            return replace(self, device=device).placed()
        if self.device == "cpu":
            return replace(self, compute=self.compute or "int8")
        missing = why_no_gpu()
        if missing is not None:
            raise missing
        if self.compute == "int8":
            raise DragomanError(
                "A GPU computes in float16, bfloat16 or float32.",
                advice="name one of them with --compute, or take --device cpu for int8.",
            )
        return replace(self, compute=self.compute or "float16")

    def on_cpu(self, what: str) -> Options:
        """The same options for a family that has an engine for the CPU alone."""
        if self.device == "cuda":
            raise CpuOnlyError(
                f"{what} runs on the CPU only.",
                advice="leave --device cuda out. Whisper, Moonshine and text models run on a GPU.",
            )
        return replace(self, device="cpu").placed()

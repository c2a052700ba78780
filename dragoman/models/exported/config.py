"""What a folder with an exported net says about itself: `config.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import DragomanError
from dragoman.models.kind import read_settings, write_settings

FORMAT = 1
FILE = "config.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that one call returns and the next one takes; its shape before the first call."""

    dtype: Literal["float32", "int64"]
    shape: tuple[int, ...]  # without the batch, which comes first


@dataclass(frozen=True, slots=True)
class Chunks:
    """An encoder that hears `chunk` states at a time with a look-ahead of `right` states."""

    chunk: int
    right: int
    kept: tuple[Kept, ...]

    @property
    def window(self) -> int:
        """Frames in one call."""
        return 4 * (self.chunk + self.right) + 3

    @property
    def advance(self) -> int:
        """Frames from one call to the next."""
        return 4 * self.chunk


@dataclass(frozen=True, slots=True)
class Languages:
    """What the net was trained to hear and to say; empty where nobody said."""

    source: str = ""
    target: str = ""  # or several, `de,es`: a tag before the source says which

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.target.split(",")) if self.target else ()

    def refuse_others(self, name: str, source: str | None, target: str) -> None:
        """Asked for other languages, say so."""
        hears = (self.source,) if self.source else ()
        for asked, known, what in ((source, hears, "hears"), (target, self.targets, "speaks")):
            if asked and known and asked not in known:
                codes = "' and '".join(known)
                raise DragomanError(f"Model '{name}' {what} '{codes}', not '{asked}'.")


@dataclass(frozen=True, slots=True)
class ExportedNet:
    """All that the runtime must know."""

    net: str
    settings: dict[str, Any]  # as the net was configured
    target_units: int
    source_units: int
    input: Literal["speech", "text", "states"]  # states: of `encoder`
    bands: int  # mel bands of a speech net
    memory: int  # how many tensors the decoder reads of the source
    memory_time: int  # the axis of them that runs over states
    cache: tuple[Kept, ...]
    chunks: Chunks | None
    attention_layer: int  # whose attention is shown; -1: none can be read as time
    ctc: bool
    boundaries: bool
    decides: Literal["no", "monotonic", "transducer"] = "no"
    decision: int = 0  # states between the decisions of a transducer
    keeps_past: bool = False  # the decoder's past stays as it was when more is heard
    suffix: bool = False  # in target units the space comes at a word's end
    source_suffix: bool = False
    source_plain: bool = False  # what a text net reads has neither case nor punctuation
    languages: Languages = Languages()
    encoder: str = ""  # the model of the store whose encoder is in front of it
    state_ms: float = 40.0
    precision: Literal["float32", "int8"] = "float32"
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        write_settings(folder / FILE, self)

    @classmethod
    def read(cls, folder: Path) -> ExportedNet:
        config = read_settings(folder / FILE, cls, "an exported net")
        if config.format > FORMAT:
            raise DragomanError(
                f"{folder} was exported by a newer Dragoman (format {config.format}, this one "
                f"reads {FORMAT}): update Dragoman."
            )
        return config

"""What each model can do here and now: what it weighs on this machine, and whether it keeps up."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dragoman.store import catalogue, home
from dragoman.store.catalogue import Model
from dragoman.store.kinds import kind_of
from dragoman.store.prepared import size_of
from dragoman.store.shelf import at_hand, is_here, is_whole

Speed = Literal["fast", "live", "late"]
# What is recommended to translate live, best last: the best that keeps up with half of the cores.
PREFERRED = ("whisper-base", "whisper-small")
SPEECH = ("translation", "recognition")
KEEPS_UP = 0.8  # of a core's time that the work on a talk may take
# Of what can work on a GPU: Whisper in CTranslate2's format and in ONNX, Moonshine.
FOR_GPU = (
    *("model.bin", "onnx/encoder_model.onnx", "onnx/encoder_model_quantized.onnx"),
    *("encoder_model.onnx", "encoder_model.ort"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A model, and how it fares on this machine."""

    model: Model
    path: Path | None  # where it lies, if it is here
    memory: int | None  # bytes
    cost: float | None  # CPU-seconds per second of speech
    measured: bool  # or else estimated from the model's size
    recommended: bool = False
    partial: bool = False  # something of it is here, but not all, or not as it should be
    prepared: int = 0  # bytes that were made of its files and are kept

    @property
    def on_gpu(self) -> bool:
        """Whether it can work on a GPU: what hears speech, by its files; all that translates
        text."""
        hears = self.model.task in SPEECH and any(name in self.model.files for name in FOR_GPU)
        return hears or self.model.task == "text translation"

    def speed(self, cores: int) -> Speed | None:
        """Whether it keeps up with a speaker: with ease, just so, or not at all."""
        if self.cost is None:
            return None
        live = self.cost <= cores * KEEPS_UP
        return "fast" if self.cost <= cores / 4 else "live" if live else "late"


def cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def memory() -> int | None:
    """Bytes of memory that this machine has, where that is known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def cost_of(name: str) -> float | None:
    """CPU-seconds per second of speech; of a cascade, what its recogniser takes; None: unknown."""
    heard_by = name.partition("+")[0]
    known = heard_by in catalogue.names()
    return _row(catalogue.model(heard_by), None).cost if known else None


def may_use_gpu(name: str) -> bool:
    """Whether a model, or the recogniser of a cascade, can work on a GPU; one that the catalogue
    does not know perhaps can."""
    heard_by = name.partition("+")[0]
    return heard_by not in catalogue.names() or _row(catalogue.model(heard_by), None).on_gpu


def overview() -> list[Row]:
    """Every model of the catalogue, then those that lie in folders and that no entry names."""
    models = [catalogue.model(name) for name in catalogue.names()]
    rows = [_row(model, at_hand(model.name) if is_whole(model.name) else None) for model in models]
    rows += [_row(model, Path(model.folder or "")) for model in _unnamed({m.name for m in models})]
    best = recommended(rows, cores(), memory())
    return [
        replace(
            row,
            recommended=row.model.name == best,
            partial=row.path is None and _is_begun(row.model),
            prepared=size_of(row.path) if row.path else 0,
        )
        for row in rows
    ]


def _is_begun(model: Model) -> bool:
    """Whether something of it is here, be it all but the model that it stands behind."""
    return is_here(model.name) or at_hand(model.name) is not None


def recommended(rows: list[Row], cores: int, memory: int | None) -> str:
    """The best translator of speech that keeps up here; the first one where none does."""
    room = memory / 4 if memory else float("inf")
    fits = [
        row.model.name
        for row in rows
        if row.model.name in PREFERRED
        and (row.cost or 0) <= cores / 2
        and (row.memory or 0) <= room
    ]
    return max(fits, key=PREFERRED.index, default=PREFERRED[0])


def _row(model: Model, path: Path | None) -> Row:
    measured = model.cost is not None
    if measured or model.task not in SPEECH or "model.bin" not in model.files:
        megabytes = model.memory
        return Row(model, path, megabytes and megabytes * 10**6, model.cost, measured)
    # Of Whisper's sizes, work and memory grow with the number of weights; the smallest is tiny.
    small, large = catalogue.model("whisper-tiny.en"), catalogue.model("whisper-base")
    share = (model.size - small.size) / (large.size - small.size)
    cost = (small.cost or 0) + share * ((large.cost or 0) - (small.cost or 0))
    grown = (small.memory or 0) + share * ((large.memory or 0) - (small.memory or 0))
    return Row(model, path, int(grown * 1e6), cost, measured=False)


def _unnamed(known: set[str]) -> list[Model]:
    """Models in folders that the store or the user prepared and no entry names: known by path."""
    found = []
    for place in (home.home() / "models", *home.weight_folders()):
        for folder in sorted(place.glob("*/")):
            kind = None if home.name_of(folder.name) in known else kind_of(folder)
            if kind is None:
                continue
            files = {
                path.name: home.File(path.stat().st_size, sha256="?")
                for path in folder.iterdir()
                if path.is_file()
            }
            about = f"in {folder}"
            found.append(
                Model(
                    *(about, kind.task, kind.languages, "?", files, kind.targets),
                    folder=str(folder),
                    name=str(folder),
                )
            )
    return found

"""A run folder: what is needed to understand a training run, to go on with it, to make it again.

recipe.yaml         every setting, resolved
code.json           versions of Dragoman, Python, torch; git's description of the code
data.json           fingerprints and sizes of the data
source.model, target.model, features.npz      vocabularies, mean and deviation
metrics.jsonl       one line per log and validation
resume-*.pt         where to go on after an interruption
weights-*.pt        weights at validations around the best
final.pt            their average, ready for export
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.files import LOCK, kept, remove, sentences_for, sweep, whole_file
from dragoman.train.recipe import Recipe, read_recipe
from dragoman.versions import with_this_one

# Settings that may change when a run is resumed: they do not change what is learned.
_FREE = (
    "machine.",
    "steps.",
    "data.packs",
    "data.resident",
    "data.keep_states",
    "data.fault_limit",
)
_MADE = ("source.model", "target.model", "features.npz")  # before the first step


class RunFolder:
    """The files of one run."""

    def __init__(self, folder: Path):
        self.folder = folder

    def open(self, recipe: Recipe) -> bool:
        """Begin a run here, or go on with the one that is here; True if there was one."""
        path = self.folder / "recipe.yaml"
        sweep(self.folder)
        for half in self.folder.glob(".*.pt.tmp"):  # a checkpoint: all processes write it as one
            remove(half)
        others = [one for one in self.folder.glob("*") if one.name != LOCK]
        if not path.exists() and others:
            raise DragomanError(f"{self.folder} is not empty and not a run; choose another --run.")
        resumed = any(self.folder.glob("*.pt"))
        if resumed:
            self._check_same(recipe)
        else:  # what a run without a checkpoint has made may be of another recipe
            for name in _MADE:
                (self.folder / name).unlink(missing_ok=True)
        with whole_file(path) as stream:
            yaml.safe_dump(as_plain(recipe), stream, sort_keys=False, allow_unicode=True)
        self._note_code(resumed)
        return resumed

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the folder to this process."""

        def refuse() -> None:
            raise DragomanError(
                f"Another process is training in {self.folder}; wait for it, or choose another "
                "folder with --run."
            ) from None

        with kept(self.folder, refuse):
            yield

    def _note_code(self, resumed: bool) -> None:
        """What code a run was begun with, and under `later` what went on with it."""
        path, now = self.folder / "code.json", code_version()
        begun = json.loads(path.read_text(encoding="utf-8")) if resumed and path.exists() else now
        later: Any = begun.pop("later", [])
        with_this_one(self.folder, [(later or [begun])[-1]["dragoman"]])
        if now != (later or [begun])[-1]:
            later = [*later, now]
        self.write_json("code.json", begun | ({"later": later} if later else {}))

    def _check_same(self, recipe: Recipe) -> None:
        old, new = flat(as_plain(self.recipe())), flat(as_plain(recipe))
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key) and not key.startswith(_FREE):
                raise DragomanError(
                    f"{self.folder} holds a run with another '{key}': {old.get(key)!r} there, "
                    f"{new.get(key)!r} here; choose another folder with --run."
                )

    def check_data(self, found: dict[str, Any]) -> None:
        """Refuse to go on with other data than a run was begun with."""
        path = self.folder / "data.json"
        if not path.exists() or not any(self.folder.glob("*.pt")):
            return
        before = json.loads(path.read_text(encoding="utf-8"))
        for part in [name for name in ("train", "dev", "text") if name in before]:
            if before[part]["fingerprint"] != found[part]["fingerprint"]:
                raise DragomanError(
                    f"The {part} data are not those that {self.folder} was begun with "
                    f"({before[part]['items']} items then, {found[part]['items']} now); "
                    "bring them back, or choose another folder with --run."
                )

    def recipe(self) -> Recipe:
        path = self.folder / "recipe.yaml"
        if not path.exists():
            raise DragomanError(f"{self.folder} is not a run: it has no recipe.yaml.")
        return read_recipe(path)

    def write_json(self, name: str, data: Any) -> None:
        with whole_file(self.folder / name) as stream:
            json.dump(data, stream, indent=1, ensure_ascii=False)
            stream.write("\n")

    def log(self, line: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        path = self.folder / "metrics.jsonl"
        with sentences_for(path), path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return []
        lines = path.read_bytes().splitlines(keepends=True)
        return [line for line in map(_measured, lines) if line is not None]

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that a resumed run will make again."""
        kept = [line for line in self.metrics() if line["step"] <= step]
        with whole_file(self.folder / "metrics.jsonl") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in kept)


def _measured(line: bytes) -> dict[str, Any] | None:
    """A line of the metrics; None if it was half written when a process or the power went."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def as_plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe as YAML can hold it."""
    return json.loads(json.dumps(asdict(recipe)))


def flat(tree: dict[str, Any], where: str = "") -> dict[str, Any]:
    """{"steps": {"total": 5}} as {"steps.total": 5}."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        inside = isinstance(value, dict)
        found |= flat(value, f"{where}{key}.") if inside else {f"{where}{key}": value}
    return found


def code_version() -> dict[str, str]:
    """What made a run: versions, and git's word for the code where it is a checkout."""
    import torch

    where = Path(__file__).parent
    command = ["git", "-C", str(where), "describe", "--always", "--dirty", "--tags"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        described = ""
    return {
        "dragoman": __version__,
        "git": described.strip() or "not a checkout",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }

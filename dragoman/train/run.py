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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.train.files import sentences_for, whole_file
from dragoman.train.recipe import Recipe, read_recipe

# Settings that may change when a run is resumed: they do not change what is learned.
_FREE = {"machine", "steps"}
_MADE = ("source.model", "target.model", "features.npz")  # before the first step


class RunFolder:
    """The files of one run."""

    def __init__(self, folder: Path):
        self.folder = folder

    def open(self, recipe: Recipe) -> bool:
        """Begin a run here, or go on with the one that is here; True if there was one."""
        path = self.folder / "recipe.yaml"
        if not path.exists() and self.folder.exists() and any(self.folder.iterdir()):
            raise DragomanError(f"{self.folder} is not empty and not a run; choose another --run.")
        resumed = any(self.folder.glob("*.pt"))
        if resumed:
            self._check_same(recipe)
        else:  # what a run without a checkpoint has made may be of another recipe
            for name in _MADE:
                (self.folder / name).unlink(missing_ok=True)
        with whole_file(path) as stream:
            yaml.safe_dump(as_plain(recipe), stream, sort_keys=False, allow_unicode=True)
        if not resumed:
            self.write_json("code.json", code_version())
        return resumed

    def _check_same(self, recipe: Recipe) -> None:
        old, new = as_plain(self.recipe()), as_plain(recipe)
        changed = [key for key in new if key not in _FREE and old.get(key) != new[key]]
        if changed:
            raise DragomanError(
                f"{self.folder} holds a run with another '{changed[0]}' "
                f"({old.get(changed[0])!r} there); choose another folder with --run."
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
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that a resumed run will make again."""
        kept = [line for line in self.metrics() if line["step"] <= step]
        with whole_file(self.folder / "metrics.jsonl") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in kept)


class Board:
    """The same numbers for TensorBoard, where it is installed."""

    def __init__(self, folder: Path):
        self.folder, self.writer = folder, None

    def show(self, line: dict[str, Any]) -> None:
        if self.writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            # What a resumed run makes again replaces what was there.
            self.writer = SummaryWriter(str(self.folder / "board"), purge_step=line["step"])
        for name, value in line.items():
            if name not in ("step", "kind"):
                self.writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])
        self.writer.flush()


def as_plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe as YAML can hold it."""
    return json.loads(json.dumps(asdict(recipe)))


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

"""Whose a folder of traces is: one process writes to it at a time, and it holds one run.

`run.json` says which: the setup, the corpus, and what may be another under the same name: the
weights of a net, code of the user's own, a file of word ends.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.files import sentences_for, whole_file
from dragoman.metrics.logs import RUN
from dragoman.models.load import is_function
from dragoman.setup import Setup

LOCK, MARK = ".lock", RUN


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder to this process, or two would write into each other's traces; a kill gives
    it back."""
    from filelock import FileLock, Timeout

    try:
        with sentences_for(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        raise DragomanError(
            f"Another process writes its traces to {folder}; wait for it, or choose another folder."
        ) from None
    with lock:
        yield


def claim(folder: Path, setup: Setup, clips: Sequence[Clip], *, begun: bool) -> None:
    """Take the folder for this run, or go on with the same run; refuse to mix two.

    A run whose clips are the first of these goes on with the others, and one that has come to
    nothing yet is in nobody's way.
    """
    mark: dict[str, Any] = {
        "setup": asdict(setup),
        "corpus": fingerprint(clips),
        "clips": len(clips),
        "weights": weights_of(setup),
        "files": files_of(setup),
    }
    path = folder / MARK
    known = _read_mark(path) if begun and path.exists() else None
    if known is not None:
        _refuse_other(known, mark, folder, clips)
    if known is None or known.get("clips", len(clips)) < len(clips):
        with whole_file(path) as file:
            json.dump(mark, file, indent=1, ensure_ascii=False)
    setup.write(folder / "setup.yaml")


def _refuse_other(
    known: dict[str, Any], mark: dict[str, Any], folder: Path, clips: Sequence[Clip]
) -> None:
    """Say so if a folder holds another run than the one that is wanted."""
    if known.get("setup") != mark["setup"]:
        raise DragomanError(
            f"The folder {folder} holds another run (its setup differs); choose another folder."
        )
    count = known.get("clips", len(clips))  # not in marks of old
    if count > len(clips):
        raise DragomanError(
            f"The folder {folder} holds a run of {count} clips, and these are {len(clips)}; choose "
            f"another folder, or take as many (--limit)."
        )
    if known.get("corpus") != fingerprint(clips[:count]):
        raise DragomanError(
            f"The folder {folder} holds another run (its corpus differs); choose another folder."
        )
    if known.get("weights", mark["weights"]) != mark["weights"]:
        raise DragomanError(
            f"The folder {folder} holds a run of {mark['setup']['model']} as it was before: the "
            f"weights are others now. Choose another folder."
        )
    for name, digest in mark["files"].items():
        if known.get("files", {}).get(name, digest) != digest:
            raise DragomanError(
                f"The folder {folder} holds a run with {name} as it was before; it has been "
                f"changed since. Remove it, or choose another folder."
            )


def fingerprint(clips: Sequence[Clip]) -> str:
    """A corpus in a few letters: what is heard and what it is compared with."""
    rows = [
        (c.index, c.audio.name, c.start, c.end, sorted(c.texts.items()), *c.more_references)
        for c in clips
    ]
    text = json.dumps(rows, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def weights_of(setup: Setup) -> str:
    """The weights of a model in a folder of the user's, in a few letters: a net that was trained on
    or exported again has the same name. Models of the store do not change."""
    folders = [Path(part) for part in setup.model.split("+")]
    try:
        files = [path for folder in folders for path in _weight_files(folder)]
        stamps = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
        return _digest(stamps) if stamps else ""
    except OSError:  # whoever loads the model says what is wrong with it
        return ""


def files_of(setup: Setup) -> dict[str, str]:
    """The user's own files by which a setup speaks, each in a few letters: code, word ends."""
    modules = [spec.partition(":")[0].rpartition(".")[0] for spec in (setup.policy, setup.detector)]
    if is_function(setup.model):
        modules.append(setup.model.partition(":")[0])
    paths = [_code_of(module) for module in modules if module]
    kind, _, ends = setup.detector.partition(":")
    if kind == "boundaries":
        paths.append(Path(ends).expanduser())
    found = [(path, path.stat()) for path in paths if path is not None and path.is_file()]
    return {path.name: _digest(((path, s.st_size, s.st_mtime_ns),)) for path, s in found}


def _code_of(module: str) -> Path | None:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):  # whoever imports it says what is wrong with it
        return None
    return Path(found.origin) if found and found.has_location and found.origin else None


def _weight_files(folder: Path) -> list[Path]:
    if (folder / "final.pt").is_file():  # of a training run, beside its logs
        return [folder / "final.pt"]
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".md")


@cache  # a sweep asks for every policy
def _digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _read_mark(path: Path) -> dict[str, Any]:
    try:
        mark = json.loads(path.read_text(encoding="utf-8"))
        return mark if isinstance(mark, dict) else {}
    except OSError as error:
        raise DragomanError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:  # not JSON, or not UTF-8
        raise DragomanError(
            f"{path} is damaged, so nobody can tell which run the folder holds; "
            f"remove the folder or choose another."
        ) from error

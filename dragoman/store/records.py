"""What is known of the files on disk: a full hash once, then size and time tell of any change."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from dragoman.store import places
from dragoman.store.catalogue import File

PIECE = 1 << 20


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_right(path: Path, file: File) -> bool:
    """Whether a path holds exactly the bytes that the catalogue names (a full read)."""
    try:
        return path.stat().st_size == file.size and sha256_of(path) == file.sha256
    except OSError:
        return False


def write(name: str, entry: Path, files: list[str]) -> None:
    """Note that the files of a model were just verified in full against this entry."""
    folder = places.models() / name
    record = {"entry": _stamp(entry), "files": {file: _look(folder / file) for file in files}}
    places.records().mkdir(parents=True, exist_ok=True)
    path = places.records() / f"{name}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(record), encoding="utf-8")
    temporary.replace(path)


def forget(name: str) -> None:
    (places.records() / f"{name}.json").unlink(missing_ok=True)


def still_holds(name: str, entry: Path) -> bool:
    """Whether a model was verified against this entry and looks untouched since (no reading)."""
    folder = places.models() / name
    try:
        record = json.loads((places.records() / f"{name}.json").read_bytes())
        return record["entry"] == _stamp(entry) and all(
            _look(folder / file) == look for file, look in record["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _look(path: Path) -> list[int]:
    seen = path.stat()
    return [seen.st_size, seen.st_mtime_ns]


def _stamp(entry: Path) -> str:
    """An entry that changes, say with a new release, makes old records void."""
    return hashlib.sha256(entry.read_bytes()).hexdigest()

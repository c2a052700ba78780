"""What the store keeps on disk, and what it knows of it.

<home>/models/NAME/...       the files, verified
<home>/records/NAME.json     what was verified: size and time of each file
<home>/locks/NAME.lock       one process at a time works on a model
<home>/partial/NAME/HASH     downloads on their way, named by what they will be
<home>/entries/NAME.yaml     models that the user added, or that came from the hub
<home>/prepared/KIND/...     what was made of a model's files, once (`prepared.py`)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from dragoman.files import whole_file

HUB = "hub:"  # what the name of a model of the hub begins with: hub:OWNER/NAME@REVISION
PIECE = 1 << 20


def home() -> Path:
    """DRAGOMAN_HOME, or `dragoman` in the platform's cache directory."""
    if chosen := os.environ.get("DRAGOMAN_HOME"):
        return Path(chosen).expanduser()
    return _cache_directory() / "dragoman"


def _cache_directory() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local)
    return Path.home() / ".cache"


def stem(name: str) -> str:
    """A model's name as a file name; the hub's own rules leave '--' to no name of it."""
    if not name.startswith(HUB):
        return name
    repository, at, revision = name.removeprefix(HUB).partition("@")
    return "hub--" + repository.replace("/", "--") + at + revision.replace("/", "%2F")


def name_of(stem: str) -> str:
    """The model's name behind a file name."""
    if not stem.startswith("hub--"):
        return stem
    repository, at, revision = stem.removeprefix("hub--").partition("@")
    return HUB + repository.replace("--", "/") + at + revision.replace("%2F", "/")


def folder_of(name: str) -> Path:
    return home() / "models" / stem(name)


def record_of(name: str) -> Path:
    return home() / "records" / f"{stem(name)}.json"


def locks() -> Path:
    return home() / "locks"


def partial(name: str) -> Path:
    return home() / "partial" / stem(name)


def added_entries() -> Path:
    return home() / "entries"


def shipped_entries() -> Path:
    """The catalogue that comes with the package: one YAML file per model."""
    return Path(__file__).parent / "entries"


def weight_folders() -> list[Path]:
    """The folders of DRAGOMAN_WEIGHTS, each of which may hold a folder per model name."""
    listed = os.environ.get("DRAGOMAN_WEIGHTS", "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in listed if folder]


@dataclass(frozen=True, slots=True)
class File:
    """What the bytes of a file must be: their sha256, or the name that git has for them."""

    size: int
    sha256: str = ""
    git: str = ""

    @property
    def hash(self) -> str:
        return self.sha256 or self.git

    def hash_of(self, path: Path) -> str:
        """The hash that a file has, of the kind that is known of the right one."""
        return sha256_of(path) if self.sha256 else git_name_of(path)

    def is_at(self, path: Path) -> bool:
        """Whether a path holds exactly these bytes (a full read)."""
        try:
            return path.stat().st_size == self.size and self.hash_of(path) == self.hash
        except OSError:
            return False


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_name_of(path: Path) -> str:
    """git's name for a file: the sha1 of a header and its bytes."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def write_record(name: str, entry: Path, files: list[str]) -> None:
    """Note that the files of a model were just verified in full against this entry."""
    folder = folder_of(name)
    record = {"entry": _stamp(entry), "files": {file: _look(folder / file) for file in files}}
    with whole_file(record_of(name)) as file:
        json.dump(record, file)


def forget(name: str) -> None:
    record_of(name).unlink(missing_ok=True)


def still_holds(name: str, entry: Path) -> bool:
    """Whether a model was verified against this entry and looks untouched since (no reading)."""
    folder = folder_of(name)
    try:
        record = json.loads(record_of(name).read_bytes())
        return record["entry"] == _stamp(entry) and all(
            _look(folder / file) == look for file, look in record["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _look(path: Path) -> list[int]:
    seen = path.stat()
    return [seen.st_size, seen.st_mtime_ns]


def _stamp(entry: Path) -> str:
    """An entry whose files change, say with a new release, makes old records void.

    The lines are compared as they stand: reading YAML would cost more than all the rest.
    """
    told = entry.read_bytes()
    lines = re.search(rb"^files:.*(\n([ #].*|))*", told, re.MULTILINE)
    return hashlib.sha256(lines[0].strip() if lines else told).hexdigest()


def megabytes(size: int) -> str:
    """A number of bytes as people say it."""
    if size < 1e7:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"

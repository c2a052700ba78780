"""Folders that are made of a model's files once and kept, as a converted model is.

<home>/prepared/KIND/NAME-HASH/    the hash is of where the files lie
    made-of.json                   what they looked like: others, and the folder is made anew
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.errors import DragomanError
from dragoman.files import sentences_for
from dragoman.store.download import Bar
from dragoman.store.home import home
from dragoman.store.shelf import working_on

STAMP = "made-of.json"
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_passing: dict[Path, TemporaryDirectory[str]] = {}
"""What this process has made for itself, by where it would be kept."""


def prepared(source: Path, kind: str, version: int, make: Callable[[Path], None]) -> Path:
    """The folder that `make` makes of the files in `source`; made now if it is not there.

    `version` is that of the making. A folder appears under its name only when it is whole; when
    several processes want the same one, one makes it and the others wait. Where nobody may write
    to the store, each process makes one for itself, and takes it away at its end.
    """
    stamp = {"version": version, "files": stamp_of(source)}
    folder = place_for(source, kind)
    if _is_made_of(folder, stamp):
        return folder
    try:
        _make_whole(source, folder, stamp, make)
    except DragomanError as error:
        if getattr(error.__cause__, "errno", None) not in _FORBIDDEN:
            raise
        return _made_for_this_process(source, folder, make)
    return folder


def _make_whole(
    source: Path, folder: Path, stamp: dict[str, object], make: Callable[[Path], None]
) -> None:
    kind = folder.parent.name
    with working_on(f"{kind}-{folder.name}") as bar:
        if _is_made_of(folder, stamp):  # another process was quicker
            return
        bar.say(f"Preparing {source.name} in {folder}, once")
        making = folder.with_name(f"{folder.name}.new")
        for old in (making, folder):
            shutil.rmtree(old, ignore_errors=True)
        making.mkdir(parents=True)
        try:
            make(making)
            (making / STAMP).write_text(
                json.dumps({**stamp, "made": stamp_of(making)}), encoding="utf-8"
            )
            making.replace(folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)  # what was not finished


def _made_for_this_process(source: Path, folder: Path, make: Callable[[Path], None]) -> Path:
    if folder not in _passing:
        with Bar() as bar:
            bar.say(f"Preparing {source.name} for this run alone: {home()} cannot be written to")
        made = TemporaryDirectory(prefix="dragoman-")
        with sentences_for(Path(made.name)):
            make(Path(made.name))
        _passing[folder] = made
    return Path(_passing[folder].name)


def forget(source: Path) -> None:
    """Remove whatever was made of a model's files, and of what was made."""
    for place in places_of(source):
        shutil.rmtree(place, ignore_errors=True)


def size_of(source: Path) -> int:
    """Bytes of whatever was made of a model's files; what goes away meanwhile has none."""
    size = 0
    for place in places_of(source):
        for folder, _, names in os.walk(place):
            for name in names:
                with suppress(FileNotFoundError):
                    size += os.stat(os.path.join(folder, name)).st_size
    return size


def places_of(source: Path) -> list[Path]:
    """The folders that were made of a model's files, and of those folders in turn."""
    kinds = [kind.name for kind in (home() / "prepared").glob("*")]
    made = [place for kind in kinds if (place := place_for(source, kind)).is_dir()]
    return [*made, *(further for place in made for further in places_of(place))]


def place_for(source: Path, kind: str) -> Path:
    """Where that is kept which is made of the files in a folder."""
    digest = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:12]
    return home() / "prepared" / kind / f"{source.name}-{digest}"


def _is_made_of(folder: Path, stamp: dict[str, object]) -> bool:
    """Whether a folder was made of these files, and looks as it did then."""
    try:
        found = json.loads((folder / STAMP).read_bytes())
        return bool(found == {**stamp, "made": stamp_of(folder)})
    except (OSError, ValueError):
        return False


def stamp_of(folder: Path) -> dict[str, list[int]]:
    """Size and time of every file, the stamp's own left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != STAMP)
    seen = {path.relative_to(folder).as_posix(): path.stat() for path in files}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in seen.items()}

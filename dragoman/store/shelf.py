"""The store's shelf: get a model, look whether it is there, verify it, add one, take one away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.store import catalogue, places, records

if TYPE_CHECKING:
    from dragoman.store.catalogue import Model
    from dragoman.store.progress import Bar


def get(name: str) -> Path:
    """The folder with exactly the verified files of a model; they are fetched if missing.

    A path to a folder (anything with a separator in it) is returned as it is, so that whatever
    takes a model's name takes the user's own conversion as well.
    """
    if _is_path(name):
        return _own_folder(name)
    return find(name) or _fetch(name)


def find(name: str) -> Path | None:
    """The folder of a model if it is here and looks untouched; a few file stats, no reading."""
    entry = catalogue.entry_path(name)
    return places.models() / name if records.still_holds(name, entry) else None


def _is_path(name: str) -> bool:
    return "/" in name or os.sep in name or name.startswith(("~", "."))


def _own_folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise DragomanError(f"there is no model folder {folder}.")
    return folder


def _fetch(name: str) -> Path:
    """Make a model complete: keep what is right, throw away what is not, fetch the rest."""
    from dragoman.store.progress import Bar

    model = catalogue.model(name)
    folder = places.models() / name
    with _sentences(), Bar() as bar, _lock(name, bar):
        if find(name):  # another process was quicker
            return folder
        _keep_only_right_files(model, folder)
        _fetch_missing(model, folder, bar)
        records.write(name, catalogue.entry_path(name), list(model.files))
        shutil.rmtree(places.partial(name), ignore_errors=True)
    return folder


def _keep_only_right_files(model: Model, folder: Path) -> None:
    records.forget(model.name)
    for path in sorted(folder.rglob("*"), reverse=True):
        file = model.files.get(path.relative_to(folder).as_posix())
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif file is None or not records.is_right(path, file):
            path.unlink()


def _fetch_missing(model: Model, folder: Path, bar: Bar) -> None:
    from dragoman.store import sources

    missing = sources.missing_files(model, folder)
    if not missing:
        return
    size = sum(file.size for file in missing.values())
    bar.say(f"Fetching {model.name} ({megabytes(size)}, {model.licence}) into {folder}")
    reasons = sources.fetch(model, folder, bar)
    if missing := sources.missing_files(model, folder):
        why = "; ".join(reasons) or "no source has it"
        raise DragomanError(
            f"cannot get the model '{model.name}': {why}. Connect to the network and try again, or "
            f"put {', '.join(list(missing)[:4])}{' …' if len(missing) > 4 else ''} into a folder "
            f"'{model.name}' and name the folder above it in DRAGOMAN_WEIGHTS."
        )


@contextmanager
def _lock(name: str, bar: Bar) -> Iterator[None]:
    """One process at a time works on a model; the others wait and then find it done."""
    from filelock import FileLock, Timeout

    places.locks().mkdir(parents=True, exist_ok=True)
    lock = FileLock(places.locks() / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        bar.say(f"Another process is fetching {name}; waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _sentences() -> Iterator[None]:
    """A full disk or a folder that cannot be written is the user's to mend: say so."""
    try:
        yield
    except OSError as error:
        raise DragomanError(
            f"the model store {places.home()} cannot be used ({error.strerror or error}); "
            f"make room or name another folder in DRAGOMAN_HOME."
        ) from error


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"

"""The store's shelf: the folder of a model, at once when it is there, fetched when it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
        raise DragomanError(
            f"there is no model folder {folder}; give a folder that exists, or a name that "
            f"'dragoman models list' shows."
        )
    return folder


def _fetch(name: str) -> Path:
    """Make a model complete: keep what is right, throw away what is not, fetch the rest."""
    import shutil

    model = catalogue.model(name)
    folder = places.models() / name
    with working_on(name) as bar:
        if find(name):  # another process was quicker
            return folder
        records.forget(name)
        _keep_only_right_files(model, folder)
        _fetch_missing(model, folder, bar)
        records.write(name, catalogue.entry_path(name), list(model.files))
        shutil.rmtree(places.partial(name), ignore_errors=True)
    return folder


def _keep_only_right_files(model: Model, folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):  # a folder comes after what is in it
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
def working_on(name: str) -> Iterator[Bar]:
    """Hold a model's lock: one process at a time; the others wait and then find the work done.

    A full disk or a folder that cannot be written becomes a sentence: it is the user's to mend.
    """
    from dragoman.store.progress import Bar

    try:
        places.locks().mkdir(parents=True, exist_ok=True)
        with Bar() as bar, _lock(name, bar):
            yield bar
    except OSError as error:
        raise DragomanError(
            f"the model store {places.home()} cannot be used ({error.strerror or error}); "
            f"make room or name another folder in DRAGOMAN_HOME."
        ) from error


def _lock(name: str, bar: Bar) -> AbstractContextManager[object]:
    from filelock import FileLock, Timeout

    lock = FileLock(places.locks() / f"{name}.lock")
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        bar.say(f"Another process is working on {name}; waiting for it.")
        return lock.acquire()


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"

"""The store's shelf: the folder of a model, at once when it is there, fetched when it is not.

And its upkeep: verify a model in full, add one of the user's own, take one away.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.store import catalogue, home
from dragoman.store.home import File, megabytes

if TYPE_CHECKING:
    from dragoman.store.catalogue import Model, Task
    from dragoman.store.download import Bar


def get(name: str) -> Path:
    """The folder with exactly the verified files of a model; they are fetched if missing.

    `hub:OWNER/NAME[@REVISION]` is a model of the model hub. A path to a folder (anything else with
    a separator in it) is returned as it is, so that whatever takes a model's name takes the user's
    own conversion as well.
    """
    if _is_path(name):
        return _own_folder(name)
    return find(name) or _fetch(name)


def find(name: str) -> Path | None:
    """The folder of a model if it is here and looks untouched; a few file stats, no reading."""
    entry = catalogue.entry_path(name)
    return home.folder_of(name) if home.still_holds(name, entry) else None


def at_hand(name: str) -> Path | None:
    """The folder of a model that can be had without a network: the store's, or one on this machine
    whose files look right, and which `get` will link; no reading."""
    from dragoman.store import sources

    return find(name) or sources.whole_folder(catalogue.model(name))


def is_whole(name: str) -> bool:
    """Whether a model is at hand, and the one that it stands behind."""
    behind = catalogue.model(name).behind
    return at_hand(name) is not None and (behind is None or at_hand(behind) is not None)


def _is_path(name: str) -> bool:
    separated = "/" in name or os.sep in name or name.startswith(("~", "."))
    return separated and not name.startswith(home.HUB)


def _own_folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise DragomanError(
            f"there is no model folder {folder}.",
            advice="give a folder that exists, or a name that 'dragoman models list' shows.",
        )
    return folder


def _fetch(name: str) -> Path:
    """Make a model complete: keep what is right, throw away what is not, fetch the rest."""
    from dragoman.store import sources

    folder = home.folder_of(name)
    with working_on(name) as bar:
        if find(name):  # another process was quicker
            return folder
        model = sources.completed(catalogue.model(name), bar)
        home.forget(name)
        _keep_only_right_files(model, folder)
        _fetch_missing(model, folder, bar)
        model = sources.described(model, folder)
        home.write_record(name, catalogue.entry_path(name), list(model.files))
        shutil.rmtree(home.partial(name), ignore_errors=True)
    return folder


def _keep_only_right_files(model: Model, folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):  # a folder comes after what is in it
        file = model.files.get(path.relative_to(folder).as_posix())
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif file is None or not file.is_at(path):
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
        if model.ships:
            raise DragomanError(
                f"the model '{model.name}' comes with a clone of Dragoman.",
                advice=f"type 'dragoman models get {model.name}' there, once, or name the clone's "
                "folder 'weights' in DRAGOMAN_WEIGHTS.",
            )
        why = "; ".join(reasons) or "no source has it"
        listed = f"{', '.join(list(missing)[:4])}{' …' if len(missing) > 4 else ''}"
        raise DragomanError(
            f"cannot get the model '{model.name}': {why}. Connect to the network and try again, or "
            f"put {listed} into a folder '{home.stem(model.name)}' and name the folder above it in "
            "DRAGOMAN_WEIGHTS."
        )


@contextmanager
def working_on(name: str) -> Iterator[Bar]:
    """Hold a model's lock: one process at a time; the others wait and then find the work done.

    A full disk or a folder that cannot be written becomes a sentence: it is the user's to mend.
    """
    from dragoman.store.download import Bar

    try:
        home.locks().mkdir(parents=True, exist_ok=True)
        with Bar() as bar, _lock(name, bar):
            yield bar
    except OSError as error:
        raise DragomanError(
            f"the model store {home.home()} cannot be used ({error.strerror or error}); "
            f"make room or name another folder in DRAGOMAN_HOME."
        ) from error


def _lock(name: str, bar: Bar) -> AbstractContextManager[object]:
    from filelock import FileLock, Timeout

    lock = FileLock(home.locks() / f"{home.stem(name)}.lock")
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        bar.say(f"Another process is working on {name}; waiting for it.")
        return lock.acquire()


def verify(name: str) -> list[str]:
    """Read every file of a model; what is wrong with it, in words, or nothing.

    The record is put right as well: a model with a fault loses it, so that `get` mends the model.
    """
    model = catalogue.model(name)
    folder = home.folder_of(name)
    faults = [_fault(folder / file, file, wanted) for file, wanted in model.files.items()]
    present = {path.relative_to(folder).as_posix() for path in _files_in(folder)}
    strangers = [f"{file} does not belong to it" for file in sorted(present - model.files.keys())]
    found = [fault for fault in faults if fault] + strangers
    if not model.files:
        return ["it is not here"]
    if bool(found) == bool(find(name)):  # the record says otherwise
        with working_on(name):
            if found:
                home.forget(name)
            else:
                home.write_record(name, catalogue.entry_path(name), list(model.files))
    return found


def _fault(path: Path, name: str, wanted: File) -> str | None:
    if not path.exists():
        return f"{name} is missing"
    return None if wanted.is_at(path) else f"{name} is damaged"


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def is_here(name: str) -> bool:
    """Whether the store holds anything of a model, right or not."""
    return os.path.lexists(home.folder_of(name)) or home.partial(name).exists()


def remove(name: str) -> None:
    """Take a model's files out of the store; one that was added is forgotten as well."""
    entry = catalogue.entry_path(name)
    added = entry.parent == home.added_entries() and entry.exists()
    if not is_here(name) and not added:
        raise DragomanError(f"the model '{name}' is not in the store {home.home()}.")
    from dragoman.store import prepared

    with working_on(name):
        home.forget(name)
        prepared.forget(home.folder_of(name))
        for folder in (home.folder_of(name), home.partial(name)):
            if folder.is_symlink():  # what it leads to is on another disk, and not the store's
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
        if added:
            entry.unlink()


def add(
    name: str, folder: Path, *, about: str, task: Task, languages: tuple[str, ...], licence: str
) -> Model:
    """Enter a folder of the user's into the catalogue, with the hashes its files have now."""
    _check_name(name)
    files = {
        path.relative_to(folder).as_posix(): File(path.stat().st_size, home.sha256_of(path))
        for path in _files_in(folder)
    }
    if not files:
        raise DragomanError(f"the folder {folder} holds no files to add.")
    where = str(folder.resolve())
    model = catalogue.Model(about, task, languages, licence, files, folder=where, name=name)
    with working_on(name):
        catalogue.save(model)
    return model


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name.startswith("hub--"):
        raise DragomanError(
            f"'{name}' cannot name a model; use letters, digits, dots, dashes and underscores."
        )
    if (home.shipped_entries() / f"{name}.yaml").exists():
        raise DragomanError(f"'{name}' is a model of the catalogue already; choose another name.")

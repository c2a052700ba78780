"""Upkeep of the store: verify a model in full, add one of the user's own, take one away."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.store import catalogue, places, records
from dragoman.store.catalogue import File, Model, Task
from dragoman.store.shelf import find, working_on


def verify(name: str) -> list[str]:
    """Read every file of a model; what is wrong with it, in words, or nothing.

    The record is put right as well: a model with a fault loses it, so that `get` mends the model.
    """
    model = catalogue.model(name)
    folder = places.models() / name
    faults = [_fault(folder / file, file, wanted) for file, wanted in model.files.items()]
    present = {path.relative_to(folder).as_posix() for path in _files_in(folder)}
    strangers = [f"{file} does not belong to it" for file in sorted(present - model.files.keys())]
    found = [fault for fault in faults if fault] + strangers
    if bool(found) == bool(find(name)):  # the record says otherwise
        with working_on(name):
            if found:
                records.forget(name)
            else:
                records.write(name, catalogue.entry_path(name), list(model.files))
    return found


def _fault(path: Path, name: str, wanted: File) -> str | None:
    if not path.exists():
        return f"{name} is missing"
    return None if records.is_right(path, wanted) else f"{name} is damaged"


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def is_here(name: str) -> bool:
    """Whether the store holds anything of a model, right or not."""
    return (places.models() / name).exists() or places.partial(name).exists()


def remove(name: str) -> None:
    """Take a model's files out of the store; one that the user added is forgotten as well."""
    entry = catalogue.entry_path(name)
    added = entry.parent == places.added_entries()
    if not is_here(name) and not added:
        raise DragomanError(f"the model '{name}' is not in the store {places.home()}.")
    with working_on(name):
        records.forget(name)
        for folder in (places.models() / name, places.partial(name)):
            if folder.exists():
                shutil.rmtree(folder)
        if added:
            entry.unlink()


def add(
    name: str, folder: Path, *, about: str, task: Task, languages: tuple[str, ...], licence: str
) -> Model:
    """Enter a folder of the user's into the catalogue, with the hashes its files have now."""
    import msgspec

    _check_name(name)
    files = {
        path.relative_to(folder).as_posix(): File(path.stat().st_size, records.sha256_of(path))
        for path in _files_in(folder)
    }
    if not files:
        raise DragomanError(f"the folder {folder} holds no files to add.")
    where = str(folder.resolve())
    model = Model(about, task, languages, licence, files, folder=where, name=name)
    entry = {key: value for key, value in asdict(model).items() if value and key != "name"}
    with working_on(name):
        path = places.added_entries() / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_bytes(msgspec.yaml.encode(entry))
        temporary.replace(path)
    return model


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise DragomanError(
            f"'{name}' cannot name a model; use letters, digits, dots, dashes and underscores."
        )
    if (places.shipped_entries() / f"{name}.yaml").exists():
        raise DragomanError(f"'{name}' is a model of the catalogue already; choose another name.")

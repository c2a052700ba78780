"""The catalogue: what each model is, the sha256 of its files, and where they can be had.

A model is one YAML file, named after it: those in `entries/` ship with the package, those in the
store's own `entries` folder were added by the user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.store import places

Task = Literal["translation", "recognition", "synthesis", "voice activity", "recording"]


@dataclass(frozen=True, slots=True)
class File:
    """What the bytes of a file must be."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository of the model hub at one revision; its files have the model's file names."""

    repository: str
    revision: str


@dataclass(frozen=True, slots=True)
class Archive:
    """A package archive that carries some of the files: a wheel's file name, or npm's name@version.

    `members` says which member of the archive each file is. Where several archives name the same
    file, their members are its pieces, in the order of the catalogue.
    """

    size: int
    sha256: str
    members: dict[str, str]
    pypi: str | None = None
    npm: str | None = None

    @property
    def title(self) -> str:
        return self.pypi or self.npm or "?"

    @property
    def file(self) -> File:
        """What the bytes of the archive itself must be."""
        return File(self.size, self.sha256)


@dataclass(frozen=True, slots=True)
class Model:
    """An entry of the catalogue. Sources are tried in this order: folder, hub, archives."""

    about: str
    task: Task
    languages: tuple[str, ...]
    licence: str
    files: dict[str, File]
    folder: str | None = None
    hub: Hub | None = None
    archives: tuple[Archive, ...] = ()
    name: str = ""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())


def names() -> list[str]:
    """Every model's name: those of the package, then those that the user added."""
    shipped = sorted(path.stem for path in places.shipped_entries().glob("*.yaml"))
    added = sorted(path.stem for path in places.added_entries().glob("*.yaml"))
    return shipped + [name for name in added if name not in shipped]


def entry_path(name: str) -> Path:
    """The YAML file of a model; a name that nobody knows is answered with the nearest one."""
    if PurePosixPath(name).name == name and "\\" not in name:
        for folder in (places.shipped_entries(), places.added_entries()):
            path = folder / f"{name}.yaml"
            if path.is_file():
                return path
    near = get_close_matches(name, names(), n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see 'dragoman models list'."
    raise DragomanError(f"there is no model '{name}' in the catalogue; {hint}")


def model(name: str) -> Model:
    """Read one entry of the catalogue."""
    return read(entry_path(name))


def read(path: Path) -> Model:
    """Read an entry's YAML file and refuse one that makes no sense."""
    import msgspec

    try:
        found = msgspec.yaml.decode(path.read_bytes(), type=Model)
    except (msgspec.DecodeError, OSError) as error:
        raise DragomanError(f"{path} is not an entry of the model catalogue: {error}.") from None
    for name in found.files:
        check_file_name(name, path)
    archives = tuple(_spell_out(archive, found.files, path) for archive in found.archives)
    return replace(found, name=path.stem, archives=archives)


def check_file_name(name: str, entry: Path) -> None:
    """A file must land inside its model's folder, whatever an entry says."""
    if set(name.split("/")) & {"", ".", ".."} or set(name) & {"\\", "\0"}:
        raise DragomanError(f"{entry} names the file '{name}', which is not a plain relative path.")


def _spell_out(archive: Archive, files: dict[str, File], entry: Path) -> Archive:
    """Replace `folder/*: where/*` by one pair for each file that the pattern matches."""
    if (archive.pypi is None) == (archive.npm is None):
        raise DragomanError(f"{entry} must give each archive one index: 'pypi' or 'npm'.")
    members: dict[str, str] = {}
    for file, member in archive.members.items():
        head, star, tail = file.partition("*")
        if not star:
            members[file] = member
            continue
        for name in files:
            if name.startswith(head) and name.endswith(tail):
                middle = name[len(head) : len(name) - len(tail)]
                members[name] = member.replace("*", middle)
    if unknown := members.keys() - files.keys():
        raise DragomanError(f"{entry} takes '{min(unknown)}' from an archive but gives no hash.")
    return replace(archive, members=members)

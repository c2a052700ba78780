"""The model hub: what its records say of a repository, and what its own client has fetched.

A revision is made a commit, once; the sizes and hashes of its files are the hub's own. Files that
git itself keeps are known by git's name for them (a sha1), the large ones by their sha256.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dragoman.errors import DragomanError
from dragoman.store.catalogue import Hub
from dragoman.store.download import Bar, Headers, RefusedError, SourceError, head, read_json
from dragoman.store.home import File, sha256_of
from dragoman.store.kinds import is_needed

TRUE = {"1", "ON", "YES", "TRUE"}


@dataclass(frozen=True, slots=True)
class Listing:
    """What a repository holds at one commit, as far as a model needs it."""

    commit: str
    files: dict[str, File]
    licence: str = ""


def endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in TRUE


def address(hub: Hub, file: str) -> str:
    return f"{endpoint()}/{hub.repository}/resolve/{quote(hub.revision, safe='')}/{quote(file)}"


def headers() -> Headers:
    """Who asks: HF_TOKEN, or the token that the hub's own client keeps."""
    token = os.environ.get("HF_TOKEN", "").strip() or _kept_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _kept_token() -> str:
    path = os.environ.get("HF_TOKEN_PATH") or _client_home() / "token"
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _client_home() -> Path:
    if chosen := os.environ.get("HF_HOME"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "huggingface"


def cache_of(repository: str) -> Path:
    """Where the hub's own client keeps what it fetched of a repository for other programs."""
    chosen = os.environ.get("HF_HUB_CACHE")
    cache = Path(chosen).expanduser() if chosen else _client_home() / "hub"
    return cache / ("models--" + repository.replace("/", "--"))


def listing(hub: Hub, bar: Bar) -> Listing:
    """What a repository holds: at the commit that the hub's own client has, if it has one.

    Other programs may have fetched only what they need, so the hub is asked what else there is;
    without it, what is there must do.
    """
    here = cached(hub)
    if here is None:
        return look_up(hub, bar)
    try:
        return look_up(Hub(hub.repository, here.commit), bar)
    except SourceError:
        return here


def look_up(hub: Hub, bar: Bar) -> Listing:
    """What the hub's records say of a repository at a revision."""
    if is_offline():
        raise SourceError("the model hub is switched off by HF_HUB_OFFLINE")
    where = f"{endpoint()}/api/models/{hub.repository}/revision/{quote(hub.revision, safe='')}"
    title = f"hub:{hub.repository}@{hub.revision}"
    try:
        told = read_json(f"{where}?blobs=true", title, bar, headers())
        commit = str(told["sha"])
        items = [(str(item["rfilename"]), item) for item in told["siblings"]]
        at_commit = Hub(hub.repository, commit)
        files = {name: _file(at_commit, name, item) for name, item in items if is_needed(name)}
    except RefusedError as error:
        raise SourceError(explained(error, hub)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{title}: the hub's record of it cannot be read ({error!r})") from error
    if "model.bin" not in files:
        raise DragomanError(
            f"{hub.repository} holds no model.bin and so no model in CTranslate2's format; take a "
            "repository that was converted, or convert it with ct2-transformers-converter."
        )
    return Listing(commit, files, _licence(told))


def _file(hub: Hub, name: str, item: dict[str, Any]) -> File:
    """What a record says of a file; a mirror that keeps no such records answers in headers."""
    large = item.get("lfs") or {}
    if sha256 := large.get("sha256"):
        return File(int(large.get("size") or item["size"]), _hexadecimal(sha256, 64))
    if item.get("blobId") and item.get("size") is not None:
        return File(int(item["size"]), git=_hexadecimal(item["blobId"], 40))
    told = head(address(hub, name), name, headers())
    tag = (told["X-Linked-Etag"] or told["ETag"] or "").removeprefix("W/").strip('"')
    size = int(told["X-Linked-Size"] or told["Content-Length"])
    return _tagged(tag, size)


def _tagged(tag: str, size: int) -> File:
    """A file by its tag: a sha256 for a large one, git's name for any other."""
    if len(tag) == 64:
        return File(size, _hexadecimal(tag, 64))
    return File(size, git=_hexadecimal(tag, 40))


def _hexadecimal(text: str, length: int) -> str:
    if len(text) != length or set(text) - set("0123456789abcdef"):
        raise ValueError(f"{text!r} is no hash")
    return text


def _licence(told: dict[str, Any]) -> str:
    card = told.get("cardData") or {}
    licence = card.get("license") or "see the hub"
    return ", ".join(licence) if isinstance(licence, list) else str(licence)


def explained(error: RefusedError, hub: Hub) -> str:
    """What a refusal of the hub means, and what to do about it."""
    page = f"{endpoint()}/{hub.repository}"
    if error.status == 403 or error.code == "GatedRepo":
        return f"{error}: accept the model's terms on {page} and set HF_TOKEN to a token of yours"
    if error.status == 401:
        if headers():
            return f"{error}: there is no {hub.repository}, or your token does not open it"
        return (
            f"{error}: there is no {hub.repository}, or it is not open to all; if you may have "
            "it, set HF_TOKEN to a token of yours"
        )
    if error.code == "RevisionNotFound":
        return f"{error}: {hub.repository} has no revision '{hub.revision}'; see {page}"
    if error.status == 404:
        return f"{error}: there is no {hub.repository} on {endpoint()}, or not at this revision"
    return str(error)


def cached(hub: Hub) -> Listing | None:
    """What the hub's own client has fetched of a repository, if it can be a model."""
    cache = cache_of(hub.repository)
    commit = hub.revision  # unless it is the name of one
    with suppress(OSError, UnicodeDecodeError):
        commit = (cache / "refs" / hub.revision).read_text(encoding="utf-8").strip()
    snapshot = cache / "snapshots" / commit
    names = [path.name for path in snapshot.glob("*") if path.is_file()]
    files = {name: _file_in_cache(snapshot / name) for name in names if is_needed(name)}
    complete = "model.bin" in files and any("vocabulary" in name for name in files)
    return Listing(commit, files) if complete and len(commit) == 40 else None


def _file_in_cache(path: Path) -> File:
    """The cache names its files by their tags; where it keeps no links, they have their own."""
    blob = path.resolve()
    try:
        return _tagged(blob.name, blob.stat().st_size)
    except ValueError:
        return File(blob.stat().st_size, sha256_of(blob))

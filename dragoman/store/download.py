"""Fetch an address into a file: continued where it stopped, believed only if the hash agrees.

A server that is busy (429, 5xx), or away in the middle of a file, is asked again after a while.
Who asks is told to the host that was named, and to no other host that it redirects to.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from dragoman.errors import DragomanError
from dragoman.store.home import PIECE, File, megabytes

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

TIMEOUT = 30.0  # seconds without a byte before a connection counts as dead
BUSY = {429, 500, 502, 503, 504}
# Seconds before a server is asked again that is busy, unless it says how long, or away.
WAITS = (1.0, 3.0, 9.0)
LONGEST_WAIT = 60.0
Headers = Mapping[str, str]


class SourceError(Exception):
    """One source could not deliver what was asked; the next one may."""


class RefusedError(SourceError):
    """The server answered, but with a refusal."""

    def __init__(self, title: str, error: urllib.error.HTTPError) -> None:
        self.status = error.code
        self.code = error.headers.get("X-Error-Code", "") if error.headers else ""
        reason = "redirects in a circle" if 300 <= error.code < 400 else f"answers {error.code}"
        words = "" if 300 <= error.code < 400 else f" {error.reason}".rstrip()
        super().__init__(f"{title}: the server {reason}{words}")


def download(
    address: str, wanted: File, to: Path, title: str, bar: Bar, headers: Headers | None = None
) -> None:
    """Fetch `wanted` into `to`; what an earlier, interrupted call left there is continued."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.touch()
    if to.stat().st_size > wanted.size:
        to.write_bytes(b"")
    continued = to.stat().st_size > 0
    _check_room(wanted.size - to.stat().st_size, to, title)
    _fetch_all(address, wanted, to, title, bar, headers or {})
    if wanted.is_at(to):
        return
    found = wanted.hash_of(to)
    to.unlink()
    if continued:  # the old beginning and the new end need not belong together: start afresh
        download(address, wanted, to, title, bar, headers)
        return
    raise SourceError(
        f"{title} is not the file that the catalogue names ({found[:12]}… instead of "
        f"{wanted.hash[:12]}… is its {'sha256' if wanted.sha256 else 'sha1'}) and was thrown away"
    )


def _check_room(size: int, to: Path, title: str) -> None:
    """Refuse a disk that cannot hold a file, before hours of fetching."""
    free = shutil.disk_usage(to.parent).free
    if free < size:
        raise DragomanError(
            f"{title} needs {megabytes(size)}, but there are {megabytes(free)} left where "
            f"{to.parent} is; make room or name another folder in DRAGOMAN_HOME."
        )


def _fetch_all(
    address: str, wanted: File, to: Path, title: str, bar: Bar, headers: Headers
) -> None:
    """Connect as often as it takes; a network that has brought something may be away now."""
    waits: Iterator[float] = iter(())
    while (have := to.stat().st_size) < wanted.size:
        bar.begin(title, wanted.size, have)
        why: Exception | None = None
        try:
            _fetch_some(address, have, wanted, to, title, bar, headers)
        except BrokenError as error:
            why = error
        if to.stat().st_size > have:
            waits = iter(WAITS)
            continue
        told = str(why or f"{title}: the answer stops at {have} of {wanted.size} bytes")
        if (wait := next(waits, None)) is None:
            raise SourceError(told) from why
        bar.say(f"{told}; trying again in {wait:.0f} s.")
        time.sleep(wait)


def _fetch_some(
    address: str, have: int, wanted: File, to: Path, title: str, bar: Bar, headers: Headers
) -> None:
    """One connection: append what it brings after the first `have` bytes."""
    ranged = {**headers, "Range": f"bytes={have}-"} if have else headers
    with ask(address, title, bar, ranged) as answer:
        if have and answer.status != 206:  # this server knows no ranges: from the beginning
            have = 0
            bar.begin(title, wanted.size)
        with to.open("r+b" if have else "wb") as file:
            file.seek(have)
            for piece in _pieces(answer, title):
                file.write(piece)
                bar.advance(len(piece))
                have += len(piece)
                if have > wanted.size:  # too long to be right; the hash will say so
                    return


class BrokenError(SourceError):
    """A connection ended before its time; what came so far is kept."""


def _pieces(answer: HTTPResponse, title: str) -> Iterator[bytes]:
    try:
        while piece := answer.read1(PIECE):  # what has come so far, so that it is kept
            yield piece
    except (OSError, HTTPException, ValueError) as error:
        raise BrokenError(f"{title}: the connection broke ({error or 'no reason'})") from error


def ask(address: str, title: str, bar: Bar, headers: Headers) -> HTTPResponse:
    """Open an address; a server that is busy is asked again, after as long as it wants."""
    for wait in (*WAITS, None):
        try:
            return _open(address, title, headers)
        except RefusedError as error:
            asked = _retry_after(error.__cause__)
            if error.status not in BUSY or wait is None:
                raise
            if asked is not None and asked > LONGEST_WAIT:
                raise SourceError(f"{error}, and wants {asked:.0f} s of rest; try later") from error
            bar.say(f"{error}; asking again in {asked if asked is not None else wait:.0f} s.")
            time.sleep(asked if asked is not None else wait)
    raise AssertionError("the last turn returns or raises")


def _open(
    address: str, title: str, headers: Headers, *, method: str = "GET", stay: bool = False
) -> HTTPResponse:
    told = {"User-Agent": "dragoman", **headers}
    try:
        request = urllib.request.Request(address, headers=told, method=method)
    except ValueError as error:  # as where HF_ENDPOINT has no https:// before it
        raise SourceError(f"{title}: '{address}' is no address of the web") from error
    opener = urllib.request.build_opener(_Redirects(stay=stay))
    try:
        return cast(HTTPResponse, opener.open(request, timeout=TIMEOUT))
    except urllib.error.HTTPError as error:
        raise RefusedError(title, error) from error
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise BrokenError(f"{title}: no connection ({reason})") from error
    except (OSError, HTTPException, ValueError) as error:
        raise BrokenError(f"{title}: the connection broke ({error or 'no reason'})") from error


def _retry_after(error: BaseException | None) -> float | None:
    """How many seconds a refusal asks to wait: a number, or a date."""
    headers = getattr(error, "headers", None)
    told = headers.get("Retry-After") if headers else None
    if not told:
        return None
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except ValueError:
        return None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects are followed, but secrets stay with the host that they were meant for."""

    max_redirections = 8

    def __init__(self, *, stay: bool) -> None:
        self._stay = stay  # at the first host: where it would send us is not asked

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is None:
            return None
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if here.scheme == "https" and there.scheme != "https":
            raise urllib.error.URLError(f"it redirects to the unprotected {there.netloc}")
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            if self._stay:
                return None
            new.remove_header("Authorization")
        return new


def read_json(address: str, title: str, bar: Bar, headers: Headers) -> Any:
    """What a server says in JSON."""
    with ask(address, title, bar, headers) as answer:
        told = b"".join(_pieces(answer, title))
    try:
        return json.loads(told)
    except ValueError as error:
        raise SourceError(f"{title}: the answer is not JSON; is this a model hub?") from error


def head(address: str, title: str, headers: Headers) -> Message:
    """The headers that an address answers with, its redirection to another host included."""
    request = {**headers, "Accept-Encoding": "identity"}
    try:
        with _open(address, title, request, method="HEAD", stay=True) as answer:
            return answer.headers
    except RefusedError as error:
        refusal = error.__cause__
        if isinstance(refusal, urllib.error.HTTPError) and 300 <= error.status < 400:
            return refusal.headers
        raise


class Bar:
    """A progress bar on the standard error, drawn only on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TransferSpeedColumn as Speed

        self.console = Console(stderr=True, highlight=False)
        words = TextColumn("{task.description}", markup=False)
        columns = (words, BarColumn(), DownloadColumn(), Speed())
        self._progress: Progress = Progress(*columns, console=self.console, transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def say(self, sentence: str) -> None:
        # A terminal breaks it between words, a file gets one line.
        self.console.print(sentence, markup=False, soft_wrap=not self.console.is_terminal)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start over with another task, `done` bytes of which are already there."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total, completed=done)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, count)

"""Fetch an address into a file: continued where it stopped, believed only if the hash agrees."""

from __future__ import annotations

import errno
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast

from dragoman.store.catalogue import File
from dragoman.store.progress import Bar
from dragoman.store.records import PIECE, is_right, sha256_of

TIMEOUT = 30.0  # seconds without a byte before a connection counts as dead
OUR_OWN_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}  # of the disk, not the net


class SourceError(Exception):
    """One source could not give what was asked; the next one may."""


def download(address: str, wanted: File, to: Path, title: str, bar: Bar) -> None:
    """Fetch `wanted` into `to`; what an earlier, interrupted call left there is continued."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.touch()
    if to.stat().st_size > wanted.size:
        to.write_bytes(b"")
    continued = to.stat().st_size > 0
    _fetch_all(address, wanted, to, title, bar)
    if is_right(to, wanted):
        return
    found = sha256_of(to)
    to.unlink()
    if continued:  # the old beginning and the new end need not belong together: start afresh
        download(address, wanted, to, title, bar)
        return
    raise SourceError(
        f"{title} is not the file that the catalogue names (sha256 {found[:12]}… instead of "
        f"{wanted.sha256[:12]}…) and was thrown away"
    )


def _fetch_all(address: str, wanted: File, to: Path, title: str, bar: Bar) -> None:
    """Connect as often as it takes, as long as every connection brings something."""
    while (have := to.stat().st_size) < wanted.size:
        bar.begin(title, wanted.size, have)
        try:
            _fetch_some(address, have, wanted, to, title, bar)
        except (OSError, HTTPException, ValueError) as error:
            if getattr(error, "errno", None) in OUR_OWN_FAULTS:
                raise
            if to.stat().st_size <= have:
                raise SourceError(f"{title}: {_reason(error)}") from error
        else:
            if to.stat().st_size <= have:
                raise SourceError(f"{title}: the answer stops at {have} of {wanted.size} bytes")


def _fetch_some(address: str, have: int, wanted: File, to: Path, title: str, bar: Bar) -> None:
    """One connection: append what it brings after the first `have` bytes."""
    request = urllib.request.Request(address, headers={"User-Agent": "dragoman"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with cast(HTTPResponse, urllib.request.urlopen(request, timeout=TIMEOUT)) as answer:
        if have and answer.status != 206:  # this server knows no ranges: from the beginning
            have = 0
            bar.begin(title, wanted.size)
        with to.open("r+b" if have else "wb") as file:
            file.seek(have)
            while piece := answer.read1(PIECE):  # what has come so far, so that it is kept
                file.write(piece)
                bar.advance(len(piece))
                have += len(piece)
                if have > wanted.size:  # too long to be right; the hash will say so
                    return


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"no connection ({getattr(error.reason, 'strerror', None) or error.reason})"
    return f"the connection broke ({error})" if str(error) else "the connection broke"

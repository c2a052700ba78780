"""Captions pushed into a meeting or a stream: what was said, posted to a caption address.

Zoom takes plain text at the address of the meeting with `&seq=N&lang=en-US`; YouTube takes the time
in a line before it. The talk never waits for it: a post that failed is tried again as it was, since
it may have arrived, and of two with one number the second is ignored; then follows what came since.
"""

from __future__ import annotations

import asyncio
import re
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPException
from urllib.parse import unquote, urlsplit, urlunsplit

from dragoman.serve.logs import note
from dragoman.serve.protocol import Captions, Code, Fault, Said
from dragoman.serve.session import Session
from dragoman.text.words import is_whole, whole_words

EVERY = 1.0  # seconds
TIMEOUT = 5.0
MOST_BYTES = 1000  # of an answer
MOST_TALKS = 1000  # that post at one time; a thread begins when it is needed
MOST_LETTERS = 400
"""Of one post: what an address that was gone for minutes is told of the past."""
_NOT_THERE = "Captions may not be sent there; whoever runs the server says where they may."
_NUMBER = re.compile(r"[0-9]{1,18}")

_posting = ThreadPoolExecutor(MOST_TALKS, "captions")
"""Threads of their own: on those of the loop, which are few, addresses that do not answer would
hold up whoever sends a file, and every look-up of a name."""

Post = Callable[[str, bytes | None], Awaitable[str]]


class _Straight(urllib.request.HTTPRedirectHandler):
    """Nowhere else: an address that was allowed must not lead to one that was not."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


_opener = urllib.request.build_opener(_Straight)


def check(captions: Captions, allowed: tuple[str, ...]) -> None:
    """Whether the server was told that captions may go there; else a fault."""
    if not any(_begins_with(captions.url, prefix) for prefix in allowed):
        raise Fault(Code.UNFIT, _NOT_THERE)


def _begins_with(url: str, prefix: str) -> bool:
    """By letters, and with the same host: https://talks.example.evil.test begins with
    https://talks.example, too. Nor may `..` lead out of where it begins, however it is written."""
    try:
        parts = urlsplit(url)
        inside = ".." not in unquote(parts.path).replace("\\", "/").split("/")
        return url.startswith(prefix) and parts.netloc == urlsplit(prefix).netloc and inside
    except ValueError:  # no address
        return False


async def post(url: str, body: bytes | None) -> str:
    """Post plain text, or get it; the answer's text."""

    def talk() -> str:
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        request = urllib.request.Request(url, body, headers)
        until, text = time.monotonic() + TIMEOUT, b""
        with _opener.open(request, timeout=TIMEOUT) as answer:
            while len(text) < MOST_BYTES and (piece := answer.read1(MOST_BYTES)):
                text += piece
                if time.monotonic() > until:  # it comes a byte at a time: no caption would follow
                    raise TimeoutError
        return text.decode("utf-8", "replace")

    return await asyncio.get_running_loop().run_in_executor(_posting, talk)


class Pusher:
    """The captions of one talk on their way."""

    def __init__(self, session: Session, captions: Captions, send: Post = post) -> None:
        self._session, self._captions, self._send = session, captions, send
        self._word = session.last_word  # the last that was posted
        self._number = session.last_word
        self._held = 0  # the last word that was held back
        self._failed: tuple[int, bytes] | None = None  # a post: its last word, and its body
        self._failures = 0  # since one arrived

    async def run(self, every: float = EVERY) -> None:
        """Post what is new, until all is said; two tries more for the last words."""
        await self._find_number()
        tries = 0
        while True:
            done = self._session.finished
            sent = await self._push()
            tries += done and not sent
            if done and (tries > 2 or (sent and self._next() is None)):
                return
            await asyncio.sleep(every)

    async def _find_number(self) -> None:
        """Zoom tells the last number it has seen: another process may have counted before."""
        if self._captions.style == "zoom":
            parts = urlsplit(self._captions.url)
            told = await self._try(urlunsplit(parts._replace(path=parts.path + "/seq")), None)
            if told is not None and _NUMBER.fullmatch(told.strip()):
                self._number = int(told)

    async def _push(self) -> bool:
        """Post what failed before, or the words since the last post; False: it failed."""
        post = self._failed or self._next()
        if post is None:
            return True
        word, body = post
        number = self._number + 1  # a try that fails does not count
        if await self._try(self._address(number), body) is None:
            self._failed = post
            return False
        self._number, self._word, self._failed = number, word, None
        return True

    def _next(self) -> tuple[int, bytes] | None:
        """The words since the last post: the number of the last, and what is posted of them."""
        words = self._whole(self._session.words_after(self._word))
        text = "".join(word.text for word in words).strip()[-MOST_LETTERS:]
        return (words[-1].word, self._body(text)) if text else None

    def _whole(self, words: Sequence[Said]) -> Sequence[Said]:
        """Words without the last, as long as its mark may come, but no longer than until the next
        post: a mark would else be a caption of its own."""
        last = whole_words(words)[-1] if words else []
        text, number = "".join(one.text for one in last), last[-1].word if last else 0
        waits = not self._session.finished and not is_whole(text, self._session.interim)
        if not waits or number == self._held:
            return words
        self._held = number
        return words[: len(words) - len(last)]

    def _address(self, number: int) -> str:
        url, sign = self._captions.url, "&" if "?" in self._captions.url else "?"
        return f"{url}{sign}seq={number}&lang={self._captions.language}"

    def _body(self, text: str) -> bytes:
        if self._captions.style == "zoom":
            return text.encode()
        now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        return f"{now}\n{text}\n".encode()

    async def _try(self, url: str, body: bytes | None) -> str | None:
        try:
            told = await self._send(url, body)
        except (OSError, HTTPException, ValueError) as error:
            self._fail(error)
            return None
        if self._failures:
            note("captions arrive again", session=self._session.id, failures=self._failures)
            self._failures = 0
        return told

    def _fail(self, error: Exception) -> None:
        """Note it: the first time, and then ever more seldom. It is tried again every second, and
        an address may be wrong for hours."""
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:  # 1, 2, 4, 8 …
            status = error.code if isinstance(error, urllib.error.HTTPError) else 0
            note(
                "captions",
                session=self._session.id,
                error=type(error).__name__,
                status=status,
                failures=self._failures,
            )

"""A file's text as it is written down: the events of OpenAI's endpoint with `stream`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.serve.protocol import Code, Fault, Said, Transcript
from dragoman.serve.session import Session
from dragoman.serve.tasks import ended
from dragoman.serve.uploads import Upload

REMIND = 15.0
"""Seconds after which somebody who was told nothing is sent an empty line: proxies take a line on
which nothing comes for dead."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold it back until there is enough, or all
]


class Streamed(Response):
    """What a talk tells, an event a stretch of text, until all is said or nobody reads it."""

    def __init__(
        self,
        session: Session,
        words: Sequence[Said | Transcript],
        upload: Upload,
        close: Callable[[], None],
    ) -> None:
        """`words`: those of the talk that are wanted, which become more; `close` is called at the
        end, whatever it is."""
        super().__init__()
        self._session, self._words, self._close = session, words, close
        self._warnings = upload.warnings
        self._news = asyncio.Event()
        session.news.follow(self._news.set)
        self._working = asyncio.create_task(upload.hear())
        self._working.add_done_callback(lambda _: self._news.set())

    async def begin(self) -> Self:
        """Wait for the first sound: what is wrong with the file is raised, and not half told."""
        try:
            while not self._working.done() and not self._session.sample:
                self._news.clear()
                await self._news.wait()
            if self._working.done():
                self._working.result()
        except BaseException:
            await self._end()
            raise
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(left(receive))
        leaving.add_done_callback(lambda _: self._news.set())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            async for text in self._frames(leaving):
                body = text.encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except OSError:  # they hung up
            pass
        finally:
            await ended(leaving)
            await self._end()

    async def _end(self) -> None:
        self._session.news.unfollow(self._news.set)
        await ended(self._working)
        self._close()

    async def _frames(self, leaving: asyncio.Task[None]) -> AsyncIterator[str]:
        told = 0
        while not leaving.done():
            self._news.clear()
            done = self._working.done()
            fresh = self._words[told:]
            if text := "".join(word.text for word in fresh):
                delta = text if told else text.lstrip()
                yield _event({"type": "transcript.text.delta", "delta": delta})
            told += len(fresh)
            if done:
                yield _event(self._last())
                return
            if self._news.is_set():
                continue
            try:
                async with asyncio.timeout(REMIND):
                    await self._news.wait()
            except TimeoutError:
                yield ":\n\n"

    def _last(self) -> dict[str, Any]:
        error = self._working.exception() or self._session.fault
        if isinstance(error, Fault):
            return {"error": described(error)}
        if error is not None:
            raise error
        text = "".join(word.text for word in self._words).strip()
        done: dict[str, Any] = {"type": "transcript.text.done", "text": text}
        return done | ({"warnings": self._warnings} if self._warnings else {})


def described(fault: Fault) -> dict[str, Any]:
    """What is wrong, in OpenAI's words."""
    kind = "server_error" if fault.code is Code.FAILED else "invalid_request_error"
    return {"message": str(fault), "type": kind, "code": fault.code, "param": None}


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


async def left(receive: Receive) -> None:
    """Wait until whoever asks has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""Processes that know each other, behind a proxy; in their rooms one who counts, and listeners who
come back whenever they are lost."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from dragoman.serve.client import Talk
from dragoman.serve.protocol import (
    Audience,
    Listen,
    Room,
    Said,
    Start,
    Summary,
    Told,
    read_event,
    write,
)
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import Proxy, command, proxied
from tests.serve.running import running
from tests.serve.test_elsewhere import NUMBERS, secret

SECRET = "a secret that processes share"


class House:
    """Processes behind one proxy, which prefers the first. Each is reached by the others over a
    line of its own, which can be cut."""

    def __init__(self, start: Callable, front: Proxy, url: str, lines: list) -> None:
        self._start, self.front, self.url, self.lines = start, front, url, lines
        self.processes: dict[int, object] = {}  # or services, on threads
        self.urls: dict[int, str] = {}
        self._replaced: list = []
        self._stack = ExitStack()

    async def open(self, number: int) -> None:
        """A process, for the first time or again in the place of one that has ended."""
        others = tuple(url.replace("ws", "http") for _, url in self.lines)
        starting = self._start(others)
        opened = await asyncio.to_thread(self._stack.enter_context, starting)
        if number in self.processes:
            self._replaced.append(self.processes[number])
        self.processes[number], self.urls[number] = opened
        self.connect(number)

    async def ended(self) -> None:
        """Wait for the processes that others have taken the place of."""
        for process in self._replaced:
            await asyncio.to_thread(process.wait)

    def connect(self, number: int, *, there: bool = True) -> None:
        """Whether the others reach it."""
        line, _ = self.lines[number]
        line.ports = [_port(self.urls[number])] if there else []

    def prefer(self, *numbers: int) -> None:
        """Where the proxy sends whoever connects from now on."""
        self.front.ports = [_port(self.urls[number]) for number in numbers]

    async def close(self) -> None:
        await asyncio.to_thread(self._stack.close)


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def house(count: int, start: Callable) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        front, url = await stack.enter_async_context(proxied())
        lines = [await stack.enter_async_context(proxied()) for _ in range(count)]
        here = House(start, front, url, lines)
        stack.push_async_callback(here.close)
        await asyncio.gather(*(here.open(number) for number in range(count)))
        here.prefer(*range(count))
        yield here


def processes(folder, *options: str) -> Callable:
    """Real ones."""
    options = (*NUMBERS, *secret(folder, SECRET), "--fastest", "1000", *options)
    return lambda others: command(*options, *(word for url in others for word in ("--peer", url)))


def threads(**settings) -> Callable:
    """Services in this process, which start faster."""
    settings = {"model": "tests.serve.numbers:numbers", "secret": SECRET, **settings}

    def start(others):
        if "cert" in settings:
            others = tuple(url.replace("http:", "https:") for url in others)
        return running(peers=others, fastest=1000, **settings)

    return start


class Ear:
    """A listener who comes back whenever the connection is lost."""

    def __init__(self, url: str, room: dict) -> None:
        self._url, self._token = f"{url}/v1/rooms/{room['room']}/listen", room["listener_token"]
        self.log, self.next, self.told, self.state = "", 0, [], ""
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._run())

    @property
    def words(self) -> list[tuple[int, str]]:
        return [(one.word, one.text) for one in self.told if isinstance(one, Said)]

    @property
    def over(self) -> bool:
        return any(isinstance(one, Summary) for one in self.told)

    async def until(self, true: Callable[[Ear], bool]) -> None:
        async with self._news:
            await self._news.wait_for(lambda: true(self))

    async def leave(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            with suppress(OSError, WebSocketException):
                async with connect(self._url, compression=None, proxy=None) as socket:
                    await socket.send(write(Listen(self.log, self.next, access_token=self._token)))
                    async for frame in socket:
                        await self._take(read_event(frame))
            await asyncio.sleep(0.05)

    async def _take(self, event: object) -> None:
        async with self._news:
            if isinstance(event, Room):
                if event.log != self.log:
                    self.told, self.next = [], 0
                self.log, self.state = event.log, event.state
            elif isinstance(event, Told):
                self.told += event.events
                self.next = event.next
            self._news.notify_all()


class Mouth:
    """A speaker who counts, some times as fast as one would, until it is time to end."""

    def __init__(self, url: str, room: dict, header: bool = False) -> None:
        """`header`: the token comes there, and not in the first message."""
        path, token = f"{url}/v1/rooms/{room['room']}/speak", room["speaker_token"]
        start = Start() if header else Start(access_token=token)
        self.talk = Talk(path, start, token=token if header else None)
        self.count, self._ending, self.audience = 0, False, 0
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._run())

    async def until(self, true: Callable[[Mouth], bool]) -> None:
        async with self._news:
            await self._news.wait_for(lambda: true(self))

    async def end(self) -> list[tuple[int, str]]:
        """The words that were to be said."""
        self._ending = True
        await self._task
        return words_of(self.count)

    async def vanish(self) -> None:
        """Without a word."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        async for event in self.talk.run(self._spoken()):
            async with self._news:
                if isinstance(event, Audience):
                    self.audience = event.listeners
                self._news.notify_all()

    async def _spoken(self):
        while not self._ending:
            yield sound_of(self.count, 2)
            self.count += 2
            await asyncio.sleep(0.05)


async def open_room(url: str) -> dict:
    def ask() -> dict:
        request = urllib.request.Request(url.replace("ws", "http") + "/v1/rooms", method="POST")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


async def leave(url: str, room: dict, session: str) -> int:
    """The status of the answer to a speaker who will not come back."""
    path = f"/v1/rooms/{room['room']}/leave?session={session}"
    headers = {"Authorization": f"Bearer {room['speaker_token']}"}
    request = urllib.request.Request(url.replace("ws", "http") + path, b"", headers)

    def ask() -> int:
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    return await asyncio.to_thread(ask)


async def file_of(url: str, room: dict) -> str:
    return await _asked(url, room, "translation.txt", "listener_token")


async def audience_of(url: str, room: dict) -> dict:
    return json.loads(await _asked(url, room, "audience", "speaker_token"))


async def _asked(url: str, room: dict, what: str, token: str) -> str:
    def ask() -> str:
        path, headers = (
            f"/v1/rooms/{room['room']}/{what}",
            {"Authorization": f"Bearer {room[token]}"},
        )
        request = urllib.request.Request(url.replace("ws", "http") + path, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()

    return await asyncio.to_thread(ask)


def has(count: int) -> Callable[[Ear], bool]:
    return lambda ear: len(ear.words) >= count


async def more(ear: Ear) -> None:
    """The talk goes on: ten words more than now."""
    await ear.until(has(len(ear.words) + 10))


async def ended(*ears: Ear) -> list[list[tuple[int, str]]]:
    """What each was told in the end."""
    for ear in ears:
        await ear.until(lambda ear: ear.over)
        await ear.leave()
    return [ear.words for ear in ears]

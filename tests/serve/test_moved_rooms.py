"""A room goes on in another process, and whoever opens its link, wherever that leads, is in it."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from dragoman.serve.client import Talk
from dragoman.serve.protocol import Listen, Room, Said, Start, Summary, Told, read_event, write
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import Proxy, command, in_time, proxied
from tests.serve.test_elsewhere import NUMBERS, secret


class House:
    """Processes behind one proxy, which prefers the first; each has a line of its own to the others."""

    def __init__(self, front: Proxy, url: str, lines: list[tuple[Proxy, str]], options: tuple):
        self.front, self.url, self.lines, self.options = front, url, lines, options
        self.processes: dict[int, object] = {}
        self._stack = ExitStack()

    async def open(self, number: int) -> None:
        """A process, for the first time or again in the place of one that ended."""
        peers = [word for _, url in self.lines for word in ("--peer", url.replace("ws", "http"))]
        starting = command(*self.options, *peers)
        process, url = await asyncio.to_thread(self._stack.enter_context, starting)
        self.processes[number] = process
        self.lines[number][0].ports = [int(url.rpartition(":")[2])]

    def prefer(self, *numbers: int) -> None:
        """Where the proxy sends whoever connects from now on."""
        self.front.ports = [port for number in numbers for port in self.lines[number][0].ports]

    def close(self) -> None:
        self._stack.close()


@asynccontextmanager
async def house(count: int, *options: str) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        front, url = await stack.enter_async_context(proxied())
        lines = [await stack.enter_async_context(proxied()) for _ in range(count)]
        here = House(front, url, lines, (*NUMBERS, *options))
        stack.callback(here.close)
        for number in range(count):
            await here.open(number)
        here.prefer(*range(count))
        yield here


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

    def __init__(self, url: str, room: dict) -> None:
        path = f"{url}/v1/rooms/{room['room']}/speak"
        self.talk = Talk(path, Start(access_token=room["speaker_token"]))
        self.count, self._ending = 0, False
        self._task = asyncio.create_task(self._run())

    async def end(self) -> list[tuple[int, str]]:
        """The words that were to be said."""
        self._ending = True
        await self._task
        return words_of(self.count)

    async def _run(self) -> None:
        async for _ in self.talk.run(self._spoken()):
            pass

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


async def file_of(url: str, room: dict) -> str:
    def ask() -> str:
        path = f"/v1/rooms/{room['room']}/translation.txt"
        headers = {"Authorization": f"Bearer {room['listener_token']}"}
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


def test_a_room_whose_process_was_killed_is_found_by_newcomers(tmp_path):
    async def talk():
        async with house(2, *secret(tmp_path)) as here:
            room = await open_room(here.url)
            early, mouth = Ear(here.url, room), Mouth(here.url, room)
            await early.until(has(10))
            here.processes[0].kill()
            await early.until(lambda ear: ear.state == "listening" and len(ear.words) >= 20)
            await here.open(0)  # it is back, and empty
            here.prefer(0, 1)
            late = Ear(here.url, room)
            await late.until(has(len(early.words)))
            await more(late)
            said = await mouth.end()
            told = await ended(early, late, Ear(here.url, room))
            return said, told, (await file_of(here.url, room)).split()

    said, told, file = in_time(talk())
    assert told == [said] * 3
    assert file == [text.strip() for _, text in said]

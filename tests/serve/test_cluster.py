"""`dragoman serve --cluster`: replicas on this machine, one killed, all drained in the end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from dragoman.serve.client import Talk
from dragoman.serve.protocol import (
    Code,
    Error,
    Listen,
    Ready,
    Said,
    Start,
    Summary,
    Told,
    read_event,
    write,
)
from tests.serve.clients import PATH
from tests.serve.numbers import words_of
from tests.serve.processes import ROOT, in_time
from tests.serve.test_elsewhere import NUMBERS, spoken

# Not imported: Ray reads its settings when it is, and others of this process have theirs.
if find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'dragoman[cluster]'", allow_module_level=True)
START = 300.0
PATIENCE = 110.0  # seconds, on a machine that has much else to do
GAVE_UP = "timed out during startup|Ray Serve did not start"
MARK = "DRAGOMAN_TEST_CLUSTER"


class Clustered:
    """The command as a process, and what it has written so far."""

    def __init__(self) -> None:
        self.mark = f"{MARK}={os.getpid()}.{id(self)}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "serve", "--cluster", "--port", "0"]
            + ["--replicas", "2", "--streams", "1", *NUMBERS],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict([self.mark.split("=")]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: list[str] = []
        self._more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in chain(self.process.stderr, ["THE END"]):
            with self._more:
                self._lines.append(line)
                self._more.notify_all()

    def line(self, pattern: str, seconds: float = PATIENCE) -> re.Match:
        """The first line that holds a pattern, once it is there."""

        def found() -> re.Match | None:
            return next(filter(None, (re.search(pattern, line) for line in self._lines)), None)

        with self._more:
            self._more.wait_for(lambda: found() or "THE END" in self._lines, seconds)
            match = found()
        assert match, f"no line with {pattern} in:\n{''.join(self._lines)}"
        return match

    async def replica(self, event: str, session: str) -> int:
        """The process of the replica in which something happened to a talk."""
        line = rf'pid=(\d+)\).*"event": "{event}", "session": "{session}"'
        return int((await asyncio.to_thread(self.line, line))[1])

    def left(self) -> list[int]:
        """All processes that it has started, and their children."""
        own = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [pid for pid in own if self.mark.encode() in _environment(pid)]

    def end(self) -> None:
        for pid in self.left():
            with suppress(ProcessLookupError):  # gone meanwhile
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or not ours
        return b""


@pytest.fixture(scope="module")
def service():
    """Two replicas with one stream each, and one for rooms."""
    service = next(filter(None, (_started() for _ in range(3))), None)
    if service is None:
        pytest.skip("Ray itself did not start in three attempts: the machine is too busy for it")
    yield service
    service.end()


def _started():
    """A service that is ready; None: Ray has given up, as it does early on a busy machine."""
    service = Clustered()
    try:
        ready = service.line(rf"Ready on http(://\S+?)/\s|{GAVE_UP}", START)
    except BaseException:
        service.end()
        raise
    if ready[1] is None:
        service.process.wait()
        return None
    service.url = ready[1]
    return service


class Held:
    """A talk that stops in its middle until it is let go."""

    def __init__(self, service, path=PATH, token=None) -> None:
        self.talk = Talk(f"ws{service.url}{path}", token=token, patience=PATIENCE)
        self._free = asyncio.Event()
        self._events = self.talk.run(spoken(60, self._go_on))

    async def _go_on(self, sent: int) -> None:
        if sent == 20:
            await self._free.wait()

    async def until(self, kind):
        async for event in self._events:
            if isinstance(event, kind):
                return event
        raise AssertionError(f"the talk has ended without a {kind}")

    async def rest(self) -> None:
        """Let it go; all is said once, and in order."""
        self._free.set()
        summary = await self.until(Summary)
        await self._events.aclose()
        assert (summary.words, summary.audio_ms) == (60, 12_000)
        assert [(said.word, said.text) for said in self.talk.words] == words_of(60)


def test_talks_have_replicas_and_who_is_too_many_is_told(service):
    async def talks():
        one, two = Held(service), Held(service)
        first = await service.replica("started", (await one.until(Ready)).session)
        second = await service.replica("started", (await two.until(Ready)).session)
        assert first != second  # each has room for one
        async with connect(f"ws{service.url}{PATH}") as third:
            await third.send(write(Start()))
            refused = read_event(await third.recv())
            assert isinstance(refused, Error)
            assert refused.code == Code.FULL
            with pytest.raises(ConnectionClosed) as closed:
                await third.recv()
            assert closed.value.rcvd.code == 1013
        await figures_of(service, {first: 1, second: 1})
        await asyncio.gather(one.rest(), two.rest())
        assert one.talk.connections == 1

    in_time(talks(), PATIENCE)


async def figures_of(service, streams):
    """Wait until all who are asked tell how many talks each replica has; that of rooms has none."""
    asked = 0
    while asked < 3:
        with urllib.request.urlopen(f"http{service.url}/metrics") as answer:
            text = answer.read().decode()
        found = re.findall(r'dragoman_streams\{replica=".+:(\d+)"\} (\d)', text)
        told = {int(pid): int(count) for pid, count in found}
        assert len(told) <= 3
        rooms = told.keys() - streams.keys()
        asked += len(rooms) == 1 and told == streams | dict.fromkeys(rooms, 0)
        await asyncio.sleep(0.1)


def test_a_room_is_in_one_place_also_after_its_replica_was_killed(service):
    async def talks():
        with urllib.request.urlopen(f"http{service.url}/v1/rooms", b"") as answer:
            room = json.load(answer)
        place = f"/v1/rooms/{room['room']}"
        speaker = Held(service, f"{place}/speak", room["speaker_token"])
        session = (await speaker.until(Ready)).session
        await speaker.until(Said)

        async def newcomer():
            """The first word that somebody is told who comes now, wherever the connection lands."""
            async with connect(f"ws{service.url}{place}/listen") as socket:
                await socket.send(write(Listen(access_token=room["listener_token"])))
                while not isinstance(event := read_event(await socket.recv()), Told):
                    pass
                said = next(one for one in event.events if isinstance(one, Said))
                return said.word, said.text

        assert [await newcomer() for _ in range(4)] == words_of(1) * 4
        os.kill(await service.replica("started", session), signal.SIGKILL)
        while speaker.talk.connections < 2:
            await speaker.until(object)
        assert [await newcomer() for _ in range(4)] == words_of(1) * 4
        await speaker.rest()

    in_time(talks(), PATIENCE)


def test_messages_have_a_size(service):
    async def talk():
        async with connect(f"ws{service.url}{PATH}") as socket:
            await socket.send(bytes(3 << 20))
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd.code == 1009

    in_time(talk(), PATIENCE)


def test_a_killed_replica_loses_no_word_and_a_drained_one_finishes(service):
    async def talks():
        talk = Held(service)
        session = (await talk.until(Ready)).session
        await talk.until(Said)
        victim = await service.replica("started", session)
        os.kill(victim, signal.SIGKILL)
        while talk.talk.connections < 2:
            await talk.until(object)
        assert await service.replica("taken over", session) != victim
        service.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(service.line, '"event": "draining"')
        await talk.rest()
        assert talk.talk.connections == 2
        return await asyncio.to_thread(service.process.wait)

    assert in_time(talks(), PATIENCE) == 0

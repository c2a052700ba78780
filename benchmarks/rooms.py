"""A room full of listeners: what 300 of them cost the server, and how late the last one is told.

The server is `dragoman serve` in a process of its own, with a model that costs next to nothing and
says 150 words a minute, so that what is measured is the telling. CPU time is that of the server's
process; one second of it per second would be one core. Listeners are real sockets, in this process.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from urllib.request import Request, urlopen

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from dragoman.serve.protocol import Listen, Start, Stop, write, write_sound
from tests.scripted import ScriptedModel

LISTENERS = 300
SECONDS = 20
WORD_MS = 400.0  # 150 words a minute
RATE = 16000


def talker() -> ScriptedModel:
    """A word every 400 ms, and a guess at the next."""
    count = round(1000 * SECONDS / WORD_MS)
    script = [(f"word{i}{'.' if i % 12 == 11 else ''}", WORD_MS * (i + 1)) for i in range(count)]
    return ScriptedModel(script, flicker=lambda ms: [f"guess{ms:.0f}"])


@dataclass
class Hall:
    """What listeners were told, and when."""

    words: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    sounds: int = 0
    bytes: int = 0


def run() -> None:
    print(f"{SECONDS} s of a talk, 150 words a minute, told to so many listeners:")
    header = (
        "listeners",
        "sound",
        "server CPU, s/s",
        "told late, p95",
        "MB/s out",
        "connects, CPU",
    )
    print(*(f"{name:>15}" for name in header))
    for listeners, sound in ((1, False), (LISTENERS, False), (LISTENERS, True)):
        with _Server() as server:
            asyncio.run(_measure(server, listeners, sound))


class _Server:
    """`dragoman serve` with the model above, on a port of its own choice."""

    def __enter__(self) -> "_Server":
        command = ("serve", "--model", "benchmarks.rooms:talker", "--port", "0", "--step", "400ms")
        more = ("--policy", "local-agreement:n=2", "--to", "en", "--voice", "espeak")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *command, *more], stderr=subprocess.PIPE, text=True
        )
        for line in self._process.stderr:
            if ready := re.search(r"Ready on http://([\d.:]+)/", line):
                self.host = ready[1]
                return self
        raise RuntimeError("The server does not start.")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()

    def cpu(self) -> float:
        """Seconds of work so far, of all its threads."""
        with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def room(self) -> dict:
        with urlopen(Request(f"http://{self.host}/v1/rooms", method="POST")) as answer:
            return json.load(answer)


async def _measure(server: _Server, listeners: int, sound: bool) -> None:
    room = server.room()
    address = f"ws://{server.host}/v1/rooms/{room['room']}"
    hall, before = Hall(), server.cpu()
    sockets = [await connect(f"{address}/listen", compression=None) for _ in range(listeners)]
    wish = Listen(access_token=room["listener_token"], speech="mp3" if sound else None)
    ears = [asyncio.create_task(_listen(one, wish, hall)) for one in sockets]
    coming = server.cpu() - before
    async with connect(f"{address}/speak", compression=None) as speaker:
        before = server.cpu()
        words = await _speak(speaker, room["speaker_token"])
        cpu = (server.cpu() - before) / SECONDS
    await asyncio.wait(ears, timeout=10)
    assert sorted(hall.words) == list(range(1, words + 1)), "words are missing"
    assert {len(times) for times in hall.words.values()} == {listeners}, "somebody was not told"
    assert bool(hall.sounds) == sound, "sound is missing"
    late = np.percentile([t - min(times) for times in hall.words.values() for t in times], 95)
    rate = hall.bytes / SECONDS / 1e6
    print(
        f"{listeners:>15}{'yes' if sound else 'no':>16}{cpu:>16.3f}{1000 * late:>13.0f} ms"
        f"{rate:>16.2f}{coming:>14.2f} s"
    )
    for socket in sockets:
        await socket.close()


async def _listen(socket: ClientConnection, wish: Listen, hall: Hall) -> None:
    """Take what is told until the talk is over."""
    await socket.send(write(wish))
    async for message in socket:
        hall.bytes += len(message)
        if isinstance(message, bytes):
            hall.sounds += 1
            continue
        event = json.loads(message)
        now = time.monotonic()
        for one in event.get("events", ()):
            if one["type"] == "said":
                hall.words[one["word"]].append(now)
            if one["type"] == "summary":
                return


async def _speak(socket: ClientConnection, token: str) -> int:
    """Speak in real time; how many words were said."""
    await socket.send(write(Start(access_token=token)))
    reading = asyncio.create_task(_read(socket))
    begun = time.monotonic()
    for tenth in range(10 * SECONDS):
        await asyncio.sleep(max(0.0, begun + tenth / 10 - time.monotonic()))
        await socket.send(write_sound(tenth * RATE // 10, np.zeros(RATE // 10, np.float32)))
    await socket.send(write(Stop()))
    return await reading


async def _read(socket: ClientConnection) -> int:
    words = 0
    async for message in socket:
        event = json.loads(message)
        words += event["type"] == "said"
    return words

"""Talks while things go wrong, for minutes or for hours; no word may be lost, or said twice.

    python -m benchmarks serve --soak 5                  talks eight times as fast as life
    python -m benchmarks serve --soak 60 --speed 1       an hour by the clock

Talks go through a proxy to two processes. Sockets are cut, also in the middle of a message, the
second process is killed, their clocks are set back and forth, and strangers send garbage. The first
is never killed, so that what it holds tells whether anything is left behind.
"""

import asyncio
import random
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from websockets.asyncio.client import connect

from benchmarks.load import PATH, RATE, cpu_seconds, holds
from dragoman.serve.client import Talk
from dragoman.serve.protocol import Start, write
from tests.serve.numbers import LENGTH, sound_of, words_of
from tests.serve.processes import Proxy, command, proxied

FAULTS = {"cuts": 4, "halves": 4, "swaps": 3, "garbage": 4, "kills": 1}
"""What goes wrong, and how often beside the others."""
LOOKS = 60
"""How often it is looked what the first process holds."""


def soak(
    minutes: float, seed: int = 1, talks: int = 4, length: int = 300, speed: float = 8.0
) -> dict:
    """Every number of a talk's `length` must be said, once and in order."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        secret = Path(folder) / "secret"
        secret.write_text("a secret that the processes share")
        house = _House(stack, secret, random.Random(seed), speed)
        spent = asyncio.run(_soak(house, minutes * 60, talks, length))
    counts = house.counts
    counts["minutes of talk"] = round(counts["words"] * LENGTH / RATE / 60, 1)
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    _print_trend(house.looks, spent)
    if counts["wrong talks"]:
        raise AssertionError("words were lost, or said twice, or out of order of time")
    return counts


def _print_trend(looks: list[dict], spent: float) -> None:
    """What the first process held in the first and in the last quarter of the time, and took."""
    quarter = -(-len(looks) // 4)
    for name in looks[0]:
        first, last = (
            median(look[name] for look in some) for some in (looks[:quarter], looks[-quarter:])
        )
        print(f"{name}, first and last quarter: {first:g} and {last:g}")
    print(f"the process that is never killed took {spent:.1f} CPU-s")


@dataclass
class _House:
    """Two processes, the first of which is never killed."""

    stack: ExitStack
    secret: Path
    chance: random.Random
    speed: float
    servers: list[tuple] = field(default_factory=list)
    counts: dict = field(
        default_factory=lambda: dict.fromkeys(
            ("talks", "words", "wrong talks", "resumes", *FAULTS), 0
        )
    )
    looks: list[dict] = field(default_factory=list)

    def open(self) -> tuple:
        """Another process and its address."""
        options = ("--model", "tests.serve.numbers:restless_numbers", "--policy", "greedy")
        options += ("--step", "400", "--secret-file", str(self.secret), "--streams", "50")
        options += ("--fastest", "1000", "--connects", "1000000")
        return self.stack.enter_context(command(*options))

    async def go_wrong(self, proxy: Proxy, url: str) -> None:
        fault = self.chance.choices(list(FAULTS), list(FAULTS.values()))[0]
        self.counts[fault] += 1
        if fault == "cuts":
            proxy.cut()
        elif fault == "halves":
            proxy.halves += 1
        elif fault == "swaps":
            proxy.ports.reverse()
        elif fault == "garbage":
            with suppress(Exception):
                await _garbage(url, self.chance)
        else:
            self.servers[1][0].kill()
            self.servers[1] = await asyncio.to_thread(self.open)
            proxy.ports = [int(url.rpartition(":")[2]) for _, url in self.servers]

    async def watch(self, seconds: float) -> None:
        """Note what the first process holds, and that it goes on."""
        process, url = self.servers[0]
        while True:
            self.looks.append(await asyncio.to_thread(holds, process.pid, url))
            if len(self.looks) > 1:
                told = {name: self.counts[name] for name in ("words", "wrong talks", "resumes")}
                print(
                    *(f"{name} {value}" for name, value in (told | self.looks[-1]).items()),
                    sep=", ",
                    flush=True,
                )
            await asyncio.sleep(seconds)


async def _soak(house: _House, seconds: float, talks: int, length: int) -> float:
    """Processor time of the first process."""
    house.servers += [house.open() for _ in range(2)]
    before = cpu_seconds(house.servers[0][0].pid)
    async with proxied(*(url for _, url in house.servers)) as (proxy, url):
        until = time.monotonic() + seconds
        speaking = [
            asyncio.create_task(_speak(url, until, house.counts, length, house.speed))
            for _ in range(talks)
        ]
        watching = asyncio.create_task(house.watch(seconds / LOOKS))
        while not all(task.done() for task in speaking):
            await asyncio.sleep(house.chance.uniform(0.8, 4.8) / house.speed)
            await house.go_wrong(proxy, url)
        watching.cancel()
        await asyncio.gather(*speaking)
    return cpu_seconds(house.servers[0][0].pid) - before


async def _speak(url: str, until: float, counts: dict, length: int, speed: float) -> None:
    """One talk after another, faster than life, until somebody has lost a connection."""
    while time.monotonic() < until or not counts["resumes"]:
        talk = Talk(url + PATH, patience=60)

        async def numbers():
            for first in range(0, length, 2):
                yield sound_of(first, 2)
                await asyncio.sleep(2 * LENGTH / RATE / speed)

        async for _ in talk.run(numbers()):
            pass
        said = [(word.word, word.text) for word in talk.words]
        times = [word.at_ms for word in talk.words]
        counts["talks"] += 1
        counts["words"] += len(said)
        counts["resumes"] += talk.connections - 1
        counts["wrong talks"] += said != words_of(length) or times != sorted(times)


async def _garbage(url: str, chance: random.Random) -> None:
    """Somebody who sends nonsense, half a message, or nothing."""
    kind = chance.randrange(3)
    if kind == 0:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(chance.randbytes(chance.randrange(1, 2000)))
        await asyncio.wait_for(reader.read(100), 1)
        writer.transport.abort()
        return
    async with connect(url + PATH, compression=None) as socket:
        if kind == 1:
            await socket.send(chance.randbytes(chance.randrange(1, 100)))
        else:
            await socket.send(write(Start()))
            await socket.send(chance.choice(["{", '{"type":"resume"}', bytes(7)]))
        await asyncio.wait_for(socket.recv(), 1)
        socket.transport.abort()

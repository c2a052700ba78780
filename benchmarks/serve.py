"""A load generator for `dragoman serve`: real processes, real sockets, sound at its own pace.

    python -m benchmarks serve --streams 3 --minutes 2     lag of live talks (load.py)
    python -m benchmarks serve --connects 1000             what a connection leaves behind
    python -m benchmarks serve --idle 200                  what idle connections cost
    python -m benchmarks serve --soak 5                    minutes of random faults; no word is lost
    python -m benchmarks serve --peer 1,2,4 --minutes 1    WhisperLiveKit beside it, same weights

Lag is how far behind the speaker a word was said, in the server's own account (`lag_ms`).
"""

import argparse
import asyncio
import os
import random
import re
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from websockets.asyncio.client import connect

from benchmarks.load import PATH, RATE, cpu_seconds, load
from dragoman.serve.client import Talk
from dragoman.serve.protocol import Audio, Start, write
from tests.serve.numbers import LENGTH, sound_of, words_of
from tests.serve.processes import command, proxied

NUMBERS = ("--model", "tests.serve.numbers:numbers", "--policy", "greedy", "--step", "400")


def run(arguments: Sequence[str] = ()) -> None:
    """Measure what is asked for; without a wish, three talks for half a minute."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks serve")
    parser.add_argument("--streams", type=int, default=3, help="talks at once")
    parser.add_argument("--minutes", type=float, default=0.5, help="how long they are")
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--step", default="1000", help="milliseconds")
    parser.add_argument("--threads", help="of each lane")
    parser.add_argument("--lanes", help="steps at the same time; without, what the server chooses")
    parser.add_argument("--batch", help="talks in a step; without, what the server chooses")
    parser.add_argument("--processes", type=int, default=1, help="of the server")
    parser.add_argument("--device", help="cpu or cuda; without, what the server chooses")
    parser.add_argument("--clients", type=int, default=1, help="processes that the talks come from")
    parser.add_argument("--sound", type=Path, help="a recording, instead of the German talk")
    parser.add_argument("--source", default="de")
    parser.add_argument("--target", default="en")
    parser.add_argument("--peer", help="beside WhisperLiveKit: numbers of clients, as 1,2,4")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--connects", type=int, help="only count what connections leave behind")
    parser.add_argument("--idle", type=int, help="only measure so many idle connections")
    parser.add_argument("--soak", type=float, help="only run so many minutes of faults")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    options = parser.parse_args(arguments)
    if options.peer:
        from benchmarks.serve_peer import compare

        compare([int(count) for count in options.peer.split(",")], options.minutes)
    elif options.connects:
        leaks(options.connects)
    elif options.idle:
        idle(options.idle)
    elif options.soak:
        soak(options.soak, options.seed)
    else:
        load(options)


# What connections cost.


def leaks(connects: int) -> tuple[dict, dict]:
    """Connect and part, in three ways; what the process holds after a tenth, and after all."""
    options = (*NUMBERS, "--keep", "0.05", "--streams", "50", "--connects", "1000000")
    with command(*options) as (process, url):
        asyncio.run(visits(url, max(1, connects // 10)))
        before = held(process.pid, url)
        asyncio.run(visits(url, connects))
        after = held(process.pid, url, before)
    print(f"after {connects // 10} connections: {before}\nafter {connects} more:  {after}")
    return before, after


async def visits(url: str, count: int) -> None:
    """Some say goodbye, some vanish, some never say what they want."""
    for number in range(count):
        async with connect(url + PATH, compression=None) as socket:
            if number % 3:
                await socket.send(write(Start(audio=Audio(rate=16000))))
                await socket.recv()
                await socket.send(bytes(8) + bytes(3200))
            if number % 2:
                socket.transport.abort()


def held(pid: int, url: str, rest: dict | None = None) -> dict:
    """Descriptors, tasks and memory of a server that is at rest, or again as it was at `rest`: it
    may take a moment to see that somebody has vanished."""
    deadline = time.monotonic() + 20
    while True:
        now = _held(pid, url)
        known = rest or now
        more = any(now[name] > known[name] for name in ("descriptors", "tasks", "streams"))
        if not (more or now["streams"]) or time.monotonic() > deadline:
            return now
        time.sleep(0.1)


def _held(pid: int, url: str) -> dict:
    with urllib.request.urlopen(url.replace("ws", "http", 1) + "/metrics") as page:
        metrics = page.read().decode()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "tasks": int(float(re.search(r"^dragoman_tasks (\S+)", metrics, re.M)[1])),
        "streams": int(float(re.search(r"^dragoman_streams (\S+)", metrics, re.M)[1])),
        "MiB": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
    }


def idle(count: int, seconds: float = 8.0) -> float:
    """CPU-seconds in which so many connections, half of them talks, do nothing."""
    options = (*NUMBERS, "--streams", str(count), "--connects", "1000000", "--idle", "600")
    with command(*options) as (process, url):
        spent = asyncio.run(_idle(process.pid, url, count, seconds))
    print(f"{count} idle connections: {spent:.2f} CPU-s in {seconds:g} s")
    return spent


async def _idle(pid: int, url: str, count: int, seconds: float) -> float:
    async with asyncio.TaskGroup() as group:
        opening = [
            group.create_task(_open(connect(url + PATH, ping_interval=None))) for _ in range(count)
        ]
    sockets = [task.result() for task in opening]
    for socket in sockets[::2]:
        await socket.send(write(Start()))
        await socket.recv()
    before = cpu_seconds(pid)
    await asyncio.sleep(seconds)
    spent = cpu_seconds(pid) - before
    for socket in sockets:
        socket.transport.abort()
    return spent


async def _open(connecting):
    return await connecting


# Random faults.


def soak(
    minutes: float, seed: int = 1, talks: int = 4, length: int = 300, speed: float = 8.0
) -> dict:
    """Talks through a proxy before two processes, while sockets are cut, also in the middle of a
    message, processes are killed, their clocks are set back and forth, and strangers send garbage.
    Every number of a talk's `length` must be said, once and in order."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret"
        secret.write_text("a secret that the processes share")
        options = ("--model", "tests.serve.numbers:restless_numbers", *NUMBERS[2:])
        options += ("--secret-file", str(secret), "--streams", "50", "--fastest", "1000")
        options += ("--connects", "1000000")
        counts = asyncio.run(_soak(minutes * 60, chance, options, talks, (length, speed)))
    counts["minutes of talk"] = round(counts["words"] * LENGTH / RATE / 60, 1)
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    if counts["wrong talks"]:
        raise AssertionError("words were lost, or said twice, or out of order of time")
    return counts


FAULTS = {"cuts": 4, "halves": 4, "swaps": 3, "garbage": 4, "kills": 1}
"""What goes wrong, and how often beside the others."""


async def _soak(
    seconds: float,
    chance: random.Random,
    options: Sequence[str],
    talks: int,
    kind: tuple[int, float],
) -> dict:
    counts = dict.fromkeys(("talks", "words", "wrong talks", "resumes", *FAULTS), 0)
    with ExitStack() as stack:
        servers = [stack.enter_context(command(*options)) for _ in range(2)]
        async with proxied(*(url for _, url in servers)) as (proxy, url):
            until = time.monotonic() + seconds
            speaking = [
                asyncio.create_task(_speak(url, until, counts, *kind)) for _ in range(talks)
            ]
            while not all(task.done() for task in speaking):
                await asyncio.sleep(chance.uniform(0.1, 0.6))
                fault = chance.choices(list(FAULTS), list(FAULTS.values()))[0]
                counts[fault] += 1
                if fault == "cuts":
                    proxy.cut()
                elif fault == "halves":
                    proxy.halves += 1
                elif fault == "swaps":
                    proxy.ports.reverse()
                elif fault == "garbage":
                    with suppress(Exception):
                        await _garbage(url, chance)
                else:
                    place = chance.randrange(2)
                    servers[place][0].kill()
                    fresh = await asyncio.to_thread(stack.enter_context, command(*options))
                    servers[place] = fresh
                    proxy.ports = [int(url.rpartition(":")[2]) for _, url in servers]
            await asyncio.gather(*speaking)
    return counts


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

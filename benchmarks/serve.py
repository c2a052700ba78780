"""A load generator for `dragoman serve`: real processes, real sockets, sound at its own pace.

    python -m benchmarks serve --streams 3 --minutes 2     lag of live talks (load.py)
    python -m benchmarks serve --connects 1000             what a connection leaves behind
    python -m benchmarks serve --idle 200                  what idle connections cost
    python -m benchmarks serve --soak 5                    minutes of random faults (soak.py)
    python -m benchmarks serve --peer 1,2,4 --minutes 1    WhisperLiveKit beside it, same weights

Lag is how far behind the speaker a word was said, in the server's own account (`lag_ms`).
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from websockets.asyncio.client import connect

from benchmarks.load import PATH, cpu_seconds, holds, load
from benchmarks.soak import soak
from dragoman.serve.protocol import Audio, Start, write
from tests.serve.processes import command

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
    parser.add_argument("--speed", type=float, default=8.0, help="of their talks; 1: as in life")
    options = parser.parse_args(arguments)
    if options.peer:
        from benchmarks.serve_peer import compare

        compare([int(count) for count in options.peer.split(",")], options.minutes)
    elif options.connects:
        leaks(options.connects)
    elif options.idle:
        idle(options.idle)
    elif options.soak:
        soak(options.soak, options.seed, speed=options.speed)
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
        now = holds(pid, url)
        known = rest or now
        more = any(now[name] > known[name] for name in ("descriptors", "tasks", "streams"))
        if not (more or now["streams"]) or time.monotonic() > deadline:
            return now
        time.sleep(0.1)


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

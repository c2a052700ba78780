"""Live talks for `dragoman serve`, at their own pace, and how far behind the speakers it is.

    python -m benchmarks serve --streams 3 --minutes 2
    python -m benchmarks serve --streams 1000 --processes 4 --clients 8 --device cuda

A process of clients is one core of Python, which must pace all its talks: --clients takes several.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from dragoman.audio.source import read_audio
from dragoman.errors import DragomanError
from dragoman.serve.client import Talk
from dragoman.serve.protocol import Said, Start, State, Summary
from tests.serve.processes import command

PATH = "/v1/interpret"
GERMAN = Path(__file__).parent.parent / "dragoman" / "talks" / "weather.de.ogg"
RATE = 16000


def load(options: argparse.Namespace) -> None:
    """Talks at their own pace; lag by the minute."""
    samples, seconds = read_audio(options.sound or GERMAN), options.minutes * 60
    with ExitStack() as stack:
        process, url = None, options.url
        if url is None:
            process, url = stack.enter_context(command(*_server(options)))
        spent = cpu_seconds(process.pid) if process else 0.0
        began = time.monotonic()
        talks = crowds(url + PATH, samples, options.streams, seconds, options.clients)
        elapsed = time.monotonic() - began
        spent = cpu_seconds(process.pid) - spent if process else 0.0
    report(talks, options.minutes)
    sound = sum(talk["seconds"] for talk in talks)
    if process:
        print(f"server: {spent:.1f} CPU-s in {elapsed:.0f} s; {spent / sound:.3f} per s of sound")


def _server(options: argparse.Namespace) -> list[str]:
    """What the server is started with; each of its processes has its share of the talks."""
    said = ["--model", options.model, "--from", options.source, "--to", options.target]
    said += ["--step", options.step, "--streams", str(-(-options.streams // options.processes))]
    said += ["--connects", str(max(1200, 2 * options.streams))]
    if options.processes > 1:
        said += ["--processes", str(options.processes)]
    for name in ("batch", "threads", "lanes", "device"):
        if value := getattr(options, name):
            said += [f"--{name}", value]
    return said


def crowds(url: str, samples: np.ndarray, streams: int, seconds: float, clients: int) -> list[dict]:
    """The talks of several processes of clients."""
    if clients == 1:
        return asyncio.run(crowd(url, samples, streams, seconds))
    with ProcessPoolExecutor(clients, get_context("spawn")) as pool:
        shares = [range(first, streams, clients) for first in range(clients)]
        told = [pool.submit(_some, url, samples, streams, seconds, share) for share in shares]
        return [talk for some in told for talk in some.result()]


def _some(url: str, samples: np.ndarray, streams: int, seconds: float, share: range) -> list[dict]:
    return asyncio.run(crowd(url, samples, streams, seconds, share))


async def crowd(
    url: str, samples: np.ndarray, streams: int, seconds: float, share: range | None = None
) -> list[dict]:
    """Several talks at once, or a `share` of them, each beginning elsewhere in the recording, and
    at another moment, so that steps do not fall together."""
    talks = []
    for place in share or range(streams):
        own = np.roll(samples, -(len(samples) * place // streams))
        talks.append(one_talk(url, own, seconds, place / streams))
    return await asyncio.gather(*talks)


async def one_talk(url: str, samples: np.ndarray, seconds: float, wait: float) -> dict:
    """What one client saw."""
    await asyncio.sleep(wait)
    told = {"lags": [], "degraded": 0.0, "refused": None, "seconds": seconds, "tail": 0.0}
    talk, since, ended = Talk(url, Start(), patience=20), None, [0.0]

    async def live():
        began, sent, step = time.monotonic(), 0, RATE // 10
        while sent < seconds * RATE:
            yield samples[np.arange(sent, sent + step) % len(samples)]
            sent += step
            await asyncio.sleep(max(0.0, began + sent / RATE - time.monotonic()))
        ended[0] = time.monotonic()

    try:
        async for event in talk.run(live()):
            if isinstance(event, Said) and event.lag_ms is not None:
                told["lags"].append((event.source_ms / 60_000, event.lag_ms / 1000))
            elif isinstance(event, State):
                now = time.monotonic()
                told["degraded"] += now - since if since else 0.0
                since = now if event.state == "degraded" else None
            elif isinstance(event, Summary):
                told["tail"] = time.monotonic() - ended[0]
    except DragomanError as error:
        told["refused"] = str(error)
    return told


def report(talks: Sequence[dict], minutes: float) -> None:
    """Lag by the minute, and what went wrong."""
    lags = [pair for talk in talks for pair in talk["lags"]]
    print("minute  words  lag p50  lag p95   (s)")
    for minute in range(int(np.ceil(minutes))):
        now = [lag for at, lag in lags if minute <= at < minute + 1]
        if now:
            p50, p95 = np.percentile(now, [50, 95])
            print(f"{minute + 1:6d}  {len(now):5d}  {p50:7.2f}  {p95:7.2f}")
    quarter = minutes / 4
    first = [lag for at, lag in lags if at < quarter]
    last = [lag for at, lag in lags if at >= minutes - quarter]
    if first and last:
        a, b = np.median(first), np.median(last)
        print(f"median lag, first and last quarter: {a:.2f} and {b:.2f} s")
    degraded = sum(talk["degraded"] for talk in talks) / max(1, len(talks))
    print(f"degraded for {degraded:.0f} s of each talk, on average")
    tails = [talk["tail"] for talk in talks]
    shown = ", ".join(f"{tail:.1f}" for tail in tails[:8])
    print(f"after the speaker had ended: {shown} s" + ", …" * (len(tails) > 8), end="")
    print(f", at most {max(tails):.1f} s" if len(tails) > 8 else "")
    lost = [talk["refused"] for talk in talks if talk["refused"] is not None]
    print(
        f"refused or lost: {len(lost)}" + "".join(f"\n  {reason}" for reason in sorted(set(lost)))
    )


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, all its threads and the processes below it together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    below = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for some in below for child in some)


def holds(pid: int, url: str) -> dict[str, float]:
    """Descriptors, tasks, talks and memory of a server."""
    with urlopen(url.replace("ws", "http", 1) + "/metrics") as page:
        metrics = page.read().decode()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "tasks": int(float(re.search(r"^dragoman_tasks (\S+)", metrics, re.M)[1])),
        "streams": int(float(re.search(r"^dragoman_streams (\S+)", metrics, re.M)[1])),
        "MiB": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
    }

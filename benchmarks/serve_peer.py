"""`dragoman serve` and WhisperLiveKit's server side by side: how late are so many live clients?

Both with Whisper base (the same int8 weights), German to English, steps of a second, on the same
cores, one server at a time. Every client sends the talk at its own pace; what counts is how long
after the last sound the last word has come.

    python -m benchmarks serve --peer 1,2,4 --minutes 1

`benchmarks/interpreting.py` says how WhisperLiveKit is installed; its server also needs fastapi,
uvicorn, websockets and python-multipart.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from websockets.asyncio.client import connect

from benchmarks.interpreting import MODEL, PEER_PYTHON, SOURCE, STEP_MS, TARGET
from benchmarks.load import GERMAN, PATH, RATE, cpu_seconds, crowd
from dragoman.audio.pcm import to_pcm16
from dragoman.audio.source import read_audio
from dragoman.store import get
from tests.serve.processes import command

PATIENCE = 3.0
"""Times the length of the talk that a client waits for its last word."""


def compare(clients: Sequence[int], minutes: float) -> None:
    """Print how late the clients of each server are, for every number of them."""
    samples, seconds = read_audio(GERMAN), minutes * 60
    print(f"{seconds:g} s of talk; seconds from the last sound to the last word, of each client")
    for count in clients:
        with ours(count) as (pid, url):
            spent = cpu_seconds(pid)
            talks = asyncio.run(crowd(url + PATH, samples, count, seconds))
            tell("Dragoman", count, [talk["tail"] for talk in talks], cpu_seconds(pid) - spent)
        python = Path(os.environ.get("DRAGOMAN_BENCH_WLK", PEER_PYTHON))
        with theirs(python) as (pid, url):
            spent = cpu_seconds(pid)
            late = asyncio.run(several(url, samples, count, seconds))
            tell("WhisperLiveKit", count, late, cpu_seconds(pid) - spent)


def tell(name: str, count: int, late: Sequence[float | None], spent: float) -> None:
    told = ", ".join("never" if one is None else f"{one:.1f}" for one in late)
    print(f"{name:15} {count} clients: {told}   ({spent:.0f} CPU-s)", flush=True)


@contextmanager
def ours(count: int):
    options = ("--model", MODEL, "--from", SOURCE, "--to", TARGET, "--step", f"{STEP_MS:g}")
    with command(*options, "--streams", str(count)) as (process, url):
        yield process.pid, url


@contextmanager
def theirs(python: Path):
    """Its server, with our weights; it takes PCM as it is, which spares it a decoder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--backend", "faster-whisper", "--backend-policy", "localagreement")
    options += ("--model-path", str(get(MODEL)), "--lan", SOURCE, "--direct-english-translation")
    options += ("--min-chunk-size", f"{STEP_MS / 1000:g}", "--pcm-input", "--no-vac")
    process = subprocess.Popen(
        [str(python.with_name("whisperlivekit-server")), *options, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 300
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("WhisperLiveKit's server does not start; try it by hand.")
            time.sleep(0.5)
        yield process.pid, f"ws://127.0.0.1:{port}/asr"
    finally:
        process.kill()
        process.wait()


async def several(url: str, samples: np.ndarray, count: int, seconds: float) -> list[float | None]:
    shifts = [len(samples) * place // count for place in range(count)]
    talks = [one_client(url, np.roll(samples, -shift), seconds) for shift in shifts]
    return list(await asyncio.gather(*talks))


async def one_client(url: str, samples: np.ndarray, seconds: float) -> float | None:
    """How late its last word is; None: it never came."""
    async with connect(url, max_size=None, ping_interval=None) as line:
        sending = asyncio.create_task(live(line.send, samples, seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE * seconds):
                async for message in line:
                    if json.loads(message).get("type") == "ready_to_stop":
                        return time.monotonic() - await sending
        sending.cancel()
        return None


async def live(
    send: Callable[[bytes], Awaitable[None]], samples: np.ndarray, seconds: float
) -> float:
    """Send sound at its own pace, and nothing at the end; when that was."""
    began, step = time.monotonic(), RATE // 10
    for sent in range(0, int(seconds * RATE), step):
        await send(to_pcm16(np.take(samples, range(sent, sent + step), mode="wrap")))
        await asyncio.sleep(max(0.0, began + (sent + step) / RATE - time.monotonic()))
    await send(b"")
    return time.monotonic()

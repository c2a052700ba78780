"""`dragoman serve` as real processes, a proxy in front of them, and a deadline for it all."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from tests import warm

ROOT = Path(__file__).parents[2]
DEADLINE = 100.0
"""Seconds after which a test fails that would else wait for ever."""


def in_time(work: Coroutine, seconds: float = DEADLINE):
    """Run a coroutine; should it hang, the test fails."""

    async def bounded():
        async with asyncio.timeout(seconds):
            return await work

    return asyncio.run(bounded())


@contextmanager
def command(*options: str, scheme: str = "ws", changed: str = ""):
    """`dragoman serve` as a process, with what a line of Python has changed, and its address; what
    it has `told` so far are lines."""
    process = _started(changed, ["serve", "--port", "0", *options])
    try:
        process.told = said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("Ready on "):
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(said)}")
        page = line.removeprefix("Ready on ").strip().rstrip("/")
        # Its log is read on: a pipe that is full would stop it.
        threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
        yield process, page.replace("http", scheme, 1)
    finally:
        process.kill()
        process.wait()
        if os.environ.get("DRAGOMAN_LOG"):
            Path(os.environ["DRAGOMAN_LOG"]).write_text("".join(said))


def _started(changed: str, words: list[str]) -> warm.Copy | subprocess.Popen[str]:
    """What is changed must be so before anything is imported."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *_paths()])}
    if not changed:
        return warm.Copy("-m", "dragoman", *words, env=env, stderr=subprocess.PIPE)
    code = f"{changed}; import dragoman.__main__"
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)


def _paths() -> list[str]:
    """Where else packages are looked for."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


class Proxy:
    """Sends every connection to the first address that answers."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.halves = 0  # connections that are to end in the middle of what comes next
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._serving.discard(task)

    async def close(self) -> None:
        while self._serving:
            self.cut()
            await asyncio.wait(self._serving, timeout=1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in list(self.ports):
            try:
                behind = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self._open |= {writer, behind[1]}
            ways = [asyncio.create_task(self._pump(reader, behind[1]))]
            ways += [asyncio.create_task(self._pump(behind[0], writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for one in (writer, behind[1]):
                one.transport.abort()
                self._open.discard(one)
            await asyncio.wait(ways)
            return
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(65536):
                if self.halves:
                    self.halves -= 1
                    writer.write(data[: len(data) // 2])
                    await asyncio.sleep(0.01)  # so that it arrives, and no more
                    return
                writer.write(data)
                await writer.drain()

    def cut(self) -> None:
        """All connections are lost."""
        for writer in list(self._open):
            writer.transport.abort()


@asynccontextmanager
async def proxied(*urls: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before some servers, and its address."""
    proxy = Proxy()
    proxy.ports = [int(url.rpartition(":")[2]) for url in urls]
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        yield proxy, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await proxy.close()

"""A service on a thread, a speaker who is known word for word, and a line that can be cut."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass

from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System
from tests.scripted import ScriptedModel
from tests.serve.running import serving
from tests.talkers import SPOKEN, TEXT

WORD_MS = 60.0
ARABIC = "صباح الخير. هذا هو الخطاب الأول اليوم، وهو طويل."


class Orator(ScriptedModel):
    """Says a text a word at a time, writes down what is spoken, and guesses what comes next."""

    hears, speaks = ("de", "fr"), ("en", "ar")

    def __init__(self, text: str = TEXT) -> None:
        self._guesses = 0
        super().__init__(
            [(word, WORD_MS * (i + 1)) for i, word in enumerate(text.split())],
            flicker=self._guess,
        )

    def open(self, source, target, *, transcript=False):
        stream = super().open(source, target)
        stream.wanted, stream.target = transcript, target
        return stream

    def hear(self, streams, sounds) -> None:
        before = [stream.heard_ms for stream in streams]
        super().hear(streams, sounds)
        words = [" " + word for word in SPOKEN.split()]
        for stream, then in zip(streams, before, strict=True):
            fresh = words[int(then / WORD_MS) : int(stream.heard_ms / WORD_MS)]
            stream.transcript = tuple(fresh) if stream.wanted else ()

    def _guess(self, ms: float) -> list[str]:
        self._guesses += 1
        return [f"guess{self._guesses}"]


def orator() -> Orator:
    return Orator()


class ThroughEnglish(Orator):
    """Translates by way of English, and writes that down."""

    def open(self, source, target, *, transcript=False):
        stream = super().open(source, target, transcript=transcript)
        stream.through = "en"
        return stream


def through_english() -> ThroughEnglish:
    return ThroughEnglish()


def arabic_orator() -> Orator:
    return Orator(ARABIC)


def endless_orator() -> Orator:
    """More words than any test waits for."""
    return Orator(" ".join(f"word{i}{'.' if i % 9 == 8 else ''}" for i in range(1500)))


@dataclass
class Stage:
    """The service, and the address of the line to it."""

    service: Service
    address: str
    line: Line

    def cut(self) -> None:
        """Every connection breaks, as if a cable was pulled; the next ones are let through."""
        self.line.cut()


class Line:
    """Passes bytes on to a port, until it is cut."""

    def __init__(self, port: int) -> None:
        self.leads_to = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    def lead_to(self, port: int) -> None:
        """Where connections lead from now on."""
        self.leads_to = port

    def cut(self) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._break, done)
        assert done.wait(60)

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(_ended())
        self._loop.close()

    def _break(self, done: threading.Event) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        done.set()

    async def _connected(self, reader, writer) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.leads_to)
        except OSError:  # nobody is there
            writer.close()
            return
        self._writers |= {writer, to_writer}
        await asyncio.gather(_pass_on(reader, to_writer), _pass_on(to_reader, writer))
        self._writers -= {writer, to_writer}


async def _ended() -> None:
    """Whatever a loop still does is given up, and has noticed that."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _pass_on(reader, writer) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


@contextmanager
def staged(model: str = "orator", **settings):
    """A service with one of the models above."""
    setup = Setup(model=f"tests.serve.stage:{model}", policy="local-agreement:n=2", step_ms=120.0)
    setup = setup.with_changes(source="de", target="ar" if model == "arabic_orator" else "en")
    service = Service(System(setup), Settings(**settings))
    with serving(service) as url:
        line = Line(int(url.rpartition(":")[2]))
        try:
            yield Stage(service, f"http://127.0.0.1:{line.port}/", line)
        finally:
            line.close()  # first: a server waits for those who are still there

"""A file that was sent, heard to its end; what is wrong with it is for whoever has sent it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from starlette.datastructures import UploadFile

from dragoman.audio.chunk import Chunk
from dragoman.audio.ffmpeg import has_ffmpeg
from dragoman.audio.source import open_audio
from dragoman.audio.spooled import is_spoolable
from dragoman.errors import DragomanError, Told
from dragoman.serve.protocol import Code, Fault
from dragoman.serve.service import Service
from dragoman.serve.session import Session
from dragoman.text.languages import look_up

_reader: ContextVar[object] = ContextVar("_reader")  # whose file is read, on whatever thread


class Upload:
    """The sound of a talk, from a file."""

    def __init__(
        self, service: Service, session: Session, file: UploadFile, *, transcript: bool
    ) -> None:
        """`transcript`: what is spoken is wanted, and not its translation."""
        self._service, self._session, self._file = service, session, file
        self._transcript = transcript
        self.warnings: list[str] = []
        """What is wrong with the file, though it could be heard: that it is cut short, say."""

    async def hear(self) -> None:
        """Send the file through its talk, to its end."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sound"
            await asyncio.to_thread(_save, self._file.file, path)
            try:
                with _warnings_of(path, self.warnings):
                    await self._hear(path)
            except DragomanError as error:
                raise Fault(Code.SOUND, _trouble(error, path)) from error
        session = self._session
        session.stop()
        self._service.scheduler.wake()
        while not session.finished:
            session.news.clear()
            await session.news.wait()
        if self._transcript:
            self._warn_of_another_language()

    def _warn_of_another_language(self) -> None:
        """Whoever wants what is spoken, and gets it in other words, is told so."""
        through = self._session.through and look_up(self._session.through)
        if through:
            self.warnings.append(
                f"This server translates by way of {through.name}: the text is in that, not in "
                "the language that is spoken."
            )

    async def _hear(self, path: Path) -> None:
        session, chunks = self._session, await asyncio.to_thread(open_audio, path)
        while (chunk := await asyncio.to_thread(_next, chunks)) is not None:
            if session.fault is not None:
                raise session.fault
            if session.stopped:  # before its end: half a text would pass for the whole
                raise Fault(Code.DRAINING, "This server is about to end; try another.")
            session.hear(session.sample, chunk.samples)
            self._service.scheduler.wake()
            await session.have_space()


class _Warnings(logging.Handler):
    """Collects what is told of a file while it is read, and of no other."""

    def __init__(self, path: Path, warnings: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._path, self._warnings = str(path), warnings

    def emit(self, record: logging.LogRecord) -> None:
        if _reader.get(None) is self:
            told = record.msg.what if isinstance(record.msg, Told) else record.getMessage()
            self._warnings.append(told.replace(self._path, "The file"))
            # Changed for the log of the server, too, which gets it after us: it holds no paths.
            record.msg, record.args = record.getMessage().replace(self._path, "The file"), ()


@contextmanager
def _warnings_of(path: Path, warnings: list[str]) -> Iterator[None]:
    """What whoever reads sound warns of goes to the log, and there: nobody who has sent a file
    reads the log of a server."""
    handler, log = _Warnings(path, warnings), logging.getLogger("dragoman.audio")
    token = _reader.set(handler)  # threads that are begun from here know it
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        _reader.reset(token)


def _trouble(error: DragomanError, path: Path) -> str:
    """What is wrong with a file, for whoever has sent it: they can install nothing here."""
    if has_ffmpeg() or "ffmpeg" not in str(error):
        return error.what.replace(str(path), "The file")
    if is_spoolable(_head(path)):
        return "The file cannot be read: it is damaged or cut short, or not of a usual kind."
    return "This server cannot read files of this kind; send wav, flac, ogg or mp3."


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _save(file: BinaryIO, path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def _next(chunks: Iterator[Chunk]) -> Chunk | None:
    return next(chunks, None)

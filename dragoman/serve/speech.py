"""The interpreter's voice: what a talk says, spoken aloud for whoever has asked for it.

A talk has at most one narrator, on a thread of its own, so that text never waits for speech. Sound
that is late is of no use to those who follow live: only the last phrases are kept.
"""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import to_pcm16
from dragoman.serve.logs import note
from dragoman.serve.protocol import Code, Encoding, Fault, Speech
from dragoman.serve.session import Session
from dragoman.text.languages import find_language
from dragoman.voices import Speaker, Voice, open_voice

KEPT = 8
"""Phrases for connections that are a little behind."""
AT_HAND = 1.0
"""Seconds within which a voice opens that need not be fetched."""
LAST_PHRASES = 10.0
"""Seconds that the end of a talk waits for what is still to be spoken."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A phrase and its sound in every encoding."""

    number: int
    at_ms: float
    rate: int
    samples: int
    sounds: dict[Encoding, bytes]

    def event(self, encoding: Encoding) -> Speech:
        return Speech(self.number, self.at_ms, self.rate, self.samples, encoding)


class Voices:
    """The voices of a process, one a language, each opened once."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._opening: dict[str, asyncio.Task[Voice]] = {}

    async def open(self, language: str) -> Voice:
        """The voice of a language, which may have to be fetched; all who ask share one thread."""
        if language not in self._opening:
            self._opening[language] = asyncio.create_task(self._take(language))
        opening = self._opening[language]
        try:
            return await asyncio.shield(opening)
        except Exception as error:  # of whatever it needs; the next one may have more luck
            if self._opening.get(language) is opening:
                del self._opening[language]
                note("no voice", language=language, error=type(error).__name__)
            name = find_language(language).name
            raise Fault(Code.VOICE, f"This server has no voice for {name}; read along.") from error

    async def _take(self, language: str) -> Voice:
        return _InTurn(await _opened(self._name, language))


async def _opened(name: str | None, language: str) -> Voice:
    """A voice, on a thread of its own: a process that ends does not wait until it is fetched."""
    opening = Future[Voice]()
    opening.set_running_or_notify_cancel()

    def work() -> None:
        try:
            opening.set_result(open_voice(name, language))
        except BaseException as error:
            opening.set_exception(error)

    threading.Thread(target=work, name="voice", daemon=True).start()
    return await asyncio.wrap_future(opening)


class _InTurn:
    """A voice for several threads: one phrase after the other."""

    def __init__(self, voice: Voice) -> None:
        self._voice, self._lock = voice, threading.Lock()
        self.name, self.languages, self.rate = voice.name, voice.languages, voice.rate

    def load(self) -> None:
        with self._lock:
            self._voice.load()

    def speak(self, text: str, speed: float = 1.0) -> Samples:
        with self._lock:
            return self._voice.speak(text, speed)


class Narrator:
    """Speaks a talk from now on; made and read in the event loop.

    To its speaker's thread it is the loudspeaker: sound is handed to the event loop, and the next
    phrase begins as if a listener heard this one at once.
    """

    def __init__(self, session: Session, voice: Voice) -> None:
        self.spoken: deque[Spoken] = deque(maxlen=KEPT)
        self.count = 0
        self.wanted = 0  # connections that listen; while there are none, nothing is spoken
        self.failed = False
        self.silent = False  # nothing comes any more
        self._session, self._rate = session, voice.rate
        self._loop = asyncio.get_running_loop()
        self._word = session.words[-1].word if session.words else 0  # the last that was taken
        self._free_ms = 0.0
        self._ending = threading.Event()
        self._playing_until = 0.0  # of the speaker's thread
        self._speaker = Speaker(voice, self, self._report)
        session.news.follow(self._read)

    def _read(self) -> None:
        fresh = self._session.words_after(self._word)
        self._word = fresh[-1].word if fresh else self._word
        if fresh and self.wanted:
            self._speaker.say("".join(word.text for word in fresh))
        if self._session.finished:  # a voice that is stuck holds nobody up
            self._session.news.unfollow(self._read)
            threading.Thread(target=self._finish, name="last phrases", daemon=True).start()
            self._loop.call_later(LAST_PHRASES, self._fall_silent)

    def _finish(self) -> None:
        self._ending.set()
        self._speaker.finish()
        self._in_loop(self._fall_silent)
        self._speaker.close()

    def _fall_silent(self) -> None:
        if not self.silent:
            self.silent = True
            self._session.news.set()

    def _report(self, text: str) -> None:
        """The voice failed; the text may hold anything, so it is told to nobody."""
        self._in_loop(self._fail)

    def _fail(self) -> None:
        note("voice failed", session=self._session.id)
        self.failed = True
        self._session.news.set()

    def _air(self, samples: int, sounds: dict[Encoding, bytes]) -> None:
        at_ms = max(self._free_ms, self._session.now_ms)
        self._free_ms = at_ms + 1000 * samples / self._rate
        self.count += 1
        self.spoken.append(Spoken(self.count, round(at_ms, 1), self._rate, samples, sounds))
        self._session.news.set()

    def _in_loop(self, work: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the loop may have ended before the voice has
            self._loop.call_soon_threadsafe(work, *args)

    # What a loudspeaker does, on the speaker's thread.

    def play(self, samples: Samples, ahead: float) -> bool:
        if len(samples):
            self._in_loop(self._air, len(samples), encoded(samples, self._rate))
        now = time.monotonic()
        self._playing_until = max(now, self._playing_until) + len(samples) / self._rate
        self._ending.wait(max(0.0, self._playing_until - ahead - now))
        return True

    def drain(self) -> None:
        """Those who listen play it to its end themselves."""

    def stop(self) -> None:
        self._ending.set()


def encoded(samples: Samples, rate: int) -> dict[Encoding, bytes]:
    """A phrase in the encodings that clients may ask for."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, np.clip(samples, -1.0, 1.0), rate, format="MP3")
    return {"pcm16": to_pcm16(samples), "mp3": file.getvalue()}


class Earphone:
    """What one connection hears of the voice of a talk."""

    def __init__(self, voices: Voices) -> None:
        self._voices = voices
        self._narrator: Narrator | None = None
        self._encoding: Encoding | None = None
        self._opening: asyncio.Task[None] | None = None
        self._number = 0
        self._missing: Fault | None = None  # there is no voice
        self._told: Narrator | None = None  # that it has failed

    @property
    def waits(self) -> bool:
        """Whether something may still be spoken into it."""
        return self._narrator is not None and not self._narrator.silent

    async def put_on(self, session: Session, encoding: Encoding | None) -> None:
        """Listen to a talk from now on; None: to none. A voice that has to be fetched is not waited
        for: nobody reads later because of it."""
        self.take_off()
        if encoding is not None:
            self._opening = asyncio.create_task(self._open(session, encoding))
            await asyncio.wait([self._opening], timeout=AT_HAND)

    async def _open(self, session: Session, encoding: Encoding) -> None:
        try:
            voice = await self._voices.open(session.setup.target)
        except Fault as fault:
            self._missing = fault
        else:
            if session.voice is None:
                session.voice = Narrator(session, voice)
            self._narrator, self._encoding = session.voice, encoding
            self._number = self._narrator.count
            self._narrator.wanted += 1
        session.news.set()

    def take_off(self) -> None:
        """May be called twice."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._narrator is not None:
            self._narrator.wanted -= 1
            self._narrator = None

    def fresh(self) -> list[tuple[Speech, bytes]]:
        """What was spoken since it was asked last; phrases that are too old are left out."""
        narrator, encoding = self._narrator, self._encoding
        if narrator is None or encoding is None:
            return []
        phrases = [one for one in narrator.spoken if one.number > self._number]
        self._number = narrator.count
        return [(one.event(encoding), one.sounds[encoding]) for one in phrases]

    def fault(self) -> Fault | None:
        """That there is no voice, or that it has failed; told once a talk."""
        if (missing := self._missing) is not None:
            self._missing = None
            return missing
        narrator = self._narrator
        if narrator is None or narrator is self._told or not narrator.failed:
            return None
        self._told = narrator
        return Fault(Code.VOICE, "The voice failed; some of the translation is not spoken.")

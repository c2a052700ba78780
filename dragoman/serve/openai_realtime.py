"""What clients of OpenAI's Realtime Translation speak (`/v1/realtime/translations`).

Its text is append-only, as words that are final are. Its sound, both ways, is 24 kHz PCM16 in
base64. It always speaks; who wants text alone says so in the address: `?speech=no`.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.websockets import WebSocket

from dragoman.audio.pcm import from_pcm16, to_pcm16
from dragoman.audio.resample import resample
from dragoman.serve.dialect import Act, Beginning, Check, Dialect, News, Receive, Send, Turn
from dragoman.serve.protocol import (
    MOST_SOUND,
    Audio,
    Code,
    Encoding,
    Error,
    Fault,
    Resume,
    Said,
    Speech,
    Start,
    Stop,
    Summary,
    Transcript,
)
from dragoman.serve.settings import offered_token

RATE = 24000
_YEAR = 365 * 24 * 3600.0  # for talks that may go on for ever
_KEY = "openai-insecure-api-key."  # how browsers, which send no headers, give theirs


class _Output(Struct):
    language: str | None = None


class _Input(Struct):
    transcription: dict[str, Any] | UnsetType | None = UNSET  # left out, it stays as it was


class _AudioOptions(Struct):
    input: _Input | None = None
    output: _Output | None = None


class _SessionOptions(Struct):
    audio: _AudioOptions | None = None


class _Update(Struct, tag="session.update"):
    session: _SessionOptions


class _Append(Struct, tag="session.input_audio_buffer.append"):
    audio: str


class _Close(Struct, tag="session.close"):
    pass


_messages = msgspec.json.Decoder(_Update | _Append | _Close)


@dataclass(frozen=True, slots=True)
class _Before:
    """What there was of talks that have ended."""

    words: int = 0
    sound_ms: float = 0.0
    ms: float = 0.0  # that have passed


class OpenAIRealtime(Dialect):
    """A talk begins with its first sound. An update after that is another talk, for which the one
    before is said to its end; the client is told of one, which goes on."""

    farewell = '{"type": "session.close"}'

    def __init__(self, socket: WebSocket, longest: float) -> None:
        super().__init__(socket, longest)
        self._id = f"sess_{uuid4().hex[:16]}"
        self._sample = 0  # of the talk that goes on
        self._language: str | None = None
        self._transcript = False
        self._turn: Start | None = None  # that was asked for
        self._began: float | None = None  # the first talk, on the monotonic clock
        self._updated = False  # since a talk began, and nobody has said so
        self._before = _Before()  # the talk that goes on
        self._word = 0

    @property
    def subprotocol(self) -> str | None:
        return "realtime" if "realtime" in self.socket.scope.get("subprotocols", []) else None

    def token(self, request: Start | Resume | None) -> str | None:
        for offered in self.socket.scope.get("subprotocols", []):
            if offered.startswith(_KEY):
                return str(offered).removeprefix(_KEY)
        return offered_token(self.socket.headers)

    async def begin(self, receive: Receive, send: Send, check: Check) -> Beginning:
        await send(self._told("session.created"))
        before = self._language, self._transcript
        while not (acts := self.read(await receive())):
            try:
                await check(self._start(self._language, self._transcript))
            except Fault as fault:  # it stays as it was, and the client may try another
                self._language, self._transcript = before
                await send(_error(fault.event))
            else:
                before = self._language, self._transcript
                await send(self._told("session.updated"))
        return self._start(*before), acts

    def _start(self, language: str | None, transcript: bool) -> Start:
        speech: Encoding | None = "pcm16"
        if self.socket.query_params.get("speech") == "no":
            speech = None
        return Start(target=language, transcript=transcript, audio=Audio(rate=RATE), speech=speech)

    def expect(self, audio: Audio) -> None:
        """The first talk begins, or the one that was asked for."""
        now = time.monotonic()
        if self._began is None or self._turn is None:
            self._began = now
            return
        sound_ms = self._before.sound_ms + 1000 * self._sample / RATE
        self._before = _Before(self._word, sound_ms, 1000 * (now - self._began))
        self._language, self._transcript = self._turn.target, self._turn.transcript
        self._sample, self._turn, self._updated = 0, None, True

    def read(self, message: str | bytes) -> Sequence[Act]:
        try:
            decoded = _messages.decode(message)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            known = isinstance(error, msgspec.ValidationError)
            raise Fault(
                Code.MALFORMED, f"{error}." if known else "This message is not JSON."
            ) from error
        if isinstance(decoded, _Update):
            return self._update(decoded.session)
        if isinstance(decoded, _Close):
            return [Stop()]
        return [self._sound(decoded.audio)]

    def _update(self, session: _SessionOptions) -> Sequence[Act]:
        audio = session.audio or _AudioOptions()
        language = (audio.output and audio.output.language) or self._language
        transcript = self._transcript
        if audio.input is not None and audio.input.transcription is not UNSET:
            transcript = audio.input.transcription is not None
        if self._began is None:
            self._language, self._transcript = language, transcript
        elif (language, transcript) != (self._language, self._transcript):
            self._turn = self._start(language, transcript)
            return [Turn(self._turn)]
        self._updated = self._began is not None
        return []

    def _sound(self, audio: str) -> Act:
        try:
            data = b64decode(audio, validate=True)
        except (NotBase64, ValueError) as error:
            raise Fault(Code.SOUND, "Sound comes in base64.") from error
        if len(data) % 2 or len(data) > MOST_SOUND:
            raise Fault(Code.SOUND, "Sound is PCM16: two bytes a sample, 256 KiB at most.")
        samples = from_pcm16(data)
        first, self._sample = self._sample, self._sample + len(samples)
        return first, samples

    def write(self, news: Sequence[News]) -> Iterable[str]:
        if self._updated:
            self._updated = False
            yield self._told("session.updated")
        for event in news:
            if isinstance(event, Said):
                yield self._said(event)
            elif isinstance(event, Transcript):
                at_ms = self._before.sound_ms + event.source_ms
                yield _delta("input", event.text, at_ms, language=event.language)
            elif isinstance(event, Error):
                yield _error(event)
            elif isinstance(event, Summary):
                yield _json("session.closed")

    def _said(self, event: Said) -> str:
        before = self._before
        self._word = before.words + event.word
        source_ms = before.sound_ms + event.source_ms
        more = {"word": self._word, "lag_ms": event.lag_ms, "source_ms": source_ms}
        return _delta("output", event.text, before.ms + event.at_ms, **more)

    def speak(self, phrase: Speech, sound: bytes) -> Iterable[str]:
        samples = from_pcm16(sound)
        if phrase.rate != RATE:
            samples = resample(samples, phrase.rate, RATE)
        for at in range(0, len(samples), RATE):  # a second at most: clients bound their messages
            delta = b64encode(to_pcm16(samples[at : at + RATE])).decode()
            yield _json(
                "session.output_audio.delta",
                delta=delta,
                sample_rate=RATE,
                channels=1,
                format="pcm16",
                elapsed_ms=round(self._before.ms + phrase.at_ms + 1000 * at / RATE),
            )

    def _told(self, kind: str) -> str:
        writes = {"model": "dragoman"} if self._transcript else None
        audio = {"input": {"transcription": writes}, "output": {"language": self._language}}
        session = {
            "id": self._id,
            "type": "translation",
            "model": "dragoman",
            "expires_at": int(time.time() + min(self.longest, _YEAR)),
            "audio": audio,
        }
        return _json(kind, session=session)


def _delta(what: str, text: str, elapsed_ms: float, **more: Any) -> str:
    kind = f"session.{what}_transcript.delta"
    return _json(kind, delta=text, elapsed_ms=round(elapsed_ms), **more)


def _error(event: Error) -> str:
    kind = "server_error" if event.code is Code.FAILED else "invalid_request_error"
    told = {"type": kind, "code": event.code, "message": event.message, "param": None}
    return _json("error", error=told)


def _json(kind: str, **fields: Any) -> str:
    fields = {"type": kind, "event_id": f"event_{uuid4().hex[:16]}", **fields}
    return json.dumps(fields, ensure_ascii=False)

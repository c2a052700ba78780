"""What clients of Deepgram's live recognition speak (`/v1/listen`), and tools that build on them.

`language` in the address is what is spoken; what is told is what this server makes of it, in the
language it was started for or that `target` names.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
from starlette.websockets import WebSocket

from dragoman.audio import opus
from dragoman.audio.chunk import Samples
from dragoman.audio.g711 import TABLES, Table
from dragoman.audio.mono import Mono
from dragoman.audio.opus_stream import Container, OpusStream, container_of
from dragoman.serve.dialect import (
    Act,
    Beginning,
    Check,
    Closed,
    Dialect,
    Flush,
    News,
    Receive,
    Send,
    told_as_sound,
)
from dragoman.serve.downloads import timed
from dragoman.serve.protocol import (
    MOST_SOUND,
    Audio,
    Code,
    Error,
    Fault,
    Interim,
    Resume,
    Said,
    Start,
    Stop,
    Summary,
)
from dragoman.serve.settings import offered_token
from dragoman.text.plain import plain
from dragoman.text.words import is_whole, whole_words

_DEFAULT_RATE = 16000
_CONTAINERS: dict[str, Container | None] = {
    "linear16": None, "mulaw": None, "alaw": None, "opus": "packets", "ogg-opus": "ogg",
}  # fmt: skip
_OF_ANY_LANGUAGE = ("multi", "")
_MOST_ANSWERS = 100  # that wait to be told; who asks on and reads nothing is told the latest


class Deepgram(Dialect):
    """Sound in bare PCM16 or as of telephones, any rate, one channel or several that are mixed; or
    Opus, in packets or in the container that a browser records."""

    farewell = '{"type": "CloseStream"}'

    def __init__(self, socket: WebSocket, longest: float) -> None:
        super().__init__(socket, longest)
        self._id = str(uuid4())
        self._sample = 0
        self._rest = b""  # of a sample that is not whole yet
        self._channels, self._mono = 1, Mono(_DEFAULT_RATE)
        self._table: Table | None = None  # of telephones
        self._opus: OpusStream | None = None
        self._held: list[Said] = []  # a word that a mark may join
        self._interim = ""
        self._shown = ""  # what was held and the interim text
        self._end = 0.0  # of the last word, in seconds
        self._open = False  # an utterance was told of whose end was not
        self._answers: deque[str] = deque(maxlen=_MOST_ANSWERS)  # to what was asked in mid-talk
        query = socket.query_params
        self._wants_interim = query.get("interim_results", "false") == "true"
        self._wants_ends = "utterance_end_ms" in query

    @property
    def subprotocol(self) -> str | None:
        """Browsers cannot send headers; they offer the protocols "token" or "bearer", and their
        key. They hang up unless the first one is answered."""
        offered = self.socket.scope.get("subprotocols", [])
        return offered[0] if offered[:1] in (["token"], ["bearer"]) else None

    def token(self, request: Start | Resume | None) -> str | None:
        offered = self.socket.scope.get("subprotocols", [])
        if self.subprotocol and len(offered) == 2:
            return str(offered[1])
        return offered_token(self.socket.headers, ("token", "bearer"))

    async def begin(self, receive: Receive, send: Send, check: Check) -> Beginning:
        query = self.socket.query_params
        rate = _number(query.get("sample_rate", str(_DEFAULT_RATE)), "sample_rate")
        self._channels = _number(query.get("channels", "1"), "channels")
        if not 1 <= self._channels <= 16:
            raise Fault(Code.UNFIT, f"Sound has 1 to 16 channels, not {self._channels}.")
        self._mono = Mono(max(1, rate))  # none at all is refused with the others that cannot be
        acts = await self._meet(query.get("encoding"), receive)
        language = query.get("language", "").partition("-")[0]
        start = Start(
            source=None if language in _OF_ANY_LANGUAGE else language,
            target=query.get("target"),
            audio=Audio(rate=opus.RATE if self._opus else rate),
        )
        return start, acts

    async def _meet(self, encoding: str | None, receive: Receive) -> Sequence[Act]:
        """Find out how sound comes. Who does not name an encoding may send a container, as browsers
        do: its first bytes tell."""
        if encoding is not None:
            if encoding not in _CONTAINERS:
                known = ", ".join(_CONTAINERS)
                raise Fault(Code.UNFIT, f"Sound is taken as {known}, not as {encoding[:20]}.")
            container = _CONTAINERS[encoding]
            self._opus = OpusStream(container) if container else None
            self._table = TABLES.get(encoding)
            return []
        while True:
            message = await receive()
            if self._opus is None and isinstance(message, bytes):
                found = container_of(message)
                self._opus = OpusStream(found) if found else None
            if acts := self.read(message):
                return acts

    def read(self, message: str | bytes) -> Sequence[Act]:
        if isinstance(message, bytes) and message:
            return self._hear(message)
        return [*(self._opus.flush() if self._opus else []), *self._asked(message)]

    def _hear(self, message: bytes) -> Sequence[Act]:
        if len(message) > MOST_SOUND:
            raise Fault(Code.TOO_BIG, f"A frame of sound has at most {MOST_SOUND} bytes.")
        if self._opus is None:
            return [self._sound(message)]
        with told_as_sound():
            return self._opus.feed(message)

    def _asked(self, message: str | bytes) -> Sequence[Act]:
        if isinstance(message, bytes):
            return [Stop()]
        try:
            asked = json.loads(message)
            kind = asked["type"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Fault(Code.MALFORMED, "A message is a JSON object with a 'type'.") from None
        if kind == "Finalize":
            return [Flush()]
        if kind == "CloseStream":
            return [Stop()]
        if kind == "Configure":
            self._answers.append(self._not_configured(asked))
            return []
        if kind == "KeepAlive":
            return []
        raise Fault(Code.MALFORMED, "There are KeepAlive, Finalize, Configure and CloseStream.")

    def _not_configured(self, asked: dict[str, Any]) -> str:
        """What may be asked for in mid-talk is not to be had here; the talk goes on as it was."""
        terms = asked.get("keyterms") is not None
        return _json(
            "ConfigureFailure",
            request_id=self._id,
            code=f"CONFIGURE_{'KEYTERMS_NOT_SUPPORTED' if terms else 'INTERNAL_ERROR'}",
            description=f"This server has no {'key terms' if terms else 'features to turn on'}.",
        )

    def _sound(self, message: bytes) -> tuple[int, Samples]:
        """Frames need not end with a whole sample: the rest waits for the next one."""
        data, size = self._rest + message, (1 if self._table is not None else 2) * self._channels
        whole = len(data) - len(data) % size
        self._rest = data[whole:]
        if self._table is None:
            samples = np.frombuffer(data[:whole], "<i2")
        else:
            samples = self._table[np.frombuffer(data[:whole], np.uint8)]
        samples = samples.reshape(-1, self._channels)
        first, self._sample = self._sample, self._sample + len(samples)
        return first, self._mono.of(samples.astype(np.float32) / np.float32(32768))

    def write(self, news: Sequence[News]) -> Iterable[str]:
        while self._answers:
            yield self._answers.popleft()
        closed = [one for one in news if isinstance(one, Closed)]
        asked = any(one.asked for one in closed)
        for event in news:
            self._interim = event.text if isinstance(event, Interim) else self._interim
        over = closed or any(isinstance(one, Error | Summary) for one in news)
        said = self._whole([one for one in news if isinstance(one, Said)], bool(over))
        self._open |= bool(said)
        ended = bool(closed) and self._open  # though its last word may have been told before
        if said or asked or ended:
            yield self._final(said, bool(closed), asked)
        if ended:
            self._open = False
            if self._wants_ends:
                yield _json("UtteranceEnd", channel=[0, 1], last_word_end=self._end)
        shown = "".join(one.text for one in self._held) + self._interim
        if shown != self._shown and shown.strip() and self._wants_interim:
            yield self._results([], shown.strip(), final=False)
        self._shown = shown
        for event in news:
            if isinstance(event, Error):
                yield _json("Error", variant=event.code.upper(), description=event.message)
            elif isinstance(event, Summary):
                yield self._metadata(event)

    def _whole(self, said: Sequence[Said], over: bool) -> list[Said]:
        """What may be told: clients join results by spaces, so that no mark may come alone. The
        last word waits for its mark where the draft has one, or nothing yet."""
        known = [*self._held, *said]
        last = whole_words(known)[-1] if known and not over else []
        text = "".join(one.text for one in last)
        self._held = [] if is_whole(text, self._interim) else last
        return known[: len(known) - len(self._held)]

    def _final(self, said: Sequence[Said], closed: bool, asked: bool) -> str:
        words = []
        for parts, times in zip(whole_words(said), whole_words(timed(said)), strict=True):
            text = "".join(one.text for one in parts)
            words.append(
                {
                    "word": plain(text),
                    "punctuated_word": text.strip(),
                    "start": round(times[0].start, 3),
                    "end": round(times[-1].end, 3),
                    "confidence": round(parts[0].probability or 0.0, 4),
                    "lag_ms": parts[-1].lag_ms,
                }
            )
        text = "".join(one.text for one in said).strip()
        return self._results(words, text, final=True, closed=closed, asked=asked)

    def _results(
        self,
        words: Sequence[dict[str, Any]],
        text: str,
        *,
        final: bool,
        closed: bool = False,
        asked: bool = False,
    ) -> str:
        start = words[0]["start"] if words else self._end
        self._end = words[-1]["end"] if words else self._end
        sure = [word["confidence"] for word in words]
        best = {
            "transcript": text,
            "confidence": round(sum(sure) / len(sure), 4) if sure else 0.0,
            "words": list(words),
        }
        return _json(
            "Results",
            channel_index=[0, 1],
            start=start,
            duration=round(max(0.0, self._end - start), 3),
            is_final=final,
            speech_final=closed,
            from_finalize=asked,
            channel={"alternatives": [best]},
            metadata={
                "request_id": self._id,
                "model_uuid": self._id,
                "model_info": {"name": "dragoman", "version": "1", "arch": "dragoman"},
            },
        )

    def _metadata(self, summary: Summary) -> str:
        return _json(
            "Metadata",
            transaction_key="deprecated",
            request_id=self._id,
            sha256="",
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            duration=summary.audio_ms / 1000,
            channels=self._channels,
        )


def _json(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, **fields}, ensure_ascii=False)


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 7:
        raise Fault(Code.MALFORMED, f"'{name}' is a number.")
    return int(text)

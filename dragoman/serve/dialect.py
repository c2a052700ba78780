"""How a kind of client puts things: its messages become ours, and ours become its own.

A dialect knows nothing of talks and schedules; a connection that speaks it does the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.websockets import WebSocket

from dragoman.audio.opus import OpusDecoder, Sound
from dragoman.errors import DragomanError
from dragoman.serve.protocol import (
    Audio,
    Change,
    Code,
    Event,
    Fault,
    Listen,
    Resume,
    Speak,
    Speech,
    Start,
    Stop,
    read_packet,
    read_request,
    read_sound,
    write,
)
from dragoman.serve.settings import offered_token

Receive = Callable[[], Awaitable[str | bytes]]
Send = Callable[[str], Awaitable[None]]
Check = Callable[[Start], Awaitable[None]]
"""Whether such a talk could be had; else a fault."""


@dataclass(frozen=True, slots=True)
class Flush:
    """What was heard so far shall be said, as after a pause."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What was heard so far shall be said to its end, and what follows is another talk."""

    start: Start


@dataclass(frozen=True, slots=True)
class Closed:
    """All that was heard so far has been said: after a pause, or because it was `asked` for."""

    asked: bool


Act = Sound | Stop | Change | Speak | Flush | Turn
"""What a client may do in mid-talk."""
News = Event | Closed
Beginning = tuple[Start | Resume, Sequence[Act]]
"""How a talk begins or goes on, and what came with that."""


class Dialect(ABC):
    """One client's way to speak; it lasts as long as the connection."""

    lasting = False
    """Whether such a client can come back to its talk over another connection."""
    token_comes_first = True
    """Whether its token comes with the handshake, and not with its first message."""
    farewell: str | None = None
    """What such a client says at the end of its talk, if it cannot come back to it."""

    def __init__(self, socket: WebSocket, longest: float) -> None:
        """`longest`: seconds that a talk may have."""
        self.socket, self.longest = socket, longest

    @property
    def subprotocol(self) -> str | None:
        """Of the socket, if the client asked for one that we answer to."""
        return None

    def token(self, request: Start | Resume | None) -> str | None:
        """What the client offers to be let in; `request`: its first message, once that is read."""
        return offered_token(self.socket.headers) or (request.access_token if request else None)

    @abstractmethod
    async def begin(self, receive: Receive, send: Send, check: Check) -> Beginning:
        """Greet, and read until it is known what the client wants."""

    def expect(self, audio: Audio) -> None:  # noqa: B027  most need not know
        """The talk has begun or goes on, and this is how its sound will come."""

    @abstractmethod
    def read(self, message: str | bytes) -> Sequence[Act]:
        """What a message asks for; whatever is wrong with it is a fault."""

    @abstractmethod
    def write(self, news: Sequence[News]) -> Iterable[str]:
        """The frames that tell what is new."""

    def speak(self, phrase: Speech, sound: bytes) -> Iterable[str | bytes]:
        """The frames of a phrase of the interpreter's voice; here, none."""
        return ()


class Native(Dialect):
    """Our own, of docs/protocol.md."""

    lasting = True
    token_comes_first = False

    def __init__(self, socket: WebSocket, longest: float) -> None:
        super().__init__(socket, longest)
        self._opus: OpusDecoder | None = None

    def expect(self, audio: Audio) -> None:
        self._opus = OpusDecoder() if audio.encoding == "opus" else None

    async def begin(self, receive: Receive, send: Send, check: Check) -> Beginning:
        message = await receive()
        if isinstance(message, bytes):
            raise Fault(Code.MALFORMED, "Sound comes after 'start' or 'resume'.")
        request = read_request(message)
        if not isinstance(request, Start | Resume):
            raise Fault(Code.MALFORMED, "The first message is 'start' or 'resume'.")
        return request, ()

    def read(self, message: str | bytes) -> Sequence[Act]:
        if isinstance(message, bytes):
            return [read_sound(message)] if self._opus is None else self._decode(message)
        request = read_request(message)
        if isinstance(request, Start | Resume | Listen):
            raise Fault(Code.MALFORMED, "This talk has begun already.")
        held = self._opus.flush() if self._opus else []
        return [*held, request]

    def _decode(self, frame: bytes) -> Sequence[Act]:
        assert self._opus is not None
        with told_as_sound():
            return self._opus.feed([read_packet(frame)])

    def write(self, news: Sequence[News]) -> Iterable[str]:
        return [write(event) for event in news if not isinstance(event, Closed)]

    def speak(self, phrase: Speech, sound: bytes) -> Iterable[str | bytes]:
        return [write(phrase), sound]


@contextmanager
def told_as_sound() -> Iterator[None]:
    """What is wrong with sound is told to whoever sent it."""
    try:
        yield
    except DragomanError as error:
        raise Fault(Code.SOUND, error.what) from error

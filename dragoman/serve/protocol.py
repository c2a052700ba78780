"""What client and server tell each other; docs/protocol.md is the same for authors of clients.

Text frames are JSON objects with a `type`. A binary frame from the client is sound: the number of
its first sample, eight bytes little-endian, then PCM16 little-endian, mono, or a packet of Opus. A
binary frame from the server is the sound of the `speech` event before it.
"""

from __future__ import annotations

import struct
from enum import IntEnum, StrEnum
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field

from dragoman.audio import opus
from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.pcm import from_pcm16, to_pcm16

_HEADER = struct.Struct("<Q")
MOST_TEXT = 256 * 1024
MOST_SOUND = 256 * 1024
"""Bytes of one message; a second of CD sound is 86 kB, 2000 words that were said 200 kB."""

_Count = Annotated[int, Meta(ge=0, le=1 << 53)]  # what JSON's numbers count, and ours divide
_Name = Annotated[str, Meta(max_length=200)]
Encoding = Literal["pcm16", "mp3"]
"""Of the interpreter's voice: plain samples for programs, a small file a phrase for pages."""


class Code(StrEnum):
    """What went wrong, for programs; the message beside it is for people."""

    MALFORMED = "malformed"  # no JSON, no known type, a wrong field, out of turn
    SOUND = "sound"  # half a sample, no header, a gap
    TOO_BIG = "too_big"
    LANGUAGE = "language"
    POLICY = "policy"
    UNFIT = "unfit"  # the model cannot do what was asked
    TOKEN = "token"
    NO_SESSION = "no_session"  # unknown, over, or somebody else's
    FULL = "full"
    OVERLOADED = "overloaded"  # the machine cannot keep up; this talk shall go on elsewhere
    TOO_FAST = "too_fast"  # too many connections in a short time
    DRAINING = "draining"
    IDLE = "idle"
    TOO_LONG = "too_long"
    REPLACED = "replaced"  # another connection has resumed this talk
    FAILED = "failed"  # the interpreter could not go on
    TAKEN = "taken"  # somebody speaks in this room already
    VOICE = "voice"  # nothing is spoken aloud; the text goes on


class Close(IntEnum):
    """Close codes of the socket."""

    DONE = 1000
    TOO_BIG = 1009
    FAILED = 1011
    COME_AGAIN = 1012
    TRY_LATER = 1013
    BAD = 4400
    TOKEN = 4401
    ORIGIN = 4403
    NO_SESSION = 4404
    IDLE = 4408
    REPLACED = 4409


CLOSES = {
    Code.TOO_BIG: Close.TOO_BIG,
    Code.TOKEN: Close.TOKEN,
    Code.NO_SESSION: Close.NO_SESSION,
    Code.FULL: Close.TRY_LATER,
    Code.OVERLOADED: Close.TRY_LATER,
    Code.TOO_FAST: Close.TRY_LATER,
    Code.DRAINING: Close.TRY_LATER,
    Code.IDLE: Close.IDLE,
    Code.REPLACED: Close.REPLACED,
    Code.TAKEN: Close.REPLACED,
    Code.FAILED: Close.FAILED,
}
"""The close code after an error; 4400 for the others."""


class _Message(Struct, tag_field="type", frozen=True, forbid_unknown_fields=True):
    """A text frame. What is not known is refused: a misspelt field would go unnoticed."""


class _Event(_Message, frozen=True, forbid_unknown_fields=False):
    """What the server tells. A newer one may tell more of it than is known here, and clients hand
    some of that on to others as it came."""


class Audio(Struct, frozen=True, forbid_unknown_fields=True):
    """The sound that a client will send."""

    rate: int | None = None  # samples a second; None: 16000, and Opus counts in 48000
    encoding: Literal["pcm16", "opus"] = "pcm16"

    @property
    def counted(self) -> int:
        """Samples a second, as their numbers count them."""
        usual = opus.RATE if self.encoding == "opus" else RATE
        return usual if self.rate is None else self.rate


class Captions(Struct, frozen=True, forbid_unknown_fields=True):
    """Where what is said shall be posted to, as captions of a meeting or a stream."""

    url: Annotated[str, Meta(max_length=2000)]
    style: Literal["zoom", "youtube"] = "zoom"
    language: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{2,20}$")] = "en-US"


class Start(_Message, frozen=True, tag="start", rename={"source": "from", "target": "to"}):
    """A talk begins. What is left out is as the server was started."""

    source: _Name | None = None
    target: _Name | None = None
    policy: _Name | None = None
    latency_ms: float | None = None  # the policy that was tuned for this lag
    transcript: bool = False  # what is spoken is wanted too, where the model writes it down
    audio: Audio = field(default_factory=Audio)
    speech: Encoding | None = None  # the translation is wanted aloud, too
    captions: Captions | None = None
    access_token: _Name | None = None  # where no Authorization header can be sent


class Said(_Event, frozen=True, tag="said"):
    """A word of the translation that is final, with its spacing: joined they are the text."""

    word: int  # 1, 2, 3 …
    text: str
    source_ms: float  # where in the talk it was spoken, as far as the model tells
    at_ms: float  # when it was said, since the talk began
    lag_ms: float | None  # how far behind the speaker; None if the model does not tell
    probability: float | None = None  # that the model gave it


class Transcript(_Event, frozen=True, tag="transcript"):
    """Words of the speaker that are final."""

    number: int
    text: str
    source_ms: float
    language: str | None  # that they are in: English, where the model translates by way of it


class Elsewhere(Struct, frozen=True, forbid_unknown_fields=True):
    """What a process needs to go on with a talk that another has begun: all from the last `heard`
    that the client has, and the words that came after that."""

    start: Start
    keep: _Count  # the sample from which on the client has its sound
    word: _Count
    transcript: _Count = 0
    said: list[Said] = field(default_factory=list)  # those after `word`, or more
    transcripts: list[Transcript] = field(default_factory=list)


class Resume(_Message, frozen=True, tag="resume"):
    """A talk goes on after a lost connection, from what the client has got."""

    session: _Name
    resume_token: _Name
    word: _Count = 0  # the last that the client has
    transcript: _Count = 0
    sample: _Count = 0  # the last `heard` that the client has
    elsewhere: Elsewhere | None = None  # should the process that had the talk be gone
    access_token: _Name | None = None


class Change(_Message, frozen=True, tag="change"):
    """Another policy, or the one for another lag, from now on."""

    policy: _Name | None = None
    latency_ms: float | None = None


class Stop(_Message, frozen=True, tag="stop"):
    """The speaker has ended: the rest is said, then comes the summary."""


class Speak(_Message, frozen=True, tag="speak"):
    """From now on the translation is wanted aloud, or no longer."""

    speech: Encoding | None = None


class Listen(_Message, frozen=True, tag="listen"):
    """Somebody listens in a room, perhaps again after a lost connection."""

    log: _Name = ""  # what `room` told, and the last `next` that `told` told: what the client has
    next: _Count = 0
    speech: Encoding | None = None
    access_token: _Name | None = None  # the room's, for listeners


class Ready(_Event, frozen=True, tag="ready"):
    """The talk may begin or go on: send sound from this sample on."""

    session: str
    resume_token: str
    sample: int


class Heard(_Event, frozen=True, tag="heard"):
    """All sound before `sample` has arrived. All before `keep` has been dealt with, in the words up
    to `word` and the transcripts up to `transcript`: a client need not keep it any longer."""

    sample: int
    keep: int
    word: int
    transcript: int


class Interim(_Event, frozen=True, tag="interim"):
    """What will probably be said next; replaces the interim text before it."""

    text: str


class State(_Event, frozen=True, tag="state"):
    """How it goes. `degraded`: the machine is behind, steps are longer than asked for."""

    state: Literal["listening", "degraded", "draining"]


class Summary(_Event, frozen=True, tag="summary"):
    """All is said; the server closes the socket after it."""

    words: int
    audio_ms: float
    lag_ms: float | None  # the mean, computation included
    load: float  # work per second of sound
    language: str | None


class Speech(_Event, frozen=True, tag="speech"):
    """A phrase of the interpreter's voice; the next binary frame is its sound."""

    number: int
    at_ms: float  # when it may be heard, since the talk began
    rate: int
    samples: int
    encoding: Encoding


class Audience(_Event, frozen=True, tag="audience"):
    """How many listen in the speaker's room."""

    listeners: int


class Talk(_Event, frozen=True, tag="talk", rename={"source": "from", "target": "to"}):
    """In a room: a talk begins, and what is told from here on belongs to it."""

    talk: int  # 1, 2, 3 …
    source: str | None
    target: str


class Told(_Event, frozen=True, tag="told"):
    """In a room: what is final, in order; `next` is what to ask for after a lost connection."""

    next: int
    events: tuple[Talk | Said | Transcript | Summary, ...]


RoomState = Literal["waiting", "listening", "degraded", "draining", "away", "finishing", "over"]


class Room(_Event, frozen=True, tag="room"):
    """How it goes in a room. `away`: the speaker's connection is lost, perhaps for a moment;
    `finishing`: the speaker has ended, and the rest is told."""

    room: str
    log: str  # another one: what was told before is told anew
    state: RoomState


class Error(_Event, frozen=True, tag="error"):
    """Something went wrong. Unless a close follows, the talk goes on as before."""

    code: Code
    message: str


class _Kind(Struct):
    """What every message has."""

    type: str


Request = Start | Resume | Change | Stop | Speak | Listen
Event = (
    Ready | Heard | Said | Interim | Transcript | State | Summary | Error
    | Speech | Audience | Talk | Told | Room
)  # fmt: skip


class Fault(Exception):  # noqa: N818  it is told, not raised to a user
    """What is told to one client, and to nobody else."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def event(self) -> Error:
        return Error(self.code, str(self))

    @property
    def close(self) -> Close:
        return CLOSES.get(self.code, Close.BAD)


_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_kinds = msgspec.json.Decoder(_Kind)
_KINDS = {kind.__struct_config__.tag for kind in get_args(Event)}


def read_request(text: str) -> Request:
    """A client's message; whatever is wrong with it is a fault."""
    if len(text) > MOST_TEXT:
        raise Fault(Code.TOO_BIG, f"A message has at most {MOST_TEXT} characters.")
    try:
        return _requests.decode(text)
    except msgspec.ValidationError as error:
        raise Fault(Code.MALFORMED, f"This message is not one of the protocol: {error}.") from error
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise Fault(Code.MALFORMED, "This message is not JSON.") from error


def read_event(text: str | bytes) -> Event:
    """A server's message, for clients in Python."""
    return _events.decode(text)


def is_new_kind(text: str) -> bool:
    """Whether it is an event of a server that knows more kinds of them."""
    try:
        return _kinds.decode(text).type not in _KINDS
    except msgspec.MsgspecError:
        return False


def write(message: Request | Event) -> str:
    return msgspec.json.encode(message).decode()


def read_sound(frame: bytes) -> tuple[int, Samples]:
    """The number of the first sample, and the samples."""
    first, data = read_packet(frame)
    if len(data) % 2:
        raise Fault(
            Code.SOUND, "A frame of sound is eight bytes of sample number and two per sample."
        )
    return first, from_pcm16(data)


def read_packet(frame: bytes) -> tuple[int, bytes]:
    """The number of the first sample, and what follows it."""
    if len(frame) > MOST_SOUND:
        raise Fault(Code.TOO_BIG, f"A frame of sound has at most {MOST_SOUND} bytes.")
    if len(frame) < _HEADER.size:
        raise Fault(Code.SOUND, "A frame of sound begins with eight bytes of sample number.")
    return int(_HEADER.unpack_from(frame)[0]), frame[_HEADER.size :]


def write_sound(first: int, samples: Samples) -> bytes:
    """A frame of sound, for clients in Python; samples are floats in [-1, 1]."""
    return write_packet(first, to_pcm16(samples))


def write_packet(first: int, data: bytes) -> bytes:
    """A frame with a packet of Opus, or with samples that are encoded already."""
    return _HEADER.pack(first) + data

"""Rooms: one speaks, many listen, each with a token for the role.

A room costs nothing until somebody is in it. What is final is kept as a log of encoded messages,
once for all listeners; each of them reads on from where it is.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import msgspec

from dragoman.serve.bell import Pulse
from dragoman.serve.downloads import Files
from dragoman.serve.protocol import (
    Code,
    Fault,
    RoomState,
    Said,
    Summary,
    Talk,
    Told,
    Transcript,
    write,
)
from dragoman.serve.protocol import Room as RoomEvent
from dragoman.serve.room_keys import Keys, Role
from dragoman.serve.session import Session
from dragoman.serve.settings import Settings
from dragoman.setup import Setup

MOST_ROOMS = 1000
"""Rooms that are remembered; beyond, those go in which nobody has been for longest."""
MOST_KEPT = 500_000
"""Messages of all rooms together, some 100 MB; beyond, the same go."""
MOST_TOLD = 200_000
"""Messages of a room's log: at least a day of talk. What belongs to earlier talks goes first."""
IN_A_FRAME = 400
"""Messages that are told at once, some 50 kB."""

_told: msgspec.json.Decoder[Talk | Said | Transcript | Summary] = msgspec.json.Decoder(
    Talk | Said | Transcript | Summary
)


class Room:
    """What is told in a room, and how many listen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log = secrets.token_hex(4)
        self.talks = 0
        self.reached: dict[object, int] = {}
        """Up to which entry each who listens has been told."""
        self.interim = ""
        self.state: RoomState = "waiting"
        self.session: Session | None = None
        self._ending: list[Session] = []  # talks before that one, whose rest is told first
        self.talk = ""
        """The one that was told last, by its session's name."""
        self.since = 0.0
        """When its speaker last came here, in seconds since 1970; 0: none ever did."""
        self.opening = False  # a talk is about to begin
        self.left = False  # the room is in another process
        self.pulse = Pulse()
        self._files = Files()
        self._entries: list[str] = []
        self._first = 0  # number of the first entry that is kept
        self._began = 0  # and of the first of the last talk
        self._word = self._transcript = self._phrases = 0  # the last of this talk that were taken
        self._summed_up = False
        self._frame = (-1, -1, "")  # the last one: nearly all listeners ask for the same

    @property
    def listeners(self) -> int:
        return len(self.reached)

    @property
    def next(self) -> int:
        """The number of the entry that comes next."""
        return self._first + len(self._entries)

    @property
    def kept(self) -> int:
        """Entries."""
        return len(self._entries)

    @property
    def event(self) -> RoomEvent:
        return RoomEvent(self.name, self.log, self.state)

    @property
    def live(self) -> bool:
        """A talk goes on here, perhaps without its speaker for a moment."""
        return self.session is not None and not self.session.finished

    @property
    def spoken_in(self) -> bool:
        """A talk goes on, and its speaker is here."""
        return self.live and self.session is not None and self.session.client is not None

    @property
    def empty(self) -> bool:
        return self.session is None and not self.opening and not self.listeners

    def frame(self, start: int) -> tuple[str, int]:
        """A `told` from an entry on, as text, and the number after it."""
        start = max(start, self._first)
        end = min(self.next, start + IN_A_FRAME)
        if self._frame[:2] != (start, end):
            entries = self._entries[start - self._first : end - self._first]
            text = f'{{"type":"told","next":{end},"events":[{",".join(entries)}]}}'
            self._frame = (start, end, text)
        return self._frame[2], end

    async def file(self, name: str) -> str:
        """What was said so far in the last talk, as a file."""
        entries = self._entries[self._began - self._first :] if self.talks else []
        return await self._files.get(name, self.next, lambda: _read(entries))

    def join(self, listener: object) -> None:
        self.reached[listener] = 0
        self._tell_speaker()

    def part(self, listener: object) -> None:
        del self.reached[listener]
        self._tell_speaker()

    def follow(self, session: Session, after: float = 0.0) -> None:
        """This talk is told here from now on; one that was told before is ended, and the rest of
        it is told first, however its speaker comes back for that. A talk that was begun anew, from
        what its client has kept, goes on where it was.

        `after`: until when the room was elsewhere, by clocks that may differ from ours."""
        if session.stopped and self.talks and session.id != self.talk:
            return
        if not session.finished:
            self.since = max(time.time(), self.since, after + 0.001)
        before = self.session
        if before is session:
            self.look()
            return
        anew = session.id == self.talk
        if before is not None:
            before.stop()
            if anew:
                before.news.unfollow(self.look)
            else:
                self._ending.append(before)
        self.session, self.talk = session, session.id
        if not anew and not self._ending:
            self._begin(session.setup)
        session.news.follow(self.look)
        self._tell_speaker()
        self.look()

    def is_ahead_of(self, session: Session) -> bool:
        """Whether more of this talk was told here than it knows itself: it was begun anew from what
        its client has kept, which had not been told all."""
        if session.id != self.talk or self._ending:
            return False
        return session.last_word < self._word or session.last_transcript < self._transcript

    def leave(self) -> Session | None:
        """The room is elsewhere. Who listens here is sent away, to come again and be led there;
        the talk that was followed here is returned."""
        session, self.session = self.session, None
        for one in (*self._ending, session):
            if one is not None:
                one.news.unfollow(self.look)
        self._ending = []
        self.left = True
        self.pulse.beat()
        return session

    def _begin(self, setup: Setup) -> None:
        self.talks += 1
        self._word = self._transcript = 0
        self._summed_up = False
        if len(self._entries) > MOST_TOLD:
            self._first, self._entries = self.next, []
        self._began = self.next
        self._entries.append(write(Talk(self.talks, setup.source, setup.target)))

    def look(self) -> None:
        """Take what is new in the talk; wake the listeners if there is anything."""
        session = self.session
        if session is None:
            return
        before = self.next
        self._tell_rests()
        told = self._ending[0] if self._ending else session  # what is said now comes after that
        if told is session:
            self._take(session)
        phrases = session.voice.count if session.voice else 0
        state, interim = self._state_of(session), "" if told.finished else told.interim
        shown = (state, interim, phrases) != (self.state, self.interim, self._phrases)
        self.state, self.interim, self._phrases = state, interim, phrases
        heard = session.voice is None or session.voice.silent
        if told is session and session.finished and heard:
            session.news.unfollow(self.look)
            self.session = None
        if shown or self.next > before:
            self.pulse.beat()

    def _tell_rests(self) -> None:
        """The rest of talks that another one has ended, each to its end."""
        while self._ending:
            self._take(self._ending[0])
            if not self._ending[0].finished:
                return
            self._ending.pop(0).news.unfollow(self.look)
            following = self._ending[0] if self._ending else self.session
            assert following is not None
            self._begin(following.setup)

    def _take(self, session: Session) -> None:
        """Keep what is new in a talk for those who listen."""
        written = session.transcripts_after(self._transcript)
        said = session.words_after(self._word)
        self._transcript = written[-1].number if written else self._transcript
        self._word = said[-1].word if said else self._word
        fresh: list[Transcript | Said] = [*written, *said]
        self._entries += [write(event) for event in fresh]
        if session.summary is not None and not self._summed_up:
            self._summed_up = True
            self._entries.append(write(session.summary))

    def _state_of(self, session: Session) -> RoomState:
        if session.finished and not self._ending:
            return "over"
        if session.stopped or session.finished:  # whose speaker may be gone, and is not waited for
            return "finishing"
        return "away" if session.client is None else session.state

    def _tell_speaker(self) -> None:
        if self.session is not None:
            self.session.audience = self.listeners
            self.session.news.set()


def _read(entries: Sequence[str]) -> Told:
    return Told(len(entries), tuple(_told.decode(entry) for entry in entries))


class Rooms:
    """The rooms of a process; a room is there as soon as somebody with a token enters it."""

    def __init__(self, settings: Settings) -> None:
        self.keys = Keys(settings.secret, settings.token)
        self.led = 0
        """Who came here and is in a room of another process."""
        self._most = settings.listeners
        self._rooms: dict[str, Room] = {}

    @property
    def listeners(self) -> int:
        return sum(room.listeners for room in self._rooms.values())

    @property
    def behind(self) -> bool:
        """Somebody has not been told all, or the last phrase is still to be spoken."""
        return any(
            one.session is not None or min(one.reached.values(), default=one.next) < one.next
            for one in self._rooms.values()
        )

    @property
    def waiting(self) -> list[str]:
        """The names of those in which somebody waits for the speaker, or a talk does."""
        rooms = self._rooms.values()
        return [one.name for one in rooms if not one.empty and not one.spoken_in]

    def get(self, name: str) -> Room | None:
        """The room of a name, if somebody has been there."""
        return self._rooms.get(name)

    def enter(self, name: str) -> Room:
        """The room of a name, for somebody whose token was looked at."""
        room = self._rooms.pop(name, None) or Room(name)
        self._rooms[name] = room  # last in the row: the first that are empty go first
        kept = sum(one.kept for one in self._rooms.values())
        for one in [one for one in self._rooms.values() if one.empty and one is not room]:
            if len(self._rooms) <= MOST_ROOMS and kept <= MOST_KEPT:
                break
            del self._rooms[one.name]
            kept -= one.kept
        return room

    def leave(self, name: str) -> Session | None:
        """A room is in another process; the talk that was followed here is returned."""
        return self._rooms.pop(name).leave()

    def admit_listener(self) -> None:
        if self.listeners + self.led >= self._most:
            raise Fault(Code.FULL, f"All {self._most} seats are taken; try later.")

    def may_listen(self, room: str, offered: str | None) -> bool:
        """Who may speak in a room may listen there, too."""
        roles = (Role.SPEAKER, Role.LISTENER)
        return any(self.keys.admits(room, role, offered) for role in roles)

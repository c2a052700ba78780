"""The talks of one process: who is let in, who comes back, and how it all ends."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from dragoman.audio import opus
from dragoman.audio.resample import check_rate
from dragoman.clock import RealClock
from dragoman.errors import DragomanError
from dragoman.policies import make_policy
from dragoman.serve import push
from dragoman.serve.advice import for_client, misfit
from dragoman.serve.logs import note
from dragoman.serve.metrics import Metrics
from dragoman.serve.past import Past
from dragoman.serve.protocol import Change, Code, Fault, Resume, Start
from dragoman.serve.rooms import Rooms
from dragoman.serve.scheduler import Scheduler
from dragoman.serve.session import Client, Session
from dragoman.serve.settings import Settings
from dragoman.serve.speech import Voices
from dragoman.serve.tickets import Tickets
from dragoman.serve.visits import Visits
from dragoman.serve.wishes import tuned, wanted
from dragoman.setup import Setup, System


class Service:
    """One model and the talks on it."""

    def __init__(self, system: System, settings: Settings) -> None:
        self.system, self.settings = system, settings
        self.metrics = Metrics()
        self.scheduler = Scheduler(
            self.metrics, settings.batch, settings.lanes, apart=settings.apart
        )
        self.voices = Voices(settings.voice)
        self.rooms = Rooms(settings)
        self.draining = False
        self._tickets = Tickets(settings.secret.encode() if settings.secret else None)
        self._sessions: dict[str, Session] = {}
        self._opening = self._receiving = 0
        self._visits = Visits(settings.connects)
        self._pushing: set[asyncio.Task[None]] = set()
        self._led: set[asyncio.Event] = set()

    @property
    def streams(self) -> int:
        """Talks going on, those that have lost their connection for a moment among them."""
        return len(self.scheduler) + self._opening

    def _taken(self, live: bool) -> int:
        """Places of talks that somebody who comes would find taken: a file's is given to whoever
        speaks live."""
        return self.streams if not live else self.scheduler.live + self._opening

    @property
    def quiet(self) -> bool:
        """All is said, whoever listens has been told, and captions are posted."""
        told = all(one.client is None for one in self._sessions.values())
        waiting = self._receiving or self._pushing or self._led
        return told and not self.streams and not waiting

    @property
    def status(self) -> Literal["ready", "full", "draining"]:
        if self.draining:
            return "draining"
        full = self._taken(live=True) >= self.settings.streams or self.scheduler.refusing
        return "full" if full else "ready"

    def greet(self, address: str) -> None:
        """Somebody has connected; too often is a fault."""
        self._visits.note(address)

    def _admit(self, live: bool = True) -> None:
        """Whether another talk is let in; a fault if it is not."""
        if self.draining:
            raise Fault(Code.DRAINING, "This server is about to end; try another, or later.")
        if self._taken(live) >= self.settings.streams:
            raise Fault(Code.FULL, f"All {self.settings.streams} streams are taken; try later.")
        if self.scheduler.refusing:
            raise Fault(Code.FULL, "This machine is behind with the talks it has; try later.")

    @contextmanager
    def place_kept(self) -> Iterator[None]:
        """For a talk, until it begins."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def _admit_file(self) -> None:
        self._admit(live=False)
        if self.streams + self._receiving >= self.settings.streams:
            raise Fault(Code.FULL, f"{self._receiving} files are on their way already; try later.")

    @property
    def takes_files(self) -> bool:
        """Whether another one would be let in."""
        try:
            self._admit_file()
        except Fault:
            return False
        return True

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """A file is on its way, which is to be a talk: it has a place meanwhile, so that it is not
        sent for nothing, and the process does not end in its middle."""
        self._admit_file()
        self._receiving += 1
        try:
            yield
        finally:
            self._receiving -= 1

    @contextmanager
    def leading(self) -> Iterator[asyncio.Event]:
        """Somebody who cannot come back speaks with another process through this one, which does
        not end meanwhile, and tells if it has to."""
        ending = asyncio.Event()
        self._led.add(ending)
        try:
            yield ending
        finally:
            self._led.discard(ending)

    async def start(self, request: Start, *, live: bool = True) -> Session:
        """Open a talk, if there is room for it; `live`: somebody waits for what is said."""
        self._admit(live)
        return await self.go_on(request, live=live)

    async def go_on(self, request: Start, *, live: bool = True) -> Session:
        """A talk in the place of one that has ended for it: its client has been let in."""
        name = secrets.token_hex(8)
        session = await self._begin(name, self._tickets.make(name), request)
        session.live = live
        return session

    async def check(self, request: Start) -> None:
        """Whether such a talk could be opened; else a fault. Nobody is let in for that."""
        setup = wanted(self.system.setup, request)
        await self.scheduler.on_worker(self._open, setup, request, None)

    def keeps(self, session: str) -> bool:
        """Whether a talk can be resumed in this process, as it is."""
        known = self._sessions.get(session)
        return known is not None and not known.given_up

    def known(self, request: Resume) -> Session | None:
        """The talk that is resumed, if this process has the latest of it and can go on: should
        another have gone on with it, the client has another token."""
        session = self._sessions.get(request.session)
        if session is None or not session.opened_by(request.resume_token):
            return None
        return None if session.given_up and request.elsewhere else session

    async def resume(self, request: Resume) -> Session:
        """A talk that goes on, here or in place of the process that had it.

        An unknown one and somebody else's are told in the same words.
        """
        session = self.known(request)
        if session is not None:
            ahead = (
                request.word > session.last_word
                or request.transcript > session.last_transcript
                or request.sample > session.furthest
            )
            if ahead:
                raise Fault(Code.NO_SESSION, "This talk has not come as far as the client says.")
            note("resumed", session=session.id, word=request.word)
            return session
        began = self._tickets.began(request.session, request.resume_token)
        if began is None or request.elsewhere is None:
            raise Fault(Code.NO_SESSION, "There is no such talk here, or it is over.")
        return await self._take_over(request, began)

    async def _take_over(self, request: Resume, began: float) -> Session:
        """Go on with a talk that another process has begun, or that was given up here. Should it
        have gone on from here to there and back, what is known here is out of date."""
        assert request.elsewhere is not None
        past = Past.of(request.elsewhere, request.sample, (time.time() - began) * 1000)
        if (request.word, request.transcript) != (past.last_word, past.last_transcript):
            raise Fault(Code.MALFORMED, "'elsewhere' ends with the last word that the client has.")
        stale = self._sessions.get(request.session)
        if stale is not None:
            self.drop(stale)
        self._admit()
        token = self._tickets.make(request.session, began)
        return await self._begin(request.session, token, request.elsewhere.start, past)

    async def _begin(
        self, name: str, token: str, request: Start, past: Past | None = None
    ) -> Session:
        setup = wanted(self.system.setup, request)
        if request.captions is not None:
            push.check(request.captions, self.settings.captions_to)
        with self.place_kept():
            session = await self.scheduler.on_worker(self._open, setup, request, past)
        if name in self._sessions:  # somebody was as quick, and is gone again
            self.drop(self._sessions[name])
        session.id, session.resume_token = name, token
        session.draining = self.draining  # since it was admitted, perhaps
        self._sessions[name] = session
        self.scheduler.add(session)
        self.metrics.talks.inc()
        if request.captions is not None:
            pushing = asyncio.create_task(push.Pusher(session, request.captions).run())
            self._pushing.add(pushing)
            pushing.add_done_callback(self._pushing.discard)
        event = "taken over" if past else "started"
        note(event, session=name, source=setup.source, target=setup.target)
        return session

    async def change(self, session: Session, request: Change) -> None:
        """Another policy; what is wrong with it leaves the talk as it was."""
        setup = tuned(session.setup, request.policy, request.latency_ms)
        try:
            await self.scheduler.between_steps(
                session, setattr, session.interpreter, "policy", make_policy(setup.policy)
            )
        except DragomanError as error:
            raise Fault(Code.UNFIT, for_client(error)) from error
        session.change(setup)
        self.scheduler.wake()

    def detach(self, session: Session, client: Client) -> None:
        """A connection is gone; its talk is kept for a while, if somebody can come back to it."""
        if session.client is client:
            session.client = None
            if session.left:
                self._end(session)
            if not session.lasting:
                self.drop(session)
                return
            session.partings += 1
            loop = asyncio.get_running_loop()
            loop.call_later(self.settings.keep, self._forget, session, session.partings)

    def leave(self, name: str) -> None:
        """The speaker of a talk will not come back: it ends with its connection, before which all
        has come that was sent over it."""
        session = self._sessions[name]
        session.left = True
        if session.client is None:
            self._end(session)

    def _end(self, session: Session) -> None:
        session.stop()
        self.scheduler.wake()

    def drain(self) -> None:
        """No more talks; those that are going on may end."""
        self.draining = True
        note("draining", streams=self.streams)
        for session in self._sessions.values():
            session.draining = True
            session.news.set()

    def stop_all(self) -> None:
        """This process ends now. Who can goes on with another; of the others the speaker is taken
        to have ended, and what was heard is said."""
        for session in self._sessions.values():
            if self.settings.secret is None or not session.lasting:
                session.stop()
            elif not session.finished:
                session.fail(Fault(Code.DRAINING, "This server ends; go on with another."))
                self.scheduler.remove(session)
                note("handed on", session=session.id)
        for ending in self._led:
            ending.set()
        self.scheduler.wake()

    def _forget(self, session: Session, parting: int) -> None:
        """Unless somebody came back since that parting."""
        if session.client is None and session.partings == parting:
            self.drop(session)
            note("forgotten", session=session.id)

    def drop(self, session: Session) -> None:
        """Nobody wants this talk any more."""
        if not session.finished:
            session.fail(Fault(Code.NO_SESSION, "This talk is over."))
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        self.scheduler.remove(session)

    def _open(self, setup: Setup, request: Start, past: Past | None) -> Session:
        clock, audio = RealClock(), request.audio
        if audio.encoding == "opus" and audio.counted != opus.RATE:
            raise Fault(Code.UNFIT, f"Opus counts {opus.RATE} samples a second; leave out 'rate'.")
        try:
            check_rate(audio.counted, "This sound")
            system = self.system.changed(
                source=setup.source,
                target=setup.target,
                policy=setup.policy,
                step_ms=setup.step_ms,
            )
            interpreter = system.interpreter(clock=clock, transcript=request.transcript)
        except DragomanError as error:
            raise misfit(error, setup, self.system.model) from error
        return Session(interpreter, setup, clock, audio, self.settings, past)

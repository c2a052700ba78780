"""The talks of one process: who is let in, who comes back, and how it all ends."""

from __future__ import annotations

import asyncio
from typing import Literal

from dragoman.audio.resample import check_rate
from dragoman.clock import RealClock
from dragoman.errors import DragomanError
from dragoman.policies import make_policy
from dragoman.serve.logs import note
from dragoman.serve.metrics import Metrics
from dragoman.serve.protocol import Change, Code, Fault, Resume, Start
from dragoman.serve.rooms import Rooms
from dragoman.serve.scheduler import Scheduler
from dragoman.serve.session import Listener, Session
from dragoman.serve.settings import Settings
from dragoman.serve.speech import Voices
from dragoman.setup import Setup, System
from dragoman.text.languages import find_language


class Service:
    """One model and the talks on it."""

    def __init__(self, system: System, settings: Settings) -> None:
        self.system, self.settings = system, settings
        self.metrics = Metrics()
        self.scheduler = Scheduler(self.metrics, settings.batch)
        self.voices = Voices(settings.voice)
        self.rooms = Rooms(settings)
        self.draining = False
        self._sessions: dict[str, Session] = {}
        self._opening = 0

    @property
    def streams(self) -> int:
        """Talks going on, those that have lost their connection for a moment among them."""
        return len(self.scheduler) + self._opening

    @property
    def quiet(self) -> bool:
        """All is said, and whoever listens has been told."""
        return not self.streams and all(one.listener is None for one in self._sessions.values())

    @property
    def status(self) -> Literal["ready", "full", "draining"]:
        if self.draining:
            return "draining"
        return "full" if self.streams >= self.settings.streams else "ready"

    async def start(self, request: Start) -> Session:
        """Open a talk, if there is room for it."""
        if self.draining:
            raise Fault(Code.DRAINING, "This server is about to end; try another, or later.")
        if self.streams >= self.settings.streams:
            raise Fault(Code.FULL, f"All {self.settings.streams} streams are taken; try later.")
        setup = _wanted(self.system.setup, request)
        self._opening += 1
        try:
            session = await self.scheduler.on_worker(self._open, setup, request)
        finally:
            self._opening -= 1
        self._sessions[session.id] = session
        self.scheduler.add(session)
        note("started", session=session.id, source=setup.source, target=setup.target)
        return session

    def resume(self, request: Resume) -> Session:
        """A talk that goes on; an unknown one and somebody else's are told in the same words."""
        session = self._sessions.get(request.session)
        if session is None or not session.opened_by(request.resume_token):
            raise Fault(Code.NO_SESSION, "There is no such talk here, or it is over.")
        ahead = (
            request.word > len(session.words)
            or request.transcript > len(session.transcripts)
            or request.sample > session.sample
        )
        if ahead:
            raise Fault(Code.NO_SESSION, "This talk has not come as far as the client says.")
        note("resumed", session=session.id, word=request.word)
        return session

    async def change(self, session: Session, request: Change) -> None:
        """Another policy; what is wrong with it leaves the talk as it was."""
        setup = _tuned(session.setup, request.policy, request.latency_ms)
        try:
            await self.scheduler.on_worker(
                setattr, session.interpreter, "policy", make_policy(setup.policy)
            )
        except DragomanError as error:
            raise Fault(Code.UNFIT, str(error)) from error
        session.change(setup)
        self.scheduler.wake()

    def detach(self, session: Session, listener: Listener) -> None:
        """A connection is gone; its talk is kept for a while."""
        if session.listener is listener:
            session.listener = None
            session.partings += 1
            loop = asyncio.get_running_loop()
            loop.call_later(self.settings.keep, self._forget, session, session.partings)

    def drain(self) -> None:
        """No more talks; those that are going on may end."""
        self.draining = True
        note("draining", streams=self.streams)
        for session in self._sessions.values():
            session.draining = True
            session.news.set()

    def stop_all(self) -> None:
        """Every speaker is taken to have ended: what was heard is said."""
        for session in self._sessions.values():
            session.stop()
        self.scheduler.wake()

    def _forget(self, session: Session, parting: int) -> None:
        """Unless somebody came back since that parting."""
        if session.listener is None and session.partings == parting:
            del self._sessions[session.id]
            self.scheduler.remove(session)
            if not session.finished:
                session.fail()  # whoever follows it learns that no more comes
            note("forgotten", session=session.id)

    def _open(self, setup: Setup, request: Start) -> Session:
        clock = RealClock()
        try:
            rate = check_rate(request.audio.rate, "This sound")
            system = self.system.changed(
                source=setup.source,
                target=setup.target,
                policy=setup.policy,
                step_ms=setup.step_ms,
            )
            interpreter = system.interpreter(clock=clock, transcript=request.transcript)
        except DragomanError as error:
            raise Fault(Code.UNFIT, str(error)) from error
        return Session(interpreter, setup, clock, rate, self.settings.longest)


def _wanted(setup: Setup, request: Start) -> Setup:
    """The server's setup with what a client wants of it."""
    try:
        source = request.source and find_language(request.source).code
        target = request.target and find_language(request.target).code
    except DragomanError as error:
        raise Fault(Code.LANGUAGE, str(error)) from error
    setup = setup.with_changes(source=source, target=target)
    if request.policy is None and request.latency_ms is None:
        return setup
    return _tuned(setup, request.policy, request.latency_ms)


def _tuned(setup: Setup, policy: str | None, latency_ms: float | None) -> Setup:
    """Another policy, or the one that was tuned for a lag."""
    if (policy is None) == (latency_ms is None):
        raise Fault(Code.POLICY, "Give a policy or latency_ms, one of the two.")
    try:
        return setup.with_changes(policy=policy) if latency_ms is None else setup.tuned(latency_ms)
    except DragomanError as error:
        raise Fault(Code.POLICY, str(error)) from error

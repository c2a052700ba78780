"""A client that does whatever it likes, in any order: it is told what is wrong, and nothing that it
does hurts its own words or the next talk."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from dragoman.serve.app import make_app
from dragoman.serve.protocol import (
    Change,
    Code,
    Error,
    Heard,
    Ready,
    Resume,
    Said,
    Start,
    Stop,
    Summary,
    read_event,
    write,
    write_sound,
)
from tests.serve.clients import PATH, make_service
from tests.serve.numbers import LENGTH, sound_of, words_of

NOT_MESSAGES = st.one_of(
    st.text(max_size=50),
    st.sampled_from(['{"type":"start","x":1}', '{"type":"stop"', "[]", "null", '{"type":1}']),
)


class Protocol(RuleBasedStateMachine):
    """One client and its socket; the server reads numbers, so that what it heard can be told."""

    def __init__(self) -> None:
        super().__init__()
        self.service = make_service("tests.serve.numbers:numbers", connects=10**6, streams=50)
        self.web = TestClient(make_app(self.service)).__enter__()
        self.socket = None
        self.ready = None  # of the talk
        self.stopped = self.over = False
        self.sent = 0  # numbers
        self.heard = 0
        self.words = []

    def teardown(self) -> None:
        self.drop()
        with self.web.websocket_connect(PATH) as socket:  # the next talk is as good as any
            socket.send_text(write(Start()))
            socket.send_bytes(write_sound(0, sound_of(0, 10)))
            socket.send_text(write(Stop()))
            said, event = [], None
            while not isinstance(event, Summary):
                event = read_event(socket.receive_text())
                said += [(event.word, event.text)] if isinstance(event, Said) else []
        self.web.__exit__(None, None, None)
        assert said == words_of(10)

    @precondition(lambda self: self.socket is None)
    @rule()
    def connect(self) -> None:
        self.socket = self.web.websocket_connect(PATH).__enter__()
        if self.ready is None or self.over:
            self.ready, self.over, self.stopped = None, False, False
            self.sent, self.heard, self.words = 0, 0, []
            self.socket.send_text(write(Start()))
        else:
            last = self.words[-1][0] if self.words else 0
            name, token = self.ready.session, self.ready.resume_token
            self.socket.send_text(write(Resume(name, token, last, 0, self.heard)))
        event = read_event(self.socket.receive_text())
        assert isinstance(event, Ready)
        assert self.heard <= event.sample <= self.sent * LENGTH
        self.ready = event

    @precondition(lambda self: self.socket is not None and not self.stopped)
    @rule(count=st.integers(1, 4))
    def speak(self, count: int) -> None:
        self.socket.send_bytes(write_sound(self.sent * LENGTH, sound_of(self.sent, count)))
        self.sent += count

    @precondition(lambda self: self.socket is not None and self.sent)
    @rule(back=st.integers(1, 5))
    def say_again(self, back: int) -> None:
        first = max(0, self.sent - back)
        self.socket.send_bytes(write_sound(first * LENGTH, sound_of(first, self.sent - first)))

    @precondition(lambda self: self.socket is not None)
    @rule(policy=st.sampled_from(["greedy", "wait-k:k=2", "nonsense", "alignatt:f=-1"]))
    def change(self, policy: str) -> None:
        self.socket.send_text(write(Change(policy=policy)))

    @precondition(lambda self: self.socket is not None)
    @rule()
    def stop(self) -> None:
        self.socket.send_text(write(Stop()))
        self.stopped = True
        self.read_to_the_end({Code.POLICY, Code.UNFIT})
        assert self.words == words_of(self.sent)
        self.over = True

    @precondition(lambda self: self.socket is not None)
    @rule(text=NOT_MESSAGES)
    def say_nonsense(self, text: str) -> None:
        self.socket.send_text(text)
        self.read_to_the_end({Code.POLICY, Code.UNFIT, Code.MALFORMED, Code.TOO_BIG})

    @precondition(lambda self: self.socket is not None and not self.stopped)
    @rule(data=st.binary(max_size=40))
    def send_noise(self, data: bytes) -> None:
        """Half a frame, or sound of another age; never sound that would count."""
        frame = b"\xff" * 6 + data
        self.socket.send_bytes(frame)
        self.read_to_the_end({Code.POLICY, Code.UNFIT, Code.SOUND})

    @precondition(lambda self: self.socket is not None)
    @rule()
    def drop(self) -> None:
        if self.socket is not None:
            self.socket.__exit__(None, None, None)
            self.socket = None

    def read_to_the_end(self, codes: set[Code]) -> None:
        """All that the server tells before it closes; errors are of the kinds that may be."""
        try:
            while True:
                event = read_event(self.socket.receive_text())
                if isinstance(event, Said):
                    self.words.append((event.word, event.text))
                elif isinstance(event, Heard):
                    self.heard = event.sample
                elif isinstance(event, Error):
                    assert event.code in codes, event
        except WebSocketDisconnect:
            pass
        self.drop()

    @invariant()
    def words_are_those_that_were_spoken(self) -> None:
        assert self.words == words_of(self.sent)[: len(self.words)]
        assert self.service.streams < 50


Protocol.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
TestProtocol = Protocol.TestCase

"""Whatever a client gets wrong is told to it in a code; the talk beside it does not notice."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from starlette.websockets import WebSocketDisconnect

from dragoman.serve import connection, listening
from dragoman.serve.connection import Connection
from dragoman.serve.protocol import (
    MOST_SOUND,
    MOST_TEXT,
    Code,
    Fault,
    Ready,
    Resume,
    Summary,
    write,
)
from dragoman.serve.relay import Line
from dragoman.serve.settings import Settings, is_loopback, origin_allowed
from tests.serve.clients import PATH, Client, closed, make_service, silence, steady_words
from tests.serve.processes import in_time

START = '{"type":"start"}'
TOKEN = "a token that nobody guesses"

# What is sent, one message after another; the code of the error; the close code.
FAULTS = {
    "no JSON": (["{"], "malformed", 4400),
    "no object": (["[]"], "malformed", 4400),
    "no type": (["{}"], "malformed", 4400),
    "an unknown type": (['{"type":"begin"}'], "malformed", 4400),
    "an event of the server's": (['{"type":"interim","text":"x"}'], "malformed", 4400),
    "a field of a wrong type": (['{"type":"start","audio":{"rate":"fast"}}'], "malformed", 4400),
    "a misspelt field": (['{"type":"start","form":"de"}'], "malformed", 4400),
    "half a surrogate": (['{"type":"start","to":"\ud800"}'], "malformed", 4400),
    "deep nesting": (["[" * 10_000], "malformed", 4400),
    "a long text": ([" " * (MOST_TEXT + 1)], "too_big", 1009),
    "sound before the start": ([silence(0)], "malformed", 4400),
    "a stop before the start": (['{"type":"stop"}'], "malformed", 4400),
    "an unknown language": (['{"type":"start","from":"klingon"}'], "language", 4400),
    "an unknown target": (['{"type":"start","to":"xx"}'], "language", 4400),
    "an unknown policy": (['{"type":"start","policy":"wait-q"}'], "policy", 4400),
    "code of its own as a policy": (
        ['{"type":"start","policy":"dragoman.policies.simple.Greedy"}'],
        "policy",
        4400,
    ),
    "an unknown knob": (['{"type":"start","policy":"wait-k:q=3"}'], "policy", 4400),
    "policy and latency": (
        ['{"type":"start","policy":"greedy","latency_ms":2000}'],
        "policy",
        4400,
    ),
    "a lag that no policy has": (['{"type":"start","latency_ms":1}'], "policy", 4400),
    "no lag at all": (['{"type":"start","latency_ms":0}'], "policy", 4400),
    "a rate of nonsense": (['{"type":"start","audio":{"rate":-1}}'], "unfit", 4400),
    "another encoding": (['{"type":"start","audio":{"encoding":"mp3"}}'], "malformed", 4400),
    "a second start": ([START, START], "malformed", 4400),
    "text where sound belongs": ([START, "sound"], "malformed", 4400),
    "half a sample": ([START, silence(0) + b"x"], "sound", 4400),
    "a sample and a half": ([START, silence(0) + b"xyz"], "sound", 4400),
    "half a header": ([START, b"1234"], "sound", 4400),
    "no bytes": ([START, b""], "sound", 4400),
    "a gap": ([START, silence(1)], "sound", 4400),
    "a sample of another age": ([START, b"\xff" * 8 + b"\0\0"], "sound", 4400),
    "a frame that is too big": ([START, bytes(MOST_SOUND + 2)], "too_big", 1009),
    "nobody's talk": (['{"type":"resume","session":"x","resume_token":"y"}'], "no_session", 4404),
    "a word beyond all counting": (
        ['{"type":"resume","session":"x","resume_token":"y","word":1%s}' % ("0" * 400)],
        "malformed",
        4400,
    ),
    "a word below zero": (
        ['{"type":"resume","session":"x","resume_token":"y","word":-1}'],
        "malformed",
        4400,
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_told_and_hurts_nobody_else(opened, what):
    messages, code, close = FAULTS[what]
    _, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        good, bad = Client(one), Client(two)
        good.start()
        good.speak(2)
        for message in messages:
            if isinstance(message, bytes):
                bad.socket.send_bytes(message)
            else:
                bad.socket.send_text(message)
        assert closed(bad) == close
        error = bad.events[-1]
        assert error.code == code
        assert error.message.endswith((".", "?"))
        assert "Traceback" not in error.message
        good.speak(2.8)
        good.stop()
        good.until(Summary)
    assert good.words == steady_words()


@pytest.mark.parametrize(
    "changes",
    [{"resume_token": "guess"}, {"session": "other"}, {"word": 99}, {"sample": 10**9}],
)
def test_somebody_elses_talk_is_not_resumed(opened, changes):
    _, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        owner, thief = Client(one), Client(two)
        ready = owner.start()
        known = {"session": ready.session, "resume_token": ready.resume_token}
        thief.send(Resume(**(known | changes)))
        assert closed(thief) == 4404
        assert thief.events[-1].code == "no_session"
        assert ready.resume_token not in thief.events[-1].message
        owner.speak(4.8)
        owner.stop()
        owner.until(Summary)
    assert owner.words == steady_words()


@pytest.mark.parametrize(
    ("header", "message", "enters"),
    [
        (f"Bearer {TOKEN}", None, True),
        (None, TOKEN, True),
        (None, None, False),
        ("Bearer wrong", None, False),
        ("Bearer wrong", TOKEN, False),
        (None, TOKEN + "x", False),
        (None, "grüße", False),
    ],
)
def test_who_has_the_token_comes_in(opened, header, message, enters):
    _, web = opened(token=TOKEN)
    headers = {"authorization": header} if header else {}
    with web.websocket_connect(PATH, headers=headers) as socket:
        client = Client(socket)
        answer = client.start(access_token=message)
        assert isinstance(answer, Ready) == enters
        if not enters:
            assert answer.code == "token"
            assert closed(client) == 4401
    assert web.get("/metrics", headers=headers).status_code == (200 if header and enters else 401)
    assert web.get("/health").status_code == 200


def test_a_resume_needs_the_token_too(opened):
    _, web = opened(token=TOKEN)
    with web.websocket_connect(PATH) as socket:
        ready = Client(socket).start(access_token=TOKEN)
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.send(Resume(ready.session, ready.resume_token))
        assert closed(client) == 4401


def test_a_page_of_another_site_is_refused(opened):
    service, web = opened()
    with (
        pytest.raises(WebSocketDisconnect) as caught,
        web.websocket_connect(PATH, headers={"origin": "https://evil.example"}),
    ):
        pass
    assert caught.value.code == 4403
    assert service.streams == 0
    assert 'dragoman_refused_total{code="origin"} 1.0' in web.get("/metrics").text


@pytest.mark.parametrize(
    ("origin", "host", "token", "allowed"),
    [
        (None, "anything", None, True),
        ("http://localhost:8020", "localhost:8020", None, True),
        ("http://127.0.0.1:8020", "127.0.0.1:8020", None, True),
        ("http://[::1]:8020", "[::1]:8020", None, True),
        ("http://localhost:9999", "localhost:8020", None, False),
        ("http://evil.example:8020", "evil.example:8020", None, False),  # a name that leads here
        ("https://talks.example", "talks.example", TOKEN, True),
        ("https://evil.example", "talks.example", TOKEN, False),
        ("https://friend.example", "talks.example", TOKEN, True),
        ("null", "localhost:8020", None, False),
        ("", "", None, False),
    ],
)
def test_which_pages_may_connect(origin, host, token, allowed):
    settings = Settings(token=token, origins=("https://friend.example",))
    headers = {"host": host} if origin is None else {"host": host, "origin": origin}
    assert origin_allowed(settings, headers) == allowed


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *[("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)],
        *[("0.0.0.0", False), ("::", False), ("192.168.1.2", False), ("localhost.evil", False)],
    ],
)
def test_who_is_on_this_machine(host, loopback):
    assert is_loopback(host) == loopback


def test_names_on_the_wire_are_the_documented_ones():
    from dragoman.serve.protocol import Start

    sent = json.loads(write(Start(source="de", target="en")))
    assert (sent["type"], sent["from"], sent["to"]) == ("start", "de", "en")


@pytest.mark.parametrize("path", [PATH, "/v1/rooms/abcdefgh/listen"])
def test_who_says_nothing_at_first_is_let_go_soon(opened, monkeypatch, path):
    for module in (connection, listening):
        monkeypatch.setattr(module, "FIRST_WORDS", 0.01)
    _, web = opened(idle=1000.0)
    with web.websocket_connect(path) as socket:
        client = Client(socket)
        assert closed(client) == 4408
        assert client.events[-1].code == "idle"


FRIEND, STRANGER = "https://friend.example", "https://evil.example"


@pytest.mark.parametrize("path", ["/v1/rooms", "/v1/audio/translations"])
def test_pages_that_may_connect_may_ask_as_well(opened, path):
    """A browser asks first whether they may, and hands them the answer only if that names them."""
    _, web = opened(token=TOKEN, origins=(FRIEND,))
    wanted = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    asked = web.options(path, headers={"origin": FRIEND, **wanted})
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == FRIEND
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    told = web.post(path, headers={"origin": FRIEND, "authorization": f"Bearer {TOKEN}"})
    assert told.headers["access-control-allow-origin"] == FRIEND
    if path == "/v1/rooms":
        assert told.status_code == 200
    for origins in ((FRIEND,), ()):
        _, web = opened(token=TOKEN, origins=origins)
        for answer in (
            web.options(path, headers={"origin": STRANGER, **wanted}),
            web.post(path, headers={"origin": STRANGER, "authorization": f"Bearer {TOKEN}"}),
        ):
            assert answer.status_code >= 400
            assert "access-control-allow-origin" not in answer.headers


def test_what_a_client_did_wrong_explains_the_end_better_than_the_end_does():
    """Whichever task is looked at first, when both are done at one moment."""

    async def tell():
        raise RuntimeError("the end")

    async def listen():
        raise Fault(Code.SOUND, "no sound")

    async def ended():
        for _ in range(50):
            line = Connection(make_service(), SimpleNamespace())
            with pytest.raises(Fault):
                await line._both_ways(tell(), listen())

    in_time(ended())


@pytest.mark.parametrize(
    ("told", "code"),
    [(1000, 1000), (4404, 4404), (1005, 1012), (1006, 1012), (1015, 1012), (None, 1012)],
)
def test_who_was_led_to_another_process_is_closed_with_a_code_that_can_be_sent(told, code):
    class There:
        close_code = told

        async def send(self, frame):
            pass

        async def __aenter__(self):
            return self

        async def __aexit__(self, *error):
            pass

        async def __aiter__(self):
            return
            yield

    async def led():
        async def receive():
            await asyncio.Event().wait()

        socket = SimpleNamespace(url=SimpleNamespace(path="/"), receive=receive)
        place = SimpleNamespace(connect=lambda *_, **__: There(), host="h", port=1)
        return await Line(make_service(), socket).serve(place, "/", [])

    assert in_time(led()) == code

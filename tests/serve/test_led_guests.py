"""Deepgram's and OpenAI's clients, in processes that know each other."""

import asyncio
import json
import sys
import urllib.error
import urllib.request
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from dragoman.audio.pcm import to_pcm16
from dragoman.serve import places, relay
from dragoman.serve.places import Question
from dragoman.serve.protocol import Close
from dragoman.serve.relay import Beginnings, Line, NoPlaceError
from tests.serve.clients import make_service, steady_words
from tests.serve.house import house, processes, threads
from tests.serve.numbers import sound_of
from tests.serve.processes import command, in_time
from tests.serve.test_elsewhere import NUMBERS
from tests.serve.test_openai_realtime import talk
from tests.serve.test_openai_realtime import tone as tone
from tests.serve.test_tls import certificate as certificate

TOKEN = "a token that nobody guesses"
COUNT = 30


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A machine that runs tests may be slow to answer."""
    monkeypatch.setattr(places, "PATIENCE", 30.0)


class Deepgram:
    """A client that counts; it stops in the middle until it is told to go on."""

    def __init__(self, url: str, **options) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self._address = f"{url}/v1/listen?encoding=linear16&sample_rate=16000"
        self._options = {"compression": None, "proxy": None, **options}
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> tuple[str, str, int]:
        """What it was told, the kind of the last message, and how the socket was closed."""
        told, kind = [], ""
        async with connect(self._address, **self._options) as socket:
            speaking = asyncio.create_task(self._speak(socket))
            try:
                async for frame in socket:
                    event = json.loads(frame)
                    kind = event["type"]
                    if kind == "Results":
                        told.append(event["channel"]["alternatives"][0]["transcript"])
                        self.begun.set()
            except ConnectionClosed:
                pass
            speaking.cancel()
            return " ".join(told), kind, socket.close_code

    async def _speak(self, socket) -> None:
        for first in range(0, COUNT, 2):
            if first == COUNT // 2 + 1:
                await self.go_on.wait()
            await socket.send(to_pcm16(sound_of(first, 2)))
        await socket.send('{"type": "CloseStream"}')

    async def end(self) -> tuple[str, str, int]:
        self.go_on.set()
        return await self.task


ALL = (" ".join(map(str, range(COUNT))), "Metadata", 1000)


@asynccontextmanager
async def talking(url: str, count: int, **options):
    """So many clients in the middle of their talks, who have come all at once."""
    clients = [Deepgram(url, **options) for _ in range(count)]
    await asyncio.wait([asyncio.create_task(one.begun.wait()) for one in clients])
    yield clients


def test_clients_of_deepgram_are_let_in_until_all_processes_are_full():
    """However many come at once, and whichever process they come to."""

    async def talks():
        async with house(3, threads(streams=3, token=TOKEN)) as here:
            key = {"additional_headers": {"Authorization": f"Token {TOKEN}"}}
            async with talking(here.urls[0], 9, **key) as clients:
                streams = [one.streams for one in here.processes.values()]
                one_more = await Deepgram(here.urls[0], **key).task
                stranger = await Deepgram(here.urls[0]).task
                return streams, one_more, stranger, [await one.end() for one in clients]

    streams, one_more, stranger, told = in_time(talks())
    assert streams == [3, 3, 3]
    assert one_more == ("", "Error", Close.TRY_LATER)
    assert stranger == ("", "Error", Close.TOKEN)
    assert told == [ALL] * 9


def test_a_browser_that_offers_its_key_as_a_protocol_is_led_too():
    async def talks():
        async with house(2, threads(streams=1, token=TOKEN)) as here:
            key = {"subprotocols": ["token", TOKEN.replace(" ", "-")]}
            for service in here.processes.values():
                object.__setattr__(service.settings, "token", key["subprotocols"][1])
            async with talking(here.urls[0], 2, **key) as clients:
                return [await one.end() for one in clients]

    assert in_time(talks()) == [ALL] * 2


def test_the_client_of_openai_is_led_and_greeted_once():
    async def talks():
        settings = {"streams": 1, "token": TOKEN, "model": "tests.scripted:steady"}
        async with house(2, threads(**settings)) as here:
            key = {"additional_headers": {"Authorization": f"Token {TOKEN}"}}
            first = Deepgram(here.urls[0], **key)
            await first.begun.wait()
            options = {"speech": "no", "audio": {"output": {"language": "en"}}}
            events = await asyncio.to_thread(talk, here.urls[0], 5.2, **options)
            await first.end()
            return events, here.processes[1].metrics.talks._value.get()

    pytest.importorskip("openai")
    events, talks_there = in_time(talks())
    kinds = [event.type for event in events]
    assert kinds[:2] == ["session.created", "session.updated"]
    assert kinds.count("session.created") == kinds.count("session.updated") == 1
    deltas = [one.delta for one in events if one.type == "session.output_transcript.delta"]
    assert deltas == [text for _, text in steady_words()]
    assert talks_there == 1


@pytest.mark.parametrize("drain", ["60", "1"])
def test_a_process_that_drains_waits_for_those_it_has_led(tmp_path, drain):
    """They could not come back to their talks: if it can wait no longer, the rest is said."""

    async def talks():
        async with (
            house(2, processes(tmp_path, "--streams", "1", "--drain", drain)) as here,
            talking(here.urls[0], 2) as clients,
        ):
            process = here.processes[0]
            process.terminate()
            if drain == "1":
                told = [await one.task for one in clients]
            else:
                await until(lambda: "draining" in health(here.urls[0]))
                told = [await one.end() for one in clients]
            return told, await asyncio.to_thread(process.wait)

    told, status = in_time(talks())
    assert status == 0
    assert [end for _, *end in told] == [["Metadata", 1000]] * 2
    if drain == "1":
        assert all(ALL[0].startswith(text) and text.startswith("0 1 2") for text, *_ in told)
    else:
        assert told == [ALL] * 2


def health(url: str) -> str:
    try:
        with urllib.request.urlopen(url.replace("ws", "http", 1) + "/health") as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.read().decode()


async def until(true) -> None:
    while not await asyncio.to_thread(true):
        await asyncio.sleep(0.05)


class There:
    """A process that takes nothing of what is sent, and tells nothing."""

    close_code = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        pass

    async def __aiter__(self):
        await asyncio.Event().wait()
        yield

    async def send(self, message):
        await asyncio.Event().wait()


def test_a_process_that_hangs_is_left_but_not_one_that_is_slow(monkeypatch):
    """Who sends faster than is heard fills the line: no answer comes over it for minutes."""
    answers = ["here", None, "here", "here", None, None]

    async def ask(place, question):
        return answers.pop(0)

    monkeypatch.setattr(relay, "EVERY", 0.01)
    monkeypatch.setattr(relay, "ask", ask)

    async def led():
        async def receive():
            return {"type": "websocket.receive", "bytes": b"sound"}

        place = SimpleNamespace(connect=lambda *_, **__: There(), host="h", port=1)
        return await Line(make_service(), SimpleNamespace(receive=receive)).serve(place, "/", [])

    assert in_time(led()) == Close.COME_AGAIN
    assert answers == []


def test_what_is_said_before_a_talk_begins_is_kept_within_bounds():
    said = Beginnings()
    for _ in range(3000):
        said.append("x" * 1000)
    assert said.too_long
    assert sum(map(len, said.messages)) < 3_000_000


def test_the_bounds_are_two_megabytes_of_which_each_message_takes_a_bit():
    empty, long = Beginnings(), Beginnings()
    for _ in range(20_971):  # times a hundred is just within
        empty.append("")
    assert not empty.too_long
    empty.append("")
    assert (empty.too_long, len(empty.messages)) == (True, 20_971)
    long.append(b"x" * (2 * 1024 * 1024 - 100))
    assert not long.too_long
    long.append(b"")
    assert (long.too_long, len(long.messages)) == (True, 1)


@pytest.mark.parametrize(
    ("answers", "asked"),
    [("--", 2), ("-+--", 4), ("t-t--", 3), ("-t--", 3), ("t+-t+--", 5)],
)
def test_a_process_hangs_that_was_not_heard_of_twice_running(answers, asked, monkeypatch):
    """`t`: it has told something meanwhile, so nobody asks; `+`: it answers; `-`: it does not."""
    left, questions = list(answers), []

    async def ask(place, question):
        questions.append(question)
        return "here" if left.pop(0) == "+" else None

    monkeypatch.setattr(relay, "EVERY", 0.0)
    monkeypatch.setattr(relay, "ask", ask)
    with pytest.raises(TimeoutError):
        in_time(relay.hanging(None, lambda: left[:1] == ["t"] and bool(left.pop(0))))
    assert left == []
    assert questions == [Question([])] * asked


class Telling(There):
    """A process that tells something and goes, with a code; what is sent to it is kept."""

    def __init__(self, code, *frames):
        self.close_code, self.frames, self.sent = code, frames, []

    async def send(self, message):
        self.sent.append(message)

    async def __aiter__(self):
        for frame in self.frames:
            yield frame


@pytest.mark.parametrize("skip", [0, 1, 2])
def test_what_a_client_was_told_already_is_not_told_again(skip):
    told, there = [], Telling(4401, "first", b"second", "third")

    async def tell(frame):
        told.append(frame)

    async def led():
        service = make_service()
        socket = SimpleNamespace(
            receive=asyncio.Event().wait, send_text=tell, send_bytes=tell, application_state=None
        )

        def connect(path, *, new, token):
            assert (path, new, token, service.rooms.led) == ("/v1/x", True, "t", 1)
            return there

        place = SimpleNamespace(connect=connect, host="h", port=1)
        line = Line(service, socket, skip=skip)
        code = await line.serve(place, "/v1/x", ["a", b"b"], new=True, token="t")
        return code, service.rooms.led

    assert in_time(led()) == (4401, 0)
    assert told == ["first", b"second", "third"][skip:]
    assert there.sent == ["a", b"b"]


class Breaking(Telling):
    """It cannot be reached, or the line to it breaks once it was."""

    def __init__(self, met):
        super().__init__(None)
        self.met = met

    async def __aenter__(self):
        if not self.met:
            raise OSError
        return self

    async def send(self, message):
        raise OSError


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("met", [True, False])
def test_only_who_was_never_met_may_be_as_if_nobody_had_been_asked(new, met):
    """Of a talk that is to begin: with others it was begun there, and is gone on with."""

    async def led():
        place = SimpleNamespace(connect=lambda *_, **__: Breaking(met), host="h", port=1)
        return await Line(make_service(), SimpleNamespace()).serve(place, "/", ["a"], new=new)

    if new and not met:
        with pytest.raises(NoPlaceError):
            in_time(led())
    else:
        assert in_time(led()) == Close.COME_AGAIN


@pytest.mark.parametrize("farewell", ["bye", None])
def test_as_this_process_ends_a_client_that_cannot_come_back_takes_leave(farewell):
    class Leaving(Telling):
        """It tells something once it was taken leave of, or at once."""

        async def __aiter__(self):
            while farewell and farewell not in self.sent:
                await asyncio.sleep(0)
            yield "the rest"

    there, told = Leaving(1000), []

    async def tell(frame):
        told.append(frame)

    async def led():
        service = make_service()
        place = SimpleNamespace(connect=lambda *_, **__: there, host="h", port=1)
        socket = SimpleNamespace(receive=asyncio.Event().wait, send_text=tell)
        line = asyncio.create_task(Line(service, socket, farewell).serve(place, "/", ["a"]))
        while not there.sent:
            await asyncio.sleep(0)
        service.stop_all()
        return await line

    assert in_time(led()) == 1000
    assert there.sent == ["a", *([farewell] if farewell else [])]
    assert told == ["the rest"]


@pytest.mark.skipif(sys.platform != "linux", reason="no other system shares a port")
def test_processes_behind_one_address_are_filled_over_tls(certificate, monkeypatch):
    """The system shares connections out as it likes."""
    cert, key = certificate
    options = (*NUMBERS, "--fastest", "1000", "--processes", "2", "--streams", "2")

    async def talks(url):
        async with talking(url, 4) as clients:
            refused = await Deepgram(url).task
            return refused, [await one.end() for one in clients]

    with command(*options, "--tls-cert", str(cert), "--tls-key", str(key)) as (_, url):
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        refused, told = in_time(talks(url))
    assert refused == ("", "Error", Close.TRY_LATER)
    assert told == [ALL] * 4

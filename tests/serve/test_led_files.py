"""OpenAI's client sends files to processes that know each other: to one that has a place."""

import asyncio
import threading
from contextlib import asynccontextmanager

import h11
import pytest
from starlette.requests import Request

from dragoman.serve import forward, places, relay, uploads
from dragoman.serve.protocol import Fault
from tests.serve.clients import make_service
from tests.serve.house import house, threads
from tests.serve.processes import in_time
from tests.serve.test_openai_files import TEXT, wav

TOKEN = "a token that nobody guesses"


def client_of(url, token=TOKEN):
    openai = pytest.importorskip("openai")
    base = url.replace("ws", "http", 1) + "/v1"
    return openai.OpenAI(base_url=base, api_key=token, max_retries=0)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A machine that runs tests may be slow to answer."""
    for module in (places, forward):
        monkeypatch.setattr(module, "PATIENCE", 30.0)


@pytest.fixture
def gate(monkeypatch):
    """Files wait here before they are heard."""
    gate, take = threading.Event(), uploads._next
    monkeypatch.setattr(uploads, "_next", lambda chunks: gate.wait() and take(chunks))
    yield gate
    gate.set()


@asynccontextmanager
async def filled(count, **settings):
    async with house(count, threads(model="tests.talkers:bilingual", **settings)) as here:
        yield here


def send(url, token=TOKEN, **options):
    """The text of a file, or how it was refused."""
    openai = pytest.importorskip("openai")
    try:
        with client_of(url, token) as client:
            answer = client.audio.translations.create(
                file=("talk.wav", wav()), model="any", **options
            )
            if isinstance(answer, str):
                return answer
            return answer.text if hasattr(answer, "text") else list(answer)[-1].text
    except openai.APIStatusError as error:
        return error.status_code, error.body["code"]


async def streams_of(here, wanted):
    while [here.processes[n].streams for n in range(len(wanted))] != wanted:
        await asyncio.sleep(0.02)


def test_files_are_taken_until_all_processes_are_full(gate):
    async def sent():
        async with filled(3, streams=1, token=TOKEN) as here:
            url = here.urls[0]
            files = [asyncio.create_task(asyncio.to_thread(send, url)) for _ in range(3)]
            await streams_of(here, [1, 1, 1])
            one_more = await asyncio.to_thread(send, url)
            stranger = await asyncio.to_thread(send, url, "another")
            gate.set()
            return one_more, stranger, await asyncio.gather(*files)

    one_more, stranger, files = in_time(sent())
    assert one_more == (503, "full")
    assert stranger == (401, "token")
    assert files == [TEXT] * 3


@pytest.mark.parametrize("options", [{"response_format": "srt"}, {"response_format": "text"}])
def test_the_answer_comes_back_as_it_was_given(gate, options):
    async def sent():
        async with filled(2, streams=1) as here:
            first = asyncio.create_task(asyncio.to_thread(send, here.urls[0], **options))
            await streams_of(here, [1, 0])
            second = asyncio.create_task(asyncio.to_thread(send, here.urls[0], **options))
            await streams_of(here, [1, 1])
            gate.set()
            return await first, await second

    first, second = in_time(sent())
    assert isinstance(first, str)
    assert first == second


def test_who_hangs_up_while_another_process_hears_the_file_frees_its_place(gate):
    async def sent():
        async with filled(2, streams=1) as here:
            first = asyncio.create_task(asyncio.to_thread(send, here.urls[0]))
            await streams_of(here, [1, 0])
            port = int(here.urls[0].rpartition(":")[2])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            body = b"--x\r\nContent-Disposition: form-data; name=file; filename=a.wav\r\n\r\n"
            body += wav(1) + b"\r\n--x--\r\n"
            writer.write(
                b"POST /v1/audio/translations HTTP/1.1\r\nHost: h\r\nContent-Type: "
                b"multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
            )  # fmt: skip
            await streams_of(here, [1, 1])
            writer.transport.abort()
            await streams_of(here, [1, 0])
            gate.set()
            await first
            while not here.processes[0].quiet:
                await asyncio.sleep(0.02)

    in_time(sent())


THERE = places.Place("ws://127.0.0.1:1", "127.0.0.1", 1, "key")


class Hanging(forward._Line):
    """To a process that takes a file, and says no more after so many events."""

    def __init__(self, *events):
        super().__init__(THERE)
        self.taken, self.events, self.closed = True, list(events), False

    async def offer(self, request):
        return True

    async def send(self, request):
        pass

    async def _next(self):
        if not self.events:
            await asyncio.Event().wait()
        return self.events.pop(0)

    def close(self):
        self.closed = True
        super().close()


async def silent():
    await asyncio.Event().wait()


@pytest.fixture
def hangs(monkeypatch):
    """Nor does it answer when it is asked apart."""

    async def ask(place, question):
        return None

    monkeypatch.setattr(relay, "EVERY", 0.0)
    monkeypatch.setattr(relay, "ask", ask)


def test_a_file_is_not_left_to_a_process_that_hangs(hangs, monkeypatch):
    line = Hanging()
    monkeypatch.setattr(forward, "_Line", lambda place: line)
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}

    async def sent():
        service = make_service()
        with pytest.raises(Fault, match="is lost; try again"):
            await forward.forwarded(service, Request(scope, silent), [THERE])
        return service.quiet

    assert in_time(sent())
    assert line.closed


def test_an_answer_whose_rest_is_lost_is_not_waited_for(hangs):
    line = Hanging(h11.Response(status_code=200, headers=[]), h11.Data(data=b"half"))
    scope, told = {"type": "http", "asgi": {"spec_version": "2.3"}}, []

    async def send(message):
        told.append(message)

    async def sent():
        service = make_service()
        answer = await forward._answer(service, line, Request(scope, silent))
        await answer(scope, silent, send)
        return service.quiet

    assert in_time(sent())
    assert line.closed
    assert [one.get("body") for one in told] == [None, b"half"]  # and no end


def test_who_hangs_up_as_the_answer_begins_keeps_no_process_from_its_end():
    class Line(forward._Line):
        """To a process that answers at once."""

        async def send(self, request):
            pass

        async def _next(self):
            return h11.Response(status_code=200, headers=[])

    async def hang_up():
        return {"type": "http.disconnect"}

    async def told(message):
        await asyncio.Event().wait()  # what was told before is not read yet

    async def sent():
        service = make_service()
        line = Line(THERE)
        scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
        answer = await forward._answer(service, line, Request(scope, hang_up))
        assert not service.quiet
        assert asyncio.all_tasks() == {asyncio.current_task()}  # nobody sends or asks any longer
        await answer(scope, hang_up, told)
        return service.quiet

    assert in_time(sent())

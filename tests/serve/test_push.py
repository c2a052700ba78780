"""Captions posted to a caption address, which may be slow, or gone for a while."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from dragoman.serve import push
from dragoman.serve.protocol import Captions, Fault, Said, Start, Summary
from dragoman.serve.push import Pusher, check
from tests.serve.clients import PATH, Client, closed, make_service
from tests.serve.processes import in_time

TEXT = " ".join(f"word{i}" for i in range(12))


@pytest.fixture
def meeting():
    """A caption address that keeps what it is sent, and its faults to come."""
    posts, faults = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            posts.append(("GET", self.path, ""))
            self._answer(200, b"41")

        def do_POST(self):
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            status = faults.pop(0) if faults else 200
            if status == 200:
                posts.append(("POST", self.path, text))
            self._answer(status, b"")

        def _answer(self, status, body):
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/closedcaption?id=7", posts, faults
    server.shutdown()
    server.server_close()


def test_an_answer_that_does_not_end_keeps_nothing_waiting(monkeypatch):
    """Neither the captions that follow, nor the end of the process, which waits for its threads."""
    monkeypatch.setattr(push, "TIMEOUT", 0.2)

    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"1")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()

    async def asked():
        async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
            return await push.post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", None)

    with pytest.raises(TimeoutError):
        in_time(asked())


def test_addresses_that_do_not_answer_hold_up_nobody_else(monkeypatch):
    """Who sends a file needs a thread of the loop, and there are few."""
    answered = threading.Event()

    def never(request, timeout):
        assert answered.wait(60)
        raise OSError

    async def work():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        posts = [asyncio.create_task(push.post("http://x", b"")) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.to_thread(answered.set)
        return await asyncio.gather(*posts, return_exceptions=True)

    monkeypatch.setattr(push, "_opener", SimpleNamespace(open=never))
    assert [type(error) for error in in_time(work())] == [OSError, OSError]


def numbers(posts):
    return [int(re.search(r"seq=(\d+)", path)[1]) for kind, path, _ in posts if kind == "POST"]


@pytest.mark.parametrize("style", ["zoom", "youtube"])
def test_all_that_is_said_is_posted_in_order(opened, meeting, style):
    url, posts, faults = meeting
    faults += [503, 302]
    service, web = opened(captions_to=(url.partition("?")[0],))
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(captions=Captions(url, style, "en-US"))
        client.speak(4.8)
        client.stop()
        client.until(Summary)
        assert closed(client) == 1000  # however the meeting is doing
    while service._pushing:
        web.get("/health")
    assert faults == []
    if style == "zoom":
        assert posts[0][:2] == ("GET", "/closedcaption/seq?id=7")
    first = 42 if style == "zoom" else 1
    assert numbers(posts) == list(range(first, first + len(numbers(posts))))
    texts = [text for kind, _, text in posts if kind == "POST"]
    if style == "youtube":
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\n", text) for text in texts)
        texts = [text.split("\n")[1] for text in texts]
    assert " ".join(texts) == TEXT
    assert all("lang=en-US" in path for kind, path, _ in posts if kind == "POST")
    assert not any(path.startswith("/elsewhere") for _, path, _ in posts)


def test_a_process_that_ends_posts_the_last_words_first(opened, meeting):
    url, posts, _ = meeting
    service, web = opened(captions_to=(url.partition("?")[0],))
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(captions=Captions(url, "youtube"))
        client.speak(4.8)
        client.stop()
        assert closed(client) == 1000
    while not service.quiet:
        web.get("/health")
    assert " ".join(text.split("\n")[1] for _, _, text in posts) == TEXT


def test_a_try_that_fails_keeps_its_number():
    sent = []

    async def send(url, body):
        sent.append((url.partition("seq=")[2].split("&")[0], body))
        if len(sent) == 1:
            raise OSError("gone")
        return ""

    async def pushed():
        service = make_service()
        session = await service.start(Start())
        pusher = Pusher(session, Captions("http://x", "youtube"), send)
        session.stop()
        await service.scheduler._step(service.scheduler._due())
        await pusher.run(every=0)

    in_time(pushed())
    assert [number for number, _ in sent] == ["1", "1"]
    assert sent[0][1].split(b"\n")[1] == sent[1][1].split(b"\n")[1] == TEXT.encode()


def test_the_last_words_follow_a_post_that_arrives_at_the_last_try():
    sent, failures = [], 3

    async def send(url, body):
        sent.append(body.decode().split("\n")[1])
        if len(sent) <= failures:
            raise OSError("gone")
        return ""

    async def pushed():
        session = await make_service().start(Start())
        pusher = Pusher(session, Captions("http://x", "youtube"), send)
        session.words.append(Said(1, " Gut.", 0.0, 0.0, None, 1.0))
        await pusher._push()
        session.words.append(Said(2, " Ja.", 0.0, 0.0, None, 1.0))
        session.summary = Summary(2, 0.0, None, 0.0, None)
        await pusher.run(every=0)

    in_time(pushed())
    assert sent == ["Gut."] * 4 + ["Ja."]


def test_a_post_that_arrived_though_its_answer_did_not_costs_no_words():
    """Of two posts with one number the second is ignored, whatever else it holds."""
    arrived = {}

    async def send(url, body):
        number = url.partition("seq=")[2].split("&")[0]
        late = number not in arrived
        arrived.setdefault(number, body.decode().split("\n")[1])
        if late:
            raise TimeoutError
        return ""

    async def pushed():
        session = await make_service().start(Start())
        pusher = Pusher(session, Captions("http://x", "youtube"), send)
        for text in (" Wir", " danken", " und", " gehen", "."):
            session.words.append(Said(session.last_word + 1, text, 0.0, 0.0, None, 1.0))
            session.interim = " x"
            await pusher._push()
        session.summary = Summary(5, 0.0, None, 0.0, None)
        await pusher.run(every=0)

    in_time(pushed())
    assert " ".join(arrived.values()).replace(" .", ".") == "Wir danken und gehen."


def test_a_mark_that_comes_late_is_no_caption_of_its_own():
    """A word waits for its mark, but not beyond the next post."""
    posts = []

    async def send(url, body):
        posts.append(body.decode().split("\n")[1])
        return ""

    async def pushed():
        session = await make_service().start(Start())
        pusher = Pusher(session, Captions("http://x", "youtube"), send)

        async def say(*texts, interim=""):
            for text in texts:
                session.words.append(Said(session.last_word + 1, text, 0.0, 0.0, None, 1.0))
            session.interim = interim
            await pusher._push()

        await say(" Wir", " danken", interim=". Sie")
        await say(".", interim=" Sie")
        await say(" Sie", interim=" gehen")
        await say(" gehen")
        await say()
        await say(".")

    in_time(pushed())
    assert posts == ["Wir", "danken.", "Sie", "gehen", "."]


def test_where_captions_may_go_is_the_servers_to_say(opened):
    with pytest.raises(Fault):
        check(Captions("http://169.254.0.1/"), ("https://wmcc.zoom.us/",))
    for prefix in ("https://wmcc.zoom.us", "https://wmcc.zoom.us/", "https://wmcc.zoom.us/closed"):
        check(Captions("https://wmcc.zoom.us/closedcaption?id=1"), (prefix,))
        for host in ("wmcc.zoom.us.evil.test", "wmcc.zoom.us@evil.test", "wmcc.zoom.us:99", "[x"):
            with pytest.raises(Fault):
                check(Captions(f"https://{host}/closedcaption"), ("http://other.test", prefix))
    prefix = "https://talks.test/captions/"
    for path in ("../admin", "a/..", "%2e%2e/admin", "a/.%2E\\admin"):
        with pytest.raises(Fault):
            check(Captions(prefix + path), (prefix,))
    check(Captions(f"{prefix}a..b?x=../"), (prefix,))
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        assert client.start(captions=Captions("http://127.0.0.1/")).code == "unfit"


def test_nothing_waits_for_a_meeting_that_never_answers():
    async def talk():
        service = make_service()
        session = await service.start(Start())
        never = asyncio.Event()

        async def send(url, body):
            await never.wait()

        pushing = asyncio.create_task(Pusher(session, Captions("http://x"), send).run())
        await asyncio.sleep(0)
        session.stop()
        await service.scheduler._step(service.scheduler._due())
        assert len(session.words) == 12
        pushing.cancel()

    in_time(talk())


def test_an_address_that_fails_for_hours_is_noted_seldom_and_when_it_works_again(caplog):
    caplog.set_level("INFO")
    down = [OSError("gone")] * 1000

    async def send(url, body):
        if down:
            raise down.pop()
        return ""

    async def pushed():
        session = await make_service().start(Start())
        pusher = Pusher(session, Captions("http://x", "youtube"), send)
        session.words.append(Said(1, " Gut.", 0.0, 0.0, None, 1.0))
        while not await pusher._push():
            pass
        session.words.append(Said(2, " Ja.", 0.0, 0.0, None, 1.0))
        assert await pusher._push()

    in_time(pushed())
    noted = [record for record in caplog.records if record.getMessage().startswith("captions")]
    assert [one.values["failures"] for one in noted] == [*(2**n for n in range(10)), 1000]
    assert [one.getMessage() for one in noted[-2:]] == ["captions", "captions arrive again"]


@pytest.mark.parametrize(
    ("told", "first"), [("41\n", 42), ("", 1), ("²", 1), ("٤١", 1), ("4" * 5000, 1), ("-3", 1)]
)
def test_the_number_that_a_meeting_has_seen_is_plain_digits(told, first):
    sent = []

    async def send(url, body):
        if body is None:
            return told
        sent.append(int(url.partition("seq=")[2].split("&")[0]))
        return ""

    async def pushed():
        session = await make_service().start(Start())
        session.words.append(Said(1, " Gut.", 0.0, 0.0, None, 1.0))
        session.summary = Summary(1, 0.0, None, 0.0, None)
        pusher = Pusher(session, Captions("http://x"), send)
        pusher._word = pusher._number = 0
        await pusher.run(every=0)

    in_time(pushed())
    assert sent == [first]

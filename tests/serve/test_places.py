"""The processes beside this one: how they are reached, and what counts as an answer."""

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from websockets.asyncio.server import serve

from dragoman.serve import places
from dragoman.serve.places import (
    HEADER,
    NEW,
    Answer,
    Holding,
    Place,
    Question,
    addresses,
    ask,
    exchange,
)
from tests.serve.processes import in_time


@asynccontextmanager
async def process(*replies):
    """A place at which each question gets one of the replies, and what was asked there, and how."""
    asked, left = [], list(replies)

    async def answer(web):
        asked.append((web.request.path, web.request.headers, await web.recv()))
        if left:
            await web.send(left.pop(0))
        await web.wait_closed()

    async with serve(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Place(f"ws://somebody:{port}", "127.0.0.1", port, "the key"), asked


def test_a_question_and_its_answer():
    told = b'{"process":"p","ready":true,"rooms":{"r":{"since":2.5,"talk":"t","live":false}}}'

    async def asking():
        async with process(told.decode()) as (place, asked):
            return await ask(place, Question(["r"], talk="t")), asked

    answer, [(path, headers, question)] = in_time(asking())
    assert answer == Answer("p", True, {"r": Holding(2.5, "t", False)}, {}, False)
    assert (path, question) == ("/v1/peers", '{"rooms":["r"],"file":null,"talk":"t","left":false}')
    assert (headers[HEADER], headers.get(NEW), headers.get("Authorization")) == (
        *("the key", None, None),
    )


@pytest.mark.parametrize("reply", [b"{}", "{}", "no JSON", None])
def test_what_is_no_answer_is_none(reply, monkeypatch):
    """Bytes, what another version says, what is no such thing, and silence."""
    monkeypatch.setattr(places, "PATIENCE", 0.3 if reply is None else 60.0)

    async def asking():
        async with process(*([] if reply is None else [reply])) as (place, _):
            return await ask(place, Question([]))

    assert in_time(asking()) is None


def test_what_takes_longer_may_have_longer_or_less(monkeypatch):
    """The patience for an answer is that which is given, whatever is usual."""

    async def asking(usual, given):
        async with process() as (place, _):
            monkeypatch.setattr(places, "PATIENCE", usual)
            begun = asyncio.get_running_loop().time()
            async with asyncio.timeout(30):
                assert await exchange(place, Question([]), given) is None
            return asyncio.get_running_loop().time() - begun

    assert in_time(asking(1e6, 0.3)) >= 0.3
    assert in_time(asking(0.3, None)) >= 0.3


def test_a_talk_that_is_to_begin_says_so_and_for_whom():
    async def asking():
        async with process("x") as (place, asked):
            async with place.connect("/v1/there", new=True, token="mine") as web:
                await web.send("hello")
                await web.recv()
            return asked

    [(path, headers, said)] = in_time(asking())
    assert (path, said) == ("/v1/there", "hello")
    assert (headers[HEADER], headers[NEW], headers["Authorization"]) == (
        *("the key", "talk", "Bearer mine"),
    )


def test_an_address_has_the_port_of_its_scheme_unless_it_names_one():
    async def found():
        urls = ("http://127.0.0.1", "https://127.0.0.1", "http://127.0.0.1:81", "https://[::1]:82")
        return [await addresses(url) for url in urls]

    assert in_time(found()) == [
        *([("127.0.0.1", 80)], [("127.0.0.1", 443)], [("127.0.0.1", 81)], [("::1", 82)]),
    ]


@pytest.mark.parametrize("wrong", [OSError, TimeoutError])
def test_a_name_that_nobody_has_leads_nowhere(wrong, monkeypatch):
    async def getaddrinfo(*args, **options):
        raise wrong

    async def found():
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        return await addresses("http://nobody.test")

    assert in_time(found()) == []
    assert in_time(addresses("http://" + "long" * 20)) == []  # no name is so long


def test_a_process_of_this_machine_needs_no_certificate_of_its_name():
    plain, sibling, other = (
        Place(f"{scheme}://h", "h", 1, "key", sibling=near).tls()
        for scheme, near in (("ws", True), ("wss", True), ("wss", False))
    )
    assert plain is None
    assert (sibling.verify_mode, sibling.check_hostname) == (ssl.CERT_NONE, False)
    assert (other.verify_mode, other.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_whom_this_machine_trusts_is_read_again_once_that_has_changed(monkeypatch, tmp_path):
    file = tmp_path / "trusted.pem"
    file.write_text("")
    paths = SimpleNamespace(cafile=str(file), capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setattr(ssl, "create_default_context", object)
    place = Place("wss://h", "h", 1, "key")
    before = place.tls()
    assert place.tls() is before
    os.utime(file, ns=(1, 1))
    after = place.tls()
    assert after is not before
    assert place.tls() is after
    places._trusting.cache_clear()

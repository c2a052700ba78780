"""More work than machine: all get slower together, and nobody for ever."""

import asyncio
import socket
from contextlib import nullcontext, suppress
from functools import partial
from types import SimpleNamespace

import pytest
from uvicorn.middleware.proxy_headers import _TrustedHosts
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from dragoman.clock import RealClock
from dragoman.serve import scheduler as schedulers
from dragoman.serve import service as services
from dragoman.serve import visits as module
from dragoman.serve.pressure import LATE, Level, Pressure
from dragoman.serve.protocol import (
    Elsewhere,
    Error,
    Fault,
    Heard,
    Ready,
    Resume,
    Said,
    Start,
    State,
    Summary,
    write_sound,
)
from dragoman.serve.run import _trusted
from dragoman.serve.settings import Settings
from dragoman.serve.visits import Visits
from tests.serve import numbers
from tests.serve.clients import PATH, Client, closed, make_service
from tests.serve.numbers import NumberModel, sound_of, words_of
from tests.serve.processes import in_time
from tests.serve.running import running


class Timer:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("late", "level"),
    [(0.5, Level.NORMAL), (1.5, Level.DEGRADED), (3, Level.HASTY), (6, Level.REFUSING)]
    + [(60, Level.SHEDDING)],
)
def test_what_is_given_up_depends_on_how_late_it_is(late, level):
    timer = Timer()
    pressure = Pressure(timer)
    seen = []
    for _ in range(40):
        timer.now += 0.5
        seen.append(pressure.note(late))
    assert seen[-1] == level
    assert pressure.late == pytest.approx(late, rel=0.01)
    assert seen == sorted(seen)  # one after another
    for _ in range(60):
        timer.now += 0.5
        pressure.note(0)
    assert pressure.level is Level.NORMAL


def test_one_slow_step_is_no_overload_and_levels_do_not_flicker():
    timer = Timer()
    pressure = Pressure(timer)
    timer.now += 0.2
    assert pressure.note(3.0) is Level.NORMAL
    for late in (2.1, 1.2, 2.1, 1.2):
        timer.now += 20
        assert pressure.note(late) is Level.HASTY  # which is left at half of what it began at
    timer.now += 20
    assert pressure.note(LATE[Level.HASTY] / 2 - 0.1) is Level.DEGRADED


@pytest.fixture
def overloaded(monkeypatch):
    """So many talks, live, on a model whose drafts cost so much: the time is made, so that it is as
    long on every machine."""
    timer = Timer()
    monkeypatch.setattr(schedulers, "time", SimpleNamespace(monotonic=timer))
    monkeypatch.setattr(services, "RealClock", partial(RealClock, timer))

    def work(seconds):
        timer.now += seconds

    async def talked(cost, talks, seconds, begun=None):
        monkeypatch.setattr(numbers, "time", SimpleNamespace(sleep=work))
        model, service = NumberModel(cost), make_service(streams=100, batch=1)
        service.system = type(service.system)(service.system.setup, model)
        one = service.scheduler
        one._pressure = Pressure(timer)
        one._pressure.late, one._pressure.level = begun or (0.0, Level.NORMAL)
        sessions, began, spoken = [await service.start(Start()) for _ in range(talks)], timer.now, 0
        while timer.now < began + seconds:
            while spoken * 0.1 <= timer.now - began:
                for session in sessions:
                    session.hear(1600 * spoken, sound_of(spoken // 2, 1)[:1600])
                spoken += 1
            if batch := one._due():
                await one._step(batch)
            else:
                timer.now += 0.1
        return service, sessions, model

    return lambda *args: in_time(talked(*args))


def test_with_too_many_talks_all_are_heard_in_turn_and_lag_is_bounded(overloaded):
    """Ten talks at 0.4 s steps, 0.1 s of work each: 2.5 times what there is time for. A turn of all
    takes a second: each has two or three steps to hear then, the last of which waits for less than
    a step and is worked at for 0.1 s."""
    _, sessions, _ = overloaded(0.1, 10, 8)
    said = [session.words_after(0) for session in sessions]
    lags = [[word.at_ms - word.source_ms for word in words] for words in said]
    lasts = [words[-1].at_ms for words in said]
    assert min(lasts) >= 8000 - 1000 - 100  # nobody starves
    assert max(max(lag) for lag in lags) <= 400 + 100 + 1e-3
    assert max(session._intake.waiting_seconds for session in sessions) <= 1.2 + 1e-6


def test_fewer_beams_are_searched_when_longer_steps_do_not_help(overloaded):
    service, sessions, model = overloaded(0, 1, 0.6, (3.0, Level.HASTY))
    assert model.hasty > 0
    assert sessions[0].state == "degraded"
    assert "dragoman_level 2.0" in service.metrics.text()


def test_who_comes_last_goes_elsewhere_when_nothing_helps(opened):
    service, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        first, last = Client(one), Client(two)
        first.start()
        last.start()
        pressure = service.scheduler._pressure
        pressure.late, pressure.level = 1000.0, Level.SHEDDING
        first.speak()
        assert closed(last) == 1013
        assert last.events[-1].code == "overloaded"
        assert first.until(State).state == "degraded"
        first.stop()
        assert closed(first) == 1000


def test_who_went_may_come_back_later(opened):
    service, web = opened(model="tests.serve.numbers:numbers")
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        first, last = Client(one), Client(two)
        first.start()
        ready = last.start()
        two.send_bytes(write_sound(0, sound_of(0, 10)))
        while len(last.words) < 10:
            last.next()
        heard = next(event for event in reversed(last.events) if isinstance(event, Heard))
        pressure = service.scheduler._pressure
        pressure.late, pressure.level = 1000.0, Level.SHEDDING
        first.speak()
        assert closed(last) == 1013
        said = [event for event in last.events if isinstance(event, Said)]
        elsewhere = Elsewhere(Start(), heard.keep, heard.word, 0, said)
        resume = Resume(ready.session, ready.resume_token, 10, 0, heard.sample, elsewhere)
        with web.websocket_connect(PATH) as socket:
            early = Client(socket)
            early.send(resume)
            assert early.next().code == "full"  # the machine is behind still
        pressure.late, pressure.level = 0.0, Level.NORMAL
        with web.websocket_connect(PATH) as socket:
            later = Client(socket)
            later.send(resume)
            sample = later.until(Ready).sample
            socket.send_bytes(write_sound(sample, sound_of(0, 15)[sample:]))
            later.stop()
            later.until(Summary)
        assert last.words + later.words == words_of(15)


def test_nobody_is_let_in_while_the_machine_is_behind(opened):
    service, web = opened()
    pressure = service.scheduler._pressure
    pressure.late, pressure.level = 100.0, Level.REFUSING
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        assert client.start().code == "full"
        assert closed(client) == 1013
    assert web.get("/health").json()["status"] == "full"


def test_who_speaks_live_goes_before_who_sends_a_file():
    async def order():
        service = make_service(batch=1, fastest=1e6)
        file, live = [await service.start(Start()) for _ in range(2)]
        for step in range(20):
            file.hear(6400 * step, sound_of(2 * step, 2))
        await service.scheduler._step(service.scheduler._due())
        live.hear(0, sound_of(0, 2))
        assert service.scheduler._due() == [live]

    in_time(order())


def test_sound_that_comes_too_fast_waits(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def flood():
        service = make_service(fastest=2.0)
        session = await service.start(Start())
        monkeypatch.setattr(asyncio, "sleep", sleep)
        for step in range(10):
            session.hear(160_000 * step, sound_of(0, 50))
            while session.due is not None:
                session.next_chunk()
            await session.have_space()

    in_time(flood())
    # A minute is free; then ten seconds of sound take five.
    assert slept == pytest.approx([5, 10, 15, 20], abs=1)


def test_too_many_connections_of_one_address(opened):
    _, web = opened(connects=2)
    for expected in (4400, 4400, 1013):
        with web.websocket_connect(PATH) as socket:
            socket.send_text("{")
            client = Client(socket)
            assert closed(client) == expected
    assert isinstance(client.events[-1], Error)
    assert client.events[-1].code == "too_fast"


@pytest.mark.parametrize(
    ("proxies", "codes"),
    [
        ((), [4400, 4400, 1013]),  # of others it is not believed
        (("127.0.0.2",), [4400, 4400, 4400]),
        (("10.0.0.0/8", "127.0.0.0/24"), [4400, 4400, 4400]),
        (("*",), [4400, 4400, 4400]),
    ],
)
def test_behind_a_proxy_that_is_known_every_client_has_an_address(proxies, codes):
    with running(connects=2, proxies=proxies) as (_, url):
        for number, expected in enumerate(codes):
            header = {"X-Forwarded-For": f"192.0.2.{number}"}
            port = int(url.rpartition(":")[2])
            line = socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0))
            with connect(url + PATH, additional_headers=header, sock=line) as web:
                with suppress(ConnectionClosed):
                    web.send("{")
                    while True:
                        web.recv()
                assert web.close_code == expected


def test_a_proxy_of_ipv4_is_known_on_a_socket_of_ipv6():
    """Where --host is '::', its address is written as one of IPv6."""
    hosts = _TrustedHosts(_trusted(("10.0.0.0/8", "192.0.2.7", "2001:db8::/32")))
    for known in ("127.0.0.1", "::1", "10.9.8.7", "192.0.2.7", "2001:db8::5"):
        assert known in hosts
        assert ":" in known or f"::ffff:{known}" in hosts
    for other in ("192.0.2.8", "::ffff:192.0.2.8", "::ffff:11.0.0.1", "2001:db9::5"):
        assert other not in hosts


def test_an_audience_behind_one_address_may_come_in_and_come_back():
    assert Settings().connects >= 2 * Settings().listeners


def test_a_minute_later_one_may_come_again():
    timer = Timer()
    visits = Visits(2, timer)
    visits.note("a")
    visits.note("a")
    visits.note("b")
    with pytest.raises(Fault):
        visits.note("a")
    timer.now += 59.5
    with pytest.raises(Fault, match="At most 2 connections a minute"):
        visits.note("a")
    timer.now += 0.5
    visits.note("a")


def test_who_was_refused_has_not_come():
    """Else whoever keeps on asking would never be let in again."""
    timer = Timer()
    visits = Visits(2, timer)
    for second, welcome in (
        (0, True),
        (30, True),
        (40, False),
        (50, False),
        (60, True),
        (89, False),
    ):
        timer.now = 100.0 + second
        with nullcontext() if welcome else pytest.raises(Fault):
            visits.note("a")


def test_of_more_addresses_than_are_remembered_those_that_came_last_are(monkeypatch):
    monkeypatch.setattr(module, "MOST_ADDRESSES", 3)
    visits = Visits(1, Timer())
    for address in ("a", "b", "c"):
        visits.note(address)
    with pytest.raises(Fault):
        visits.note("a")  # who is the newest by that
    visits.note("d")
    visits.note("b")  # is forgotten, and comes anew; so "c" is forgotten
    for known in ("a", "d", "b"):
        with pytest.raises(Fault):
            visits.note(known)
    visits.note("c")

"""The processes beside one, as they are asked: who hangs costs those who ask next nothing."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.serve import neighbours
from dragoman.serve.neighbours import Neighbours
from dragoman.serve.places import Answer
from dragoman.serve.settings import Settings
from tests.serve.processes import in_time

WELL, ILL = 1, 2  # by their ports


class Beside:
    """Two processes, of which the second does not answer while it is ill, and who was asked."""

    def __init__(self) -> None:
        self.ill = True
        self.asked: list[int] = []
        self.names: dict[int, str] = {}  # by which they are told apart, where it is not the port

    async def ask(self, place, question):
        self.asked.append(place.port)
        if place.port == ILL and self.ill:
            return None
        return Answer(self.names.get(place.port, str(place.port)), True, {})


@pytest.fixture
def beside(monkeypatch):
    beside = Beside()
    monkeypatch.setattr(neighbours, "ask", beside.ask)
    monkeypatch.setattr(neighbours, "EVERY", 0.0)
    return beside


def met(work, monkeypatch, patience):
    """Run something that asks them."""
    monkeypatch.setattr(neighbours, "PATIENCE", patience)

    async def run():
        urls = tuple(f"http://127.0.0.1:{port}" for port in (WELL, ILL))
        return await work(Neighbours(Settings(peers=urls), "key"))

    return in_time(run())


async def ports(asking):
    return sorted(place.port for place in await asking.ask())


def test_who_hangs_is_waited_for_once_and_asked_again_when_it_answers(beside, monkeypatch):
    async def work(asking):
        told = [await ports(asking), await ports(asking), await ports(asking)]
        assert beside.asked == [WELL, ILL, WELL, WELL]
        looking = asyncio.create_task(asking.expect_back())
        while beside.asked.count(ILL) < 3:  # nobody waits for these
            await asyncio.sleep(0)
        beside.ill = False
        while await ports(asking) == [WELL]:
            await asyncio.sleep(0)
        looking.cancel()
        return told

    assert met(work, monkeypatch, 0.0) == [[WELL]] * 3


def test_who_is_gone_says_so_at_once_and_is_asked_each_time(beside, monkeypatch):
    async def work(asking):
        told = [await ports(asking)]
        beside.ill = False
        return [*told, await ports(asking)]

    assert met(work, monkeypatch, 1e9) == [[WELL], [WELL, ILL]]


def test_an_address_that_nobody_has_any_more_is_forgotten(beside, monkeypatch):
    async def work(asking):
        await ports(asking)
        looking = asyncio.create_task(asking.expect_back())
        asking._urls = asking._urls[:1]
        while asking._hanging:
            await asyncio.sleep(0)
        looking.cancel()

    met(work, monkeypatch, 0.0)


def test_of_addresses_that_come_and_go_nothing_is_kept(beside, monkeypatch, caplog):
    """As those of a cluster do: the next process at one of them is another."""
    caplog.set_level("INFO")

    async def work(asking):
        there, own = asking._urls, asking.process
        beside.names[WELL] = own  # the name stands for this process, too
        told = [await ports(asking), await ports(asking)]
        asking._urls = ()
        told.append(await ports(asking))
        beside.names[WELL] = "another"
        asking._urls = there
        return [*told, await ports(asking)]

    assert met(work, monkeypatch, 1e9) == [[], [], [], [WELL]]
    assert beside.asked == [WELL, ILL, ILL, WELL, ILL]
    noted = [one.values["port"] for one in caplog.records if "no answer" in one.getMessage()]
    assert noted == [ILL, ILL]

"""Talks without a room, in processes that know each other: led to where they are, or may be."""

import asyncio
from contextlib import ExitStack

import pytest

from dragoman.serve.client import Talk, TalkError
from dragoman.serve.connection import Connection
from dragoman.serve.protocol import Code, Ready, Said
from tests.serve.clients import PATH, make_service
from tests.serve.house import house, threads
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import in_time


class Speaker:
    """Counts to twenty, then waits until it is told to go on to forty."""

    def __init__(self, url: str, patience: float = 60.0) -> None:
        self.talk, self.session = Talk(url + PATH, patience=patience), ""
        self.heard, self.go_on = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _sound(self):
        for first in range(0, 40, 2):
            if first == 20:
                await self.go_on.wait()
            yield sound_of(first, 2)

    async def _run(self):
        async for event in self.talk.run(self._sound()):
            if isinstance(event, Ready):
                self.session = event.session
            if isinstance(event, Said) and event.word >= 10:
                self.heard.set()

    async def end(self) -> list[tuple[int, str]]:
        self.go_on.set()
        await self.task
        return [(said.word, said.text) for said in self.talk.words]


def test_a_talk_that_meets_a_full_process_is_led_to_one_with_a_place():
    async def talks():
        async with house(2, threads(streams=1)) as here:
            first = Speaker(here.urls[0])
            await first.heard.wait()
            second = Speaker(here.urls[0])
            await second.heard.wait()
            streams = [here.processes[n].streams for n in (0, 1)]
            third = Speaker(here.urls[0], patience=0.0)
            with pytest.raises(TalkError) as refused:
                await third.task
            said = [await first.end(), await second.end()]
            return streams, refused.value.code, said

    streams, code, said = in_time(talks())
    assert streams == [1, 1]
    assert code == Code.FULL
    assert said == [words_of(40)] * 2


def test_a_talk_that_comes_back_elsewhere_goes_on_where_it_was():
    """The other process would have to hear the last of it again."""

    async def talk():
        async with house(2, threads(streams=4)) as here:
            here.prefer(0, 1)
            speaker = Speaker(here.url)
            await speaker.heard.wait()
            here.prefer(1)
            here.front.cut()
            said = await speaker.end()
            known = [here.processes[n].keeps(speaker.session) for n in (0, 1)]
            return said, speaker.talk.connections, known

    said, connections, known = in_time(talk())
    assert said == words_of(40)
    assert connections == 2
    assert known == [True, False]


def test_a_talk_whose_process_is_gone_goes_on_in_another():
    async def talk():
        async with house(2, threads(streams=4)) as here:
            here.prefer(0, 1)
            speaker = Speaker(here.url)
            await speaker.heard.wait()
            here.connect(0, there=False)  # nor do the others reach it
            here.prefer(1)
            here.front.cut()
            said = await speaker.end()
            return said, here.processes[1].keeps(speaker.session)

    assert in_time(talk()) == (words_of(40), True)


def test_who_is_gone_before_it_is_let_in_keeps_no_place():
    class Gone:
        """The socket of a client that has hung up in the middle of the handshake."""

        async def accept(self, subprotocol):
            raise OSError

    async def sent():
        service, promise = make_service(), ExitStack()
        promise.enter_context(service.place_kept())
        assert service.streams == 1
        await Connection(service, Gone(), promise=promise).serve()
        return service.streams

    assert in_time(sent()) == 0

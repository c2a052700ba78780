"""The processes beside this one, as they are asked: all at once, and none that is known to hang."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from dragoman.serve.logs import note
from dragoman.serve.places import PATIENCE, Answer, Place, Question, addresses, ask
from dragoman.serve.settings import Settings

EVERY = 1.0
"""Seconds between two looks whether somebody answers again."""


class Neighbours:
    """Asks the other processes. One that has kept somebody waiting in vain is not asked until it
    has answered a question for which nobody waited."""

    def __init__(self, settings: Settings, key: str) -> None:
        """`key`: by which they know each other."""
        self._urls, self._siblings = (*settings.peers, *settings.siblings), settings.siblings
        self._key = key
        self.process = secrets.token_hex(8)
        """How they tell this one from the others."""
        self._own: set[Place] = set()
        self._silent: set[Place] = set()
        self._hanging: set[Place] = set()

    def __bool__(self) -> bool:
        return bool(self._urls)

    async def ask(
        self, names: Sequence[str] = (), talk: str = "", *, left: bool = False
    ) -> dict[Place, Answer]:
        """What those answer who do in time, each once: of these rooms, and of a talk, whose speaker
        may have `left`."""
        places = [one for one in await self._places() if one not in self._hanging]
        return await self._answers(places, Question(list(names), talk=talk, left=left))

    async def expect_back(self) -> None:
        """Look for those who hang; for ever."""
        while self._urls:
            await asyncio.sleep(EVERY)
            if self._hanging:
                await self._places()
                await self._answers(list(self._hanging), Question([]))

    async def _answers(self, places: Sequence[Place], question: Question) -> dict[Place, Answer]:
        replies = await asyncio.gather(*(self._asked(place, question) for place in places))
        answers: dict[str, tuple[Place, Answer]] = {}
        for place, answer in zip(places, replies, strict=True):
            if answer is not None and answer.process != self.process:
                answers[answer.process] = (place, answer)
        return dict(answers.values())

    async def _asked(self, place: Place, question: Question) -> Answer | None:
        clock = asyncio.get_running_loop().time
        began = clock()
        answer = await ask(place, question)
        if answer is None and clock() - began >= PATIENCE:  # who is gone is so at once
            self._hanging.add(place)
        else:
            self._hanging.discard(place)
        self._notice(place, answer)
        return answer

    def _notice(self, place: Place, answer: Answer | None) -> None:
        """This process need not be asked; of one that does not answer the log tells once."""
        if answer is None and place not in self._silent:
            note("no answer of a peer", host=place.host, port=place.port)
            self._silent.add(place)
        elif answer is not None:
            self._silent.discard(place)
            if answer.process == self.process:
                self._own.add(place)

    async def _places(self) -> list[Place]:
        """Where the others are: a name may stand for all, this process among them. What is known
        of an address that no name has any more is forgotten: they come and go, and the next one
        there is another."""
        found = await asyncio.gather(*map(addresses, self._urls))
        places: dict[Place, None] = {}
        for url, known in zip(self._urls, found, strict=True):
            for host, port in known:
                sibling = url in self._siblings
                place = Place(url.replace("http", "ws", 1), host, port, self._key, sibling)
                places[place] = None
        for known_of in (self._own, self._silent, self._hanging):
            known_of.intersection_update(places)
        return [place for place in places if place not in self._own]

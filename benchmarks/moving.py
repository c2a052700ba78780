"""Rooms that move: speakers and listeners, while processes are killed, drained and cut off.

    python -m benchmarks moving --minutes 2 --seed 1

Three processes that know each other are behind a proxy that sends anybody anywhere. In each room
one counts and some listen, others come in later. Connections break, also in the middle of a
message, processes are killed or asked to end and come back empty, their clocks are set back and
forth, and the lines between them fail. In the end every number was said once, to everybody: who
listened when a process was lost is told anew what the speaker's client has kept.
"""

import argparse
import asyncio
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.serve.house import Ear, House, Mouth, ended, house, open_room, processes

PROCESSES = 3
ROOMS = 3
LONGEST = 60.0
"""Seconds of a talk: it counts to some 2,400, and the model reads no more than 4,096 levels."""
LEAST = 6
"""Faults in every talk, however short the time."""
KEPT = 700
"""Words that a speaker's client tells another process, at least."""
FAULTS = {
    "cuts": 4,
    "halves": 4,
    "shuffles": 4,
    "lines cut": 2,
    "lines down": 2,
    "newcomers": 2,
    "kills": 1,
    "drains": 1,
}
"""What happens, and how often beside the others."""


def run(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks moving")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1, help="of what goes wrong")
    options = parser.parse_args(arguments)
    soak(options.minutes, options.seed)


def soak(minutes: float, seed: int) -> dict[str, int]:
    """Print and return what happened, and how many were told something wrong."""
    with tempfile.TemporaryDirectory() as folder:
        more = ("--model", "tests.serve.numbers:restless_numbers", "--streams", "20")
        more += ("--connects", "1000000", "--drain", "1")
        start = processes(Path(folder), *more)
        counts = asyncio.run(_soak(start, minutes * 60, random.Random(seed)))
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    if counts["wrong"]:
        raise AssertionError("words were lost, or told twice")
    return counts


@dataclass
class Meeting:
    """A room and who is in it."""

    room: dict
    mouth: Mouth
    ears: list[Ear]


async def _soak(start, seconds: float, chance: random.Random) -> dict[str, int]:
    counts = dict.fromkeys((*FAULTS, "words", "resumes", "listeners", "wrong"), 0)
    async with house(PROCESSES, start) as here:
        until = time.monotonic() + seconds
        while not counts["words"] or time.monotonic() < until:
            left = min(until - time.monotonic(), LONGEST)
            await _talks(here, left, chance, counts)
    return counts


async def _talks(here: House, seconds: float, chance: random.Random, counts: dict) -> None:
    """One talk in every room, while things go wrong; then it is counted who was told what."""
    meetings = [await _meet(here) for _ in range(ROOMS)]
    until, faults = time.monotonic() + seconds, 0
    while faults < LEAST or time.monotonic() < until:
        faults += 1
        await asyncio.sleep(chance.uniform(0.1, 0.8))
        fault = chance.choices(list(FAULTS), list(FAULTS.values()))[0]
        counts[fault] += 1
        await _go_wrong(fault, here, meetings, chance)
    await here.ended()  # a room that is over goes with its process
    here.front.halves = 0
    for number in range(PROCESSES):
        here.connect(number)
    for meeting in meetings:
        said = await meeting.mouth.end()
        told = await ended(*meeting.ears)
        counts["words"] += len(said)
        counts["resumes"] += meeting.mouth.talk.connections - 1
        counts["listeners"] += len(told)
        spoken = [(word.word, word.text) for word in meeting.mouth.talk.words]
        counts["wrong"] += spoken != said
        counts["wrong"] += sum(not _right(words, said) for words in told)


async def _meet(here: House) -> Meeting:
    """In which somebody speaks already."""
    room = await open_room(here.url)
    meeting = Meeting(room, Mouth(here.url, room), [Ear(here.url, room), Ear(here.url, room)])
    await meeting.mouth.until(lambda mouth: mouth.talk.words)
    return meeting


def _right(words: list, said: list) -> bool:
    """Whether a listener has the end of a talk, as much of it as is kept for all."""
    return len(words) >= min(len(said), KEPT) and words == said[len(said) - len(words) :]


async def _go_wrong(
    fault: str, here: House, meetings: Sequence[Meeting], chance: random.Random
) -> None:
    number = chance.randrange(PROCESSES)
    if fault == "cuts":
        here.front.cut()
    elif fault == "halves":
        here.front.halves += 1
    elif fault == "shuffles":
        here.prefer(*chance.sample(range(PROCESSES), PROCESSES))
    elif fault == "lines cut":
        for line, _ in here.lines:
            line.cut()
    elif fault == "lines down":
        here.connect(number, there=False)
        here.lines[number][0].cut()
        loop = asyncio.get_running_loop()
        loop.call_later(chance.uniform(0.2, 3), lambda: here.connect(number))
    elif fault == "newcomers":
        meeting = chance.choice(meetings)
        meeting.ears.append(Ear(here.url, meeting.room))
    else:
        sign = signal.SIGKILL if fault == "kills" else signal.SIGTERM
        here.processes[number].send_signal(sign)
        await here.open(number)  # in its place
        here.prefer(*chance.sample(range(PROCESSES), PROCESSES))

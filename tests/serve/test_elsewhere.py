"""A process is killed in mid-talk, and another goes on: nothing is lost, nothing said twice."""

import asyncio
import signal

import pytest

from dragoman.audio.chunk import RATE
from dragoman.serve.client import Talk, TalkError
from dragoman.serve.protocol import Audio, Ready, Said, Start, Summary
from tests.serve.clients import PATH
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import command, in_time, proxied

NUMBERS = ("--model", "tests.serve.numbers:numbers", "--policy", "greedy", "--step", "400")


def secret(folder, text="a secret that processes share"):
    path = folder / "secret.txt"
    path.write_text(text)
    return ("--secret-file", str(path))


async def spoken(count, go_on):
    """Numbers, a step at a time, as fast as they are wanted."""
    for first in range(0, count, 2):
        yield sound_of(first, 2)
        await go_on(first + 2)


@pytest.mark.parametrize("kill_after", [1, 15, 38])
def test_a_killed_process_loses_no_word(kill_after, tmp_path):
    shared = secret(tmp_path)

    async def talk(one, two, victim):
        async with proxied(one, two) as (_, url):
            talk, said = Talk(url + PATH), asyncio.Event()

            async def go_on(sent):
                """Before the end, wait until enough was said for the process to be killed."""
                if sent >= kill_after + 6:
                    await said.wait()

            async for event in talk.run(spoken(60, go_on)):
                if isinstance(event, Said) and event.word >= kill_after and not said.is_set():
                    victim.kill()
                    said.set()
            return talk, event

    with command(*NUMBERS, *shared) as (victim, one), command(*NUMBERS, *shared) as (_, two):
        talk, last = in_time(talk(one, two, victim))
    assert [(said.word, said.text) for said in talk.words] == words_of(60)
    assert talk.connections == 2
    assert isinstance(last, Summary)
    assert (last.words, last.audio_ms) == (60, 12_000)
    assert all(a.at_ms <= b.at_ms for a, b in zip(talk.words, talk.words[1:], strict=False))
    sources = [said.source_ms for said in talk.words]
    assert sources == sorted(sources)
    assert 11_000 < sources[-1] <= 12_000


def test_who_makes_no_pause_for_minutes_loses_no_word_and_is_not_heard_all_over_again(tmp_path):
    uncut = ("--model", "tests.serve.numbers:uncut_numbers", *NUMBERS[2:], "--fastest", "1000")
    options = (*uncut, *secret(tmp_path))

    async def talk(one, two, victim):
        async with proxied(one, two) as (_, url):
            talk, said = Talk(url + PATH), asyncio.Event()

            async def go_on(sent):
                if sent >= 706:
                    await said.wait()

            async for event in talk.run(spoken(750, go_on)):
                if isinstance(event, Said) and event.word >= 700 and not said.is_set():
                    kept = talk._heard.sample - talk._heard.keep
                    victim.kill()
                    said.set()
            return talk, kept

    with command(*options) as (victim, one), command(*options) as (_, two):
        talk, kept = in_time(talk(one, two, victim))
    assert [(said.word, said.text) for said in talk.words] == words_of(750)
    assert talk.connections == 2
    assert kept <= 65 * RATE  # half a minute, and what waits to be heard


def test_a_process_with_another_secret_does_not_go_on(tmp_path):
    (tmp_path / "other").mkdir()
    ours, theirs = secret(tmp_path), secret(tmp_path / "other", "another secret, of others")

    async def talk(one, two, victim):
        async with proxied(one, two) as (_, url):
            async for event in Talk(url + PATH).run(spoken(60, lambda sent: asyncio.sleep(0.01))):
                if isinstance(event, Said):
                    victim.kill()

    with (
        command(*NUMBERS, *ours) as (victim, one),
        command(*NUMBERS, *theirs) as (_, two),
        pytest.raises(TalkError) as caught,
    ):
        in_time(talk(one, two, victim))
    assert caught.value.code == "no_session"


def test_there_and_back_again(tmp_path):
    """The first process has a copy of the talk that is out of date, and does not tell from it."""
    shared = secret(tmp_path)

    async def talk(one, two):
        async with proxied(one, two) as (proxy, url):
            talk, turns = Talk(url + PATH, Start(audio=Audio(rate=48000))), [10, 20, 30, 45]
            said = asyncio.Event()

            async def go_on(sent):
                """One step further with every event: what is said may depend on it."""
                if turns and sent >= turns[0] + 4:
                    said.clear()
                    await said.wait()

            async def faster():
                async for block in spoken(60, go_on):
                    yield block.repeat(3)  # the same at 48 kHz

            async for event in talk.run(faster()):
                said.set()
                if isinstance(event, Said) and turns and event.word >= turns[0]:
                    turns.pop(0)
                    proxy.ports.reverse()
                    proxy.cut()
            return talk

    with command(*NUMBERS, *shared) as (_, one), command(*NUMBERS, *shared) as (_, two):
        talk = in_time(talk(one, two))
    assert [(said.word, said.text) for said in talk.words] == words_of(60)
    assert talk.connections >= 3  # words may come in one burst, and then one cut is several


def test_a_process_that_is_to_end_hands_its_talks_on(tmp_path):
    """Whoever shares its secret goes on with those that did not end in time."""
    shared = (*secret(tmp_path), "--drain", "0.01")

    async def talk(one, two, process):
        async with proxied(one, two) as (_, url):
            talk, said = Talk(url + PATH), asyncio.Event()

            async def go_on(sent):
                if sent >= 20:
                    await said.wait()

            async for event in talk.run(spoken(60, go_on)):
                if isinstance(event, Said) and event.word == 10:
                    process.send_signal(signal.SIGTERM)
                if isinstance(event, Ready) and talk.words:
                    said.set()
            return talk

    with command(*NUMBERS, *shared) as (process, one), command(*NUMBERS, *shared) as (_, two):
        talk = in_time(talk(one, two, process))
        assert process.wait(60) == 0
    assert [(said.word, said.text) for said in talk.words] == words_of(60)

"""What a translator leaves behind when it is closed, cancelled or forked."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

import dragoman
from tests.api.talks import SETTINGS, WORDS, silence, text


def test_what_is_closed_says_so(translator):
    talk = translator.talk()
    talk.finish()
    assert talk.finish() == []
    with pytest.raises(dragoman.DragomanError, match="This talk is over"):
        talk.hear(silence())
    translator.close()
    translator.close()
    with pytest.raises(dragoman.DragomanError, match="This translator is closed"):
        translator.talk()


def workers():
    return [one for one in threading.enumerate() if one.name.startswith("dragoman")]


def assert_gone(threads):
    for one in threads:
        one.join(60)  # that end by themselves, which may take a moment
    assert not any(one.is_alive() for one in threads)


def test_nothing_is_left_of_a_translator_that_was_closed():
    """Not even where it is closed in the middle of a talk, which goes on to its end."""

    async def listen(translator):
        async def pieces():
            for number in range(10):
                if number == 5:
                    translator.close()
                yield silence(seconds=0.5)

        return [event async for event in translator.translate_async(pieces())]

    before = workers()
    assert text(asyncio.run(listen(dragoman.Translator(**SETTINGS)))) == WORDS
    assert_gone(set(workers()) - set(before))


def test_a_talk_that_is_cancelled_leaves_nothing_of_a_closed_translator():
    async def main():
        async def pieces():
            yield silence(seconds=0.5)
            await asyncio.Event().wait()

        async def listen():
            async for _ in translator.translate_async(pieces()):
                heard.set()

        heard = asyncio.Event()
        with dragoman.Translator(**SETTINGS) as translator:
            listening = asyncio.create_task(listen())
            await heard.wait()
        listening.cancel()
        await asyncio.wait([listening])

    before = workers()
    asyncio.run(main())
    assert_gone(set(workers()) - set(before))


FORKED = """
import asyncio, os, numpy, dragoman

async def pieces():
    yield numpy.zeros(80000, numpy.float32)

async def listen():
    return [event async for event in translator.translate_async(pieces())]

translator = dragoman.Translator(source="de", model="tests.scripted:steady", policy="greedy")
told = [len(asyncio.run(listen()))]
translator._work.acquire()  # as a talk on a thread might have it
child = os.fork()
translator._work.release() if child else None
told += [len(asyncio.run(listen())), len(list(translator.translate(numpy.zeros(80000))))]
os.write(1, f"{told};".encode())
os.waitpid(child, 0) if child else os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without it")
def test_a_model_that_was_loaded_before_a_fork_serves_both_processes():
    """As servers do that load a program once, try it, and fork their workers off."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100
    )
    assert done.stderr == ""
    assert done.stdout == "[11, 11, 11];" * 2

"""A pipe is live: what arrives is stamped when it arrives, and a slow listener catches up."""

import threading
import time

import numpy as np
import pytest

from dragoman.audio.arrivals import AHEAD, Arrivals
from dragoman.audio.chunk import RATE, Chunk
from dragoman.errors import DragomanError

BLOCK = 0.05


def blocks(seconds, speed=1.0, error=None):
    """Numbered samples that come at a multiple of the speed of speech."""
    count = round(seconds / BLOCK)
    samples = np.arange(count * round(BLOCK * RATE), dtype=np.float32).reshape(count, -1)
    began = time.monotonic()
    for number, part in enumerate(samples, 1):
        time.sleep(max(0.0, began + number * BLOCK / speed - time.monotonic()))
        yield Chunk(part, number == count and error is None)
    if error is not None:
        raise error


def joined(chunks):
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    return np.concatenate([c.samples for c in chunks])


def numbers(seconds):
    return np.arange(round(seconds * RATE), dtype=np.float32)


def test_a_listener_who_keeps_up_gets_equal_steps_stamped_when_they_were_whole():
    began = time.monotonic()
    arrivals = Arrivals(blocks(1.5), 500, clock=lambda: time.monotonic() - began)
    chunks = list(arrivals.chunks())
    assert np.array_equal(joined(chunks), numbers(1.5))
    assert [c.seconds for c in chunks] == [0.5, 0.5, 0.5, 0.0]
    for number, chunk in enumerate(chunks[:3], 1):
        assert chunk.arrival >= number * 0.5 - 1e-3


def test_to_a_slow_listener_what_waits_comes_as_one_and_the_stamp_is_not_his_own():
    began = time.monotonic()
    arrivals = Arrivals(blocks(3.0), 200, clock=lambda: time.monotonic() - began)
    chunks, behind = [], []
    for chunk in arrivals.chunks():
        chunks.append(chunk)
        time.sleep(0.6)  # three times slower than a step
        behind.append(time.monotonic() - began - chunk.arrival)
    assert np.array_equal(joined(chunks), numbers(3.0))
    assert max(c.seconds for c in chunks) >= 0.4
    assert len(chunks) < 10  # not one per step
    # Heard one by one he would end 15 * 0.6 - 3 = 6 s behind, and say that he is 0.6 s behind.
    assert min(behind) >= 0.6
    assert behind[-1] < 4


def test_the_stamp_tells_how_long_a_step_waited():
    """A model is loading while the first step comes: it is stamped with the clock of that time."""
    now, arrived = [3.0], threading.Event()

    def spoken():
        yield from blocks(0.2, speed=1e6)
        arrived.set()  # all blocks were taken and stamped
        threading.Event().wait()

    arrivals = Arrivals(spoken(), 200, clock=lambda: now[0])
    assert arrived.wait(60)
    now[0] = 10.0
    assert next(arrivals.chunks()).arrival == 3.0


def test_a_recording_sent_at_once_waits_in_the_pipe_until_it_is_asked_for():
    taken, ahead = [], threading.Event()

    def sent():
        for block in blocks(AHEAD + 3, speed=1e6):
            taken.append(block)
            if len(taken) >= AHEAD / BLOCK:
                ahead.set()
            yield block

    arrivals = Arrivals(sent(), 500, clock=lambda: 0.0)  # as if no time went by
    assert ahead.wait(60)
    time.sleep(0.2)  # in which more could be taken
    assert len(taken) <= AHEAD / BLOCK + 1
    assert np.array_equal(joined(list(arrivals.chunks())), numbers(AHEAD + 3))


def test_held_back_it_comes_as_fast_as_speech():
    began = time.monotonic()
    arrivals = Arrivals(
        blocks(1.0, speed=1e6), 250, realtime=True, clock=lambda: time.monotonic() - began
    )
    chunks = list(arrivals.chunks())
    assert np.array_equal(joined(chunks), numbers(1.0))
    assert chunks[-1].arrival >= 0.99


def test_what_is_wrong_is_told_after_what_was_heard():
    arrivals = Arrivals(blocks(0.5, 1e6, DragomanError("no sound")), 200)
    heard = []
    with pytest.raises(DragomanError, match="no sound"):
        heard.extend(arrivals.chunks())
    assert sum(c.seconds for c in heard) == pytest.approx(0.4)


def test_stopped_it_ends_even_if_nothing_comes():
    taken = threading.Event()

    def silent():
        yield Chunk(np.ones(800, np.float32), False)
        taken.set()
        threading.Event().wait()

    arrivals = Arrivals(silent(), 500)
    assert taken.wait(60)
    threading.Timer(0.1, arrivals.stop).start()
    (only,) = arrivals.chunks()
    assert only.last
    assert len(only.samples) == 800  # what had arrived of the step

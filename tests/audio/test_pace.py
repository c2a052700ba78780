import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.pace import paced
from dragoman.errors import DragomanError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds


def chunks(*seconds):
    return [Chunk(np.zeros(round(s * RATE), np.float32), False) for s in seconds]


def test_chunks_come_when_they_have_been_spoken():
    clock = Clock()
    times = [(clock.now, c.arrival) for c in paced(chunks(1, 0.5, 2), 1, clock, clock.sleep)]
    assert times == [(101, 1), (101.5, 1.5), (103.5, 3.5)]


def test_twice_the_speed():
    clock = Clock()
    assert [c.arrival for c in paced(chunks(1, 2), 2, clock, clock.sleep)] == [0.5, 1.5]
    assert clock.now == 101.5


def test_a_slow_listener_gets_them_late_but_stamped_as_spoken():
    clock = Clock()
    seen = []
    for chunk in paced(chunks(1, 1, 1, 1), 1, clock, clock.sleep):
        seen.append((clock.now, chunk.arrival))
        clock.now += 1.5
    assert seen == [(101, 1), (102.5, 2), (104, 3), (105.5, 4)]


@given(st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 3)), max_size=20), st.floats(0.5, 4))
def test_nothing_comes_before_it_was_spoken(work, speed):
    clock, spoken = Clock(), 0.0
    source = chunks(*(length for length, _ in work))
    for chunk, (_, busy) in zip(paced(source, speed, clock, clock.sleep), work, strict=True):
        spoken += chunk.seconds / speed
        assert clock.now >= 100 + spoken - 1e-9
        assert chunk.arrival == pytest.approx(spoken)
        clock.now += busy


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_speeds_that_are_none(speed):
    with pytest.raises(DragomanError, match="times its speed"):
        next(paced([], speed))

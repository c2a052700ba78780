import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.catch_up import LONGEST
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
    """Chunks of such lengths, whose samples count from 0."""
    ends = np.cumsum([round(s * RATE) for s in seconds], dtype=int)
    samples = np.split(np.arange(ends[-1] if len(ends) else 0, dtype=np.float32), ends[:-1])
    return [Chunk(part, last=n == len(ends)) for n, part in enumerate(samples, 1)]


def test_chunks_come_when_they_have_been_spoken():
    clock = Clock()
    times = [(clock.now, c.arrival) for c in paced(chunks(1, 0.5, 2), 1, clock, clock.sleep)]
    assert times == [(101, 1), (101.5, 1.5), (103.5, 3.5)]


def test_twice_the_speed():
    clock = Clock()
    assert [c.arrival for c in paced(chunks(1, 2), 2, clock, clock.sleep)] == [0.5, 1.5]
    assert clock.now == 101.5


def test_to_a_slow_listener_what_was_spoken_meanwhile_comes_as_one():
    clock = Clock()
    seen = []
    for chunk in paced(chunks(1, 1, 1, 1, 1), 1, clock, clock.sleep):
        seen.append((clock.now, chunk.arrival, chunk.seconds))
        clock.now += 1.5
    assert seen == [(101, 1, 1), (102.5, 2, 1), (104, 4, 2), (105.5, 5, 1)]


@given(
    st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 3)), min_size=1, max_size=20),
    st.floats(0.5, 4),
)
def test_nothing_comes_before_it_was_spoken_and_everything_comes_once(work, speed):
    clock, spoken, heard = Clock(), 0.0, []
    source, busy = chunks(*(length for length, _ in work)), (busy for _, busy in work)
    for chunk in paced(source, speed, clock, clock.sleep):
        heard.append(chunk)
        spoken += chunk.seconds / speed
        assert clock.now >= 100 + spoken - 1e-9
        assert chunk.arrival == pytest.approx(spoken)
        clock.now += next(busy)
    assert [c.last for c in heard] == [False] * (len(heard) - 1) + [True]
    everything = np.concatenate([c.samples for c in source])
    assert np.array_equal(np.concatenate([c.samples for c in heard]), everything)


# Times that floats hold exactly: a chunk is due or not, with nothing between.
STEPS, SPEEDS = st.sampled_from([0.125, 0.25, 0.5, 1.0]), st.sampled_from([0.5, 1.0, 2.0])
EXACT = st.integers(0, 256).map(lambda n: n / 64)


@given(STEPS, SPEEDS, st.integers(1, 80), st.lists(EXACT, min_size=80, max_size=80))
def test_a_listener_gets_all_that_was_spoken_but_waits_for_no_more_than_a_step(
    step, speed, count, work
):
    clock, heard, work = Clock(), 0, iter(work)
    asked = clock.now
    for chunk in paced(chunks(*[step] * count), speed, clock, clock.sleep):
        joined = round(chunk.seconds / step)
        assert clock.now == max(asked, 100 + (heard + 1) * step / speed)
        spoken = min(int((clock.now - 100) * speed / step), count)
        assert joined == min(spoken - heard, int(LONGEST / step))
        heard += joined
        clock.now += next(work)
        asked = clock.now


@given(STEPS, st.integers(1, 200), st.integers(0, 256))
def test_the_lag_of_a_slow_listener_does_not_grow(step, count, work):
    clock, cost = Clock(), work / 64  # at most 4 s for each chunk, however long it is
    for chunk in paced(chunks(*[step] * count), 1, clock, clock.sleep):
        clock.now += cost
        waited = cost if chunk.last else step  # no more follows the end, however long it waits
        assert clock.now - 100 - chunk.arrival <= waited + cost


def test_a_pipe_that_is_late_itself_is_not_waited_for():
    clock = Clock()

    def pipe():
        for number, chunk in enumerate(chunks(*[0.5] * 10), 1):
            clock.now = max(clock.now, 103 + number * 0.5)  # begins 3 s after we listen
            yield chunk

    seen = []
    for chunk in paced(pipe(), 1, clock, clock.sleep):
        seen.append((clock.now, chunk.seconds))
        clock.now += 0.25
    assert seen == [(103 + number * 0.5, 0.5) for number in range(1, 11)]


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_speeds_that_are_none(speed):
    with pytest.raises(DragomanError, match="times its speed"):
        next(paced([], speed))

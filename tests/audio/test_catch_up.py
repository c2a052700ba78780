import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.catch_up import LONGEST, caught_up
from dragoman.audio.chunk import RATE, Chunk


def steps(count, seconds):
    """Chunks of equal length, stamped 1, 2, 3 …, whose samples count from 0."""
    size = round(seconds * RATE)
    samples = np.arange(count * size, dtype=np.float32).reshape(count, size)
    return [Chunk(part, n == count, float(n)) for n, part in enumerate(samples, 1)]


@given(st.integers(1, 40), st.sampled_from([0.01, 0.3, 1.0, 2.5, 7.0]), st.data())
def test_all_samples_come_once_and_in_order_however_much_waits(count, seconds, data):
    source = steps(count, seconds)
    came = list(caught_up(source, lambda: data.draw(st.booleans())))
    assert np.array_equal(
        np.concatenate([c.samples for c in came]), np.concatenate([c.samples for c in source])
    )
    assert [c.last for c in came] == [False] * (len(came) - 1) + [True]
    assert max(c.seconds for c in came) <= max(LONGEST, seconds)
    ends = np.cumsum([round(c.seconds / seconds) for c in came])
    assert [c.arrival for c in came] == list(ends)


def test_where_nothing_waits_the_steps_come_as_they_are():
    source = steps(5, 0.5)
    assert list(caught_up(source, lambda: False)) == source


def test_a_step_is_given_before_the_next_is_asked_for():
    asked = []

    def source():
        for chunk in steps(3, 0.5):
            asked.append(chunk.arrival)
            yield chunk

    next(caught_up(source(), lambda: False))
    assert asked == [1.0]


def test_all_that_waits_at_the_end_comes_with_the_last_chunk():
    (only,) = caught_up(steps(4, 0.5), lambda: True)
    assert only.last
    assert only.seconds == 2.0


def test_the_last_chunk_is_given_before_the_source_says_what_was_wrong():
    def source():
        yield from steps(2, 0.5)
        raise RuntimeError

    assert next(caught_up(source(), lambda: True)).last

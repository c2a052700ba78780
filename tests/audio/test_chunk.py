import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk, Chunker
from dragoman.errors import DragomanError

BLOCKS = st.lists(st.integers(0, 200), max_size=20)


def cut(sizes, step, hold):
    samples = np.arange(sum(sizes), dtype=np.float32)
    chunker = Chunker(step * 1000 / RATE)
    chunks = []
    for block in np.split(samples, np.cumsum(sizes)[:-1]) if sizes else []:
        chunks += chunker.feed(block, hold=hold)
    return samples, [*chunks, chunker.finish()]


@given(BLOCKS, st.integers(1, 150), st.booleans())
def test_every_sample_comes_once_and_in_order(sizes, step, hold):
    samples, chunks = cut(sizes, step, hold)
    assert np.array_equal(np.concatenate([c.samples for c in chunks]), samples)
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(len(c.samples) == step for c in chunks[:-1])
    assert len(chunks[-1].samples) <= step


@given(BLOCKS.filter(any), st.integers(1, 150))
def test_a_held_last_chunk_is_never_empty(sizes, step):
    _, chunks = cut(sizes, step, hold=True)
    assert len(chunks[-1].samples) > 0


@given(st.lists(st.integers(1, 200), min_size=1, max_size=20), st.integers(1, 150))
def test_without_hold_nothing_complete_waits(sizes, step):
    chunker, given_out, heard = Chunker(step * 1000 / RATE), 0, 0
    for size in sizes:
        heard += size
        given_out += sum(len(c.samples) for c in chunker.feed(np.zeros(size, np.float32)))
        assert heard - given_out < step


def test_chunks_carry_the_arrival_of_the_block_that_completed_them():
    chunker = Chunker(1000)
    assert list(chunker.feed(np.zeros(RATE - 1, np.float32), arrival=1.0)) == []
    (chunk,) = chunker.feed(np.zeros(5, np.float32), arrival=1.5)
    assert chunk.arrival == 1.5
    assert chunk.seconds == 1.0
    assert chunker.finish(arrival=2.0).arrival == 2.0


@pytest.mark.parametrize("step", [0, -20, float("nan"), float("inf")])
def test_steps_that_are_none(step):
    with pytest.raises(DragomanError, match="steps of"):
        Chunker(step)


def test_a_chunk_cannot_be_changed():
    with pytest.raises(AttributeError):
        Chunk(np.zeros(1, np.float32), False).last = True

"""Text among speech: its share, all of it in turn, the same from anywhere."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.data.corpus import Ragged
from dragoman.train.data.mixed import Mixed
from dragoman.train.data.plan import Place, Plan
from dragoman.train.recipe import Batch


def plan(items: int, seed: int = 3, speeds: tuple[float, ...] = (1.0,)) -> Plan:
    texts = Ragged.of([[5] * 4 for _ in range(items)])
    samples = np.full(items, 16_000)
    data = SimpleNamespace(samples=samples, source=texts, target=texts, silent=True)
    return Plan(data, Batch(seconds=2, buckets=1), seed, speeds)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 0.9))
def test_epochs_hold_all_speech_and_the_share_of_text(speech, text, share):
    mixed = Mixed(plan(speech), plan(text), share)
    for number in range(3):
        batches = mixed.epoch(number)
        assert [one.place for one in batches] == [Place(number, i) for i in range(len(batches))]
        heard = [tuple(one.items) for one in batches if not one.text]
        alone = [tuple(one.items) for one in plan(speech).epoch(number)]
        assert sorted(heard) == sorted(alone)
        read = len(batches) - len(heard)
        assert read == pytest.approx(len(heard) * share / (1 - share), abs=0.5)


def test_text_goes_on_until_all_of_it_has_been_read():
    mixed, text = Mixed(plan(12), plan(22), 0.5), plan(22)  # six batches an epoch, of eleven
    read = [one for number in range(5) for one in mixed.read(number)]
    wanted = [tuple(one.items) for turn in range(3) for one in text.epoch(turn)][: len(read)]
    assert len(read) == 30
    assert [tuple(one.items) for one in read] == wanted
    assert all(one.text for one in read)


def test_the_stream_goes_on_from_any_place():
    mixed = Mixed(plan(9, speeds=(0.9, 1.1)), plan(7), 0.4)
    whole = list(islice(mixed.stream(Place(0, 0)), 30))
    for start in (4, 11, 25):
        again = list(islice(mixed.stream(whole[start].place), 30 - start))
        for one, other in zip(whole[start:], again, strict=True):
            assert (one.place, one.text) == (other.place, other.text)
            assert (one.items == other.items).all()

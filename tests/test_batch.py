"""Work for several at once: who pays, and who fails."""

from itertools import count

import pytest

from dragoman.batch import Batch
from dragoman.models import BatchError


class One:
    def __init__(self) -> None:
        self.work_ms, self.error, self.done = 0.0, None, 0

    def fail(self, error: Exception) -> None:
        self.error = error


@pytest.fixture
def batch():
    """Three members, and a clock that ticks half a second each time it is read."""
    reads = count(7.0, 0.5)
    members = [One(), One(), One()]
    return Batch(members, lambda: next(reads)), members


def test_each_pays_for_its_own_work_and_an_equal_share_of_the_common(batch):
    batch, members = batch
    batch.each(lambda one: setattr(one, "done", one.done + 1))
    assert [one.work_ms for one in members] == [500.0, 500.0, 500.0]
    assert [one.done for one in members] == [1, 1, 1]
    batch.together(lambda several: None, members[:2])
    assert [one.work_ms for one in members] == [750.0, 750.0, 500.0]


def test_work_for_nobody_is_not_done(batch):
    batch, _ = batch
    batch.together(lambda several: pytest.fail("somebody worked"), [])


def test_who_fails_fails_alone_and_takes_no_more_steps(batch):
    batch, members = batch
    faults = ValueError("one"), ValueError("two"), ValueError("three")

    def own(one):
        if one is members[1]:
            raise faults[0]

    batch.each(own)
    assert [one.error for one in members] == [None, faults[0], None]
    assert batch.going() == [members[0], members[2]]
    assert members[1].work_ms == 500.0  # what was tried is paid for

    def common(several):
        raise BatchError({1: faults[1], 0: faults[2]})

    members.append(One())
    batch.together(common, batch.going()[1:])  # the last of the first three, and the new one
    assert [one.error for one in members] == [None, faults[0], faults[2], faults[1]]
    batch.each(lambda one: setattr(one, "done", 1))
    assert [one.done for one in members] == [1, 0, 0, 0]


def test_an_error_that_names_nobody_is_everybodys(batch):
    batch, members = batch
    fault = RuntimeError("all")

    def common(several):
        raise fault

    batch.together(common, members[:2])
    assert [one.error for one in members] == [fault, fault, None]
    assert [one.work_ms for one in members] == [250.0, 250.0, 0.0]

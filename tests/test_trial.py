"""The trial on this machine: what it measures and which setting it chooses."""

import pytest

from dragoman.setup import Setup, System
from dragoman.trial import AT_EASE, LADDER, SECONDS, measured, suited
from tests import scripted


class Clock:
    """Time that passes only when the model works."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def machine(monkeypatch):
    """Loads models that need so many seconds for a chunk and for a beam; counts the loads."""

    def build(chunk, beam):
        clock, loads = Clock(), []

        def load(name, *, threads, beams, **more):
            loads.append(beams)
            model = scripted.steady()
            hear = model.hear

            def work(*args):
                clock.now += chunk + beams * beam
                hear(*args)

            model.hear = work
            return model

        monkeypatch.setattr("dragoman.setup.load_model", load)
        return clock, loads

    return build


SETUP = Setup(source="de", policy="greedy")


def test_the_load_is_work_per_second_of_speech(machine):
    clock, _ = machine(0.1, 0.0)
    trial = measured(System(SETUP.with_changes(step_ms=500.0)), clock)
    assert trial.load == pytest.approx(0.2, rel=0.02)
    assert trial.keeps_up


def test_it_takes_no_longer_than_it_may(machine):
    clock, _ = machine(1.0, 0.0)
    trial = measured(System(SETUP.with_changes(step_ms=500.0)), clock)
    assert trial.load == pytest.approx(2.0)
    assert not trial.keeps_up
    assert clock.now <= SECONDS + 1 + 2  # and two chunks to warm up


@pytest.mark.parametrize(
    ("chunk", "beam", "chosen"),
    [
        (0.01, 0.02, (500.0, 5)),
        (0.1, 0.1, (500.0, 1)),
        (0.4, 0.1, (1000.0, 1)),
        (0.9, 0.1, (2000.0, 1)),
        (5.0, 0.1, (2000.0, 1)),
    ],
)
def test_the_best_setting_that_keeps_up_is_chosen(machine, chunk, beam, chosen):
    clock, loads = machine(chunk, beam)
    trial = suited(SETUP, timer=clock)
    setup = trial.system.setup
    assert (setup.step_ms, setup.beams) == chosen
    expected = (chunk + chosen[1] * beam) / (chosen[0] / 1000)
    assert trial.load == pytest.approx(expected, rel=0.05)
    assert trial.keeps_up == (expected <= AT_EASE)
    assert len(loads) <= 2  # a model is loaded once for each number of beams
    assert f"steps of {chosen[0] / 1000:g} s, {chosen[1]} beam" in trial.sentence()
    assert ("too slow" in trial.sentence()) == (not trial.keeps_up)


def test_what_was_asked_for_is_not_touched(machine):
    clock, _ = machine(5.0, 0.0)
    setup = suited(SETUP, step=800.0, timer=clock).system.setup
    assert (setup.step_ms, setup.beams) == (800.0, 1)
    setup = suited(SETUP, beams=3, timer=clock).system.setup
    assert (setup.step_ms, setup.beams) == (2000.0, 3)


def test_each_rung_costs_less_than_the_one_before():
    costs = [beams / step for step, beams in LADDER]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize(
    ("source", "talk"), [("en", "report.en"), ("de", "weather.de"), ("fr", "weather.de")]
)
def test_english_is_heard_where_english_is_spoken(machine, monkeypatch, source, talk):
    """Told German, a net of English alone may say little, and look fast."""
    opened = []
    monkeypatch.setattr(
        "dragoman.audio.source.open_audio",
        lambda path, **more: opened.append(path.stem) or iter(()),
    )
    clock, _ = machine(0.1, 0.0)
    measured(System(Setup(model="any", source=source)), clock)
    assert set(opened) == {talk}

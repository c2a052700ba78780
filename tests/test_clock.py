"""Clocks: work that queues, and arrivals that a source has stamped."""

from dragoman.clock import RealClock, SimulatedClock


def test_the_simulated_clock_queues_work_behind_work():
    assert SimulatedClock().end(5.0) == (0.0, 5.0)  # it begins at nothing
    clock = SimulatedClock()
    assert clock.begin(0.1, None) == 0.1
    assert clock.end(0.0) == (0.1, 0.1)  # nothing was before it
    assert clock.begin(200.0, None) == 200.0
    assert clock.end(500.0) == (200.0, 700.0)
    assert clock.begin(400.0, 99.0) == 400.0
    assert clock.end(100.0) == (700.0, 800.0)  # waits for the work before it
    assert clock.begin(1000.0, None) == 1000.0
    assert clock.end(100.0) == (1000.0, 1100.0)


def test_the_real_clock_takes_the_arrival_that_the_source_stamped():
    ticks = iter([100.0, 101.0, 101.25, 101.5, 102.0])
    clock = RealClock(lambda: next(ticks))
    assert clock.begin(500.0, 0.5) == 500.0
    assert clock.end(200.0) == (1050.0, 1250.0)
    assert clock.begin(700.0, None) == 1500.0  # nobody stamped it: it comes now
    assert clock.begin(700.0, 9.0) == 2000.0  # nothing arrives later than now


def test_what_is_lag_need_not_be_work():
    """The process was stopped for a minute while it worked."""
    ticks = iter([0.0, 1.0, 62.0])
    clock = RealClock(lambda: next(ticks), timer=lambda: 5.0)
    assert clock.timer() == 5.0
    assert clock.begin(500.0, 0.5) == 500.0
    assert clock.end(1000.0) == (61000.0, 62000.0)

"""Time for which a process was stopped is no time of work."""

import time

from dragoman.awake import STOPPED, Awake, awake


def test_what_nobody_looked_at_is_left_out():
    now = 100.0
    timer = Awake(lambda: now)
    begin = timer()
    now += 0.4
    assert round(timer() - begin, 6) == 0.4
    now += 3600.0
    assert round(timer() - begin, 6) == 0.4
    now += STOPPED
    assert round(timer() - begin, 6) == 0.4 + STOPPED


def test_somebody_looks_all_the_time():
    timer, wall, begin = awake(), time.perf_counter(), awake()()
    time.sleep(2 * STOPPED)
    assert timer() - begin > 1.5 * STOPPED
    assert timer() - begin <= time.perf_counter() - wall
    assert awake() is timer

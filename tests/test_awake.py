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


def test_work_that_lets_nobody_look_is_no_rest():
    now = used = 100.0
    timer = Awake(lambda: now, lambda: used)
    begin = timer()
    now, used = now + 5.0, used + 4.9
    assert round(timer() - begin, 6) == 5.0
    now, used = now + 5.0, used + 0.2
    assert round(timer() - begin, 6) == 5.0


def test_somebody_looks_all_the_time():
    timer, wall, begin = awake(), time.perf_counter(), awake()()
    time.sleep(2 * STOPPED)
    assert timer() - begin > 1.5 * STOPPED
    assert timer() - begin <= time.perf_counter() - wall
    assert awake() is timer

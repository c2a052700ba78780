"""What the summary counts."""

from dragoman.interpreter import Update
from dragoman.listeners import Lag
from dragoman.trace import Hearing


def taken(*updates: tuple[tuple[str, ...], float | None]) -> Lag:
    lag = Lag()
    for second, (said, ms) in enumerate(updates, start=1):
        now = 1000.0 * second
        lag.take(Update(said, "", Hearing(now, now, now, now + 100), ms))
    return lag


def test_a_stop_that_comes_late_is_no_word():
    assert taken(((" Good",), 900.0), ((" day",), 900.0), ((".", " And"), 900.0)).words == 3


def test_the_lag_is_the_mean_over_words():
    lag = taken(((" one", " two"), 600.0), ((), None), ((" three",), 1500.0))
    assert lag.plain_ms == 900.0
    assert lag.aware_ms == 1000.0
    assert round(lag.load, 6) == 0.1


def test_a_model_that_does_not_tell_where_it_looks_has_no_lag():
    assert taken(((" one",), None)).plain_ms is None

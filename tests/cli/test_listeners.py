"""What the summary counts."""

from dragoman.cli.listeners import Lag
from dragoman.interpreter import Update
from dragoman.trace import Hearing


def test_a_stop_that_comes_late_is_no_word():
    lag = Lag()
    for second, said in enumerate([(" Good",), (" day",), (".", " And")], start=1):
        ms = 1000.0 * second
        lag.take(Update(said, "", Hearing(ms, ms, ms, ms + 100)))
    assert lag.words == 3
    # Said at 1, 2 and 3 s; an ideal interpreter says word i of 3 at i seconds, from 0.
    assert lag.plain_ms == 1000.0
    assert round(lag.load, 6) == 0.1

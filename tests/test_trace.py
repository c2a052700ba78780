"""When a word counts as said."""

import pytest

from dragoman.trace import Hearing, Saying, Trace


@pytest.mark.parametrize(
    ("sayings", "delays"),
    [
        ([(" Good", 0), (" day", 1)], [500, 1000]),
        ([(" inter", 0), ("preter", 2)], [1500]),  # whole with its last letter
        ([(" home", 0), (".", 2), (" But", 2)], [500, 1500]),  # the stop comes later
        ([(" home", 0), ("!", 1), ('"', 2)], [500]),
        ([(" don", 0), ("'", 1), ("t", 2)], [1500]),
        ([(" -", 1), (" yes", 2)], [1000, 1500]),  # a word without letters has a time too
    ],
)
def test_a_word_is_whole_with_its_last_letter(sayings, delays):
    trace = Trace()
    for chunk in range(3):
        end = 500.0 * (chunk + 1)
        trace.heard(Hearing(end, end, end, end))
    for text, chunk in sayings:
        trace.said(Saying(text, chunk))
    instance = trace.instance()
    assert list(instance.delays) == delays
    assert len(instance.delays) == len(instance.prediction.split())

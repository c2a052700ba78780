"""What is told of a talk, and in which order."""

from itertools import pairwise

import pytest

import dragoman
from dragoman.events import Events
from dragoman.interpreter import Update
from dragoman.trace import Hearing
from tests.api.talks import SETTINGS, silence


def test_events_are_typed_frozen_and_of_one_family(translator):
    events = list(translator.translate(silence()))
    assert {type(event) for event in events} <= {
        dragoman.Said, dragoman.Interim, dragoman.Transcript, dragoman.Pause, dragoman.End
    }  # fmt: skip
    assert all(isinstance(event, dragoman.Event) for event in events)
    assert [type(event) for event in events].count(dragoman.End) == 1
    with pytest.raises(AttributeError):
        events[0].text = "other"
    times = [event.heard_ms for event in events]
    assert times == sorted(times)
    assert all(event.lag_ms >= 0 for event in events if isinstance(event, dragoman.Said))


def test_interim_text_is_told_when_it_changes_and_when_it_is_gone():
    settings = SETTINGS | {"model": "tests.scripted:sentence", "policy": "local-agreement:n=2"}
    events = list(dragoman.translate(silence(), **settings))
    interim = [event.text for event in events if isinstance(event, dragoman.Interim)]
    assert interim[0] == " word0"
    assert interim[-1] == ""
    assert all(one != other for one, other in pairwise(interim))


def events_of(*updates):
    """The events of updates, one a second, that differ from an empty one."""
    events = Events()
    return [
        event
        for second, changes in enumerate(updates, 1)
        for event in events.of(
            Update(**{"said": (), "interim": "", "hearing": at(1000 * second)} | changes), False
        )
    ]


def at(ms):
    return Hearing(ms, ms, ms, ms + 100)


def test_a_pause_is_told_once_and_not_before_the_first_word():
    silences = (1500, 2500, 0, 500, 900, 1900, 0, 1000)
    pauses = events_of(*({"silence_ms": float(ms)} for ms in silences))
    assert all(isinstance(event, dragoman.Pause) for event in pauses)
    assert [(event.heard_ms, event.silence_ms) for event in pauses] == [(5000, 900), (8000, 1000)]


def test_the_silence_before_the_first_word_is_no_pause_however_short_the_steps():
    """An ear hears in windows, and has not come to the end of every step."""
    silences = {500: 480.0, 1000: 992.0, 1500: 1472.0, 2000: 0.0, 3000: 896.0}
    pauses = events_of(
        *({"hearing": at(ms), "silence_ms": silence} for ms, silence in silences.items())
    )
    assert [(event.heard_ms, event.silence_ms) for event in pauses] == [(3000, 896)]


def test_one_update_leads_to_events_in_their_order():
    events = events_of(
        {"transcript": (" Guten", " Tag"), "language": "de", "said": (" Good", " day"),
         "interim": " then", "lag_ms": 400.0},
    )  # fmt: skip
    assert events == [
        dragoman.Transcript(1000, 1100, " Guten Tag", "de"),
        dragoman.Said(1000, 1100, " Good day", 500.0),
        dragoman.Interim(1000, 1100, " then"),
    ]


def test_the_words_of_the_speaker_are_told_where_they_are_wanted():
    settings = SETTINGS | {"model": "tests.talkers:bilingual"}
    wanted = list(dragoman.translate(silence(), transcript=True, **settings))
    spoken = [event.text for event in wanted if isinstance(event, dragoman.Transcript)]
    assert "".join(spoken).split()[:3] == ["Dies", "ist", "der"]
    plain = dragoman.translate(silence(), **settings)
    assert not any(isinstance(event, dragoman.Transcript) for event in plain)


def test_a_transcript_is_in_the_language_that_it_is_in():
    english = {"transcript": (" Good",), "language": "fr", "through": "en"}
    told = events_of(english, english | {"through": None})
    assert [(one.text, one.language) for one in told] == [(" Good", "en"), (" Good", "fr")]

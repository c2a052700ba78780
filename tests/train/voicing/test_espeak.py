"""eSpeak NG's events become the ends of the text's words."""

import numpy as np
import pytest

from dragoman.train.voicing.espeak import boundaries
from dragoman.voices.espeak_library import Event

WORD, PHONE = 1, 7


def test_ends_of_words_from_starts_of_phones():
    """'23' is two words to the synthesiser, the dash none, and a pause belongs to no word."""
    events = [
        Event(WORD, 1, 0, ""),
        Event(PHONE, 1, 0, "D"),
        Event(PHONE, 1, 10, "@"),
        Event(WORD, 5, 20, ""),
        Event(PHONE, 5, 20, "t"),
        Event(WORD, 6, 30, ""),
        Event(PHONE, 6, 30, "T"),
        Event(PHONE, 7, 45, "_:"),
        Event(WORD, 10, 60, ""),
        Event(PHONE, 10, 60, "d"),
    ]
    found = boundaries("The 23 – dogs", events, samples=75)
    assert found.words == [20, 45, 45, 75]
    assert found.phones == ["D", "@", "t", "T", "_:", "d"]
    assert found.phone_ends == [10, 20, 30, 45, 60, 75]


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("espeakng_loader")
    from dragoman.train.voicing.espeak import Espeak

    return Espeak()


def test_every_word_ends_within_the_sound_in_order(engine):
    random = np.random.default_rng(1)
    text = "In 1999, twenty-one dogs – barked “loudly”, didn’t they?"
    said = engine.say(text, engine.draw("en", random), random)
    assert len(said.word_ends) == len(text.split())
    assert sorted(said.word_ends) == said.word_ends
    assert 0 < said.word_ends[0] < said.word_ends[-1] <= len(said.sound) / said.rate
    assert len(said.phones) == len(said.phone_ends)


def test_word_ends_lie_where_the_sound_changes(engine):
    """A clause pause is quiet: the sound right after its word's end is much softer than before."""
    random = np.random.default_rng(2)
    said = engine.say("Hello, hello.", "en-us+m3 pitch 50 range 50 rate 120", random)
    end = int(said.word_ends[0] * said.rate)
    spoken, pause = said.sound[end // 2 : end], said.sound[end + 1500 : end + 2500]
    assert np.abs(pause).max() < 0.05 * np.abs(spoken).max()


def test_every_casting_is_a_voice_the_library_has(engine):
    from dragoman.train.voicing.espeak import ACCENTS, VARIANTS

    for accent in {name for names in ACCENTS.values() for name in names} | {"de", "it"}:
        assert engine.library.has_voice(accent), accent
    for variant in VARIANTS:
        assert engine.library.has_voice(f"en-us+{variant}"), variant


def test_voices_differ(engine):
    """Variants, pitch and pace change the sound; a slower pace takes longer."""
    random = np.random.default_rng(0)
    slow = engine.say("Good morning.", "en-us+f2 pitch 50 range 50 rate 120", random)
    fast = engine.say("Good morning.", "en-us+f2 pitch 50 range 50 rate 240", random)
    other = engine.say("Good morning.", "en-us+m3 pitch 30 range 50 rate 240", random)
    assert len(slow.sound) > 1.5 * len(fast.sound)
    assert len(other.sound) != len(fast.sound) or not np.array_equal(other.sound, fast.sound)

"""Real voices, for real: what they say takes its time, and is understood."""

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.source import read_audio
from dragoman.setup import Setup, System
from dragoman.voices import Narration, open_voice
from tests.voices.weights import need

TEXT = (
    "Good morning, everybody, and welcome to the meeting. We have to decide today whether the new "
    "bridge will be built. Nobody knows why the old library was closed for so long."
)


def plain(text):
    return "".join(c for c in text.lower() if c.isalnum() or c.isspace()).split()


def test_the_voice_that_comes_with_dragoman_speaks():
    voice = open_voice("hibari", "en")
    normal, again, fast = (voice.speak("Good morning, everybody.", s) for s in (1.0, 1.0, 1.3))
    assert 1.0 < len(normal) / voice.rate < 3.0
    assert np.array_equal(normal, again)
    assert len(normal) / len(fast) == pytest.approx(1.3, abs=0.1)
    assert np.abs(normal).max() <= 0.951


@pytest.mark.weights
def test_a_dub_that_hurries_is_understood_and_ends_with_the_talk(tmp_path):
    """So fast a speaker makes the dub hurry; Whisper hears what it says all the same."""
    need("whisper-base")
    words = TEXT.split()
    seconds = 0.22 * len(words)
    with Narration(open_voice("hibari", "en"), tmp_path / "dub.mp3") as narration:
        narration.hear(np.zeros(round(seconds * RATE), np.float32))
        for number, word in enumerate(words):
            narration.say(f" {word}", 220.0 * number, 220.0 * (number + 1))
    assert max(phrase.speed for phrase in narration.phrases) > 1.05
    assert narration.end - seconds < 3.0

    interpreter = System(Setup(source="en", policy="offline", beams=1)).interpreter()
    sound = np.concatenate([read_audio(tmp_path / "dub.mp3"), np.zeros(3 * RATE, np.float32)])
    heard = "".join(interpreter.hear(Chunk(sound, last=True)).said)
    wanted = plain(TEXT)
    assert Levenshtein.distance(plain(heard), wanted) <= 0.1 * len(wanted), heard

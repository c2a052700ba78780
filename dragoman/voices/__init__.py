"""Voices: text to sound, aloud on a thread of its own or into files.

from dragoman.voices import open_voice, Narration
voice = open_voice(None, "en")
with Narration(voice, speak="speech.wav") as narration:
    narration.say("Good morning, everybody.", at_ms=0)
"""

from dragoman.voices.base import Voice
from dragoman.voices.narration import Narration
from dragoman.voices.phrases import Pace
from dragoman.voices.registry import VOICES, open_voice
from dragoman.voices.speaker import Speaker

__all__ = ["VOICES", "Narration", "Pace", "Speaker", "Voice", "open_voice"]

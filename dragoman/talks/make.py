"""How the recordings here were made: `python -m dragoman.talks.make`, with a voice of ours.

Text and sound are ours, under the licence of the project; the voices are Dittli and Hibari (both
Apache-2.0).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.audio.resample import resample
from dragoman.audio.write import write_sound
from dragoman.voices import open_voice

PAUSE = 0.4  # seconds between sentences
VOICES = {"de": "dittli-de", "en": "hibari"}
TALKS = {
    "weather.de": (
        "Guten Tag und herzlich willkommen.",
        "Heute sprechen wir über das Wetter in den Bergen.",
        "Am Morgen ist es noch sonnig, aber am Abend kommt der Regen.",
        "Deshalb bleiben wir heute Abend zu Hause.",
        "Vielen Dank für Ihre Aufmerksamkeit.",
    ),
    "report.en": (
        "Good morning, ladies and gentlemen.",
        "I would like to thank the Commission for its excellent report.",
        "We need clean water, safe food and good schools for our children.",
        "That is why I will vote in favour of this proposal.",
        "Thank you very much for your attention.",
    ),
}


def make(name: str, folder: Path) -> None:
    """Speak a talk into NAME.ogg, and write into NAME.json when its sentences end."""
    language = name.rpartition(".")[2]
    voice = open_voice(VOICES[language], language)
    parts, rows = [np.zeros(RATE // 2, np.float32)], []
    for sentence in TALKS[name]:
        parts.append(resample(voice.speak(sentence), voice.rate))
        rows.append((round(sum(map(len, parts)) / RATE, 2), sentence))
        parts.append(np.zeros(round(PAUSE * RATE), np.float32))
    write_sound(folder / f"{name}.opus", np.concatenate(parts))
    (folder / f"{name}.opus").rename(folder / f"{name}.ogg")
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for talk in sys.argv[1:] or TALKS:
        make(talk, Path(__file__).parent)

"""A voice beside people: what Whisper base hears in recordings, and in the voice that reads out
what was said in them.

    python -m benchmarks heard --corpus autodub.de-en.tsv --language de --limit 40

The corpus is one that `dragoman evaluate` reads. `95 %` is where the WER is likely to be, by
drawing recordings anew a thousand times (bootstrap). `pace` is letters a second, pauses included.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.voices import ears, normal, recognise
from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.corpora import read_corpus
from dragoman.voices import open_voice


def run(options: Sequence[str] = ()) -> dict[str, float]:
    """Print a row for people and one for the voice; their word error rates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks heard")
    parser.add_argument("--corpus", type=Path, help="recordings and what is said in them")
    parser.add_argument("--language", default="de", help="that is spoken in them")
    parser.add_argument("--voice", help="default: the best that is ready")
    parser.add_argument("--limit", type=int, default=40, help="how many recordings")
    chosen = parser.parse_args(options)
    if chosen.corpus is None:
        print("Left out: name recordings by --corpus FILE.")
        return {}
    language = chosen.language
    voice = open_voice(chosen.voice, language)
    clips = read_corpus(chosen.corpus, language, language)[: chosen.limit]
    recogniser = ears()
    tallies = {"people": Tally(), voice.name: Tally()}
    for clip in clips:
        text = clip.texts[language]
        sounds = (read_audio(clip.audio), RATE), (voice.speak(text), voice.rate)
        for tally, (sound, rate) in zip(tallies.values(), sounds, strict=True):
            heard = normal(recognise(sound, rate, language, recogniser))
            tally.count(text, heard, len(sound) / rate)
    print(f"{'spoken by':32}{'words':>8}{'WER':>8}{'95 %':>14}{'pace':>8}")
    for name, tally in tallies.items():
        low, high = tally.interval
        span = f"{100 * low:.1f}…{100 * high:.1f}"
        wer = f"{100 * tally.rate:7.1f}%"
        print(f"{name:32}{tally.words:8}{wer}{span:>14}{tally.pace:8.1f}", flush=True)
    return {name: tally.rate for name, tally in tallies.items()}


class Tally:
    """Words and how many of them were misheard, letters and seconds."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self._errors: list[int] = []
        self._letters = 0
        self._seconds = 0.0

    def count(self, text: str, heard: list[str], seconds: float) -> None:
        wanted = normal(text)
        self._words.append(len(wanted))
        self._errors.append(Levenshtein.distance(wanted, heard))
        self._letters += len(text)
        self._seconds += seconds

    @property
    def words(self) -> int:
        return sum(self._words)

    @property
    def rate(self) -> float:
        return sum(self._errors) / max(1, self.words)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the rate is likely to be."""
        count = len(self._words)
        drawn = np.random.default_rng(1).integers(0, count, (1000, count))
        words, errors = np.array(self._words)[drawn], np.array(self._errors)[drawn]
        low, high = np.percentile(errors.sum(axis=1) / words.sum(axis=1), (2.5, 97.5))
        return float(low), float(high)

    @property
    def pace(self) -> float:
        return self._letters / max(1e-9, self._seconds)

"""Dubs of whole talks, those in DRAGOMAN_BENCH_TALKS (`talks.py`).

`end` is how long after the talk its dub ends, `lag` how long after the speaker the phrases begin on
average, `fast` the mean speed, `few` the share of phrases below three words, `words` the mean
length of a phrase. `WER` is what Whisper base hears in the dub against the text that was spoken.
A text of the project's own is dubbed by the German voice as well, if that is here.
"""

import tempfile
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.talks import Talk, talks, wanted
from benchmarks.voices import SENTENCES, ears, normal, recognise
from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.models import Model
from dragoman.store import find
from dragoman.text.captions import TimedWord
from dragoman.voices import Narration, Voice, open_voice

LONGEST = 20.0
"""Seconds of the dub that are recognised at a time."""


def run() -> dict[str, float]:
    """Print a row for each talk; the word error rates."""
    recogniser = ears()
    print(
        f"{'talk':26}{'talk s':>8}{'end':>7}{'lag':>6}{'fast':>6}{'few':>6}{'words':>7}{'WER':>7}"
    )
    chosen = talks(wanted())
    if find("dittli-de"):
        chosen.append(read_out("de"))
    return {talk.name: measure(talk, recogniser) for talk in chosen}


def read_out(language: str) -> Talk:
    """A talk that reads the sentences of `voices.py`, fifteen letters a second."""
    words: list[TimedWord] = []
    for word in " ".join(SENTENCES[language].split()).split(" "):
        start = words[-1].end if words else 0.0
        words.append(TimedWord(f" {word}", start, start + (len(word) + 1) / 15))
    return Talk(f"sentences {language}", language, words[-1].end, words, words)


def measure(talk: Talk, recogniser: Model) -> float:
    """Print one row; the word error rate of the dub."""
    voice = open_voice(None, talk.language)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dub.wav"
        with Narration(voice, speak=path) as narration:
            narration.hear(np.zeros(round(talk.seconds * RATE), np.float32))
            for word in talk.spoken:
                narration.say(word.text, 1000 * word.start, 1000 * word.end)
        dub, phrases, end = read_audio(path), narration.phrases, narration.end
    words = [len(phrase.text.split()) for phrase in phrases]
    starts = [phrase.start for phrase in phrases]
    error = word_errors([(p.start, p.text) for p in phrases], dub, voice, recogniser)
    print(
        f"{talk.name[-25:]:26}{talk.seconds:8.1f}{end - talk.seconds:+7.1f}"
        f"{np.mean([s - p.at for s, p in zip(starts, phrases, strict=True)]):6.1f}"
        f"{np.mean([p.speed for p in phrases]):6.2f}"
        f"{100 * np.mean([n < 3 for n in words]):5.0f}%{np.mean(words):7.1f}{100 * error:6.1f}%",
        flush=True,
    )
    return error


def word_errors(
    phrases: list[tuple[float, str]], dub: np.ndarray, voice: Voice, recogniser: Model
) -> float:
    """What is heard in the dub, some phrases at a time, against what was to be said."""
    errors = count = first = 0
    starts = [*(start for start, _ in phrases), len(dub) / RATE]
    for last in range(1, len(phrases) + 1):
        if last == len(phrases) or starts[last + 1] - starts[first] > LONGEST:
            sound = dub[round(starts[first] * RATE) : round(starts[last] * RATE)]
            wanted = normal(" ".join(text for _, text in phrases[first:last]))
            heard = normal(recognise(sound, RATE, voice.languages[0], recogniser))
            errors += Levenshtein.distance(wanted, heard)
            count, first = count + len(wanted), last
    return errors / max(1, count)

"""Sound that is no clean speech of the language that is expected, through the shipped models.

    python -m benchmarks bad_input

Silence, noise and music that are made here; speech of other languages; English speech that is
shouted, comes by telephone (8 kHz), is clipped or faint. Of the first nothing or little may be
said, of the others about as much as of clean speech, and never the same over and over. The models
are those of DRAGOMAN_BENCH_MODELS, each as `FROM-TO:MODEL`. DRAGOMAN_BENCH_ENGLISH and
DRAGOMAN_BENCH_FOREIGN name recordings, with spaces between them.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soxr

from benchmarks.quiet import SCENES
from benchmarks.speech import DATA
from dragoman.audio.chunk import RATE, Chunk, Samples
from dragoman.audio.source import read_audio
from dragoman.setup import Setup, System

MODELS = "en-de:whisper-base+mt-en en-de:moonshine-base+mt-en de-en:whisper-base"
SECONDS = 20  # of each sound without speech
PHRASE = 3  # words that, said in a row and again, would be a loop
LITTLE, OFTEN = 0.5, 3  # words a second in sound without speech; times that a phrase may be said


def run() -> dict[str, float]:
    """Print a row for each sound and model."""
    found: dict[str, float] = {}
    for name in os.environ.get("DRAGOMAN_BENCH_MODELS", MODELS).split():
        languages, _, model = name.partition(":")
        source, _, target = languages.partition("-")
        setup = Setup(model=model, source=source, target=target, threads=1).tuned(2000.0)
        system = System(setup)
        print(f"{model}, {source} into {target}, {setup.policy}")
        print(f"  {'sound':20} {'seconds':>7} {'words':>5}  a phrase at most  beginning")
        bad = 0
        for scene, sound, speech in sounds():
            said = interpreted(system, sound)
            words, often = said.split(), repeated(said.split())
            seconds = len(sound) / RATE
            wrong = often > OFTEN or (not speech and len(words) > LITTLE * seconds)
            bad += wrong
            mark = "  <- too much" if wrong else ""
            row = f"  {scene:20} {seconds:7.0f} {len(words):5} {often:17}  "
            print(row + f"{said.strip()[:50]}{mark}", flush=True)
        print(f"  {bad} sounds of which too much was said (bar: 0)")
        found[name] = bad
    return found


def sounds() -> Iterator[tuple[str, Samples, bool]]:
    """What they are called, and whether English is spoken in them."""
    for name, make in SCENES.items():
        yield name, make()[: SECONDS * RATE].astype(np.float32), False
    foreign = [DATA / "autodub" / one.name for one in sorted((DATA / "autodub").glob("*"))[:3]]
    for number, path in enumerate(_named("DRAGOMAN_BENCH_FOREIGN", foreign), start=1):
        yield f"another language {number}", read_audio(path), False
    for number, path in enumerate(_named("DRAGOMAN_BENCH_ENGLISH", [DATA / "jfk.flac"]), start=1):
        clean = read_audio(path)
        clean = clean / max(float(np.abs(clean).max()), 1e-9)
        yield f"speech {number}", 0.5 * clean, True
        yield f"shouted {number}", shouted(clean), True
        yield f"telephone {number}", telephone(clean), True
        yield f"clipped {number}", np.clip(20 * clean, -0.9, 0.9), True
        yield f"faint {number}", 0.005 * clean, True
        yield f"in music {number}", 0.4 * clean + _music(len(clean)), True


def shouted(sound: Samples) -> Samples:
    """Louder where it is loud already, brighter, and driven into the microphone."""
    bright = sound - 0.9 * np.concatenate([sound[:1], sound[:-1]])
    return np.asarray(np.tanh(6 * bright / np.abs(bright).max() + 3 * sound), np.float32)


def telephone(sound: Samples) -> Samples:
    """At 8 kHz, between 300 and 3,400 Hz, in the 8 bits of a telephone."""
    narrow = soxr.resample(sound, RATE, 8000)
    spectrum = np.fft.rfft(narrow)
    hertz = np.fft.rfftfreq(len(narrow), 1 / 8000)
    spectrum[(hertz < 300) | (hertz > 3400)] = 0
    narrow = np.fft.irfft(spectrum, len(narrow))
    narrow = narrow / max(float(np.abs(narrow).max()), 1e-9)
    pressed = np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256)
    steps = np.rint(pressed * 127) / 127
    back = np.sign(steps) * (256 ** np.abs(steps) - 1) / 255
    return np.asarray(soxr.resample(back, 8000, RATE), np.float32)


def interpreted(system: System, sound: Samples) -> str:
    interpreter, said = system.interpreter(), ""
    size = int(system.setup.step_ms * RATE / 1000)
    for begin in range(0, len(sound), size):
        chunk = Chunk(sound[begin : begin + size], begin + size >= len(sound))
        said += "".join(interpreter.hear(chunk).said)
    return said


def repeated(words: list[str]) -> int:
    """How often the commonest phrase is said."""
    phrases = zip(*(words[at:] for at in range(PHRASE)), strict=False)
    return max(Counter(phrases).values(), default=0)


def _named(variable: str, otherwise: list[Path]) -> list[Path]:
    named = os.environ.get(variable, "").split()
    return [Path(name) for name in named] or [path for path in otherwise if path.is_file()]


def _music(length: int) -> Samples:
    made: Samples = SCENES["arpeggios"]()[:length].astype(np.float32)
    return np.pad(made, (0, length - len(made)))


if __name__ == "__main__":
    run()

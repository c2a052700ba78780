"""Ten minutes in which nobody speaks: nothing may be said.

    python -m benchmarks quiet

Silence, hiss, hum, pink noise, wind, noise that swells like speech, drums, arpeggios and chords
with vibrato, a minute of each, through Whisper base and the tuned policy. What a language
model invents in such sound is the classic fault of live captions.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Chunk
from dragoman.setup import Setup, System

SECONDS = 60
TIME = np.arange(SECONDS * RATE) / RATE
RNG = np.random.default_rng(1)
Sound = NDArray[np.float64]


def tone(hertz: float) -> Sound:
    return np.sin(2 * np.pi * hertz * TIME)


def hiss() -> Sound:
    return RNG.standard_normal(len(TIME))


def coloured(power: float) -> Sound:
    """Noise whose spectrum falls with frequency to a power."""
    spectrum = np.fft.rfft(hiss())
    noise = np.fft.irfft(spectrum / np.maximum(1, np.arange(len(spectrum))) ** power, len(TIME))
    return noise / np.abs(noise).max()


def notes(every: float, length: float, sound: Callable[[Sound], Sound]) -> Sound:
    """A short sound again and again."""
    out = np.zeros(len(TIME))
    clock = np.arange(int(length * RATE)) / RATE
    for start in range(0, len(TIME) - len(clock), int(every * RATE)):
        out[start : start + len(clock)] += sound(clock)
    return out


def plucked(clock: Sound) -> Sound:
    hertz = RNG.choice([220.0, 261.6, 329.6, 392.0, 440.0, 523.3]) * RNG.choice([0.5, 1.0, 2.0])
    harmonics = sum(np.sin(2 * np.pi * hertz * n * clock) / n for n in range(1, 6))
    return harmonics * np.exp(-4 * clock)


def beaten(clock: Sound) -> Sound:
    return (RNG.standard_normal(len(clock)) + np.sin(2 * np.pi * 60 * clock)) * np.exp(-20 * clock)


def chords() -> Sound:
    vibrato = 3 * np.sin(2 * np.pi * 5.5 * TIME)
    return sum(np.sin(2 * np.pi * hertz * TIME + vibrato) for hertz in (220, 277, 330, 440)) / 4


SCENES: dict[str, Callable[[], Sound]] = {
    "silence": lambda: np.zeros(len(TIME)),
    "faint hiss": lambda: 1e-4 * hiss(),
    "hiss": lambda: 0.1 * hiss(),
    "hum": lambda: 0.3 * tone(50) + 0.1 * tone(150),
    "pink noise": lambda: 0.5 * coloured(0.5),
    "wind": lambda: 0.5 * coloured(1.0) * (1.2 + tone(0.2)),
    "swelling noise": lambda: 0.1 * hiss() * (1 + tone(4)),
    "drums": lambda: 0.4 * notes(0.5, 0.4, beaten),
    "arpeggios": lambda: 0.15 * notes(0.25, 0.6, plucked),
    "chords": lambda: 0.3 * chords(),
}


def run() -> None:
    system = System(Setup(source="de").tuned(2000.0))
    size = int(system.setup.step_ms * RATE / 1000)
    total = 0
    for name, make in SCENES.items():
        interpreter, said = system.interpreter(), ""
        sound = make().astype(np.float32)
        for begin in range(0, len(sound), size):
            last = begin + size >= len(sound)
            said += "".join(interpreter.hear(Chunk(sound[begin : begin + size], last)).said)
        total += len(said.split())
        print(f"{name:16} {SECONDS} s  {len(said.split())} words  {said.strip()[:60]}", flush=True)
    print(f"{total} words said in {SECONDS * len(SCENES) / 60:.0f} minutes without speech (bar: 0)")

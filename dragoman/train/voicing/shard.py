"""The work of one voicing process: a shard of rows, spoken, placed in rooms, written.

All chance comes from the seed and the row's number, and every shard is made by a fresh process
(eSpeak NG carries hidden state from one sentence to the next), so the same seed gives the same
bytes whatever the number of processes, and after an interruption too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.train.data.faults import Fault
from dragoman.train.data.pack import Codec, Item, ShardReport, ShardWriter, Tick
from dragoman.train.data.rooms import add_noise, impulse_response, in_room, random_room
from dragoman.train.voicing.spoken import Engine, Share, Spoken, open_engine
from dragoman.train.voicing.text import Row
from dragoman.voices.base import is_speakable
from dragoman.voices.network import run_on

MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Voicing:
    """How a corpus is voiced: everything but the text."""

    spoken: str
    seed: int
    shares: tuple[Share, ...]
    codec: Codec
    rooms: float  # the share of utterances heard in a room rather than at the microphone
    noise: float  # the share of utterances with noise
    max_words: int
    join: float = 0.0  # the share of rows that are spoken together with the next
    cut: float = 0.0  # the share of utterances that break off in mid-sentence
    device: str = "cpu"  # that neural voices run on


@dataclass(frozen=True, slots=True)
class VoicedShard:
    """One shard to make."""

    folder: Path
    number: int
    rows: list[Row]
    voicing: Voicing


def make_shard(job: VoicedShard, tick: Tick) -> ShardReport:
    """Voice the rows of a job into its shard; runs in a process of its own."""
    run_on(job.voicing.device)
    return ShardWriter(job.folder, job.number, job.voicing.codec).write(_voiced(job), tick)


def _voiced(job: VoicedShard) -> Iterator[tuple[Item, np.ndarray] | Fault]:
    engines: dict[str, Engine] = {}
    for row in job.rows:
        fault = text_fault(row, job.voicing)
        if fault:
            yield fault
            continue
        random = np.random.default_rng([job.voicing.seed, row.number])
        share = random.choice(len(job.voicing.shares), p=[s.weight for s in job.voicing.shares])
        name = job.voicing.shares[share].engine
        if name not in engines:
            engines[name] = open_engine(name)
        yield voice_row(row, engines[name], job.voicing, random)


def text_fault(row: Row, voicing: Voicing) -> Fault | None:
    """What keeps a row from being voiced, if anything."""
    where = f"row {row.number}"
    for language, text in row.text.items():
        if not text:
            return Fault("empty text", where, f"its {language} column is empty")
        words = len(text.split())
        if words > voicing.max_words:
            return Fault("text too long", where, f"{words} {language} words")
    if not is_speakable(row.text[voicing.spoken]):
        return Fault("nothing to say", where, row.text[voicing.spoken])
    return None


def voice_row(
    row: Row, engine: Engine, voicing: Voicing, random: np.random.Generator
) -> tuple[Item, np.ndarray] | Fault:
    """One row as an item and its int16 sound."""
    voice = engine.draw(voicing.spoken, random)
    try:
        said = engine.say(row.text[voicing.spoken], voice, random)
    except DragomanError as error:
        return Fault("voice failed", f"row {row.number}", str(error))
    seconds = len(said.sound) / said.rate
    if seconds < 0.1 or seconds > MOST_SECONDS:
        return Fault("odd length", f"row {row.number}", f"{seconds:.1f} s of sound")
    sound, before = recorded(said, voicing, random)
    item = Item(
        id=str(row.number),
        offset=0,
        size=0,
        samples=0,
        text=row.text,
        voice=voice if voice.startswith(engine.name) else f"{engine.name} {voice}",
        word_ends=[round(1000 * (before + end)) for end in said.word_ends],
        phones=said.phones,
        phone_ends=[round(1000 * (before + end)) for end in said.phone_ends],
    )
    return item, sound


def recorded(
    said: Spoken, voicing: Voicing, random: np.random.Generator
) -> tuple[np.ndarray, float]:
    """As a microphone would hear it: resampled, with silence around, a room, noise and a level.

    int16, and the silence before it in seconds.
    """
    import soxr

    sound = soxr.resample(said.sound, said.rate, RATE, quality="MQ")
    before, after = random.uniform(0.02, 0.4), random.uniform(0.05, 0.5)
    sound = np.pad(sound, (int(before * RATE), int(after * RATE)))
    if random.random() < voicing.rooms:
        room = random_room(random)
        sound = in_room(sound, impulse_response(room, RATE, random))
    if random.random() < voicing.noise:
        snr, slope = random.uniform(5, 35), random.uniform(0, 2)
        sound = add_noise(sound, snr, slope, random)
    # Levels as microphones give them, around -26 dB of full scale, never clipped.
    level = 10 ** (random.normal(-26, 5) / 20)
    gain = level / max(float(np.sqrt(np.mean(sound**2))), 1e-6)
    gain = min(gain, 0.98 / max(float(np.max(np.abs(sound))), 1e-6))
    return (sound * np.float32(32767 * gain)).astype(np.int16), int(before * RATE) / RATE

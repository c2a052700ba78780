"""Corpora of recordings become packs: clips are cut out, checked, resampled, written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.train.data.faults import Fault
from dragoman.train.data.pack import Codec, Header, Item, ShardReport, ShardWriter, Tick
from dragoman.train.data.packing import Progress, groups_of, make_pack
from dragoman.workers import FreshProcesses

CLIPS_PER_SHARD = 512
CODEC: Codec = "pcm"
MOST_WORDS = 300  # a longer text is a broken alignment
MOST_MISSING = 0.5  # seconds that a recording may end early


@dataclass(frozen=True, slots=True)
class ClipShard:
    """One shard to cut."""

    folder: Path
    number: int
    clips: list[Clip]
    languages: tuple[str, ...]


def pack_clips(
    clips: list[Clip],
    folder: Path,
    source: str,
    target: str,
    *,
    processes: int = 1,
    fault_limit: float = 0.02,
    progress: Progress = lambda items, hours: None,
) -> Header:
    """Cut all clips into a pack; faulty ones are skipped, counted and listed."""
    languages = tuple(dict.fromkeys((source, target)))
    groups = enumerate(groups_of(clips, CLIPS_PER_SHARD))
    return make_pack(
        folder,
        (ClipShard(folder, number, group, languages) for number, group in groups),
        cut_shard,
        made_from={"clips": fingerprint(clips), "codec": CODEC, "languages": ",".join(languages)},
        codec=CODEC,
        languages=list(languages),
        spoken=source,
        workers=FreshProcesses(processes),
        fault_limit=fault_limit,
        progress=progress,
    )


def fingerprint(clips: list[Clip]) -> str:
    """Changes with any text, time or name of a recording."""
    digest = hashlib.sha256()
    for clip in clips:
        place = (str(clip.audio), clip.start, clip.end)
        digest.update(msgspec.json.encode((place, sorted(clip.texts.items()))))
    return digest.hexdigest()


def cut_shard(job: ClipShard, tick: Tick) -> ShardReport:
    """Make one shard; runs in a process of its own."""
    return ShardWriter(job.folder, job.number, CODEC).write(_cut(job), tick)


def _cut(job: ClipShard) -> Iterator[tuple[Item, np.ndarray] | Fault]:
    for clip in job.clips:
        fault = text_fault(clip, job.languages)
        sound = fault or read_clip(clip)
        if isinstance(sound, Fault):
            yield sound
            continue
        texts = {language: clip.texts[language].strip() for language in job.languages}
        yield Item(str(clip.index), 0, 0, 0, texts), sound


def text_fault(clip: Clip, languages: tuple[str, ...]) -> Fault | None:
    """What is wrong with the texts of a clip, if anything."""
    for language in languages:
        text = clip.texts.get(language, "")
        if not text.strip():
            return Fault("empty text", _where(clip), f"no '{language}' text")
        words = len(text.split())
        if words > MOST_WORDS:
            return Fault("text too long", _where(clip), f"{words} '{language}' words")
    return None


def read_clip(clip: Clip) -> np.ndarray | Fault:
    """The int16 sound of a clip, or what is wrong with it."""
    from dragoman.audio.source import read_audio

    if not clip.audio.is_file():
        return Fault("missing recording", _where(clip), "there is no such file")
    try:
        with complaints() as heard:
            sound = read_audio(clip.audio, clip.start or 0.0, clip.end)
    except DragomanError as error:
        return Fault("corrupt recording", _where(clip), str(error))
    if clip.end is not None:
        missing = clip.end - (clip.start or 0.0) - len(sound) / RATE
        if missing > MOST_MISSING:
            return Fault("recording cut short", _where(clip), f"{missing:.1f} s are missing")
    elif heard:  # its text speaks of what is lost; a piece that is all there is none the worse
        return Fault("corrupt recording", _where(clip), heard[0])
    if not sound.any():
        return Fault("silent recording", _where(clip), "every sample is 0")
    return np.clip(np.round(sound * 32767), -32768, 32767).astype(np.int16)


@contextmanager
def complaints() -> Iterator[list[str]]:
    """What readers of audio warn of, who make the best of a damaged recording."""
    readers = logging.getLogger("dragoman.audio")
    heard: list[str] = []
    listener = logging.Handler(logging.WARNING)
    listener.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    readers.addHandler(listener)
    readers.propagate = False
    try:
        yield heard
    finally:
        readers.propagate = True
        readers.removeHandler(listener)


def _where(clip: Clip) -> str:
    return f"clip {clip.index + 1} ({clip.audio.name})"

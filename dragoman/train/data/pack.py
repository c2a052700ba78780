"""A pack: a corpus made ready for training, in shards that are quick to read.

    pack.json             what it holds; written last, so a folder with it is complete
    shard-00000.pcm       sound, one item after the other (raw int16, FLAC or Ogg Opus)
    shard-00000.jsonl     one line per item: where its sound lies, its texts, its word ends
    faults.jsonl          what was skipped, and why
    made_from.json        what the pack is a function of
    made_by.json          the versions of Dragoman that worked on it

All sound is 16 kHz mono. A shard is a function of its inputs alone, so packs are made by many
processes at once, and an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.train.data.faults import Fault

Codec = Literal["pcm", "flac", "opus"]
Tick = Callable[[int, int], None]  # items and samples that are written


class Item(msgspec.Struct, omit_defaults=True):
    """One utterance: its sound (bytes `offset` to `offset + size` of the shard) and its texts.

    `word_ends` has one time (ms) per whitespace-separated word of the spoken text; it is empty
    where nobody knows the boundaries. `phones` are the synthesiser's symbols, with their ends.
    """

    id: str
    offset: int
    size: int
    samples: int
    text: dict[str, str]
    voice: str = ""
    word_ends: list[int] = []
    phones: list[str] = []
    phone_ends: list[int] = []


class Header(msgspec.Struct):
    """The contents of `pack.json`."""

    codec: Codec
    languages: list[str]
    spoken: str
    shards: int
    items: int
    hours: float
    fingerprint: str
    made_from: dict[str, str | int | float | bool | None]
    sound_of: str = ""  # the pack that holds the sound, seen from here, if it is another one
    version: int = 1


class ShardReport(msgspec.Struct):
    """What one finished shard holds; its last line, so that a resumed pack need not recount."""

    items: int
    samples: int
    faults: list[Fault]


def encode_sound(sound: np.ndarray, codec: Codec) -> bytes:
    """int16 samples as bytes of the codec."""
    if codec == "pcm":
        return sound.astype("<i2", copy=False).tobytes()
    import soundfile

    buffer = io.BytesIO()
    kind = {"flac": ("FLAC", "PCM_16"), "opus": ("OGG", "OPUS")}[codec]
    soundfile.write(buffer, sound, RATE, format=kind[0], subtype=kind[1])
    return buffer.getvalue()


def decode_sound(data: bytes, codec: Codec, samples: int) -> np.ndarray:
    """The int16 samples of one item; Opus may round its length, `samples` is what counts."""
    if codec == "pcm":
        return np.frombuffer(data, dtype="<i2")
    import soundfile

    sound, _ = soundfile.read(io.BytesIO(data), dtype="int16")
    return np.pad(sound, (0, max(0, samples - len(sound))))[:samples]


def shard_path(folder: Path, number: int, kind: str = "jsonl") -> Path:
    """A file of a shard: its index, or its sound in a codec."""
    return folder / f"shard-{number:05d}.{kind}"


class ShardWriter:
    """Writes one shard; nothing appears under its name until `write` has finished."""

    def __init__(self, folder: Path, number: int, codec: Codec) -> None:
        self.index, self.sounds = shard_path(folder, number), shard_path(folder, number, codec)
        self.codec: Codec = codec

    def write(
        self,
        spoken: Iterable[tuple[Item, np.ndarray] | Fault],
        tick: Tick = lambda items, samples: None,
    ) -> ShardReport:
        """Take items with their sound (or the fault in their place) and write them all."""
        offset, samples, items, faults = 0, 0, 0, []
        with (
            whole_file(self.index, "wb") as index,
            whole_file(self.sounds, "wb") as sounds,
        ):
            for one in spoken:
                if isinstance(one, Fault):
                    faults.append(one)
                    continue
                item, sound = one
                data = encode_sound(sound, self.codec)
                item.offset, item.size, item.samples = offset, len(data), len(sound)
                sounds.write(data)
                index.write(msgspec.json.encode(item) + b"\n")
                offset, samples, items = offset + len(data), samples + len(sound), items + 1
                tick(items, samples)
            report = ShardReport(items, samples, faults)
            index.write(msgspec.json.encode(report) + b"\n")
        return report


def finished_shard(folder: Path, number: int) -> ShardReport | None:
    """The report of a shard that is already there, else None: one without it is made again."""
    path = shard_path(folder, number)
    if not path.exists():
        return None
    last = path.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        return msgspec.json.decode(last, type=ShardReport)
    except msgspec.MsgspecError:
        return None


class Pack:
    """A finished pack, opened for reading: `items` in order, `sound(i)` by memory map."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header = read_header(folder)
        self.sounds = folder / self.header.sound_of  # which is the folder itself, mostly
        self.shards: list[np.ndarray] = []
        self.items: list[Item] = []
        self.shard_of: list[int] = []
        for number in range(self.header.shards):
            items = list(_read_items(shard_path(folder, number)))
            self.items += items
            self.shard_of += [number] * len(items)
            self.shards.append(self._map(number, items))
        if len(self.items) != self.header.items:
            raise DragomanError(
                f"{folder} holds {len(self.items)} items where pack.json promises "
                f"{self.header.items}; make the pack again."
            )

    def _map(self, number: int, items: list[Item]) -> np.ndarray:
        path = shard_path(self.sounds, number, self.header.codec)
        if not path.exists():
            raise DragomanError(f"{path} is missing; make the pack again.")
        size = path.stat().st_size
        if size < max((item.offset + item.size for item in items), default=0):
            raise DragomanError(f"{path} is shorter than its index says; make the pack again.")
        if size == 0:
            return np.zeros(0, np.uint8)
        return np.memmap(path, np.uint8, mode="r")

    def __len__(self) -> int:
        return len(self.items)

    @property
    def silent(self) -> bool:
        """Text alone."""
        return not self.header.spoken

    def sound(self, number: int) -> np.ndarray:
        """The int16 samples of item `number` (for PCM a view of the map, nothing is copied)."""
        data = self.data(number)
        if self.header.codec == "pcm":
            return data.view("<i2")
        item = self.items[number]
        try:
            return decode_sound(data.tobytes(), self.header.codec, item.samples)
        except RuntimeError as error:  # soundfile's errors
            raise DragomanError(
                f"The sound of item {item.id} in {self.folder} cannot be decoded; "
                "make the pack again."
            ) from error

    def data(self, number: int) -> np.ndarray:
        """The bytes of item `number` as they lie in its shard."""
        item = self.items[number]
        return self.shards[self.shard_of[number]][item.offset : item.offset + item.size]


def read_header(folder: Path) -> Header:
    """pack.json of a folder, or a sentence."""
    path = folder / "pack.json"
    if not path.exists():
        begun = any(folder.glob("shard-*"))
        hint = (
            "it is unfinished, run the command that makes it again" if begun else "it is not a pack"
        )
        raise DragomanError(f"{folder} has no pack.json: {hint}.")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Header)
    except msgspec.MsgspecError as error:
        raise DragomanError(f"{path} cannot be read ({error}); make the pack again.") from error


def write_header(folder: Path, header: Header) -> None:
    with whole_file(folder / "pack.json", "wb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n")


def _read_items(path: Path) -> Iterator[Item]:
    if not path.exists():
        raise DragomanError(f"{path} is missing; make the pack again.")
    decoder = msgspec.json.Decoder(Item)
    *lines, _report = path.read_bytes().rstrip(b"\n").split(b"\n")
    try:
        yield from map(decoder.decode, lines)
    except msgspec.MsgspecError as error:
        raise DragomanError(f"{path} is damaged ({error}); make the pack again.") from error

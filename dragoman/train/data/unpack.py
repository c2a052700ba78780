"""A pack as people and other tools like it: a sound file per utterance, and a table."""

from __future__ import annotations

import io
from pathlib import Path

from dragoman.audio.chunk import RATE
from dragoman.files import whole_file
from dragoman.train.data.pack import Pack

SUFFIX = {"pcm": ".wav", "flac": ".flac", "opus": ".ogg"}


def unpack(folder: Path) -> Path:
    """Write `clips/` and `corpus.tsv` beside the shards; returns the table's path.

    Where ends are known, `words.ends` and `phones.ends` have them for the detector
    `boundaries:FILE`.
    """
    pack = Pack(folder)
    suffix = SUFFIX[pack.header.codec]
    lines = ["\t".join(["audio", *pack.header.languages])]
    ends: dict[str, list[str]] = {"words": [], "phones": []}
    for number, item in enumerate(pack.items):
        name = f"clips/{item.id}{suffix}"
        with whole_file(folder / name, "wb") as stream:
            stream.write(_as_file(pack, number))
        texts = (item.text.get(language, "") for language in pack.header.languages)
        lines.append("\t".join([name, *texts]))
        for kind, times in (("words", item.word_ends), ("phones", item.phone_ends)):
            if times:
                ends[kind].append(f"{item.id}{suffix}\t{' '.join(map(str, times))}")
    for kind, rows in ends.items():
        if rows:
            with whole_file(folder / f"{kind}.ends", "w") as stream:
                stream.write("\n".join(rows) + "\n")
    table = folder / "corpus.tsv"
    with whole_file(table, "w") as stream:
        stream.write("\n".join(lines) + "\n")
    return table


def _as_file(pack: Pack, number: int) -> bytes:
    """One item as the bytes of a sound file; those of a codec are one already."""
    if pack.header.codec != "pcm":
        return pack.data(number).tobytes()
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, pack.sound(number), RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()

"""A pack as people and other tools like it: a sound file per utterance, and a table."""

from __future__ import annotations

from pathlib import Path

from dragoman.train.data.pack import RATE, Pack
from dragoman.train.files import whole_file

SUFFIX = {"pcm": ".wav", "flac": ".flac", "opus": ".ogg"}


def unpack(folder: Path) -> Path:
    """Write `clips/` and `corpus.tsv` beside the shards; gives the table's path."""
    pack = Pack(folder)
    clips, suffix = folder / "clips", SUFFIX[pack.header.codec]
    clips.mkdir(exist_ok=True)
    lines = ["\t".join(["audio", *pack.header.languages])]
    for number, item in enumerate(pack.items):
        name = f"clips/{item.id}{suffix}"
        _write(pack, number, folder / name)
        texts = (item.text.get(language, "") for language in pack.header.languages)
        lines.append("\t".join([name, *texts]))
    table = folder / "corpus.tsv"
    with whole_file(table, "w") as stream:
        stream.write("\n".join(lines) + "\n")
    return table


def _write(pack: Pack, number: int, path: Path) -> None:
    import soundfile

    kind = {".ogg": ("OGG", "OPUS"), ".flac": ("FLAC", "PCM_16"), ".wav": ("WAV", "PCM_16")}
    form, subtype = kind[path.suffix]
    soundfile.write(path, pack.sound(number), RATE, format=form, subtype=subtype)

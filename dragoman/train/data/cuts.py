"""Clips and lhotse's cuts: corpora go to and come from lhotse's lazy manifests.

The texts of a cut lie in its supervision: `text` in the language that is spoken, all others under
`custom`. Of several supervisions, as a cut of a whole talk has them, each is a clip of its own. The
manifest is read and written a line at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.files import sentences_for

MANIFESTS = (".jsonl.gz", "cuts.jsonl")


def is_manifest(path: Path) -> bool:
    """Whether a corpus of this name is a manifest of lhotse's."""
    return path.name.endswith(MANIFESTS)


def lhotse() -> Any:
    """The library, or how to get it."""
    try:
        import lhotse as library
    except ImportError:
        raise DragomanError(
            "lhotse manifests need lhotse; run: pip install 'dragoman[train]'"
        ) from None
    return library


def as_cut(clip: Clip, spoken: str) -> Any:
    """A clip as a lhotse cut of its recording, with all its channels, since these are heard."""
    library = lhotse()
    recording = library.Recording.from_file(clip.audio, recording_id=clip.audio.stem)
    start = clip.start or 0.0
    end = recording.duration if clip.end is None else clip.end
    name = f"{clip.audio.stem}-{clip.index}"
    kind = library.MonoCut if recording.num_channels == 1 else library.MultiCut
    channel = 0 if recording.num_channels == 1 else list(recording.channel_ids)
    supervision = library.SupervisionSegment(
        id=name,
        recording_id=recording.id,
        start=0.0,
        duration=end - start,
        channel=channel,
        text=clip.texts.get(spoken),
        language=spoken,
        custom={language: text for language, text in clip.texts.items() if language != spoken},
    )
    return kind(
        id=name,
        start=start,
        duration=end - start,
        channel=channel,
        recording=recording,
        supervisions=[supervision],
    )


def write_cuts(clips: Iterable[Clip], path: Path, spoken: str) -> int:
    """Write a manifest (`cuts.jsonl.gz`); clips whose recording cannot be read are a sentence."""
    written = 0
    with sentences_for(path), lhotse().CutSet.open_writer(path, overwrite=True) as writer:
        for clip in clips:
            try:
                cut = as_cut(clip, spoken)
            except Exception as error:
                raise DragomanError(f"{clip.audio} cannot be read: {error}.") from error
            writer.write(cut)
            written += 1
    return written


def _cuts(path: Path) -> Iterator[tuple[Any, Path]]:
    """The cuts of a manifest and their recordings; what lhotse says of others is a sentence."""
    if not path.exists():
        raise DragomanError(f"There is no manifest {path}.")
    cuts = iter(lhotse().CutSet.from_jsonl_lazy(path))
    number = 0
    while True:
        number += 1
        try:
            cut = next(cuts)
            audio = _file_of(cut)
        except StopIteration:
            return
        except Exception as error:
            raise DragomanError(
                f"Line {number} of {path} is not a lhotse cut of a recording ({error})."
            ) from error
        changes = {type(change).__name__ for change in cut.recording.transforms or ()}
        if changes - {"Resample"}:  # which is done to every recording
            raise DragomanError(
                f"Line {number} of {path} is a cut whose sound lhotse would change "
                f"({', '.join(sorted(changes))}): take cuts as they were recorded; recipes change "
                "the sound themselves (augment)."
            )
        yield cut, audio


def _file_of(cut: Any) -> Path:
    """The file that has the channels of a cut, and no others: a file is heard as a whole."""
    wanted = {cut.channel} if isinstance(cut.channel, int) else set(cut.channel)
    for source in cut.recording.sources:
        if set(source.channels) == wanted:
            return Path(source.source)
    raise ValueError(
        f"it is of channel {', '.join(map(str, sorted(wanted)))}, and no file of its recording has "
        "just that: files are heard with all their channels, so write it to one of its own first"
    )


def read_cuts(path: Path, spoken: str) -> Iterator[Clip]:
    """The clips of a lhotse manifest, lazily; a cut's extra texts come from `custom`."""
    numbers = count()
    for cut, audio in _cuts(path):
        if len(cut.supervisions) < 2:  # all of the cut is its
            texts = _texts(cut.supervisions[0], spoken) if cut.supervisions else {}
            yield Clip(next(numbers), audio, texts, cut.start, cut.end)
            continue
        for said in cut.supervisions:
            times = max(cut.start, cut.start + said.start), min(cut.end, cut.start + said.end)
            yield Clip(next(numbers), audio, _texts(said, spoken), *times)


def _texts(said: Any, spoken: str) -> dict[str, str]:
    """What a supervision says, by language."""
    texts = {k: str(v) for k, v in (said.custom or {}).items() if len(k) <= 3}
    if said.text:
        code = said.language or spoken
        texts[code if len(code) <= 3 else spoken] = said.text  # lhotse also has 'English'
    return texts

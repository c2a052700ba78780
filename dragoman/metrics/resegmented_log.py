"""OmniSTEval's instances.resegmented.jsonl: what was said of each segment of a talk, for the
scripts that read it from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.files import whole_file
from dragoman.metrics.instance import Instance
from dragoman.metrics.segments import Segment, by_recording, recording_end


def write(
    path: Path, sentences: Sequence[Instance], segments: Sequence[Segment], *, timed: bool = True
) -> None:
    """Write a line for each segment, in their order; `sentences` are a long-form report's.

    Not `timed` is text of which nobody knows when it was said: it has no times, as in OmniSTEval.
    """
    rows = [msgspec.json.encode(row) for row in _rows(sentences, segments, timed)]
    with whole_file(path, "wb") as file:
        file.writelines(row + b"\n" for row in rows)


def _rows(
    sentences: Sequence[Instance], segments: Sequence[Segment], timed: bool
) -> Iterator[dict[str, Any]]:
    talks = by_recording(segments)
    numbers = {wav: number for number, wav in enumerate(talks)}
    places = {s.index: place for own in talks.values() for place, s in enumerate(own)}
    ends = {wav: recording_end(own) for wav, own in talks.items()}
    for sentence in sentences:
        segment = segments[sentence.index]
        row: dict[str, Any] = {
            "index": segment.index,
            "docid": numbers[segment.wav],
            "segid": places[segment.index],
            "prediction": sentence.prediction,
            "reference": sentence.reference,
        }
        if segment.duration:
            row["source_length"] = sentence.source_length
        if timed:
            row["emission_cu"] = list(sentence.delays)
            if sentence.elapsed is not None:
                row["emission_ca"] = list(sentence.elapsed)
            row["time_to_recording_end"] = ends[segment.wav] - segment.offset * 1000
        yield row

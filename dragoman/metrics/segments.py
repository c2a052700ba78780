"""Reference segments of talks: where each sentence lies in its recording, and its translation.

The usual pair of files: a YAML or JSON list of `{wav, offset, duration}` in seconds, and a text
file with the reference of each entry, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path, PurePath
from typing import Any

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance
from dragoman.yaml_text import parse_yaml


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence of a recording. Times are seconds, as such files have them."""

    index: int  # its position in the file
    wav: str
    offset: float
    duration: float
    reference: str

    @property
    def end(self) -> float:
        return self.offset + self.duration


@dataclass(frozen=True, slots=True)
class Talk:
    """A recording: the output of a system for all of it, and its reference sentences."""

    instance: Instance
    segments: Sequence[Segment]


def read_segments(path: Path, references: Path) -> list[Segment]:
    """Read a segmentation with its references."""
    entries = _read_entries(path)
    lines = read_references(references)
    if len(entries) != len(lines):
        raise DragomanError(
            f"{path} has {len(entries)} segments but {references} has {len(lines)} lines; "
            "every segment needs its reference."
        )
    return [
        _segment(entry, index, line, path)
        for index, (entry, line) in enumerate(zip(entries, lines, strict=True))
    ]


def _read_entries(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DragomanError(f"Cannot read the segments in {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DragomanError(f"{path} is not YAML: it is not UTF-8 text.") from error
    content = _read_plain_lines(text) or parse_yaml(text, str(path))
    if not isinstance(content, list) or not content:
        raise DragomanError(
            f"{path} holds no list of segments; each is an entry with wav, offset and duration."
        )
    return content


def _read_plain_lines(text: str) -> list[dict[str, str]] | None:
    """The entries of a file of plain lines, `- {duration: 1.5, offset: 2.0, wav: talk.wav}`.

    Nearly all such files look like this, and YAML takes its time. None if one line does not.
    """
    entries = []
    for line in text.splitlines():
        if not PLAIN_LINE.fullmatch(line):
            return None
        entries.append(dict(part.split(": ", 1) for part in line[3:-1].split(", ")))
    return entries


# A name that YAML takes for a string, a number that means the same to YAML and to float().
PLAIN = (
    r"(?:wav: [A-Za-z][\w/-]*\.[A-Za-z]\w*|(?:offset|duration): \d+\.\d+"
    r"|(?!wav|offset|duration)\w+: [\w.-]+)"
)
PLAIN_LINE = re.compile(rf"- \{{{PLAIN}(?:, {PLAIN})*\}}", re.ASCII)


def read_references(path: Path, what: str = "references") -> list[str]:
    """The lines of a file, a reference each, or what else they are said to be."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows marks the beginning of a file
    except OSError as error:
        raise DragomanError(f"Cannot read the {what} in {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DragomanError(f"The {what} in {path} are not UTF-8 text.") from error
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text else []


def lines_by_index(
    lines: Sequence[str], instances: Sequence[Instance], left_out: int = 0
) -> list[str] | None:
    """The line that belongs to each sentence, in whatever order a log has them; None if they do
    not pair off.

    The first line is of the sentence with the lowest index. Of a log from which sentences were
    left out, the index says which line it is.
    """
    indices = [instance.index for instance in instances]
    if len(set(indices)) < len(indices):
        twice = next(index for index in indices if indices.count(index) > 1)
        raise DragomanError(
            f"Several sentences have the number {twice}: nobody can tell whose line is whose."
        )
    if len(lines) == len(indices):
        places = {index: place for place, index in enumerate(sorted(indices))}
        return [lines[places[index]] for index in indices]
    known = range(len(lines))
    if len(indices) < len(lines) <= len(indices) + left_out and all(i in known for i in indices):
        return [lines[index] for index in indices]
    return None


def _segment(entry: Any, index: int, reference: str, path: Path) -> Segment:
    try:
        segment = Segment(
            index, str(entry["wav"]), float(entry["offset"]), float(entry["duration"]), reference
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DragomanError(
            f"{path}, segment {index + 1}: a segment needs a wav, and offset and duration in "
            "seconds."
        ) from error
    if not isfinite(segment.end) or min(segment.offset, segment.duration) < 0:
        raise DragomanError(
            f"{path}, segment {index + 1}: offset {segment.offset} and duration "
            f"{segment.duration} are not times."
        )
    return segment


def by_recording(segments: Sequence[Segment]) -> dict[str, list[Segment]]:
    """The segments of each recording, in the order in which the recordings first come."""
    recordings: dict[str, list[Segment]] = {}
    for segment in segments:
        recordings.setdefault(segment.wav, []).append(segment)
    return recordings


def recording_end(segments: Sequence[Segment]) -> float:
    """Where a recording ends, in milliseconds: with the last of its segments."""
    return max(segment.offset * 1000 + segment.duration * 1000 for segment in segments)


def match_talks(instances: Sequence[Instance], segments: Sequence[Segment]) -> list[Talk]:
    """Find for every recording of the segments its output.

    Names agree in full, or without folders, or without folders and extension: whichever comes
    first tells all recordings apart and leaves none alone. A log without names goes by order.
    """
    recordings = by_recording(segments)
    if not any(instance.source for instance in instances) and len(instances) == len(recordings):
        pairs = zip(instances, recordings.values(), strict=True)
        return [Talk(instance, own) for instance, own in pairs]
    for name in NAMES:
        outputs = {name(instance.source): instance for instance in instances}
        wanted = {name(wav): own for wav, own in recordings.items()}
        unique = len(outputs) == len(instances) and len(wanted) == len(recordings)
        if unique and outputs.keys() == wanted.keys():
            return [Talk(outputs[key], own) for key, own in wanted.items()]
    raise DragomanError(_mismatch(instances, recordings))


# From the strictest to the loosest way to name a recording.
NAMES: tuple[Callable[[str], str], ...] = (
    str,
    lambda path: PurePath(path).name,
    lambda path: PurePath(path).stem,
)


def _mismatch(instances: Sequence[Instance], recordings: dict[str, list[Segment]]) -> str:
    """What to say when recordings and outputs do not pair off."""
    outputs = [NAMES[-1](instance.source) for instance in instances]
    wanted = {NAMES[-1](wav) for wav in recordings}
    problems = []
    if missing := sorted(wanted - set(outputs)):
        problems.append(f"no output for {_some(missing)}")
    if unknown := sorted(set(outputs) - wanted):
        problems.append(f"no segments for {_some(unknown)}")
    if repeated := sorted({name for name in outputs if outputs.count(name) > 1}):
        problems.append(f"several outputs for {_some(repeated)}")
    reason = ", ".join(problems) or "their names cannot be told apart"
    return f"The log's sources and the segments' recordings do not pair off: {reason}."


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")

"""What recordings are called: by their file names, or with folders where two have the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.corpora import Clip


def told_apart(clips: Sequence[Clip]) -> list[Clip]:
    """The clips, each called by the shortest end of its path that tells its recording from all
    others: logs, segments and word ends are found by it."""
    paths = {clip.audio: clip.audio.parts for clip in clips}
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        by_name[path.name].append(path)
    called: dict[Path, str] = {}
    for same in by_name.values():
        parts = 1
        while len({paths[path][-parts:] for path in same}) < len(same):
            parts += 1
        if parts > 1:
            called |= {path: "/".join(paths[path][-parts:]) for path in same}
    return [
        replace(clip, called=called[clip.audio]) if clip.audio in called else clip for clip in clips
    ]

"""Finds out which tool wrote a log, and reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.metrics import simuleval_log, simulstream_log
from dragoman.metrics.instance import Unit
from dragoman.metrics.lines import Log, decode_line, read_lines

RUN = "run.json"  # what a folder of a run of ours holds, beside its traces
LEFT_OUT = "left_out"  # the clips that it has no traces of, by their numbers, and why


def read_log(path: Path, unit: Unit = "word", *, strict: bool = True, skip: bool = False) -> Log:
    """Read a SimulEval folder or instances.log, or a simulstream log.

    `strict` refuses times that contradict themselves; `skip` leaves broken sentences out instead
    and counts them.
    """
    path = find_log(path)
    first = first_row(path, skip=skip)
    if "emission_cu" in first or {"docid", "segid"} <= first.keys():
        raise DragomanError(
            f"{path} holds talks that are cut into segments already, as by OmniSTEval or by "
            "--resegmented. Score the log they were cut from, with --segments and --references."
        )
    if simulstream_log.knows(first):
        return simulstream_log.read(path, unit, strict=strict, skip=skip)
    if simuleval_log.knows(first):
        return simuleval_log.read(path, unit, strict=strict, skip=skip)
    raise DragomanError(
        f"{path} is not a log that can be scored: its first line has neither the delays of a "
        "SimulEval log nor the audio times of a simulstream log."
    )


def find_log(path: Path) -> Path:
    """The log file itself, which may be named by its folder."""
    if path.is_dir():
        # A run of ours holds both; its traces know more than the log.
        for name in ("traces.jsonl", "instances.log"):
            if (path / name).is_file():
                return path / name
        raise DragomanError(
            f"There is no instances.log in the folder {path}; name the log file to score."
        )
    if not path.exists():
        raise DragomanError(f"There is no log at {path}.")
    return path


def clips_left_out(mark: Path) -> list[str]:
    """The clips that a run could not interpret, and why; of no run of ours, or a damaged mark,
    none."""
    try:
        found = msgspec.json.decode(mark.read_bytes(), type=_Mark)
    except (OSError, msgspec.MsgspecError):
        return []
    return [found.left_out[index] for index in sorted(found.left_out)]


class _Mark(msgspec.Struct):
    left_out: dict[int, str] = msgspec.field(default_factory=dict)


def first_row(path: Path, *, skip: bool = False) -> dict[str, Any]:
    """The first line that holds anything, as an object; `skip`: that can be read as one."""
    fault: DragomanError | None = None
    for number, line in read_lines(path):
        try:
            return _row(line, number, path)
        except DragomanError as error:
            fault = fault or error
            if not skip:
                break
    raise fault or DragomanError(f"The log {path} is empty: there is nothing to score.")


def _row(line: bytes, number: int, path: Path) -> dict[str, Any]:
    if not line.lstrip().startswith((b"{", b"[")):
        raise DragomanError(
            f"{path}, line {number}: this is not valid JSON, so it is no log. To score plain "
            "text, a line for each sentence, name its references (--references)."
        )
    return decode_line(line, number, path, msgspec.json.Decoder(dict[str, Any]))

"""SimulEval's logs: instances.log with one JSON object per sentence, and config.yaml beside it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.lines import Log, decode_line, read_lines
from dragoman.metrics.timings import Medium
from dragoman.yaml_text import read_yaml


class Line(msgspec.Struct):
    """What a line of instances.log may hold; the rest is ignored."""

    source_length: float
    index: int | None = None
    prediction: str | None = ""
    delays: list[float] | None = None
    elapsed: list[float] | None = None
    reference: str | msgspec.UnsetType | None = msgspec.UNSET
    more_references: tuple[str, ...] = ()  # in logs of Dragoman's
    source: str | list[str] = ""
    durations: list[float] | None = None
    prediction_offset: float | None = None
    intervals: list[list[float]] | None = None
    prediction_spm: list[str] | None = None

    def instance(self, position: int, *, strict: bool) -> Instance:
        """The sentence, with the times as compact arrays that add up to a corpus at no cost."""
        reference = self.reference
        if reference is msgspec.UNSET:
            # SimulEval takes a missing reference for an empty one, though not a null.
            reference = None if strict else ""
        source = self.source[0] if isinstance(self.source, list) and self.source else self.source
        return Instance(
            index=position if self.index is None else self.index,
            prediction=self.prediction or "",
            delays=array("d", self.delays or ()),
            source_length=self.source_length,
            reference=reference,
            more_references=self.more_references,
            elapsed=array("d", self.elapsed) if self.elapsed else None,
            source=source if isinstance(source, str) else "",
            durations=self.durations,
            prediction_offset=self.prediction_offset,
            intervals=self.intervals,
        )


def knows(first: dict[str, Any]) -> bool:
    """Whether this is the first line of such a log."""
    return "prediction" in first and ("delays" in first or "source_length" in first)


def read(path: Path, unit: Unit, *, strict: bool = True, skip: bool = False) -> Log:
    """Read instances.log; see `read_log`."""
    sentences: dict[int, Instance] = {}
    left_out: list[str] = []
    decoder = msgspec.json.Decoder(Line)
    for position, (number, raw) in enumerate(read_lines(path)):
        try:
            line = decode_line(raw, number, path, decoder)
            instance = line.instance(position, strict=strict)
            fault = instance.malformed()
            if strict and not fault:
                fault = _contradiction(instance, line, unit, sentences)
            if fault:
                raise DragomanError(f"{path}, line {number}: sentence {instance.index} {fault}.")
            sentences[instance.index] = instance  # of one index the last counts, as in SimulEval
        except DragomanError as error:
            if not skip:
                raise
            left_out.append(str(error))
    instances = list(sentences.values())
    return Log(path, "SimulEval", instances, _source_medium(path, instances), left_out)


def _contradiction(
    instance: Instance, line: Line, unit: Unit, sentences: dict[int, Instance]
) -> str | None:
    """What SimulEval would score without a word, though it cannot be right."""
    if instance.index in sentences:
        return "comes twice"
    if line.prediction_spm is not None:  # subwords cannot be counted in the text
        return instance.disorder()
    return instance.disorder() or instance.miscount(unit)


def _source_medium(path: Path, instances: Sequence[Instance]) -> Medium:
    """What config.yaml says; without one, text if the sources are texts of their lengths."""
    config = path.with_name("config.yaml")
    if config.is_file():
        settings = read_yaml(config)
        if isinstance(settings, dict) and settings.get("source_type"):
            return "text" if settings["source_type"] == "text" else "speech"
    words = [len(instance.source.split()) for instance in instances]
    texts = [instance.source_length == n > 0 for instance, n in zip(instances, words, strict=True)]
    return "text" if texts and all(texts) else "speech"


def write(
    folder: Path, instances: Sequence[Instance], source: Medium = "speech", target: Medium = "text"
) -> None:
    """Write a folder that SimulEval can score: instances.log and config.yaml."""
    rows = [msgspec.json.encode(_row(instance)) for instance in instances]
    config = f"source_type: {source}\ntarget_type: {target}\n"
    with whole_file(folder / "instances.log", "wb") as file:
        file.writelines(row + b"\n" for row in rows)
    with whole_file(folder / "config.yaml") as file:
        file.write(config)


def _row(instance: Instance) -> dict[str, Any]:
    row: dict[str, Any] = {
        "index": instance.index,
        "prediction": instance.prediction,
        "delays": list(instance.delays),
        "elapsed": list(instance.elapsed or ()),
        "prediction_length": len(instance.delays),
        "reference": instance.reference,
        "source": [instance.source],
        "source_length": instance.source_length,
    }
    if instance.more_references:
        row["more_references"] = list(instance.more_references)
    if instance.says_speech:
        row["durations"] = list(instance.durations or ())
        row["prediction_offset"] = instance.prediction_offset
        row["intervals"] = [list(interval) for interval in instance.intervals or ()]
    return row

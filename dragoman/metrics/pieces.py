"""The outputs of talks, cut into the pieces that belong to the reference's sentences."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.ragged import Floats
from dragoman.metrics.resegment import Aligner, Cutting, cut_all
from dragoman.metrics.segments import Segment, Talk, recording_end
from dragoman.metrics.timings import Rules, aware_timings, plain_timings

StreamTool = Literal["simulstream", "fbk"]


@dataclass(frozen=True, slots=True)
class LongRules:
    """How to measure talks, beside the rules that hold for sentences too."""

    aligner: Aligner | None = None  # for all metrics; None: mwer for StreamLAAL, soft for others
    language: str | None = None  # whose Moses rules split off punctuation before soft alignment
    from_first_segment: bool = False  # the log counts time from the first segment's beginning
    stream: StreamTool = "simulstream"  # whose StreamLAAL

    def alignment(self, usual: Aligner) -> str:
        """The part of a signature that says how talks were cut, by a metric that cuts so."""
        aligner = self.aligner or usual
        language = self.language if aligner == "soft" else None
        return f"align:{aligner}" + (f"|lang:{language}" if language else "")

    def zero_of(self, talk: Talk) -> float:
        """When the clock of its log starts, in ms of the recording."""
        return talk.segments[0].offset * 1000 if self.from_first_segment else 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """What belongs to one reference sentence. Times are milliseconds by the log's clock."""

    segment: Segment
    units: Sequence[str]
    delays: Floats  # [units]
    aware: Floats | None  # [units], with computation; None where the log knows none
    zero: float  # when the log's clock starts
    recording_end: float

    @property
    def begin(self) -> float:
        """When the sentence begins."""
        return self.segment.offset * 1000 - self.zero

    @property
    def time_left(self) -> float:
        """How long the recording lasts from there on."""
        return self.recording_end - self.segment.offset * 1000

    def sentence(self, unit: Unit) -> Instance:
        """The piece as a sentence of its own; its times, also `elapsed`, are counted from there."""
        reference = self.segment.reference
        return Instance(
            index=self.segment.index,
            prediction=(" " if unit == "word" else "").join(self.units),
            delays=_array(self.delays - self.begin),
            source_length=self.segment.duration * 1000,
            reference=reference if unit == "word" else reference.replace(" ", ""),
            elapsed=None if self.aware is None else _array(self.aware - self.begin),
            source=self.segment.wav,
        )


def _array(values: Floats) -> array[float]:
    return array("d", values.tobytes())


def cut_talks(
    talks: Sequence[Talk],
    clocks: Sequence[Floats | None],
    rules: Rules,
    long_rules: LongRules,
    aligner: Aligner,
) -> list[list[Piece]]:
    """The pieces of every talk. `clocks` are the talks' times with computation."""
    units = [units_of(talk.instance, rules.unit) for talk in talks]
    references = [[segment.reference for segment in talk.segments] for talk in talks]
    drop = rules.compat == "omnisteval"
    cutting = Cutting(aligner, rules.unit, long_rules.language, drop_unplaced=drop)
    cuts = cut_all(list(zip(units, references, strict=True)), cutting)
    pieces = []
    for talk, clock, own, places in zip(talks, clocks, units, cuts, strict=True):
        pieces.append(_pieces_of(talk, clock, own, places, long_rules.zero_of(talk)))
    return pieces


def _pieces_of(
    talk: Talk, clock: Floats | None, units: Sequence[str], cuts: Sequence[int], zero: float
) -> list[Piece]:
    delays = np.asarray(talk.instance.delays, dtype=float)
    end = recording_end(talk.segments)
    return [
        Piece(
            segment,
            units[first:last],
            delays[first:last],
            None if clock is None else clock[first:last],
            zero,
            end,
        )
        for segment, (first, last) in zip(talk.segments, pairwise(cuts), strict=True)
    ]


def units_of(instance: Instance, unit: Unit) -> list[str]:
    """The words or characters of an output, as many as it has delays."""
    if instance.says_speech:
        raise DragomanError(
            f"The output for {instance.source or instance.index} is speech: only text can be cut "
            "into sentences."
        )
    for units in _readings(instance.prediction, unit):
        if len(units) == len(instance.delays):
            return units
    where = instance.source or f"sentence {instance.index}"
    raise DragomanError(f"The output for {where} {instance.miscount(unit)}.")


def _readings(text: str, unit: Unit) -> list[list[str]]:
    """The ways in which tools count: by any white space or by spaces, with spaces or without."""
    if unit == "word":
        return [text.split(), [word for word in text.split(" ") if word]]
    without_spaces: list[str] = []
    for character in text.lstrip(" "):
        if character == " ":
            without_spaces[-1] += " "  # a space that has no time of its own goes with its letter
        else:
            without_spaces.append(character)
    return [list(text), without_spaces]


def talk_clocks(talks: Sequence[Talk], rules: Rules) -> list[Floats | None]:
    """The times with computation of every talk, None where its log knows none.

    They belong to the talk, not to its pieces: work that is late delays what comes after it.
    """
    clocks: list[Floats | None] = [None] * len(talks)
    timings = aware_timings(plain_timings([talk.instance for talk in talks], rules))
    parts = np.split(timings.times, timings.shape.firsts[1:])
    for row, part in zip(timings.rows.tolist(), parts, strict=False):
        clocks[row] = part
    if rules.compat == "omnisteval" and rules.computation == "chunk":
        for row, talk in enumerate(talks):
            if talk.instance.elapsed and talk.instance.works is None:
                clocks[row] = omnisteval_chunk_times(talk.instance.delays, talk.instance.elapsed)
    return clocks


def omnisteval_chunk_times(delays: Sequence[float], elapsed: Sequence[float]) -> Floats:
    """OmniSTEval's --fix_simuleval_emission_ca: the delay before, plus what has elapsed since."""
    heard, shown = np.asarray(delays, dtype=float), np.asarray(elapsed, dtype=float)
    times = shown.copy()
    times[1:] = shown[1:] - shown[:-1] + heard[:-1]
    fixed: Floats = np.maximum.accumulate(times)
    return fixed

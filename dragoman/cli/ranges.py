"""The paths, numbers and times that commands take; what is out of range is told at once."""

from __future__ import annotations

import os
import re
import shlex
from math import isnan, nan
from pathlib import Path
from typing import Any

import click

from dragoman.cli.outputs import EACH
from dragoman.errors import DragomanError
from dragoman.setup import MOST_BEAMS, MOST_THREADS, STEP_MS


class Named(click.Path):
    """A file or a folder. No name at all is told, as where a script has `"$OUT"` and nothing in it:
    Python would take it for the folder that one is in."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a name is missing.", param, ctx)
        return super().convert(value, param, ctx)


class FileOrFolder(Named):
    """A file that is written; after a stroke at its end, one in that folder that has the name of
    what it is made of."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        super().convert(value, param, ctx)
        folder = str(value).endswith(("/", os.sep))
        return Path(value) / EACH if folder else Path(value)


PATH, OUTPUT = Named(), FileOrFolder()


class Whole(click.IntRange):
    """A whole number within a range, which is told in words: click writes 1<=x<=64."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"'{value}' is not a whole number {_within(self)}.", param, ctx)


class Number(click.FloatRange):
    """A number within a range; nan, which click lets pass, is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = nan
        if isnan(number):
            self.fail(f"'{value}' is not a number {_within(self)}.", param, ctx)
        return number


def _within(range: click.IntRange | click.FloatRange) -> str:
    """A range in words: those of ours that are open are so at every end that they have."""
    if range.max is None:
        return f"above {range.min:g}" if range.min_open else f"of at least {range.min:g}"
    between, and_ = ("between", "and") if range.min_open else ("from", "to")
    return f"{between} {range.min:g} {and_} {range.max:,}"


COUNT = Whole(1)  # clips, resamples: one or more
JOBS = Whole(1, 256)
BEAMS = Whole(1, MOST_BEAMS)
THREADS = Whole(0, MOST_THREADS)


class Moment(click.ParamType):  # type: ignore[type-arg]
    """A place in a recording: `90`, `90s`, `1:30` or `0:01:30.5`; the command gets seconds."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):  # converted before
            return value
        if not _MOMENT.fullmatch(value.strip()):
            self.fail(
                f"'{value}' is no place in a recording; write 90 (seconds) or 1:30.", param, ctx
            )
        seconds = 0.0
        for part in value.strip().removesuffix("s").split(":"):
            seconds = 60 * seconds + float(part)
        return seconds


_MOMENT = re.compile(r"(\d+:){0,2}\d*\.?\d+s?")
MOMENT = Moment()


class Channel(click.ParamType):  # type: ignore[type-arg]
    """A channel of a recording: `left`, `right` or its number; the command gets the number."""

    name = "channel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = {"left": 1, "right": 2}.get(str(value).strip().lower(), value)
        if not str(number).strip().isdecimal() or int(number) < 1:
            self.fail(f"'{value}' is no channel; write left, right, 1, 2, 3, …", param, ctx)
        return int(number)


CHANNEL = Channel()


class Time(click.ParamType):  # type: ignore[type-arg]
    """`2s`, `1.5s`, `800ms` or `800`, within a range; the command gets milliseconds."""

    name = "time"

    def __init__(self, low_ms: float = 0.0, high_ms: float = float("inf")) -> None:
        self.low_ms, self.high_ms = low_ms, high_ms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):  # a default, or converted before
            return value
        try:
            return self.within(milliseconds(value))
        except DragomanError as error:
            self.fail(str(error), param, ctx)

    def within(self, value: float) -> float:
        if not self.low_ms <= value <= self.high_ms:
            low, high = _shown(self.low_ms), _shown(self.high_ms)
            raise DragomanError(
                f"{_shown(value)} is out of range; from {low} to {high} is possible."
            )
        return value


class Times(Time):
    """Several times, with commas between them; the command gets a list of milliseconds."""

    name = "times"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        convert = super().convert
        times = [convert(each, param, ctx) for each in value.split(",")]
        return list(dict.fromkeys(times))


class Policies(click.ParamType):  # type: ignore[type-arg]
    """One policy, or one with alternatives (`wait-k:k=1|3`): others have options of their own."""

    name = "policies"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dragoman.policies import POLICIES

        names = "|".join(POLICIES)
        several = re.split(rf"\s*;\s*|[\s,|]+(?=(?:{names})(?:[\s:;,|]|$))", value.strip(" ;"))
        if len(several) > 1:
            asked = " ".join(f"--policies {shlex.quote(one)}" for one in several)
            self.fail(f"'{value}' names several policies; repeat the option: {asked}", param, ctx)
        return value


POLICY_SPECS = Policies()


class Replicas(click.ParamType):  # type: ignore[type-arg]
    """`2`, or `2-8`; the command gets the least and the most."""

    name = "replicas"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        least, between, most = value.partition("-")
        try:
            pair = int(least), int(most if between else least)
        except ValueError:
            pair = 0, 0
        if not 1 <= pair[0] <= pair[1] <= 1000:
            self.fail(f"'{value}' is not a number of replicas; write 2, or 2-8.", param, ctx)
        return pair


REPLICAS = Replicas()
STEP, STEPS = Time(*STEP_MS), Times(*STEP_MS)


SHORTEST_BARE = 20.0
"""A number without a unit that is smaller than this is not meant in milliseconds."""


def milliseconds(text: str) -> float:
    """`2s`, `1.5s`, `800ms` or `800`, in milliseconds."""
    number, scale = text.strip().lower(), 1.0
    if number.endswith("ms"):
        number = number[:-2]
    elif number.endswith("s"):
        number, scale = number[:-1], 1000.0
    try:
        value = float(number) * scale
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise DragomanError(f"'{text}' is not a time; write 2s, 1.5s or 800ms.")
    if value < SHORTEST_BARE and number == text.strip():
        raise DragomanError(f"'{number}' without a unit is in ms; write {number}s for seconds.")
    return value


def _shown(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"

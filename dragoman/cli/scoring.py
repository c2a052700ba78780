"""What `score` and `compare` share: the options, and scoring a log by them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal

from dragoman.cli.notes import tell
from dragoman.cli.report import first_of
from dragoman.cli.scoring_options import OPTIONS
from dragoman.errors import DragomanError
from dragoman.metrics import plain_text
from dragoman.metrics.instance import Unit
from dragoman.metrics.lines import Log
from dragoman.metrics.logs import RUN, clips_left_out, find_log, read_log
from dragoman.metrics.pieces import LongRules, StreamTool
from dragoman.metrics.resegment import Aligner
from dragoman.metrics.score import METRICS, Report, score_corpus
from dragoman.metrics.segments import Segment, lines_by_index, read_references, read_segments
from dragoman.metrics.timings import Compat, Computation, Rules
from dragoman.metrics.tokenize import tokenizer_for
from dragoman.text.languages import find_language

COMET = "COMET"
OURS = "Dragoman"


@dataclass(frozen=True, slots=True)
class Scoring:
    """How to score a log, as the options say."""

    target: str | None
    unit: Unit
    metrics: tuple[str, ...]
    tokenizer: str
    comet: str | None
    sources: Path | None
    references: tuple[Path, ...]
    segments: Path | None
    aligner: Aligner | None
    language: str | None
    from_first_segment: bool
    stream_laal: StreamTool
    computation: Computation | None
    length: Literal["reference", "hypothesis"]
    compat: Compat | None
    skip_broken: bool

    @property
    def files(self) -> list[Path]:
        """What is read beside the log."""
        return [*self.references, *filter(None, (self.sources, self.segments))]

    def score(self, path: Path) -> tuple[Log, Report]:
        """Read a log and score it."""
        self._check()
        log, report = self._without_comet(path)
        return log, self._with_comet(report, 0 if self.segments else _may_lack(log))

    def _check(self) -> None:
        """Refuse options that lack one another, before anything is read."""
        if self.comet is not None and self.sources is None:
            raise DragomanError(
                "--comet compares with what was spoken, too: name a file that has it, a line for "
                "every reference (--sources)."
            )
        if self.sources is not None and self.comet is None:
            raise DragomanError("--sources is for --comet; ask for it, too, or leave it out.")
        if COMET in self.metrics and self.comet is None:
            raise DragomanError("COMET needs a net: name one with --comet.")

    def _without_comet(self, path: Path) -> tuple[Log, Report]:
        with at_work():
            log = self._load(path)
            rules = Rules(
                unit=self.unit,
                length=self.length,
                computation=self.computation or ("cumulative" if self.compat else "honest"),
                compat=self.compat,
                source=log.source,
            )
            if self.segments is not None:
                return log, self._score_talks(log, rules)
            log = with_references(log, self.references) if self.references else log
            names = self._others(log, METRICS)
            return log, score_corpus(log.instances, rules, names, self.tokenizer)

    def _load(self, path: Path) -> Log:
        """Read a log, or plain text if there is something to compare it with."""
        file = find_log(path)
        if self.references and plain_text.is_text(file):
            return plain_text.read(file, self.unit)
        return load(file, self.unit, strict=self.compat is None, skip=self.skip_broken)

    def _others(self, log: Log, all_of_them: Sequence[str]) -> list[str]:
        """The metrics that are wanted and need no net."""
        wanted = [name for name in self.metrics if name != COMET]
        if log.kind == plain_text.KIND:
            return plain_text.metrics_of_text(log.path, wanted)
        return wanted if self.metrics else list(all_of_them)

    def _with_comet(self, report: Report, left_out: int) -> Report:
        if self.comet is None or self.sources is None:
            return report
        from dragoman.cli.comet import add_comet, load_comet

        cut = f"|{self._long_rules().alignment('soft')}" if self.segments else ""
        lines = read_references(self.sources, "sources")
        sources = lines_by_index(lines, report.instances, left_out)
        return add_comet(report, load_comet(self.comet), sources or lines, cut)

    def _long_rules(self) -> LongRules:
        return LongRules(self.aligner, self.language, self.from_first_segment, self.stream_laal)

    def _score_talks(self, log: Log, rules: Rules) -> Report:
        from dragoman.metrics.longform import LONG_METRICS, score_longform

        return score_longform(
            log.instances,
            self._read_segments(),
            rules,
            self._long_rules(),
            self._others(log, LONG_METRICS),
            self.tokenizer,
        )

    def _read_segments(self) -> list[Segment]:
        if self.segments is None or not self.references:
            raise DragomanError(
                "--segments needs --references: a file with each segment's reference."
            )
        if len(self.references) > 1:
            raise DragomanError(
                "Talks are cut by the words of one reference; with --segments name one file of "
                "--references."
            )
        return read_segments(self.segments, self.references[0])

    def write_resegmented(self, path: Path, log: Log, report: Report) -> None:
        """Write the pieces into which the talks of a report were cut."""
        from dragoman.metrics import resegmented_log

        timed = log.kind != plain_text.KIND
        resegmented_log.write(path, report.instances, self._read_segments(), timed=timed)


def scoring_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Scoring`, which it gets as its argument `scoring`."""

    @wraps(command)
    def with_scoring(**values: Any) -> None:
        own = {field.name: values.pop(field.name) for field in fields(Scoring)}
        own["unit"], own["tokenizer"] = _counting(own["target"], own["unit"], own["tokenizer"])
        command(scoring=Scoring(**own), **values)

    decorated: Callable[..., None] = with_scoring
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def _counting(target: str | None, unit: Unit | None, tokenizer: str | None) -> tuple[Unit, str]:
    """What is counted in a language, where the options leave it open."""
    if target is None:
        return unit or "word", tokenizer or "13a"
    return unit or find_language(target).unit, tokenizer or tokenizer_for(target)


@contextmanager
def at_work(doing: str = "Scoring …") -> Iterator[None]:
    """Show that work goes on, and work without looking for garbage.

    Scoring makes a great many objects but no cycles of them; searching for these takes a tenth
    of the time.
    """
    gc.disable()
    try:
        if sys.stderr.isatty():
            from rich.console import Console

            with Console(stderr=True).status(doing):
                yield
        else:
            yield
    finally:
        gc.enable()


def load(path: Path, unit: Unit, *, strict: bool = True, skip: bool = False) -> Log:
    """Read what is to be scored: another tool's log or a trace of ours."""
    from dragoman.trace import is_trace

    file = find_log(path)
    try:
        ours = is_trace(file)
    except OSError as error:
        raise DragomanError(f"Cannot read {file}: {error.strerror}.") from error
    if ours:
        log = _load_traces(file, unit, skip=skip)
    else:
        log = read_log(file, unit, strict=strict, skip=skip)
    log.left_out[:0] = clips_left_out(file.with_name(RUN))
    return log


def _load_traces(file: Path, unit: Unit, *, skip: bool) -> Log:
    from dragoman.trace import read_traces

    left_out: list[str] = []
    every = list(read_traces(file, faults=left_out if skip else None))
    # A talk that was cut short is scored as far as it goes, but a run is of whole clips.
    run = file.with_name(RUN).is_file()
    traces = list(read_traces(file, unfinished=False, faults=[])) if run else every
    if len(traces) < len(every):
        left_out.append(
            f"the last clip in {file}: the run was stopped there; the same command goes on with it"
        )
    instances, known = [], set()
    for trace in traces:
        instance = trace.instance(unit)
        try:
            instance.check(str(file))
            if (trace.index, trace.source) in known:  # every talk of one recording has the number 0
                raise DragomanError(f"{file}: sentence {trace.index} comes twice.")
        except DragomanError as error:
            if not skip:
                raise
            left_out.append(str(error))
        else:
            known.add((trace.index, trace.source))
            instances.append(instance)
    return Log(file, OURS, instances, left_out=left_out)


def with_references(log: Log, paths: Sequence[Path]) -> Log:
    """Give the sentences of a log the references in files, line by line."""
    rows = zip(*(_references_of(log, path) for path in paths), strict=True)
    instances = []
    for instance, lines in zip(log.instances, rows, strict=True):
        first, *more = [line for line in lines if line] or [""]  # not all need have as many
        instances.append(replace(instance, reference=first, more_references=tuple(more)))
    return replace(log, instances=instances)


def _may_lack(log: Log) -> int:
    """How many sentences a log may be short of; then their numbers say which lines they are. A run
    of ours lacks the clips that could not be read, however many these were."""
    return sys.maxsize if log.kind == OURS else len(log.left_out)


def _references_of(log: Log, path: Path) -> list[str]:
    lines = read_references(path)
    wanted = lines_by_index(lines, log.instances, _may_lack(log))
    numbers = {instance.index for instance in log.instances}
    if wanted is None:
        lacks = sorted(set(range(len(lines))) - numbers)
        which = f", without {first_of(lacks)}" if lacks and numbers <= {*range(len(lines))} else ""
        raise DragomanError(
            f"{path} has {len(lines)} references but {log.path} has {len(log.instances)} "
            f"sentences{which}."
        )
    between = (range(one + 1, other) for one, other in pairwise(sorted(numbers)))
    gaps = list(islice(chain.from_iterable(between), 11))  # numbers may be anything
    if gaps and len(lines) == len(numbers):
        tell(
            f"{log.path} has no sentence {first_of(gaps)}: the lines of {path} go to those that it "
            "has, in the order of their numbers."
        )
    return wanted

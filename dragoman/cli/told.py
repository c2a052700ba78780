"""What an interpreter tells beside the result: the language, a machine too slow, the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.audio.chunk import Chunk
from dragoman.cli.notes import Notes
from dragoman.errors import DragomanError
from dragoman.interpreter import Update
from dragoman.lag import Lag
from dragoman.listeners import Listener
from dragoman.models.choose import lighter

if TYPE_CHECKING:
    from dragoman.setup import Setup, System

LATE_CHUNKS = 4
"""So many chunks in a row that came late mean that the machine is too slow…"""
BUSY = 0.7
"""…if it worked for most of the time: a driver that wakes up brings much at once, too."""

DOUBTED_S = 3.0  # of speech in an unexpected language after which that is told


@contextmanager
def detected(system: System, notes: Notes, transcript: bool = False) -> Iterator[Listener]:
    """Tells which language is heard, once it is known, if nobody said which and the model hears
    several; and if it turns out to be another one. Of a `transcript`, if it is in another."""
    yield _Detected(system, notes, transcript)


class _Detected:
    def __init__(self, system: System, notes: Notes, transcript: bool) -> None:
        self._system, self._notes = system, notes
        self._transcript = transcript  # is shown, and nothing was told of it
        self._known = system.setup.source
        self._expected: str | None = None  # by the model
        self._doubted_s = 0.0
        self._told = False

    def take(self, chunk: Chunk, update: Update) -> None:
        self._expected = update.language or self._expected
        if update.language:
            self._doubted_s = 0.0
        elif update.silence_ms < 1000 * chunk.seconds:  # somebody speaks
            self._doubted_s += chunk.seconds
        if self._expected and self._doubted_s >= DOUBTED_S and not self._told:
            self._told = True
            self._notes.tell(
                f"This does not sound like {language_name(self._expected)}; nothing is said as "
                "long as that is so. Name the language that is spoken: --from CODE."
            )
        if self._known is None and update.language is not None and update.said:
            self._known = update.language
            if len(self._system.model.hears) == 1:  # it cannot have been wrong
                return
            name, code = language_name(update.language), update.language
            self._notes.tell(f"Heard: {name}. If that is wrong, name the language: --from CODE.")
            if code == self._system.setup.target and update.through:
                self._notes.tell(
                    f"That goes into {language_name(update.through)} and back; what is spoken "
                    f"itself is written down by --from {code} --to {code}."
                )
        if self._transcript and update.transcript and update.through and update.language:
            self._transcript = False
            self._notes.tell(
                f"The transcript is in {language_name(update.through)}, by way of which "
                f"{self._system.setup.model} translates {language_name(update.language)}."
            )


def language_name(code: str) -> str:
    """English name and code: German (de)."""
    from dragoman.text.languages import find_language

    try:
        return f"{find_language(code).name} ({code})"
    except DragomanError:  # a model of somebody's own may hear others
        return code


@contextmanager
def pressed(setup: Setup, notes: Notes, advice: str) -> Iterator[Listener]:
    """Tells once, while a live talk runs, that the machine is too slow for the setting."""
    yield _Pressed(setup, notes, advice)


class _Pressed:
    def __init__(self, setup: Setup, notes: Notes, advice: str) -> None:
        self._setup, self._notes, self._advice = setup, notes, advice
        self._late = 0
        self._work_ms = self._speech_ms = 0.0  # of the chunks that came late

    def take(self, chunk: Chunk, update: Update) -> None:
        hearing, step_ms = update.hearing, self._setup.step_ms
        joined = chunk.seconds * 1000 > 1.5 * step_ms
        waited = hearing.start_ms - hearing.arrival_ms > step_ms
        if not (joined or waited):
            self._late, self._work_ms, self._speech_ms = 0, 0.0, 0.0
            return
        self._late += 1
        self._work_ms += hearing.compute_ms
        self._speech_ms += chunk.seconds * 1000
        busy = self._work_ms > BUSY * self._speech_ms
        if self._late >= LATE_CHUNKS and busy:
            slow = self._work_ms > self._speech_ms
            verdict = "is too slow for the setting" if slow else "hardly keeps up with the setting"
            self._notes.advise(
                f"This machine {verdict}: {self._work_ms / 1000:.1f} s of work "
                f"for {self._speech_ms / 1000:.1f} s of speech. {self._advice}"
            )


def slow_advice(setup: Setup, *, auto: bool) -> str:
    """What to do about a machine that is too slow for a setup.

    `auto`: whether '--max-latency auto' is left to try.
    """
    cheaper = [f"--step {max(1.0, setup.step_ms / 500):g}s"] if setup.step_ms < 2000 else []
    cheaper += ["--beams 1"] if setup.beams > 1 else []
    ways = ["'--max-latency auto'"] if auto and cheaper else []
    ways += [" ".join(cheaper)] if cheaper else []
    ways += [f"--model {less}"] if (less := lighter(setup.model, setup.source)) else []
    ways.append("a smaller model ('dragoman models list'); 'dragoman check' measures it.")
    return f"Try {', or '.join(ways)}"


@contextmanager
def summary(setup: Setup, notes: Notes, advice: str) -> Iterator[Listener]:
    """At the end: how far behind the speaker the words were.

    `advice` is what to do about a machine that is too slow.
    """
    counter = _Summary(setup)
    try:
        yield counter
    finally:  # also when something went wrong after a talk, or in the middle of it
        if counter.lag.audio_ms:
            notes.tell(counter.sentence())
    if counter.lag.load > 1:
        notes.advise(f"A live speaker is too fast for this machine. {advice}")


class _Summary:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._languages: Counter[str] = Counter()  # words said of each
        self.lag = Lag()

    def take(self, chunk: Chunk, update: Update) -> None:
        before = self.lag.words
        self.lag.take(update)
        if update.language is not None and self._setup.source is None:
            self._languages[update.language] += self.lag.words - before

    def sentence(self) -> str:
        lag = self.lag
        if not lag.words:
            return _nothing(lag.audio_ms / 1000, self._setup.source)
        words = "1 word" if lag.words == 1 else f"{lag.words} words"
        return (
            f"{words} from {lag.audio_ms / 1000:.1f} s of speech{self._heard()}{_behind(lag)}; "
            f"{lag.load:.2f} s of work per second."
        )

    def _heard(self) -> str:
        """The language that was detected; after a pause another one may have been."""
        found = [language for language, words in self._languages.most_common() if words]
        if not found:
            return ""
        mostly = "mostly " if len(found) > 1 else ""
        return f", heard {mostly}as {language_name(found[0])}"


def _nothing(seconds: float, source: str | None) -> str:
    """Of a talk without a word: what might be wrong."""
    spoken = f" {language_name(source)}" if source else ""
    hint = "another language is spoken, name it" if source else "somebody does, name the language"
    return f"Nobody was heard to speak{spoken} in {seconds:.1f} s of sound. If {hint}: --from CODE."


def _behind(lag: Lag) -> str:
    if lag.plain_ms is None or lag.aware_ms is None:
        return f", shown {lag.wait_ms / 1000:z.1f} s after the sound that led to them"
    return (
        f", on average {lag.aware_ms / 1000:z.1f} s behind the speaker "
        f"({lag.plain_ms / 1000:z.1f} s without computation)"
    )

"""Talks for the benchmarks of captions and dubbing: recordings that are interpreted, or traces.

A talk is named `de-en:talk.wav` (from German into English) or `en:talk.wav` (written down); a trace
of `dragoman translate --trace` as `en:talk.jsonl`, by the language it was said in. The environment
variable DRAGOMAN_BENCH_TALKS holds such names, with spaces between them; without it, the recording
of the demo is taken. An interpreted recording takes about its own length on two cores.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dragoman.audio.source import open_audio
from dragoman.errors import DragomanError
from dragoman.setup import Setup, System
from dragoman.store import get
from dragoman.text.captions import TimedWord
from dragoman.text.word_times import WordTimes
from dragoman.trace import Trace, read_traces


@dataclass(frozen=True)
class Talk:
    """What was said, in which language; each word where it was spoken, and when it was said."""

    name: str
    language: str
    seconds: float
    spoken: list[TimedWord]
    said: list[TimedWord]


def wanted() -> list[str]:
    """The names in the environment, or that of the demo's recording."""
    names = os.environ.get("DRAGOMAN_BENCH_TALKS", "").split()
    return names or [f"de-en:{get('demo-de') / 'proverb.wav'}"]


def talks(names: Iterable[str]) -> list[Talk]:
    """The talks of these names."""
    return [talk for name in names for talk in _read(name)]


def _read(name: str) -> list[Talk]:
    languages, _, path = name.partition(":")
    if not path:
        raise DragomanError(
            f"'{name}' in DRAGOMAN_BENCH_TALKS does not say its languages: such as de-en:talk.wav, "
            "or en:talk.wav where it is written down."
        )
    source, _, target = languages.partition("-")
    if path.endswith(".jsonl"):
        return [_from_trace(trace, path, target or source) for trace in read_traces(Path(path))]
    return [_interpreted(path, source, target or source)]


def _interpreted(path: str, source: str, target: str) -> Talk:
    setup = Setup(source=source, target=target).tuned(2000.0)
    interpreter = System(setup).interpreter()
    spoken, said, heard = (WordTimes(), []), (WordTimes(), []), 0.0
    for update in interpreter.run(open_audio(path, step_ms=setup.step_ms)):
        heard = update.hearing.audio_ms
        spoken[1].extend(spoken[0].place(update.said, heard, update.lag_ms))
        said[1].extend(said[0].place(update.said, heard))
    return Talk(Path(path).name, target, heard / 1000, spoken[1], said[1])


def _from_trace(trace: Trace, path: str, language: str) -> Talk:
    """A trace does not tell how old the sound was: its words stand where they were said."""
    times, words = WordTimes(), []
    for said in trace.sayings:
        words.extend(times.place([said.text], trace.hearings[said.chunk].audio_ms))
    return Talk(Path(path).name, language, trace.source_length / 1000, words, words)

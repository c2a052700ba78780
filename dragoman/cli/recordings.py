"""Several recordings in one run: where the files of each go, and what becomes of a bad one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.captions import CaptionFiles
from dragoman.cli.outputs import EACH, check_outputs, check_suffix
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.audio.film import Film
    from dragoman.cli.notes import Notes
    from dragoman.cli.sound import Part
    from dragoman.listeners import Listener, Report
    from dragoman.setup import System
    from dragoman.voices import Voice

SUFFIXES = {
    **dict.fromkeys(("--captions", "--captions-source", "--captions-both"), ".srt"),
    **{"--trace": ".jsonl", "--speak": ".wav", "--mix": ".wav"},
}
"""Of the files that lie in a folder, by the option that names it."""
INTERRUPTED = 130
"""The exit status of a run that was ended before all of it was heard."""
MOST_NAMED = 5
"""Recordings that a sentence names, at most."""


@dataclass(frozen=True, slots=True)
class Dub:
    """What the options say of the translation that is spoken into files."""

    speak: Path | None
    mix: Path | None
    duck_db: float | None
    voice: str | None

    def check(self, file: str, part: Part) -> None:
        """Refuse options that would change nothing, names of another kind, and films that cannot
        be made of a recording."""
        from dragoman.audio.film import FILMS, check_film
        from dragoman.audio.write import FORMATS, check_place

        if self.voice is not None and self.speak is None and self.mix is None:
            raise DragomanError(
                "--voice needs something to speak into: --speak FILE or --mix FILE."
            )
        if self.duck_db is not None and self.mix is None:
            raise DragomanError("--duck is about the speaker in a mix; ask for one: --mix FILE.")
        check_suffix("--speak", self.speak, tuple(FORMATS))
        check_suffix("--mix", self.mix, (*FORMATS, *FILMS))
        for path in (self.speak, self.mix):
            if path is not None:
                check_place(path)
        if self.film is not None:
            if part.start:
                raise DragomanError(
                    f"{self.film} would have the whole picture of the film: leave out --start, or "
                    f"name a sound file, such as {self.film.with_suffix('.wav').name}."
                )
            check_film(file, self.film)

    @property
    def film(self) -> Path | None:
        """The mix, if it is to be a film."""
        from dragoman.audio.film import is_film

        return self.mix if self.mix is not None and is_film(self.mix) else None

    def open_voice(self, language: str) -> Voice | None:
        """The voice, if anything is to be spoken."""
        from dragoman.voices import open_voice

        return open_voice(self.voice, language) if self.speak or self.mix else None

    def narration(
        self, voice: Voice, tell: Report, *, live: bool, quiet: bool, film: Film | None
    ) -> AbstractContextManager[Listener]:
        from dragoman.audio.mix import DUCK_DB
        from dragoman.listeners import narration

        duck_db = DUCK_DB if self.duck_db is None else self.duck_db
        how = {"live": live, "quiet": quiet}
        return narration(self.speak, self.mix, voice, duck_db, tell, **how, film=film)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording, and the files that are made of it."""

    file: str
    captions: CaptionFiles
    trace: Path | None
    dub: Dub

    @property
    def options(self) -> list[tuple[str, Path | None]]:
        """The option that names each file."""
        captions, dub = self.captions, self.dub
        return [
            *(("--captions", path) for path in captions.translation),
            *(("--captions-source", captions.source), ("--captions-both", captions.both)),
            *(("--trace", self.trace), ("--speak", dub.speak), ("--mix", dub.mix)),
        ]

    def film(self, system: System, part: Part) -> Film | None:
        """The film that is made of it, if one is: with its captions."""
        from dragoman.audio.film import Film

        if self.dub.film is None:
            return None
        setup = system.setup
        shown = [(path, setup.target) for path in self.captions.translation[:1]]
        if self.captions.both is not None and not shown:
            shown.append((self.captions.both, setup.target))
        if self.captions.source is not None:
            shown.append((self.captions.source, system.transcript_language or ""))
        return Film(Path(self.file), setup.target, tuple(shown), part.end)

    def of(self, file: str) -> Recording:
        """The same of a recording, whose name takes the place of {name} in those of its files."""

        def named(option: str, path: Path | None) -> Path | None:
            return None if path is None else _named(option, path, file)

        captions, dub = self.captions, self.dub
        captions = replace(
            captions,
            translation=tuple(_named("--captions", path, file) for path in captions.translation),
            source=named("--captions-source", captions.source),
            both=named("--captions-both", captions.both),
        )
        dub = replace(dub, speak=named("--speak", dub.speak), mix=named("--mix", dub.mix))
        return Recording(file, captions, named("--trace", self.trace), dub)


def _named(option: str, path: Path, file: str) -> Path:
    """A file in a folder is of the kind that the option writes where nobody asks for another."""
    path = path.with_name(EACH + SUFFIXES[option]) if path.name == EACH else path
    return Path(str(path).replace(EACH, "stdin" if file == "-" else Path(file).stem))


def recordings_of(files: Sequence[str], asked: Recording) -> list[Recording]:
    """What is made of each file; refused if two of them would write the same file."""
    from dragoman.audio.source import is_pipe

    recordings = [asked.of(file) for file in files]
    if len(files) == 1:
        return recordings
    if piped := next(filter(is_pipe, files), None):
        raise DragomanError(f"'{piped}' is a pipe, which is heard alone; leave out the others.")
    for option, path in asked.options:
        if path is not None and EACH not in str(path):
            raise DragomanError(
                f"{option} {path} is one file, and there are {len(files)} recordings: name a "
                f"folder ({option} folder/), or put {EACH} where the name of each is to stand "
                f"({option} '{EACH}{path.suffix or SUFFIXES[option]}')."
            )
    written: dict[str, str] = {}
    for recording in recordings:
        for _, path in recording.options:
            if path is not None:
                other = written.setdefault(os.path.realpath(path), recording.file)
                if other != recording.file or files.count(other) > 1:
                    raise DragomanError(
                        f"{other} and {recording.file} would both be written to {path}; rename "
                        "one of them, or translate one after the other."
                    )
    return recordings


def check_recordings(recordings: Sequence[Recording], part: Part, setup: Path | None) -> None:
    """Refuse what cannot be written, before any work."""
    for recording in recordings:
        recording.dub.check(recording.file, part)
    paths = [path for recording in recordings for _, path in recording.options]
    check_outputs([*(recording.file for recording in recordings), setup], paths)
    for recording in recordings:
        others = {
            "--speak": recording.dub.speak,
            "--mix": recording.dub.mix,
            "--trace": recording.trace,
        }
        recording.captions.check(others)


def one_after_the_other(
    recordings: Sequence[Recording], interpret: Callable[[int, Recording], None], notes: Notes
) -> int:
    """Interpret all: one that fails is told of and costs the others nothing. One that is ended
    early is the last, as is one whose text finds no more room. Returns the exit status."""
    from dragoman.cli.printed import OutputLostError

    failed: list[str] = []
    left = [recording.file for recording in recordings]
    try:
        for number, recording in enumerate(recordings):
            notes.about = f"{left.pop(0)}: "
            try:
                interpret(number, recording)
            except DragomanError as error:
                failed.append(recording.file)
                notes.about = "" if recording.file in str(error) else notes.about
                notes.tell(f"dragoman: {error}")
                if isinstance(error, OutputLostError):
                    break
            if notes.ending:
                break
    finally:
        notes.about = ""
        if left:
            heard = "was not heard" if len(left) == 1 else "were not heard"
            notes.tell(f"{len(left)} of {len(recordings)} recordings {heard}: {_some(left)}.")
    if failed:
        raise DragomanError(
            f"{len(failed)} of {len(recordings)} recordings failed: {_some(failed)}."
        )
    return INTERRUPTED if left else 0


def _some(files: Sequence[str]) -> str:
    more = len(files) - MOST_NAMED
    return ", ".join(files[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

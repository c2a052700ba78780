"""A film with the interpreter in it: its picture as it is, the mix as a track, captions as another.

ffmpeg puts them together; nothing of the picture is encoded again.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.audio.ffmpeg import without_prefix
from dragoman.audio.tracks import contents_of
from dragoman.errors import DragomanError
from dragoman.files import put_in_place, sentences_for, temporary_for
from dragoman.text.languages import look_up

FILMS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska"}
"""What ffmpeg calls the format of a film, by its suffix."""
BITRATE = 96
"""Kilobits a second of each channel of the mix."""
EVEN_NEW = ("-strict", "experimental")
"""So an older ffmpeg calls flac in an mp4, which it would refuse."""
POLL = 0.1


def is_film(path: Path) -> bool:
    """Whether a name is that of a film."""
    return path.suffix.lower() in FILMS


def check_film(source: str, path: Path) -> None:
    """Refuse a film that cannot be made of a recording."""
    sound = f"name a sound file, such as {path.with_suffix('.wav').name}"
    if shutil.which("ffmpeg") is None:
        raise DragomanError(f"To write the film {path}, install ffmpeg; or {sound}.")
    if not Path(source).exists():  # a pipe, or nothing, which is told by whoever opens it
        picture = source != "-"
    else:
        picture = Path(source).is_file() and contents_of(Path(source)).picture
    if not picture:
        raise DragomanError(f"{path} would have the picture of {source}, which has none; {sound}.")
    if Path(source).is_file():
        _try_out(Path(source), path)


def _try_out(source: Path, path: Path) -> None:
    """Refuse a film of a kind that cannot hold what is copied into it."""
    with tempfile.TemporaryDirectory() as folder:
        suffix = path.suffix.lower()
        command = ["-i", f"file:{source}", "-map", "0:v", "-map", "0:a?", "-c", "copy", "-t", "0.1"]
        part = f"file:{Path(folder, 'film')}"
        _run([*command, *EVEN_NEW, "-f", FILMS[suffix], part], path, lambda: False)


@dataclass(frozen=True, slots=True)
class Film:
    """A film that is to be heard in another language, up to an end in seconds, with the captions
    of some languages."""

    source: Path
    language: str
    captions: tuple[tuple[Path, str], ...] = ()
    end: float | None = None

    def make(self, sound: Path, path: Path, given_up: Callable[[], bool]) -> None:
        """Put sound into the film, before its own, and keep it under a name; asks again and again
        whether it is `given_up`."""
        place = path.resolve()
        part = temporary_for(place)
        try:
            _run(self._command(sound, part, path.suffix.lower()), path, given_up)
            with sentences_for(path):
                put_in_place(part, place)
        finally:
            part.unlink(missing_ok=True)

    def _command(self, sound: Path, part: Path, suffix: str) -> list[str]:
        held = contents_of(self.source)
        captions = [(file, language) for file, language in self.captions if _has_cues(file)]
        inputs = [self.source, sound, *(file for file, _ in captions)]
        mapped = ["0:v", "1:a", "0:a?", *(f"{2 + n}:s" for n in range(len(captions)))]
        if suffix == self.source.suffix.lower():  # another kind of film has other subtitles
            mapped += ["0:s?", "0:t?"]
        how = ["-c", "copy", "-c:a:0", "aac", "-disposition:a:0", "default"]
        how += ["-metadata:s:a:0", f"language={_code(self.language)}"]
        for number in range(len(held.tracks)):
            how += [f"-disposition:a:{1 + number}", "0"]
        for number, (_, language) in enumerate(captions):
            kind = "srt" if suffix == ".mkv" else "mov_text"
            how += [
                f"-c:s:{number}",
                kind,
                f"-metadata:s:s:{number}",
                f"language={_code(language)}",
            ]
        return [
            *(item for file in inputs for item in ("-i", f"file:{file}")),
            *(item for stream in mapped for item in ("-map", stream)),
            *(*how, "-b:a:0", f"{BITRATE * _channels(sound)}k"),
            *EVEN_NEW,
            *([] if self.end is None else ["-t", f"{self.end:.6f}"]),
            *("-f", FILMS[suffix], f"file:{part}"),
        ]


def _run(command: list[str], path: Path, given_up: Callable[[], bool]) -> None:
    program = shutil.which("ffmpeg")
    if program is None:
        raise DragomanError(f"To write the film {path}, install ffmpeg.")
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [program, "-nostdin", "-v", "error", "-y", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            start_new_session=True,  # Ctrl-C is ours to understand
        )
        try:
            while True:
                try:
                    status = process.wait(POLL)
                    break
                except subprocess.TimeoutExpired:
                    if given_up():
                        raise KeyboardInterrupt from None
        finally:
            process.kill()
            process.wait()
        if status:
            complaints.seek(0)
            told = complaints.read().decode(errors="replace").strip().splitlines()
            reason = without_prefix(told[0]).rstrip(".") if told else f"it ended with {status}"
            more = "; a .mkv takes more kinds of picture and sound"
            hint = "" if path.suffix.lower() == ".mkv" else more
            raise DragomanError(f"Cannot write {path} (ffmpeg: {reason}){hint}.")


def _code(language: str) -> str:
    """The three letters that films name a language by."""
    known = look_up(language)
    codes = (known.code, *known.aliases) if known else (language,)
    return next((code for code in codes if len(code) == 3 and code.islower()), "und")


def _has_cues(captions: Path) -> bool:
    """Whether there is anything to show: ffmpeg takes no empty file for captions."""
    return captions.is_file() and " --> " in captions.read_text(encoding="utf-8")


def _channels(sound: Path) -> int:
    import soundfile

    with sound.open("rb") as file, soundfile.SoundFile(file) as opened:
        return int(opened.channels)

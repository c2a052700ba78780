"""eSpeak NG as a voice: over a hundred languages, robotic but clear, and a source of phonemes.

It is driven in a process of its own, through a pipe. A worker that dies is started again.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import from_pcm16
from dragoman.errors import DragomanError
from dragoman.voices.base import Synthesiser
from dragoman.voices.polish import polish

_PREFERRED = {"en": "en-us", "no": "nb", "zh": "cmn"}
"""Where the library's name of a language is not its code."""
_LEFT_OUT = {
    *("ja",),  # it cannot read kanji: it says 'Chinese letter' for each
    *("cmn", "nb", "chr"),  # known by other names
    *("en-029", "py", "piqd", "qdb", "qya", "sjn", "xex", "jbo", "lfn"),  # nobody's mother tongue
}


class EspeakVoice(Synthesiser):
    """One of the library's voices: a language or accent, and a speaker after a plus."""

    rate = 22050

    def __init__(self, language: str, speaker: str | None = None) -> None:
        """`speaker` is what the library calls a voice: `de`, `en-us+f3`, `+m2`."""
        self.languages = (language,)
        self.name = "espeak" if speaker is None else f"espeak:{speaker}"
        base = library_name(language)
        self._voice = base + (speaker or "") if (speaker or "+")[0] == "+" else str(speaker)

    def _pronounce(self, text: str, speed: float) -> Samples:
        head, data = worker().ask(do="speak", voice=self._voice, speed=speed, text=text)
        return polish(from_pcm16(data), int(head["rate"]))


def phonemes(clauses: list[str], voice: str) -> list[str]:
    """How a voice of the library reads each clause, in the International Phonetic Alphabet."""
    head, _ = worker().ask(do="phonemes", voice=voice, clauses=clauses)
    return list(head["phonemes"])


def library_name(language: str) -> str:
    """What eSpeak NG calls a language."""
    return _PREFERRED.get(language, language)


@cache
def languages() -> tuple[str, ...]:
    """Codes of the languages that the library speaks; none where it is not installed."""
    try:
        head, _ = worker().ask(do="list")
    except DragomanError:
        return ()
    known = {name for name in head["voices"] if "-" not in name}
    return tuple(sorted((known | _PREFERRED.keys()) - _LEFT_OUT))


def missing(language: str) -> str | None:
    """What has to be done before eSpeak NG can speak."""
    return None if languages() else "run: pip install 'dragoman[espeak]'"


class EspeakWorker:
    """The process that holds the library; started when it is first asked. For any thread."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def ask(self, **request: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to a request; should the process die over it, a new one is asked again."""
        line = json.dumps(request).encode() + b"\n"
        with self._turn:
            reply = self._exchange(line) or self._exchange(line)
        if reply is None:
            raise DragomanError(
                "eSpeak NG stopped working, twice in a row; reinstall it or choose another voice."
            )
        if "error" in reply[0]:
            raise DragomanError(reply[0]["error"])
        return reply

    def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.kill()
            process.wait()

    def _exchange(self, line: bytes) -> tuple[dict[str, Any], bytes] | None:
        """One request to a living process; None when that is the end of it."""
        process = self.process = self.process or _start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            head = json.loads(process.stdout.readline())
            data = process.stdout.read(head["bytes"])
        except (OSError, ValueError):
            self.close()
            return None
        except BaseException:  # Ctrl-C: the answer that is still to come is to nobody's question
            self.close()
            raise
        if len(data) != head["bytes"]:
            self.close()
            return None
        return head, data


def _start() -> subprocess.Popen[bytes]:
    """A worker, deaf to the terminal's Ctrl-C: its end is the end of its input."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "dragoman.voices.espeak_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )


@cache
def worker() -> EspeakWorker:
    """The one worker of this process."""
    shared = EspeakWorker()
    atexit.register(shared.close)
    return shared


if hasattr(os, "register_at_fork"):  # a forked process must not talk into its parent's pipe
    os.register_at_fork(after_in_child=worker.cache_clear)

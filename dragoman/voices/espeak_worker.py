"""eSpeak NG in a process of its own: `python -m dragoman.voices.espeak_worker`.

A request is a line of JSON on standard input; the answer a line of JSON on standard output, and
after it as many bytes of 16-bit sound as its `bytes` says. The process ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dragoman.errors import DragomanError
from dragoman.voices.espeak_library import RATE, EspeakLibrary

WORDS_PER_MINUTE = 165
"""The pace at a speed of 1: that of a calm speaker."""


def answer(library: EspeakLibrary, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The answer to a request and the sound that follows it."""
    if request["do"] == "list":
        return {"voices": library.voices()}, b""
    library.set_voice(request["voice"])
    if request["do"] == "phonemes":
        return {"phonemes": [library.phonemes(clause) for clause in request["clauses"]]}, b""
    library.set_parameter(RATE, round(WORDS_PER_MINUTE * request["speed"]))
    library.seed(1)  # the same talk gives the same sound
    sound, _ = library.speak(request["text"])
    return {"rate": library.rate}, sound.tobytes()


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints must not get among the answers
    library: EspeakLibrary | None = None
    for line in sys.stdin.buffer:
        try:
            library = library or EspeakLibrary()
            head, sound = answer(library, json.loads(line))
        except DragomanError as error:
            head, sound = {"error": str(error)}, b""
        answers.write(json.dumps(head | {"bytes": len(sound)}).encode() + b"\n" + sound)
        answers.flush()


if __name__ == "__main__":
    main()

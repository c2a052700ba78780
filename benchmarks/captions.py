"""How many cues keep each rule of broadcasters, over talks (`talks.py`) and caption files.

A talk's words stand where in the recording they were spoken, as `--captions` writes them, and then
at the moments at which they were said, as a live viewer gets them. Among the names may be caption
files (`talk.srt`), whoever wrote them; of one in two languages (`both:talk.srt`), a line each,
every line has to keep the rules by itself, since one reads one of them. `late` is how long after
its first word a cue comes, on average.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

from benchmarks.talks import talks, wanted
from dragoman.errors import DragomanError
from dragoman.text.captions import Cue, TimedWord, make_cues, width
from dragoman.text.phrases import INSIDE, break_cost

# No mark at its head; two lines of 42; 20 characters a second; at least 0.83 s; at most 7 s; lines
# that end with phrases.
RULES = {
    "mark": lambda cue: not re.match(r"[.,;:!?…]", cue.lines[0]),
    "lines": lambda cue: len(cue.lines) <= 2 and max(map(width, cue.lines)) <= 42,
    "speed": lambda cue: width(" ".join(cue.lines)) <= 20.1 * (cue.end - cue.start),
    "short": lambda cue: cue.end - cue.start >= 0.829,
    "long": lambda cue: cue.end - cue.start <= 7.001,
    "phrase": lambda cue: all(
        break_cost(one.split()[-1], two.split()[0]) < INSIDE for one, two in pairwise(cue.lines)
    ),
}
_CLOCK = re.compile(r"(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})")


def run() -> dict[str, float]:
    """Print a row for each talk or file; the share of cues that keep every rule, of each."""
    names = wanted()
    files = [name for name in names if name.endswith((".srt", ".vtt"))]
    read_in = {name: named(name) for name in files}  # before any work on a recording
    print(f"{'talk':22}{'cues':>4}{'late':>6}" + "".join(f"{rule:>7}" for rule in (*RULES, "all")))
    shares = {name: report(name, *cues, None) for name, cues in read_in.items()}
    for talk in talks(name for name in names if name not in files):
        modes = {"offline": talk.spoken, "live": talk.said}
        if talk.spoken is talk.said:
            del modes["offline"]
        for mode, words in modes.items():
            cues = list(make_cues(words, talk.language))
            shares[f"{talk.name} {mode}"] = report(f"{talk.name} {mode}", cues, False, words)
    return shares


def named(name: str) -> tuple[list[Cue], bool]:
    """The cues of a caption file, and whether they are in two languages."""
    path = Path(name.removeprefix("both:"))
    try:
        return read(path), name.startswith("both:")
    except FileNotFoundError:
        raise DragomanError(
            f"There is no file {path}; a caption file is named as it is, or both:FILE if it is in "
            "two languages."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DragomanError(f"{path} cannot be read as captions: {error}.") from None


def report(name: str, cues: list[Cue], both: bool, words: list[TimedWord] | None) -> float:
    """One row; the share of cues that keep every rule and do not overlap the next."""
    texts = [by_language(cue) if both else [cue] for cue in cues]
    kept = {rule: [all(map(keeps, text)) for text in texts] for rule, keeps in RULES.items()}
    apart = [one.end <= two.start + 1e-3 for one, two in pairwise(cues)]
    every = [all(row) for row in zip(*kept.values(), [*apart, True], strict=True)]
    late = f"{lateness(cues, words):5.1f}s" if words else " " * 6
    shares = "".join(f"{percent(marks):>7}" for marks in (*kept.values(), every))
    print(f"{name[-21:]:22}{len(cues):4}{late}{shares}", flush=True)
    return sum(every) / max(1, len(every))


def by_language(cue: Cue) -> list[Cue]:
    """What one reads of a cue in two languages: its first line, or what follows."""
    return [replace(cue, lines=lines) for lines in (cue.lines[:1], cue.lines[1:]) if lines]


def percent(marks: Iterable[bool]) -> str:
    found = list(marks)
    return f"{100 * sum(found) / max(1, len(found)):.0f}%"


def lateness(cues: list[Cue], words: list[TimedWord]) -> float:
    """The mean over the cues of start minus its first word's start, found by counting letters."""
    starts = [word.start for word in words for letter in word.text if letter.isalnum()]
    late, place = [], 0
    for cue in cues:
        late.append(cue.start - starts[min(place, len(starts) - 1)])
        place += sum(letter.isalnum() for line in cue.lines for letter in line)
    return sum(late) / max(1, len(late))


def read(path: Path) -> list[Cue]:
    """The cues of a caption file; a `.vtt` may leave out numbers and hours."""
    cues = []
    for block in path.read_text(encoding="utf-8-sig").split("\n\n"):
        lines = block.strip().split("\n")
        place = next((n for n, line in enumerate(lines[:2]) if " --> " in line), None)
        if place is not None and lines[place + 1 :]:
            start, end = (seconds(clock) for clock in lines[place].split(" --> "))
            text = (
                map(unescape, lines[place + 1 :]) if path.suffix == ".vtt" else lines[place + 1 :]
            )
            cues.append(Cue(start, end, tuple(text)))
    return cues


def seconds(clock: str) -> float:
    found = _CLOCK.match(clock.strip())
    if found is None:
        raise DragomanError(f"'{clock}' is no time of a caption.")
    hours, minutes, whole, milli = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + whole + milli / 1000

"""The commands and Python snippets of a Markdown page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# What a line of code begins with if it is there to be typed.
PROGRAMS = ("dragoman", "make", "pip", "python", "simuleval", "arecord", "ffmpeg", "pre-commit")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Something to type: where it stands and what it is."""

    page: str
    line: int
    kind: str  # command, inline or python
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Block:
    """Code: the language of its fence ('' without one), where it begins, and its lines."""

    language: str
    line: int
    lines: list[str]


def snippets(path: Path) -> list[Snippet]:
    """What a page tells people to type, in order."""
    text = path.read_text(encoding="utf-8")
    found = [Snippet(path.name, *inline) for inline in _inline(text)]
    for block in blocks(text):
        if block.language == "python":
            found.append(Snippet(path.name, block.line, "python", "\n".join(block.lines)))
        elif block.language in ("", "sh", "bash", "console"):
            found += [Snippet(path.name, n, "command", line) for n, line in _commands(block)]
    return sorted(found, key=lambda snippet: snippet.line)


def blocks(text: str) -> list[Block]:
    """Fenced code, and code that is indented by four spaces after an empty line."""
    found: list[Block] = []
    fence, indented, empty = None, None, True
    for number, line in enumerate(text.split("\n"), start=1):
        if fence is not None:
            if line.lstrip().startswith("```"):
                fence = None
            else:
                fence.lines.append(line)
        elif line.lstrip().startswith("```"):
            fence, indented = Block(line.strip("` \n"), number + 1, []), None
            found.append(fence)
        elif line.startswith("    ") and line.strip() and (empty or indented):
            if indented is None:
                indented = Block("", number, [])
                found.append(indented)
            indented.lines.append(line[4:])
        elif line.strip():
            indented = None
        elif indented is not None:
            indented.lines.append("")
        empty = not line.strip() or line.startswith("#")
    return found


def _commands(block: Block) -> list[tuple[int, str]]:
    """The lines that are commands; a line that goes on after a backslash is one."""
    found: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(block.lines, start=block.line):
        if goes_on:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
        elif line.split(" ")[0] in PROGRAMS:
            found.append((number, line))
        else:
            continue
        goes_on = line.endswith("\\")
    return found


def _inline(text: str) -> list[tuple[int, str, str]]:
    """Commands in the running text, between backticks."""
    plain = re.sub(r"^(```|~~~).*?^\1", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    return [
        (plain.count("\n", 0, match.start()) + 1, "inline", " ".join(match[1].split()))
        for match in re.finditer(r"`(dragoman [a-z][^`]*)`", plain)
    ]

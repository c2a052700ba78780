"""YAML as plain data; whatever is wrong with it is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError


def read_yaml(path: Path) -> Any:
    """What a file holds. Raise OSError if it cannot be read, DragomanError if it is not YAML."""
    return parse_yaml(path.read_bytes(), str(path))


def parse_yaml(text: str | bytes, what: str, hint: str = "") -> Any:
    """What a text holds; `what` is its name in a sentence about its faults."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return yaml.load(text, Loader=loader)
    # A ValueError is of a date that there is not, such as 2026-13-45.
    except (yaml.YAMLError, ValueError) as error:
        raise DragomanError(f"{what} is not YAML: {_fault(error)}{hint}.") from error


def _fault(error: Exception) -> str:
    """What YAML says over several lines, with a drawing, as words: the problem and its place."""
    mark, problem = (getattr(error, name, None) for name in ("problem_mark", "problem"))
    if mark is not None:
        return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    return " ".join(str(error).split())

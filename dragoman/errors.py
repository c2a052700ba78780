"""The one error that users see: a sentence that says what is wrong, where, and what to do."""

from collections.abc import Sequence


class DragomanError(Exception):
    """Bad input, a missing file, a policy that does not fit: shown as a sentence, exit status 2."""


def either(names: Sequence[str]) -> str:
    """What there is to choose from, in a sentence: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def yaml_fault(error: Exception) -> str:
    """What YAML says over several lines, with a drawing, as words: the problem and its place."""
    mark, problem = (getattr(error, name, None) for name in ("problem_mark", "problem"))
    if mark is None:  # it is no text at all
        is_text = not isinstance(error, UnicodeError)
        return " ".join(str(error).split()) if is_text else "it is not UTF-8 text"
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"

"""The one error that users see: a sentence that says what is wrong, where, and what to do."""

from collections.abc import Sequence


class DragomanError(Exception):
    """Bad input, a missing file, a policy that does not fit: shown as a sentence, exit status 2."""


def either(names: Sequence[str]) -> str:
    """What there is to choose from, in a sentence: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last

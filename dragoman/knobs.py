"""Things with knobs by their names: `wait-k:k=5,strict=true`, or `package.module.Class:knob=value`
for one of the user's own. Such a thing is a dataclass, and its fields are the knobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from typing import Any

from dragoman.errors import DragomanError
from dragoman.own import find_own, own_told

_KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
}


def is_own(spec: str) -> bool:
    """Whether a thing is none of Dragoman's, but named by where it is: `package.module.Class`.

    To make it is to import it: who takes names from others asks this first.
    """
    return "." in spec.partition(":")[0]


def split_spec(spec: str, what: str) -> tuple[str, dict[str, Any]]:
    """The name, and the knobs as they are written; `what` it is, a policy or a detector."""
    name, _, tail = spec.partition(":")
    knobs: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in tail.split(","))):
        key, equals, value = pair.partition("=")
        if not equals:
            raise DragomanError(f"'{pair}' in {what} '{spec}' should read key=value.")
        knobs[key.strip()] = value.strip()
    return name, knobs


def own_class(name: str, what: str) -> Any:
    """What is found at `package.module.Class`; whoever asks sees whether it is such a class."""
    module, _, found = name.rpartition(".")
    return find_own(module, found, f"{what} '{name}'")


def build(kind: Any, what: str, name: str, knobs: Mapping[str, Any]) -> Any:
    """One of a kind, with its knobs turned; text is read as what the knob begins with."""
    with own_told():
        begin = {field.name: _first_value(field) for field in fields(kind) if field.init}
    if bare := [key for key, value in begin.items() if value is MISSING]:
        raise DragomanError(f"Knob '{bare[0]}' of {what} '{name}' has no value to begin with.")
    turned = {}
    for key, value in knobs.items():
        if key not in begin:
            raise DragomanError(
                f"{what.capitalize()} '{name}' has no knob '{key}'.{near(key, begin)}"
            )
        turned[key] = value
        if isinstance(value, str):
            turned[key] = _parsed(f"Knob '{key}' of {what} '{name}'", value, type(begin[key]))
    with own_told():
        return kind(**turned)


def _first_value(field: Field[Any]) -> Any:
    """What a field begins with; MISSING: nothing."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _parsed(knob: str, value: str, kind: type) -> Any:
    if kind not in _KINDS:
        raise DragomanError(f"{knob} begins with no number and no word, so that no text sets it.")
    if kind is bool:
        if value.lower() in {"true", "yes", "1"}:
            return True
        if value.lower() in {"false", "no", "0"}:
            return False
    else:
        try:
            if (read := kind(value)) == read:  # nan is not
                return read
        except ValueError:
            pass
    raise DragomanError(f"{knob} takes {_KINDS[kind]}, not '{value}'.")


def near(name: str, known: Iterable[str]) -> str:
    """Which of the known names was meant, or all of them."""
    names = list(known)
    found = get_close_matches(name, names, n=1)
    return f" Did you mean '{found[0]}'?" if found else f" There are: {', '.join(names) or 'none'}."

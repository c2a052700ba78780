"""Typed settings from YAML: a wrong key or value is a sentence that names the nearest right one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from dragoman.errors import DragomanError

# Kinds of numbers that a setting may be.
Whole = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[float, msgspec.Meta(gt=0, le=1e300)]  # the upper end keeps infinity out
Level = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
BelowOne = Annotated[float, msgspec.Meta(ge=0, lt=1)]

T = TypeVar("T")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list such as [a, b]",
    "object": "settings (key: value)",
    "null": "nothing",
}


def convert(kind: type[T], data: object, where: str = "") -> T:
    """Plain data (from YAML) as the dataclass `kind`; `where` is the key that led here."""
    if not is_dataclass(kind):
        return _leaf(kind, data, where)
    if not isinstance(data, Mapping):
        raise DragomanError(f"'{where}' must hold settings (key: value), not {data!r}.")
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    for key in data:
        if key not in names:
            raise DragomanError(unknown_key(str(key), names, where))
    missing = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING and field.name not in data
    ]
    if missing:
        raise DragomanError(f"The setting '{_dotted(where, missing[0])}' is missing.")
    values = {key: convert(hints[key], value, _dotted(where, key)) for key, value in data.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise DragomanError(f"The settings under '{where or kind.__name__}': {error}.") from error


def unknown_key(key: str, known: list[str], where: str = "") -> str:
    """The sentence for a key that does not exist."""
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(known))}."
    return f"There is no setting '{_dotted(where, key)}'; {hint}"


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`change` over `base`, mappings merged key by key."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merge(old, value)
        merged[key] = value
    return merged


def _leaf(kind: Any, data: object, where: str) -> Any:
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices and data not in choices:
        known = ", ".join(map(str, choices))
        raise DragomanError(f"The setting '{where}' is {data!r}; it may be {known}.")
    try:
        return msgspec.convert(data, kind, strict=False)
    except msgspec.ValidationError as error:
        raise DragomanError(f"The setting '{where}' is {data!r}: {_plain(error)}.") from error


def _plain(error: msgspec.ValidationError) -> str:
    """What msgspec says, without the words of programmers."""

    def plain(found: re.Match[str]) -> str:
        kinds = found[1].split(" | ")
        return " or ".join(_WORDS[kind] for kind in kinds) if {*kinds} <= {*_WORDS} else found[0]

    return re.sub("`(.+?)`", plain, str(error))


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key

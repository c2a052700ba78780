"""Typed settings from YAML: a wrong key or value is a sentence that names the nearest right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints

import msgspec

from dragoman.errors import DragomanError

T = TypeVar("T")


def convert(kind: type[T], data: object, where: str = "") -> T:
    """Plain data (from YAML) as the dataclass `kind`; `where` is the key that led here."""
    if not is_dataclass(kind):
        return _leaf(kind, data, where)
    if not isinstance(data, Mapping):
        raise DragomanError(f"'{where}' must hold settings (key: value), not {data!r}.")
    hints = get_type_hints(kind)
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
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value
    return merged


def _leaf(kind: Any, data: object, where: str) -> Any:
    try:
        return msgspec.convert(data, kind, strict=False)
    except msgspec.ValidationError as error:
        raise DragomanError(f"The setting '{where}' is {data!r}: {error}.") from error


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key

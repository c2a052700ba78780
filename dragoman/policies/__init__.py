"""Policies decide when to speak and how much of a draft to commit."""

from __future__ import annotations

from dataclasses import MISSING, fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from dragoman.errors import DragomanError
from dragoman.policies.agreement import Confidence, Consensus, LocalAgreement
from dragoman.policies.attention import AgreeAtt, AlignAtt, EDAtt, ages
from dragoman.policies.base import ANYTHING, NOTHING, Allowance, Heard, Policy, Said
from dragoman.policies.schedule import KSN, WaitK
from dragoman.policies.simple import Follow, Greedy, Offline

POLICIES: dict[str, type[Policy]] = {
    "greedy": Greedy,
    "offline": Offline,
    "wait-k": WaitK,
    "ksn": KSN,
    "confidence": Confidence,
    "consensus": Consensus,
    "local-agreement": LocalAgreement,
    "edatt": EDAtt,
    "alignatt": AlignAtt,
    "agreeatt": AgreeAtt,
    "follow": Follow,
}


def make_policy(spec: str, **more: Any) -> Policy:
    """A policy from its name and knobs: `wait-k:k=5,strict=true`, or `k=5` as a keyword.

    `package.module.Class` names a policy of your own. That imports it: who takes names from others
    asks `is_own` first.
    """
    name, _, tail = spec.partition(":")
    knobs: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in tail.split(","))):
        key, equals, value = pair.partition("=")
        if not equals:
            raise DragomanError(f"'{pair}' in policy '{spec}' should read key=value.")
        knobs[key.strip()] = value.strip()
    return _build(name, knobs | more)


def is_own(spec: str) -> bool:
    """Whether a policy is none of Dragoman's, but named by where it is: `package.module.Class`."""
    return "." in spec.partition(":")[0]


def policy_spec(policy: Policy) -> str:
    """The text from which `make_policy` makes this policy again."""
    own = f"{type(policy).__module__}.{type(policy).__qualname__}"
    name = next((name for name, kind in POLICIES.items() if kind is type(policy)), own)
    knobs = ",".join(f"{f.name}={getattr(policy, f.name)}" for f in fields(policy))
    return f"{name}:{knobs}" if knobs else name


def _build(name: str, knobs: dict[str, Any]) -> Policy:
    kind = _kind(name)
    known = {field.name: type(field.default) for field in fields(kind)}
    for key, value in knobs.items():
        if key not in known:
            raise DragomanError(f"Policy '{name}' has no knob '{key}'.{_near(key, known)}")
        if isinstance(value, str):
            knobs[key] = _parse(name, key, value, known[key])
    return kind(**knobs)


def _kind(name: str) -> type[Policy]:
    if name in POLICIES:
        return POLICIES[name]
    if not is_own(name):
        raise DragomanError(f"There is no policy '{name}'.{_near(name, POLICIES)}")
    module, _, found = name.rpartition(".")
    try:
        kind = getattr(import_module(module), found)
    except (ImportError, AttributeError, ValueError) as error:
        raise DragomanError(f"There is no policy '{name}' ({error}).") from error
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise DragomanError(f"'{name}' is no policy: one is a subclass of dragoman's Policy.")
    if bare := [field.name for field in fields(kind) if field.default is MISSING]:
        raise DragomanError(f"Knob '{bare[0]}' of policy '{name}' has no value to begin with.")
    return kind


_KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}


def _parse(name: str, key: str, value: str, kind: type) -> Any:
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
    wanted = _KINDS.get(kind, "a word")
    raise DragomanError(f"Knob '{key}' of policy '{name}' takes {wanted}, not '{value}'.")


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, known, n=1)
    return f" Did you mean '{near[0]}'?" if near else f" There are: {', '.join(known) or 'none'}."


__all__ = [
    "ANYTHING",
    "KSN",
    "NOTHING",
    "POLICIES",
    "AgreeAtt",
    "AlignAtt",
    "Allowance",
    "Confidence",
    "Consensus",
    "EDAtt",
    "Follow",
    "Greedy",
    "Heard",
    "LocalAgreement",
    "Offline",
    "Policy",
    "Said",
    "WaitK",
    "ages",
    "is_own",
    "make_policy",
    "policy_spec",
]

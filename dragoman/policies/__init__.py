"""Policies decide when to speak and how much of a draft to commit."""

from __future__ import annotations

from typing import Any, cast

from dragoman.errors import DragomanError
from dragoman.knobs import build, is_own, near, own_class, split_spec
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
    name, knobs = split_spec(spec, "policy")
    return cast(Policy, build(_kind(name), "policy", name, knobs | more))


def _kind(name: str) -> type[Policy]:
    if name in POLICIES:
        return POLICIES[name]
    if not is_own(name):
        raise DragomanError(f"There is no policy '{name}'.{near(name, POLICIES)}")
    kind = own_class(name, "policy")
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise DragomanError(f"'{name}' is no policy: one is a subclass of dragoman's Policy.")
    return kind


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
]

"""What a client wants of the server's setup: other languages, another policy."""

from __future__ import annotations

from dragoman.errors import DragomanError
from dragoman.policies import is_own
from dragoman.serve.advice import LISTED, for_client
from dragoman.serve.protocol import Code, Fault, Start
from dragoman.setup import Setup

_OTHERWISE = "give a longer 'latency_ms', or a 'policy'"


def wanted(setup: Setup, request: Start) -> Setup:
    """The server's setup with what a client wants of it."""
    try:
        setup = setup.with_changes(source=request.source, target=request.target)
    except DragomanError as error:
        raise Fault(Code.LANGUAGE, for_client(error, LISTED)) from error
    if request.policy is None and request.latency_ms is None:
        return setup
    return tuned(setup, request.policy, request.latency_ms)


def tuned(setup: Setup, policy: str | None, latency_ms: float | None) -> Setup:
    """Another policy, or the one that was tuned for a lag."""
    if (policy is None) == (latency_ms is None):
        raise Fault(Code.POLICY, "Give a policy or latency_ms, one of the two.")
    if policy is not None and is_own(policy):  # nobody has code imported from afar
        raise Fault(Code.POLICY, f"There is no policy '{policy.partition(':')[0]}' here.")
    try:
        return setup.with_changes(policy=policy) if latency_ms is None else setup.tuned(latency_ms)
    except DragomanError as error:
        raise Fault(Code.POLICY, for_client(error, _OTHERWISE)) from error

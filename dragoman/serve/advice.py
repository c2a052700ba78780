"""What is wrong, for clients: they can choose what they ask for, and nothing that was typed where
the server was started."""

from __future__ import annotations

import re

from dragoman.errors import DragomanError, either
from dragoman.models import Model
from dragoman.serve.protocol import Code, Fault
from dragoman.setup import Setup
from dragoman.text.languages import look_up

LISTED = "/v1/languages lists what this server has"
_TYPED = r"(?:--[a-z]|'dragoman )"
_ASIDE = re.compile(rf" \([^()]*{_TYPED}[^()]*\)")
_MOST = 3  # languages that are named in a sentence


def for_client(text: str, instead: str = "") -> str:
    """A message without what it advises whoever types commands; `instead`: what a client can do
    where it did."""
    whole = _ASIDE.sub("", text.replace(" with --from", ""))
    if not re.search(_TYPED, whole):
        return whole
    left = " ".join(filter(None, map(_left, re.split(r"(?<=\.) ", whole))))
    left = left.rstrip(".") or "What was asked for cannot be had"
    return f"{left}; {instead}." if instead else f"{left}."


def _left(sentence: str) -> str:
    clauses = sentence.split("; ")
    kept = [one for one in clauses if not re.search(_TYPED, one)]
    ends = "." if len(kept) < len(clauses) and kept and not kept[-1].endswith(".") else ""
    return "; ".join(kept) + ends


def misfit(error: DragomanError, setup: Setup, model: Model) -> Fault:
    """What was asked for cannot be had of this model, which a client cannot exchange."""
    sides = ((setup.source, model.hears, "hears"), (setup.target, model.speaks, "speaks"))
    for code, known, does in sides:
        if code and known and code not in known:
            return Fault(Code.UNFIT, f"This server {does} {_few(known)}, not {_name(code)}.")
    return Fault(Code.UNFIT, for_client(str(error), LISTED))


def _few(codes: tuple[str, ...]) -> str:
    if len(codes) > _MOST:
        return f"{len(codes)} languages (/v1/languages lists them)"
    return either([_name(code) for code in codes])


def _name(code: str) -> str:
    language = look_up(code)
    return language.name if language else f"'{code}'"

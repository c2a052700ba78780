"""What is wrong, for clients: they can choose what they ask for, and nothing that was typed where
the server was started."""

from __future__ import annotations

from dragoman.errors import DragomanError, Told, either
from dragoman.models import Model
from dragoman.models.load import is_cascade
from dragoman.serve.protocol import Code, Fault
from dragoman.setup import Setup
from dragoman.text.languages import look_up

LISTED = "/v1/languages lists what this server has"
_MOST = 3  # languages that are named in a sentence


def for_client(error: DragomanError, instead: str = "") -> str:
    """What is wrong, without what it advises whoever types commands; `instead`: what a client can
    do where it did."""
    return str(Told(error.what, f"{instead}." if instead and error.advice else ""))


def misfit(error: DragomanError, setup: Setup, model: Model) -> Fault:
    """What was asked for cannot be had of this model, which a client cannot exchange."""
    sides = ((setup.source, model.hears, "hears"), (setup.target, model.speaks, "speaks"))
    for code, known, does in sides:
        if code and known and code not in known:
            return Fault(Code.UNFIT, f"This server {does} {_few(known)}, not {_name(code)}.")
    if _waits_for_source(setup, model):
        return Fault(Code.UNFIT, f"Say by 'source' which language is spoken; {LISTED}.")
    return Fault(Code.UNFIT, for_client(error, LISTED))


def _waits_for_source(setup: Setup, model: Model) -> bool:
    """Whether a translator of text is to begin without a word on which language it will read."""
    if setup.source or not is_cascade(setup.model):
        return False
    try:
        model.open(None, setup.target)
    except DragomanError:
        return True
    return False


def _few(codes: tuple[str, ...]) -> str:
    if len(codes) > _MOST:
        return f"{len(codes)} languages (/v1/languages lists them)"
    return either([_name(code) for code in codes])


def _name(code: str) -> str:
    language = look_up(code)
    return language.name if language else f"'{code}'"

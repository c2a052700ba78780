"""The options that choose a system, shared by every command that interprets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from dragoman.cli.app import grouped
from dragoman.cli.ranges import BEAMS, PATH, STEP, THREADS, milliseconds
from dragoman.errors import DragomanError
from dragoman.models.choose import with_recogniser
from dragoman.models.load import exported_net
from dragoman.models.options import Compute, Device
from dragoman.policies import make_policy
from dragoman.setup import Setup, System

_Function = Callable[..., Any]


_language = grouped("Languages")
_system = grouped("System")

show_option = grouped("Output")(
    "--show",
    type=click.Choice(["translation", "both"]),
    default="translation",
    help="both: also what the speaker says, where the model writes it down.",
)

_OPTIONS = {
    "source": _language(
        "--from",
        "source",
        metavar="CODE",
        help="Language spoken (default: the model's own, or detected).",
    ),
    "target": _language(
        "--to",
        "target",
        metavar="CODE",
        help="Language to translate into (default: the model's own, or en).",
    ),
    "setup": _system(
        "--setup",
        type=PATH,
        metavar="FILE",
        help="Setup file (YAML), such as 'dragoman tune' writes.",
    ),
    "model": _system(
        "--model",
        metavar="NAME",
        help="A model of 'dragoman models list', a folder, RECOGNISER+TRANSLATOR, or your own: "
        "module:function (default: the best for the languages).",
    ),
    "policy": _system(
        "--policy",
        metavar="SPEC",
        help="When to speak, such as local-agreement:n=2 or wait-k:k=3; follow: when the model "
        "itself decides to (MMA, CAAT).",
    ),
    "max_latency": _system(
        "--max-latency",
        metavar="TIME|auto",
        help="How far behind the speaker words may be, such as 2s (default) or 1300ms: takes the "
        "policy tuned for it; auto: tries what this machine can do.",
    ),
    "detector": _system(
        "--detector",
        metavar="NAME",
        help="How wait-k counts source words: fixed, fixed:120 (ms), ctc, learned, transcript, or "
        "your own: module.Class:knob=value.",
    ),
    "step": _system(
        "--step", type=STEP, metavar="TIME", help="Audio per chunk, such as 500ms or 1s."
    ),
    "beams": _system(
        "--beams", type=BEAMS, metavar="N", help="Width of the search (default 5; 1 is fastest)."
    ),
    "threads": _system(
        "--threads", type=THREADS, metavar="N", help="Threads of the model (default: all)."
    ),
    "device": _system(
        "--device",
        type=click.Choice(get_args(Device)),
        help="Where the model works (default: auto, a GPU if there is one).",
    ),
    "compute": _system(
        "--compute",
        type=click.Choice(get_args(Compute)),
        help="Number format (default: int8 on the CPU, float16 on a GPU; float32 is exact).",
    ),
}
_TRIED = ("policy", "max_latency", "step")
"""What commands that compare settings try themselves."""


def setup_options(command: _Function) -> _Function:
    """Add the options; the command takes them as `**options` and gives them to `read_setup`."""
    return _added(command, list(_OPTIONS))


def shared_setup_options(command: _Function) -> _Function:
    """The same for a command that tries several policies and steps: without those of one."""
    return _added(command, [name for name in _OPTIONS if name not in _TRIED])


def _added(command: _Function, names: list[str]) -> _Function:
    for name in reversed(names):
        command = _OPTIONS[name](command)
    return command


AUTO = "auto"
LIVE_PAUSE_MS = 800.0
"""A silence this long ends what a live speaker says: all of it is said, whatever the policy."""


def read_system(
    tell: Callable[[str], None],
    advise: Callable[[str], None] | None = None,
    pause_ms: float | None = None,
    **options: Any,
) -> System:
    """The system that the options describe, its model not loaded unless it had to be tried.

    `advise` tells what to do about a machine that is too slow, where others may, too. `pause_ms`
    is a pause that ends an utterance, where the setup does not say.
    """
    auto = options.get("max_latency") == AUTO
    setup = read_setup(**options | {"max_latency": "2s"} if auto else options)
    if options.get("detector") is not None and not make_policy(setup.policy).counts_words:
        raise DragomanError(
            "--detector counts words for wait-k alone; add --policy wait-k:k=3, or leave it out."
        )
    if setup.utterance_pause_ms is None:
        setup = setup.with_changes(utterance_pause_ms=pause_ms)
    if not auto:
        return System(setup)
    from dragoman.trial import suited

    trial = suited(setup, step=options.get("step"), beams=options.get("beams"))
    (tell if trial.keeps_up else advise or tell)(trial.sentence())
    return trial.system


def auto_is_left(options: dict[str, Any]) -> bool:
    """Whether '--max-latency auto' may still be tried: a policy of one's own excludes it."""
    return options.get("max_latency") != AUTO and options.get("policy") is None


def read_setup(
    setup: Path | None = None,
    source: str | None = None,
    target: str | None = None,
    model: str | None = None,
    policy: str | None = None,
    max_latency: str | None = None,
    detector: str | None = None,
    step: float | None = None,
    beams: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    compute: str | None = None,
) -> Setup:
    """The setup that the options describe: the file first, then what the options change."""
    if max_latency is not None and policy is not None:
        raise DragomanError("--max-latency chooses a policy; give it or --policy, not both.")
    if model is not None:
        _check_hears(model)
    base = Setup() if setup is None else Setup.read(setup)
    known = exported_net(model) if model is not None and setup is None else None
    if known is not None:
        base = replace(  # by whatever codes it has
            base,
            source=known.languages.source or base.source,
            target=_only(known.languages.targets) or base.target,
        )
        if known.decides != "no" and max_latency is None:
            policy = policy or "follow"  # its own decisions
    base = base.with_changes(source=source, target=target, model=model)
    if setup is None or max_latency is not None:
        base = base.tuned(milliseconds("2s" if max_latency is None else max_latency))
    return base.with_changes(
        policy=policy,
        detector=detector,
        step_ms=step,
        beams=beams,
        threads=threads,
        device=device,
        compute=compute,
    ).settled()


def _check_hears(model: str) -> None:
    """Refuse a model of the catalogue that does something else than to hear speech."""
    from dragoman.store import catalogue

    if Path(model).is_dir() or model not in catalogue.names():
        return
    entry = catalogue.model(model)
    if entry.task in ("translation", "recognition"):
        return
    if entry.task == "text translation":
        what = f"translates text; put a recogniser before it: {with_recogniser(model)}"
    elif entry.task == "synthesis":
        what = f"is a voice; --voice {model} speaks with it, and --model takes what hears"
    else:
        what = "hears no words; 'dragoman models list' shows what does"
    raise DragomanError(f"'{model}' {what}.")


def _only(targets: tuple[str, ...]) -> str | None:
    """The language of a net that speaks one alone."""
    return targets[0] if len(targets) == 1 else None

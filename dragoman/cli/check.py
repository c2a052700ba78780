"""`dragoman check`: what is installed and there, how fast this machine is, what to run next."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click

from dragoman import __version__
from dragoman.cli import EXTRAS
from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.wrap import columns_of, fitted
from dragoman.errors import DragomanError

_check = grouped("Check")
DEFAULT = "--step 0.5s --beams 5"
PAIRS = (("de", "en"), ("en", "de"), ("en", "es"), ("en", "fr"), ("es", "en"), ("fr", "en"),
         ("en", "en"))  # fmt: skip
"""Languages of a trial: the first that a model has."""
INDENT = 27
"""Where what is told of a thing begins…"""
NARROW_INDENT = 7
"""…and where it goes on, on a terminal that has no room for columns."""
WHAT_FOR = {
    "serve": "a web page and a socket: dragoman serve",
    "train": "train, export, distill",
    "gpu": "models on a GPU, for many speakers: --device cuda",
    "mic": "live, --speak aloud",
    "espeak": "voices for many languages",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was looked for."""

    name: str
    there: bool
    about: str = ""
    to_do: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """A setting that was tried on this machine."""

    model: str
    step_ms: float
    beams: int
    work_per_second: float
    keeps_up: bool
    options: str
    source: str = PAIRS[0][0]
    target: str = PAIRS[0][1]


@dataclass(slots=True)
class Report:
    """All that was found."""

    version: str = __version__
    python: str = platform.python_version()
    machine: str = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    extras: list[Found] = field(default_factory=list)
    programs: list[Found] = field(default_factory=list)
    devices: list[Found] = field(default_factory=list)
    models: list[Found] = field(default_factory=list)
    voices: list[Found] = field(default_factory=list)
    sound: list[Found] = field(default_factory=list)
    speed: Speed | None = None
    next: list[str] = field(default_factory=list)


@click.command(cls=GroupedCommand)
@_check("--model", metavar="NAME", help="Try this model (default: the best that is here).")
@_check("--no-trial", is_flag=True, help="Do not measure the speed.")
@_check("--json", "as_json", is_flag=True, help="As JSON.")
def command(model: str | None, no_trial: bool, as_json: bool) -> None:
    """Show what is installed and fetched, how fast this machine is, and what to run next.

    Nothing is fetched. The speed is measured with a model that is here, in a trial of two seconds
    on real speech.
    """
    report = Report(
        extras=_extras(),
        programs=[_ffmpeg()],
        devices=_devices(),
        models=_models(),
        voices=_voices(),
        sound=[*_sound("input"), *_sound("output")],
    )
    if model is not None:
        _refuse_absent(model)
    tried = _best_here() if model is None else model
    if not no_trial and tried is not None:
        report.speed = _speed(tried)
    report.next = _next(report, tried)
    if as_json:
        click.echo(json.dumps(asdict(report), indent=2, ensure_ascii=False))
    else:
        _print(report)


def _extras() -> list[Found]:
    found = []
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if find_spec(name) is None]
        to_do = f"pip install 'dragoman[{extra}]'" if missing else ""
        found.append(Found(extra, not missing, WHAT_FOR[extra], to_do))
    return found


def _ffmpeg() -> Found:
    there = shutil.which("ffmpeg") is not None
    return Found("ffmpeg", there, "reads m4a, mp4, webm, …", "" if there else "install ffmpeg")


def _devices() -> list[Found]:
    from dragoman.models.device import gpus, why_no_gpu

    count, missing = gpus(), why_no_gpu()
    about = f"{count} of them; Whisper works there" if count else "none; the CPU works alone"
    to_do = str(missing) if count and missing else ""
    gpu = Found("CUDA GPU", missing is None, about, to_do)
    return [Found("CPU", True, f"{os.cpu_count()} cores"), gpu]


def _models() -> list[Found]:
    from dragoman.store import catalogue
    from dragoman.store.home import megabytes

    found = []
    for name in catalogue.names():
        entry = catalogue.model(name)
        to_do = "" if _is_here(name) else f"dragoman models get {name} ({megabytes(entry.size)})"
        found.append(Found(name, not to_do, f"{entry.task}: {entry.about}", to_do))
    return found


def _is_here(name: str) -> bool:
    """Whether a model of the catalogue can be loaded without fetching anything."""
    from dragoman.store import is_whole

    return is_whole(name)


def _refuse_absent(model: str) -> None:
    """A model, or half of a cascade, that would have to be fetched."""
    from dragoman.store import catalogue, home

    for name in model.split("+"):
        known = name.startswith(home.HUB) or name in catalogue.names()
        if known and not Path(name).is_dir() and not _is_here(name):
            raise DragomanError(
                f"'{name}' is not here, and a check fetches nothing; first run: "
                f"dragoman models get {name}"
            )


def _best_here() -> str | None:
    """The model that commands take by default, or another that translates."""
    from dragoman.models.choose import WHISPER
    from dragoman.store import catalogue

    able = [name for name in catalogue.names() if catalogue.model(name).task == "translation"]
    return next(filter(_is_here, [WHISPER, *able]), None)


def _voices() -> list[Found]:
    from dragoman.voices import VOICES

    found = []
    for name, offer in VOICES.items():
        languages = offer.languages()
        wish = offer.missing(languages[0] if languages else "")
        shown = " ".join(languages) if len(languages) <= 8 else f"{len(languages)} languages"
        found.append(Found(name, wish is None, f"{shown or '-'}: {offer.about}", wish or ""))
    return found


def _sound(kind: str) -> list[Found]:
    from dragoman.audio.devices import list_devices

    name = "microphone" if kind == "input" else "loudspeaker"
    try:
        devices = list_devices("input" if kind == "input" else "output")
    except DragomanError as error:
        return [Found(name, False, "", str(error))]
    if not devices:
        return [Found(name, False, "", f"connect a {name}")]
    return [Found(name, True, d.name + " (default)" * d.default) for d in devices]


def _speed(model: str) -> Speed | None:
    from dragoman.setup import Setup
    from dragoman.trial import suited

    source, target = _pair(model)
    trial = suited(Setup(model=model, source=source, target=target).tuned(2000.0))
    setup = trial.system.setup
    options = f"--step {setup.step_ms / 1000:g}s --beams {setup.beams}"
    work = round(trial.load, 3)
    return Speed(model, setup.step_ms, setup.beams, work, trial.keeps_up, options, source, target)


def _pair(model: str) -> tuple[str, str]:
    """Languages between which a model interprets."""
    from dragoman.setup import Setup, System

    known = System(Setup(model=model)).model
    for pair in PAIRS:
        with suppress(DragomanError):
            known.open(*pair)
            return pair
    return PAIRS[0]  # whoever tries is told what is wrong with it


def _next(report: Report, model: str | None) -> list[str]:
    """Commands that work now, or what stands in their way."""
    from dragoman.models.choose import WHISPER

    fetches = "" if _is_here(WHISPER) else f", fetches {WHISPER} first"
    steps = [f"dragoman demo        # a recording, interpreted while it plays{fetches}"]
    speed = report.speed
    options = f" --model {model}" if model not in (None, WHISPER) else ""
    if speed is not None and (speed.source, speed.target) != PAIRS[0]:
        options += f" --from {speed.source} --to {speed.target}"
    if speed is not None and speed.options != DEFAULT:
        options += f" {speed.options}"
    steps.append(f"dragoman translate talk.mp3{options}")
    if any(found.name == "microphone" and found.there for found in report.sound):
        steps.append(f"dragoman live{options}")
    if speed is not None and not speed.keeps_up:
        steps.append("dragoman models list # a smaller model would keep up with a live speaker")
    return steps


def _print(report: Report) -> None:
    title = f"Dragoman {report.version}, Python {report.python}, {report.machine}"
    click.echo(fitted(title, sys.stdout, 2))
    here = [found for found in report.models if found.there]
    others = len(report.models) - len(here)
    more = f"{others} more" if here else f"none of {others}"
    sections: list[tuple[str, list[Found]]] = [
        ("Extras", report.extras),
        ("Programs", report.programs),
        ("Devices", report.devices),
        ("Models", [*here, Found(more, False, "", "dragoman models list")]),
        ("Voices", report.voices),
        ("Sound", report.sound),
    ]
    for title, rows in sections:
        _print_section(title, rows)
    click.echo(f"\nSpeed\n{fitted(f'  {_speed_sentence(report)}', sys.stdout, 2)}\n\nNext")
    for step in report.next:
        click.echo(fitted(f"  {step}", sys.stdout, 4))


def _print_section(title: str, rows: list[Found]) -> None:
    click.echo(f"\n{title}")
    for row in rows:
        mark = "yes" if row.there else " - "
        rest = "; ".join(filter(None, (row.about, row.to_do)))
        if columns_of(sys.stdout) < 2 * INDENT:
            click.echo(fitted(f"  {mark}  {row.name}: {rest}", sys.stdout, NARROW_INDENT))
        else:
            click.echo(fitted(f"  {mark}  {row.name:18}  {rest}".rstrip(), sys.stdout, INDENT))


def _speed_sentence(report: Report) -> str:
    speed = report.speed
    if speed is None:
        here = _best_here() is not None
        return "not measured" if here else "not measured: no model is here that could be tried"
    verdict = "keeps up with a live speaker" if speed.keeps_up else "too slow for a live speaker"
    return (
        f"{speed.model}: {speed.work_per_second:.2f} s of work for a second of speech with "
        f"{speed.options}: {verdict}"
    )

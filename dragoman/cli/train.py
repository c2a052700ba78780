"""`dragoman train`: run a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.ranges import PATH

MEASURES = {"loss": "loss", "bleu": "BLEU", "chrf": "chrF"}
WAITS = 0.1  # share of the time spent waiting for data from which on it is worth a word


@click.command(cls=GroupedCommand)
@click.argument("recipe", type=PATH)
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]...")
@grouped("Output")("--run", type=PATH, help="The run's folder  [default: runs/RECIPE]")
def command(recipe: Path, changes: tuple[str, ...], run: Path | None) -> None:
    """Train as RECIPE (a YAML file) says, with single settings changed by KEY=VALUE.

    The run folder holds settings, versions, metrics and checkpoints. The same command goes on
    with a run that was interrupted, exactly where it was.

    \b
    dragoman train recipes/conformer-ctc.en-de.yaml 'data.train=[voiced]'
    dragoman train recipes/conformer-ctc.en-de.yaml steps.total=99 --run short
    """
    from dragoman.train.recipe import read_recipe

    settings = read_recipe(recipe, changes)
    from dragoman.train.train import train

    folder = run or Path("runs") / recipe.stem
    with Show() as show:
        train(settings, folder, show)
    if show.told:
        click.echo(f"{folder}/final.pt")


class Show:
    """Progress on stderr: a bar, and a line per validation."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        text = TextColumn("{task.fields[now]}", markup=False)  # '[draft]' in a name is the name
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), Remaining(), text)
        self.progress = Progress(*columns, console=Console(stderr=True, markup=False))
        self.task = self.progress.add_task("training", total=None, now="preparing data")
        self.told = False  # only the first of several processes is told anything

    def __enter__(self) -> Show:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.progress.stop()
        if kind is KeyboardInterrupt and self.told:
            self.progress.console.print(
                "Stopped. The same command goes on from the last checkpoint."
            )

    def __call__(self, line: dict[str, Any]) -> None:
        self.told = True
        self.progress.start()
        say = self.progress.console.print
        match line["kind"]:
            case "note":
                say(line["text"])
            case "preparing":
                self.progress.update(self.task, now=line["text"])
            case "begin":
                train = line["train"]
                say(f"{line['net']} with {line['size'] / 1e6:.1f} M parameters")
                kind = f"utterances, {train['hours']} h" if train["hours"] else "texts"
                say(f"{train['items']} {kind}; faults: {line['faults']}")
                self.progress.update(self.task, total=line["total"], now="")
            case "total":
                say(f"its time is up after {line['total']} updates: the rate falls now")
                self.progress.update(self.task, total=line["total"])
            case "train":
                now = f"loss {line['loss']:.3f}  {_pace(line)}"
                if line["waited"] > WAITS:
                    now += f"  waits for data {line['waited']:.0%}"
                self.progress.update(self.task, completed=line["step"], now=now)
            case "dev":
                best = " (best)" if line["best_step"] == line["step"] else ""
                say(f"step {line['step']}  dev loss {line['loss']:.4f}{best}  " + _shown(line))
            case "end":
                by = MEASURES[line["best_by"]]
                say(f"best dev {by} {line['best']:.4f} at step {line['best_step']}")


def _pace(line: dict[str, Any]) -> str:
    """How fast it goes: by what is heard, if anything is."""
    heard = line["hours_per_second"] * 3600
    return f"{heard:.0f}x real time" if heard else f"{line['updates_per_second']:.1f} updates/s"


def _shown(line: dict[str, Any]) -> str:
    hidden = {"step", "kind", "epoch", "loss", "best", "best_step"}
    pairs = ((key, value) for key, value in line.items() if key not in hidden)
    return "  ".join(f"{key.removeprefix('loss/')} {value:.3f}" for key, value in pairs)

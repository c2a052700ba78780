"""`dragoman export`: a trained run as a folder that interprets without torch."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.ranges import PATH

_model = grouped("Model")


@click.command(cls=GroupedCommand)
@click.argument("run", type=PATH)
@click.argument("out", type=PATH)
@click.argument("changes", nargs=-1, metavar="[SETTING=N]...")
@_model(
    "--weights",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="A checkpoint instead of the final weights; the mean of several.",
)
@_model(
    "--int8", is_flag=True, help="Quantise the weights: a quarter of the size, faster on a CPU."
)
def command(
    run: Path, out: Path, changes: tuple[str, ...], weights: tuple[Path, ...], int8: bool
) -> None:
    """Export the model of RUN to the folder OUT.

    \b
    dragoman export runs/conformer-ctc.en-de models/en-de
    dragoman translate talk.wav --model models/en-de

    A net may work in other steps than it was trained with, counted in states of 40 ms: MMA decides
    every ratio=3 of them, CAAT in groups of decision=16; an incremental encoder hears chunk=16 at a
    time, looks right=8 ahead, remembers left=256.
    """
    from rich.console import Console

    from dragoman.train.export import export
    from dragoman.train.running import surroundings
    from dragoman.train.trained import open_run

    with Console(stderr=True).status("exporting, and comparing with the original"):
        trained = open_run(run, weights, changes)
        export(trained.task.net, out, surroundings(run, trained), int8=int8)
    click.echo(str(out))

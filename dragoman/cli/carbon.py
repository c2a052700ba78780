"""`dragoman carbon`: the energy of training runs, and what one offline model saves."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.ranges import COUNT, PATH, Number

_comparison = grouped("Comparison")


@click.command(cls=GroupedCommand)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@_comparison(
    "--latencies", default=5, type=COUNT, help="Values of k that simultaneous training would need."
)
@_comparison("--detectors", default=2, type=COUNT, help="Ways to detect words that it would need.")
@_comparison("--intensity", default=0.380539, type=Number(0), help="kg CO2eq per kWh.")
def command(runs: tuple[Path, ...], latencies: int, detectors: int, intensity: float) -> None:
    """The energy of RUNS, and what one model for every latency saves (paper 001, section 4)."""
    from dragoman.train.carbon import footprint, saved_by_one_model

    found = [footprint(run) for run in runs]
    click.echo(f"{'run':32} {'hours':>8} {'kWh':>10} {'kg CO2eq':>10}  energy")
    for run in found:
        kg = run.kwh * intensity
        click.echo(f"{run.run:32} {run.hours:8.3g} {run.kwh:10.4g} {kg:10.4g}  {run.measured}")
    models = latencies * detectors
    saved = saved_by_one_model(found, models, intensity)
    click.echo(
        f"\nOne offline model instead of {latencies} latencies x {detectors} detectors saves "
        f"{models} - 1 = {models - 1} trainings:\n"
        f"{saved['saved_kwh']:.4g} kWh and {saved['saved_kg']:.4g} kg CO2eq."
    )

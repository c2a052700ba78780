"""`dragoman voice`: speak parallel text with many voices, to train on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import click

from dragoman.cli.app import GroupedCommand, GroupedOption
from dragoman.cli.corpus_options import check_one_way, cluster_option
from dragoman.cli.ranges import Number
from dragoman.errors import DragomanError
from dragoman.workers import FreshProcesses, Workers


@click.command(cls=GroupedCommand)
@click.argument("text", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--columns",
    cls=GroupedOption,
    group="Text",
    metavar="NAMES",
    help="Names of the columns, if the file has no header: en,de,_ (_ is ignored).",
)
@click.option("--speak", cls=GroupedOption, group="Text", default="en", show_default=True,
              help="The column that is spoken.")  # fmt: skip
@click.option("--skip", cls=GroupedOption, group="Text", type=click.IntRange(0), default=0,
              help="Leave out this many rows first.")  # fmt: skip
@click.option("--limit", cls=GroupedOption, group="Text", type=click.IntRange(1),
              help="Speak at most this many rows.")  # fmt: skip
@click.option("--max-words", cls=GroupedOption, group="Text", type=click.IntRange(1), default=80,
              show_default=True, help="Longer texts are skipped and counted.")  # fmt: skip
@click.option("--join", cls=GroupedOption, group="Text", type=Number(0, 1), default=0.0,
              show_default=True, help="Share of rows spoken together with the next.")  # fmt: skip
@click.option("--cut", cls=GroupedOption, group="Text", type=Number(0, 1), default=0.0,
              show_default=True, help="Share that breaks off in mid-sentence.")  # fmt: skip
@click.option("--voices", cls=GroupedOption, group="Voices", default="espeak", show_default=True,
              help="Voices and their shares, e.g. espeak*0.8,hibari*0.2.")  # fmt: skip
@click.option("--device", cls=GroupedOption, group="Voices", type=click.Choice(["cpu", "cuda"]),
              default="cpu", show_default=True,
              help="Where Kokoro and Piper voices run; cuda needs dragoman[train].")  # fmt: skip
@click.option("--rooms", cls=GroupedOption, group="Voices", type=Number(0, 1),
              default=0.5, show_default=True, help="Share heard in a room.")  # fmt: skip
@click.option("--noise", cls=GroupedOption, group="Voices", type=Number(0, 1),
              default=0.5, show_default=True, help="Share with noise.")  # fmt: skip
@click.option("--seed", cls=GroupedOption, group="Voices", type=click.IntRange(0), default=1,
              show_default=True,
              help="The same seed gives the same bytes.")  # fmt: skip
@click.option("--codec", cls=GroupedOption, group="Output", default="pcm", show_default=True,
              type=click.Choice(["pcm", "flac", "opus"]),
              help="pcm is fastest (115 MB an hour), opus smallest (about 15).")  # fmt: skip
@click.option("--files", cls=GroupedOption, group="Output", is_flag=True,
              help="Also a file per row and a corpus.tsv, to listen to or evaluate.")  # fmt: skip
@click.option("--jobs", cls=GroupedOption, group="Output", type=click.IntRange(1),
              help="Processes  [default: one per core]")  # fmt: skip
@cluster_option("Output")
@click.option("--fault-limit", cls=GroupedOption, group="Output", type=Number(0, 1),
              default=0.02, show_default=True,
              help="Stop when more than this share of the rows is faulty.")  # fmt: skip
def command(
    text: Path,
    out: Path,
    columns: str | None,
    speak: str,
    skip: int,
    limit: int | None,
    max_words: int,
    join: float,
    cut: float,
    voices: str,
    device: str,
    rooms: float,
    noise: float,
    seed: int,
    codec: Literal["pcm", "flac", "opus"],
    files: bool,
    jobs: int | None,
    cluster: str | None,
    fault_limit: float,
) -> None:
    """Speak the rows of TEXT (TSV, plain, .gz, .bz2 or .xz) into the folder OUT, to train on.

    Each row gets a voice, a pace, a room and noise of its own; the ends of its words are kept.
    An interrupted run goes on where it stopped.

    \b
    dragoman voice europarl.en-de.tsv.xz voiced --columns en,de,_,_ --limit 10000
    """
    from dragoman.cli.progress import voicing_progress
    from dragoman.models.device import why_no_gpu
    from dragoman.train.data.faults import FAULTS, read_faults, summary_of
    from dragoman.train.data.packing import hours_there
    from dragoman.train.data.unpack import unpack
    from dragoman.train.voicing.corpus import voice_text
    from dragoman.train.voicing.shard import Staging
    from dragoman.train.voicing.spoken import parse_shares

    if device == "cuda" and (wish := why_no_gpu()):
        raise DragomanError(wish)
    staging = Staging(
        speak, seed, parse_shares(voices), codec, rooms, noise, max_words, join, cut, device
    )
    workers = _workers(jobs, cluster)
    hours_before, begun, cpu = hours_there(out), time.perf_counter(), _cpu()
    with voicing_progress(limit) as count:
        header = voice_text(
            text,
            out,
            staging,
            columns=columns,
            skip=skip,
            limit=limit,
            workers=workers,
            fault_limit=fault_limit,
            progress=count,
        )
    if files:
        click.echo(f"{unpack(out)}: a file for each utterance.")
    made, wall, work = header.hours - hours_before, time.perf_counter() - begun, _cpu() - cpu
    click.echo(f"{out}: {header.items} utterances, {header.hours:.2f} hours of speech.")
    if faults := read_faults(out / FAULTS):
        click.echo(f"Left out: {summary_of(faults)}; {out / FAULTS} lists them.")
    if made > 0:
        speed = f"{3600 * made / wall:.0f} hours of speech an hour"
        if isinstance(workers, FreshProcesses):
            speed += f" with {workers.count} process{'es' * (workers.count > 1)}, "
            speed += f"{3600 * made / work:.0f} per hour of one core's work"
        click.echo(f"{speed}.")


def _workers(jobs: int | None, cluster: str | None) -> Workers:
    from dragoman.cluster import Cluster

    if cluster is None:
        return FreshProcesses(jobs or os.cpu_count() or 1)
    check_one_way(jobs is not None, cluster)
    return Cluster(cluster, fresh=True)


def _cpu() -> float:
    """Seconds of processor time of the worker processes that have ended."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

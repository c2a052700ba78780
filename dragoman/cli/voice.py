"""`dragoman voice`: speak parallel text with many voices, to train on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import check_one_way, cluster_option, tell_pack
from dragoman.cli.notes import told_if_stopped
from dragoman.cli.ranges import COUNT, PATH, Number, Whole
from dragoman.workers import FreshProcesses, Workers

_text = grouped("Text")
_voices = grouped("Voices")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("text", type=PATH)
@click.argument("out", type=PATH)
@_text(
    "--columns",
    metavar="NAMES",
    help="Names of the columns, if the file has no header: en,de,_ (_ is ignored).",
)
@_text("--speak", default="en", help="The column that is spoken.")
@_text(
    "--skip",
    type=Whole(0),
    default=0,
    show_default=False,
    help="Leave out this many rows first.",
)
@_text("--limit", type=COUNT, help="Speak at most this many rows.")
@_text("--max-words", type=COUNT, default=80, help="Longer texts are skipped and counted.")
@_text(
    "--join", type=Number(0, 1), default=0.0, help="Share of rows spoken together with the next."
)
@_text("--cut", type=Number(0, 1), default=0.0, help="Share that breaks off in mid-sentence.")
@_voices("--voices", default="espeak", help="Voices and their shares, e.g. espeak*0.8,hibari*0.2.")
@_voices(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    help="Where Kokoro and Piper voices run; cuda needs dragoman[train].",
)
@_voices("--rooms", type=Number(0, 1), default=0.5, help="Share heard in a room.")
@_voices("--noise", type=Number(0, 1), default=0.5, help="Share with noise.")
@_voices("--seed", type=Whole(0), default=1, help="The same seed gives the same bytes.")
@_output(
    "--codec",
    default="pcm",
    type=click.Choice(["pcm", "flac", "opus"]),
    help="pcm is fastest (115 MB an hour), opus smallest (about 15).",
)
@_output(
    "--files", is_flag=True, help="Also a file per row and a corpus.tsv, to listen to or evaluate."
)
@_output("--jobs", type=COUNT, help="Processes  [default: one per core]")
@cluster_option("Output")
@_output(
    "--fault-limit",
    type=Number(0, 1),
    default=0.02,
    help="Stop when more than this share of the rows is faulty.",
)
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
    from dragoman.train.data.packing import hours_there
    from dragoman.train.data.unpack import unpack
    from dragoman.train.voicing.corpus import voice_text
    from dragoman.train.voicing.shard import Voicing
    from dragoman.train.voicing.spoken import parse_shares

    if device == "cuda" and (missing := why_no_gpu()):
        raise missing
    voicing = Voicing(
        speak, seed, parse_shares(voices), codec, rooms, noise, max_words, join, cut, device
    )
    workers = _workers(jobs, cluster)
    hours_before, begun, cpu = hours_there(out), time.perf_counter(), _cpu()
    with told_if_stopped(), voicing_progress(limit) as count:
        header = voice_text(
            text,
            out,
            voicing,
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
    tell_pack(out, header)
    if made > 0 and (cluster or work > 0):  # else it was another process that made them
        click.echo(_speed(workers, made, wall, work))


def _workers(jobs: int | None, cluster: str | None) -> Workers:
    from dragoman.cluster import Cluster

    if cluster is None:
        return FreshProcesses(jobs or os.cpu_count() or 1)
    check_one_way(jobs is not None, cluster)
    return Cluster(cluster, fresh=True)


def _speed(workers: Workers, hours: float, wall: float, work: float) -> str:
    """How much was spoken in how many seconds, and in how many of one core's."""
    speed = f"{3600 * hours / wall:.0f} hours of speech an hour"
    if isinstance(workers, FreshProcesses):
        speed += f" with {workers.count} process{'es' * (workers.count > 1)}, "
        speed += f"{3600 * hours / work:.0f} per hour of one core's work"
    return f"{speed}."


def _cpu() -> float:
    """Seconds of processor time of the worker processes that have ended."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

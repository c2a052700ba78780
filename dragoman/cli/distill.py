"""`dragoman distill`: a text model translates transcripts, to train on."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import tell_pack
from dragoman.cli.notes import told_if_stopped
from dragoman.cli.ranges import COUNT, PATH, Number

_search = grouped("Search")


@click.command(cls=GroupedCommand)
@click.argument("run", type=PATH)
@click.argument("data")
@click.argument("out", type=PATH)
@_search(
    "--to",
    "target",
    metavar="LANGUAGE",
    help="The language to translate into, for a teacher that has several.",
)
@_search("--beam", type=COUNT, default=5, help="Beams of the search.")
@_search(
    "--cut",
    type=Number(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Of texts alone, this share is cut off, with as much of the translation as the teacher "
    "would have written by then.",
)
@_search(
    "--device", default="auto", help="Where to compute: cpu, cuda; auto: a GPU if there is one."
)
@_search(
    "--together",
    type=COUNT,
    default=None,
    help="Units translated together, about  [default: 6000; on a GPU 60000]",
)
def command(
    run: Path,
    data: str,
    out: Path,
    target: str | None,
    beam: int,
    cut: float,
    device: str,
    together: int | None,
) -> None:
    """Translate the transcripts of DATA with the text model of RUN into the pack OUT.

    DATA is a pack, or what a recipe may name: a corpus, or text:FILE?columns=en,de for text alone.
    OUT shares its sound; an interrupted command goes on where it stopped. Train on both
    (sequence-level knowledge distillation):

    \b
    dragoman distill runs/mt.en-de packs/train packs/train-kd
    dragoman train RECIPE 'data.train=[packs/train,packs/train-kd]'
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.train.distill import distill

    with told_if_stopped(), clip_progress("translating") as count:
        header = distill(
            run,
            data,
            out,
            target=target,
            beam=beam,
            cut=cut,
            device=device,
            together=together,
            progress=count,
        )
    tell_pack(out, header)

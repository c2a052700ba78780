"""`dragoman distill`: a text model translates a pack's transcripts, to train on."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.app import GroupedCommand, grouped

_search = grouped("Search")


@click.command(cls=GroupedCommand)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("pack", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@_search("--to", "target", metavar="LANGUAGE",
              help="The language to translate into, for a teacher that has several.")  # fmt: skip
@_search("--beam", type=click.IntRange(1), default=5,
              show_default=True, help="Beams.")  # fmt: skip
@_search("--device", default="auto", show_default=True,
              help="Where to compute: cpu, cuda; auto: a GPU if there is one.")  # fmt: skip
@_search("--together", type=click.IntRange(1), default=None,
              help="Units translated together, about  [default: 6000; on a GPU 60000]")  # fmt: skip
def command(
    run: Path,
    pack: Path,
    out: Path,
    target: str | None,
    beam: int,
    device: str,
    together: int | None,
) -> None:
    """Translate the transcripts of PACK with the text model of RUN into the pack OUT.

    OUT shares the sound of PACK; an interrupted command goes on where it stopped. Train on both
    (sequence-level knowledge distillation):

    \b
    dragoman distill runs/mt.en-de packs/train packs/train-kd
    dragoman train RECIPE 'data.train=[packs/train,packs/train-kd]'
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.train.data.faults import FAULTS, read_faults, summary_of
    from dragoman.train.distill import distill

    with clip_progress("translating") as count:
        header = distill(
            run,
            pack,
            out,
            target=target,
            beam=beam,
            device=device,
            together=together,
            progress=count,
        )
    click.echo(f"{out}: {header.items} utterances, {header.hours:.2f} hours of speech.")
    if faults := read_faults(out / FAULTS):
        click.echo(f"Left out: {summary_of(faults)}; {out / FAULTS} lists them.")

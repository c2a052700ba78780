"""The options of `score` and `compare`: what is measured, of which texts, by which rules."""

from __future__ import annotations

from typing import get_args

import click

from dragoman.cli.app import grouped
from dragoman.cli.ranges import PATH
from dragoman.metrics.instance import Unit
from dragoman.metrics.pieces import StreamTool
from dragoman.metrics.resegment import ALIGNERS
from dragoman.metrics.timings import Compat, Computation

_measured = grouped("What is measured")
_talks = grouped("Whole talks")
_rules = grouped("How it is measured")
_files = grouped("Input and output")

OPTIONS = (
    _measured(
        "--to",
        "target",
        metavar="CODE",
        help="The language of the text; it chooses --unit and --tokenizer.",
    ),
    _measured(
        "--unit",
        type=click.Choice(get_args(Unit)),
        help="What is counted.  [default: by --to, else word]",
    ),
    _measured(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        help="Compute only this metric; may be repeated.",
    ),
    _measured(
        "--tokenizer",
        metavar="NAME",
        help="sacreBLEU's for BLEU: 13a, intl, zh, char, …  [default: by --to, else 13a]",
    ),
    _measured(
        "--comet",
        metavar="NET",
        help="Compute COMET, too, by this net: a folder, or its name on the model hub if it has "
        "been fetched. Needs --sources and torch.",
    ),
    _measured(
        "--sources",
        type=PATH,
        help="A file with what was spoken, a line for every reference: for --comet.",
    ),
    _measured(
        "--references",
        type=PATH,
        multiple=True,
        help="A file with one reference per line, for a log that holds none or for --segments. "
        "Again for further references of the same sentences.",
    ),
    _talks(
        "--segments",
        type=PATH,
        help="Where the sentences of the references lie: a YAML list of wav, offset and duration. "
        "The output is cut into these sentences and scored sentence by sentence.",
    ),
    _talks(
        "--aligner",
        type=click.Choice(ALIGNERS),
        help="How to cut.  [default: mwer for StreamLAAL, soft for all else]",
    ),
    _talks(
        "--language",
        help="Split off punctuation as in this language (de, en, …) before soft alignment.",
    ),
    _talks(
        "--from-first-segment",
        is_flag=True,
        help="The log counts time from the beginning of a talk's first segment.",
    ),
    _talks(
        "--stream-laal",
        type=click.Choice(get_args(StreamTool)),
        default="simulstream",
        help="Whose StreamLAAL: FBK's script lets no word be early.",
    ),
    _rules(
        "--ca",
        "computation",
        type=click.Choice(get_args(Computation)),
        help="Definition of computation-aware time.  [default: honest; cumulative with --compat]",
    ),
    _rules(
        "--length",
        type=click.Choice(["reference", "hypothesis"]),
        default="reference",
        help="Whose length sets the ideal pace.",
    ),
    _rules(
        "--compat",
        type=click.Choice(get_args(Compat)),
        help="Follow another tool to the digit.",
    ),
    _files(
        "--skip-broken",
        is_flag=True,
        help="Leave broken sentences out, and say so, instead of stopping.",
    ),
)

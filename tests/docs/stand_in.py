"""`dragoman` for the docs' commands: the real command line, with a model that needs no weights.

    python -m tests.docs.stand_in translate talk.mp3 --from de

A command that would need a microphone, minutes or megabytes is read by the real parser, with all
its options and ranges, and goes no further; ONLY_PARSED says which, and why.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ONLY_PARSED = (
    (r".*--cluster\b", "needs Ray and its time; tests/test_cluster.py and tests/serve have both"),
    (r".*--comet\b", "needs a net of two gigabytes; tests/cli has toys"),
    (r"live\b", "needs a microphone; tests/cli and tests/audio have one that is made"),
    (r"serve\b", "serves until it is told to end; tests/serve has one that is"),
    (r"demo\b", "needs 148 MB of weights; tests/test_packaging.py runs it where they are"),
    (r"models (get|path|rm|remove)\b", "needs weights in the store; tests/store has a stand-in"),
    (r"voices say .*--voice (kokoro|piper|elevenlabs)", "needs weights or a key; see tests/voices"),
    (r"voice\b", "speaks for minutes; tests/train/voicing does so"),
    (r"train\b", "trains for hours; its recipe and changes are read, tests/train trains"),
    (r"(distill|export|carbon)\b", "needs a trained run; tests/train has some"),
)


def reason(command: str) -> str | None:
    """Why a command (without the word dragoman) is only parsed; None: it is run."""
    return next((why for what, why in ONLY_PARSED if re.match(what, command)), None)


def parse(arguments: list[str]) -> None:
    """Let the real parser read a command; a recipe is read with its changes too."""
    from dragoman.cli.app import dragoman

    name, command, rest = "dragoman", dragoman, arguments
    context = dragoman.make_context(name, [], resilient_parsing=True)
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        name, command, rest = command.resolve_command(context, rest)
        if hasattr(command, "get_command"):
            context = command.make_context(name, [], parent=context, resilient_parsing=True)
    parsed = command.make_context(name, rest, parent=context)
    if name == "train":
        from dragoman.train.recipe import read_recipe

        read_recipe(parsed.params["recipe"], parsed.params["changes"])


def main() -> None:
    arguments = sys.argv[1:]
    if reason(" ".join(arguments)) is not None:
        import click

        try:
            parse(arguments)
        except click.UsageError as error:
            error.show()
            sys.exit(2)
        return
    import dragoman.setup
    from tests.scripted import steady

    dragoman.setup.load_model = lambda name, **options: steady()
    from dragoman.cli import main as real

    sys.argv = ["dragoman", *arguments]
    real()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()

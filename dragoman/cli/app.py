"""The `dragoman` command: a table of commands, each imported when it is first used.

`dragoman --help` reads only this table, so it answers at once however heavy the commands are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from dragoman import __version__
from dragoman.cli.help import Context

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives and the line that `--help` shows for it."""

    group: str
    module: str
    summary: str


# Commands in the order in which `--help` shows them.
COMMANDS: dict[str, Entry] = {
    "translate": Entry("Interpret", "dragoman.cli.translate", "Translate recordings or a pipe."),
    "live": Entry("Interpret", "dragoman.cli.live", "Interpret the microphone."),
    "demo": Entry("Interpret", "dragoman.cli.demo", "Interpret a recording while it plays."),
    "serve": Entry("Interpret", "dragoman.cli.serve", "Interpret for many, over the network."),
    "languages": Entry("Interpret", "dragoman.cli.languages", "List the languages."),
    "evaluate": Entry("Measure", "dragoman.cli.evaluate", "Interpret a corpus and score it."),
    "sweep": Entry("Measure", "dragoman.cli.sweep", "Compare policies over a corpus."),
    "tune": Entry("Measure", "dragoman.cli.tune", "Find the best policy for a latency."),
    "score": Entry("Measure", "dragoman.cli.score", "Score a log: latency and quality."),
    "compare": Entry("Measure", "dragoman.cli.compare", "Tell whether two systems differ."),
    "voice": Entry("Train", "dragoman.cli.voice", "Speak parallel text, to train on."),
    "train": Entry("Train", "dragoman.cli.train", "Train a model as a recipe says."),
    "distill": Entry("Train", "dragoman.cli.distill", "Translate a corpus with a text model."),
    "export": Entry("Train", "dragoman.cli.export", "Make a trained model run without torch."),
    "carbon": Entry("Train", "dragoman.cli.carbon", "Energy of runs, and what one model saves."),
    "check": Entry("Set up", "dragoman.cli.check", "Show what is installed, and how fast."),
    "models": Entry("Set up", "dragoman.cli.models", "Fetch, check and remove model weights."),
    "voices": Entry("Set up", "dragoman.cli.voices", "List the voices, hear one."),
}


ELSEWHERE = {
    "install": "'dragoman models get' fetches a model.",
    "report": "'dragoman score' scores a log; 'dragoman sweep' writes a report of several.",
}
"""Commands that there are not, though somebody may look for them, and what does it here: the names
that look like theirs do something else."""


def check_known(
    ctx: click.Context, args: list[str], commands: Collection[str], otherwise: str
) -> None:
    """Refuse a command that there is not, with the one that was meant."""
    if args and args[0] not in commands:
        from difflib import get_close_matches

        near = get_close_matches(args[0], commands, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else otherwise
        ctx.fail(f"No such command '{args[0]}'. {hint}")


class LazyGroup(click.Group):
    """A click group that knows its commands' names and summaries without importing them."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(entry.module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[:1] == ["help"]:  # as other programs have it
            args = [*args[1:], "--help"]
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
        if args and args[0] in ELSEWHERE:
            ctx.fail(f"No such command '{args[0]}'. {ELSEWHERE[args[0]]}")
        check_known(ctx, args, COMMANDS, "See 'dragoman --help'.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, entry in COMMANDS.items():
            groups.setdefault(entry.group, []).append((name, entry.summary))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class GroupedOption(click.Option):
    """An option that `--help` lists under a heading of its own: `group="Output"`.

    A number is called N there.
    """

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group
        if self.metavar is None and isinstance(self.type, click.IntRange | click.FloatRange):
            self.metavar = "N"


def grouped(group: str) -> Callable[..., Decorator]:
    """`click.option` for one group of a command's help, which shows defaults."""

    def option(*names: str, **settings: Any) -> Decorator:
        settings.setdefault("show_default", settings.get("default") is not None)
        return click.option(*names, cls=GroupedOption, group=group, **settings)

    return option


class GroupedCommand(click.Command):
    """A command whose help lists its options by group, in the order they were declared."""

    context_class = Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class InOrder(click.Group):
    """A command with some commands below it, which are listed as their file has them."""

    context_class = Context
    command_class = GroupedCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        there = ", ".join(self.commands)
        check_known(ctx, args, self.commands, f"There are {there}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does, which cuts a summary off where it does not fit beside the name."""
        with formatter.section("Commands"):
            commands = self.commands.items()
            formatter.write_dl([(name, one.get_short_help_str(200)) for name, one in commands])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="dragoman")
def dragoman() -> None:
    """Listens to speech and speaks its translation while the speaker is still talking."""

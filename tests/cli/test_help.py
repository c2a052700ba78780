"""The help of every command, as a person reads it on a terminal of 80 columns."""

import inspect
import shlex

import click
import pytest
from click.testing import CliRunner

from dragoman.cli.app import COMMANDS, dragoman


def commands(group: click.Group, *names: str):
    """Every command with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*names, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


ALL = dict(commands(dragoman))


def examples(command: click.Command) -> list[str]:
    """The lines of its description that are commands."""
    lines = inspect.cleandoc(command.help or "").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("dragoman ")]


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_help(names):
    shown = CliRunner().invoke(dragoman, [*names, "--help"], terminal_width=80)
    assert shown.exit_code == 0
    lines = [line.strip() for line in shown.output.splitlines()]
    for example in examples(ALL[names]):
        assert example in lines  # it can be copied: no line was broken
    assert "..." not in shown.output.partition("Commands:")[2]  # no summary is cut
    assert max(map(len, shown.output.splitlines())) <= 80
    assert "RANGE" not in shown.output  # how programmers call a number
    assert all(option.help for option in ALL[names].params if isinstance(option, click.Option))


@pytest.mark.parametrize("names", [(), *ALL], ids=" ".join)
def test_help_on_a_narrow_terminal(names, monkeypatch):
    """No line is broken by the terminal but those that are to be copied, and no name of an option
    is; an explanation has room to be read."""
    monkeypatch.setenv("COLUMNS", "40")
    shown = CliRunner().invoke(dragoman, [*names, "--help"]).output
    as_written = inspect.cleandoc(ALL[names].help or "").splitlines() if names else []
    lines = [line for line in shown.splitlines() if line.strip() not in as_written]
    assert max(len(line) for line in lines if not line.startswith("  -")) <= 40
    assert not [line for line in lines if line.endswith("-") and not line.endswith("|-")]
    assert "..." not in shown.partition("Commands:")[2]
    wide = CliRunner().invoke(dragoman, [*names, "--help"], terminal_width=500).output
    assert set(shown.split()) == set(wide.split())  # no word was broken


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_understood(name):
    found = examples(ALL[name,])
    if COMMANDS[name].group in ("Measure", "Train") and name != "carbon":
        assert found
    for example in found:
        words = shlex.split(example.partition(" > ")[0], comments=True)[1:]
        ALL[words[0],].make_context(words[0], words[1:])  # read, not run


@pytest.mark.parametrize("names", [(), ("translate",), ("models", "get")])
def test_help_may_be_asked_for_as_a_command(names):
    asked = CliRunner().invoke(dragoman, ["help", *names])
    assert asked.exit_code == 0
    assert asked.output == CliRunner().invoke(dragoman, [*names, "--help"]).output


def test_help_of_nothing_is_a_sentence():
    asked = CliRunner().invoke(dragoman, ["help", "translte"])
    assert asked.exit_code == 2
    assert "Did you mean 'translate'?" in asked.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["translat"], "No such command 'translat'. Did you mean 'translate'?"),
        (
            ["report"],
            "No such command 'report'. 'dragoman score' scores a log; 'dragoman sweep' "
            "writes a report of several.",
        ),
        (["install"], "No such command 'install'. 'dragoman models get' fetches a model."),
        (["wrap"], "No such command 'wrap'. See 'dragoman --help'."),
        (["models", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (
            ["models", "remove", "whisper-base"],
            "No such command 'remove'. There are list, get, verify, path, add, rm.",
        ),
        (["voices", "speak"], "No such command 'speak'. There are list, say."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_that_there_is_not_is_told_with_what_there_is(arguments, told):
    result = CliRunner().invoke(dragoman, arguments)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: {told}\n")

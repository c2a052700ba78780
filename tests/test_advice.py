"""What errors advise whoever types commands is apart from what is wrong, which clients of a
service are told as well."""

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.audio.opus import NotOpus
from dragoman.errors import DragomanError, Told
from dragoman.serve.client import TalkError
from dragoman.serve.protocol import Code

PACKAGE = Path(dragoman.__file__).parent
TYPED = re.compile(r"(?<![\w-])--[a-z]|\bdragoman [a-z]")
"""What is typed: an option, or a command."""
ALONE = re.compile(r"--[\w-]+(=\S*)?")
"""An option by itself is no sentence: it is handed to another program."""
APART = {"cli", "evaluate", "metrics", "train"}
"""Rooms that the service does not reach."""
ADVISERS = {"with_translator", "with_recogniser", "with_pivot", "to_get"}
"""They return what to type, and are called for advice only."""
WISHES = {"missing"}
"""What a voice needs; the service says in its own words that it has none."""


@pytest.mark.parametrize(
    ("advice", "whole"),
    [
        ("", "It is so."),
        ("give --that.", "It is so; give --that."),
        ("'dragoman models list' has it.", "It is so; 'dragoman models list' has it."),
        ("Give --that.", "It is so. Give --that."),
        ("(see --that).", "It is so (see --that)."),
    ],
)
def test_advice_follows_what_is_wrong(advice, whole):
    error = DragomanError("It is so.", advice=advice)
    assert (str(error), error.what) == (whole, "It is so.")
    assert str(Told("It is so.", advice)) == whole


class _OwnError(DragomanError):
    def __init__(self, number: int) -> None:
        super().__init__(f"There are {number}.", advice="take --fewer.")
        self.number = number


@pytest.mark.parametrize(
    "error",
    [
        DragomanError("It is so.", advice="give --that."),
        _OwnError(3),
        NotOpus(),
        TalkError(Code.FULL, "There is no room."),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(
    "again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
def test_an_error_is_the_same_in_another_process_and_as_a_copy(error, again):
    other = again(error)
    assert (type(other), other.__dict__) == (type(error), error.__dict__)
    assert (str(other), other.args) == (str(error), error.args)


def test_a_plain_error_keeps_its_advice():
    plain = _OwnError(3).plain()
    assert type(plain) is DragomanError
    assert str(plain) == "There are 3; take --fewer."


def _told(tree: ast.AST) -> Iterator[ast.AST]:
    """All that may be told, but for docstrings and advice."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.keyword) and child.arg == "advice":
            continue
        if isinstance(child, ast.FunctionDef) and child.name in ADVISERS | WISHES:
            continue
        yield child
        yield from _told(child)


def _names_what_is_typed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ADVISERS
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return TYPED.search(node.value) is not None and not ALONE.fullmatch(node.value)


def faults_in(source: str) -> list[int]:
    """The lines in which something is told that only who types commands can do."""
    return [node.lineno for node in _told(ast.parse(source)) if _names_what_is_typed(node)]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("raise E('so.', advice='give --that.')", []),
        ("'''Docs of --that.'''\n'--that'", []),
        ("run('--that', '--other=3')", []),
        ("\nraise E(f'so {x}; give --that.')", [2]),
        ("hint = \"'dragoman voices' lists them.\"", [1]),
        ("raise E(f'{with_translator(a, b)}.')", [1]),
        ("raise E('so.', advice=f'{with_translator(a, b)}.')", []),
    ],
)
def test_what_is_typed_is_found_outside_of_advice(source, lines):
    assert faults_in(source) == lines


def test_whoever_types_no_commands_is_told_of_none():
    """In all rooms that the service can reach."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE)
        if name.parts[0] not in APART and (lines := faults_in(path.read_text(encoding="utf-8"))):
            found[name.as_posix()] = lines
    assert not found

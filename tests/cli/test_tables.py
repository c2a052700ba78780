"""No number is cut, whatever the width of the terminal, in a pipe, or in a file."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from functools import cache
from io import StringIO

import pytest
from rich.console import Console

from dragoman.cli.report import show
from dragoman.cli.tables import Column, print_rows
from dragoman.metrics.lines import Log
from dragoman.metrics.score import METRICS, score_corpus
from dragoman.metrics.timings import Rules
from tests import warm
from tests.golden import GOLDEN

RUNS = GOLDEN / "live_runs"
COMMANDS = {
    "score": [RUNS / "speech_wait3_per1_seg320.log"],
    "compare": [RUNS / "speech_wait1_per1_seg280.log", RUNS / "speech_wait3_per1_seg320.log"],
}


WIDTHS = (20, 40, *range(72, 82), 120)
AGAIN = """
import fcntl, struct, sys, termios
from dragoman.cli import main
for columns in map(int, sys.argv[1].split(",")):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        main(sys.argv[2:])
    except SystemExit as end:
        assert not end.code, end.code
    print("\\f", flush=True)
"""


def command(name, logs=None):
    return warm.command("-m", "dragoman", name, *(logs or COMMANDS[name]))


def on_a_terminal(name, columns, logs=None):
    """What a person sees in a window of this width, without the colours."""
    return shown(command(name, logs), columns)


@cache
def in_every_window(name):
    """The same for all widths: one process, whose window becomes another one before each table."""
    widths = ",".join(map(str, WIDTHS))
    seen = shown(warm.command("-c", AGAIN, widths, name, *COMMANDS[name]), 80)
    tables = dict(zip(WIDTHS, seen.split("\f\n")[:-1], strict=True))
    assert tables[20] != tables[72] != tables[120]
    return tables


def shown(words, columns):
    """What a process shows on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        words,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=theirs,
        env=environment | {"TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # Linux tells the end of a terminal so
            break
        if not read:
            break
        seen += read
    os.close(ours)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()).replace("\r\n", "\n")


def numbers_of(text):
    """Every row's numbers, by its metric: of a table, or of a list of cards."""
    found, name = {}, ""
    for line in text.splitlines():
        title = line.split(" ")[0]
        if title in METRICS:
            name, line = title, line[len(title) :]
        elif line.startswith("  "):
            line = line[2:].partition("  ")[2]
        else:
            name = ""
        found.setdefault(name, []).extend(re.findall(r"[-+]?[\d,]*\.?\d+\*?", line))
    return {name: sorted(numbers) for name, numbers in found.items() if name}


@cache
def piped(name):
    """What the command prints into a pipe."""
    return subprocess.run(command(name), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_number_is_cut(name, columns):
    wanted = numbers_of(piped(name))
    assert len(wanted) >= 14
    assert numbers_of(in_every_window(name)[columns]) == wanted


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usual_terminal_shows_a_table(name):
    seen = on_a_terminal(name, 80)
    (line,) = [line for line in seen.splitlines() if line.startswith("BLEU ")]
    assert "37.32" in line
    table = seen[: seen.index("BLEU|")]
    assert max(map(len, table.splitlines()[2:])) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_so_it_does_where_there_is_no_reference(name, tmp_path):
    """What is not defined is no wider than a number: so is the table."""
    logs = [tmp_path / path.name for path in COMMANDS[name]]
    for log, whole in zip(logs, COMMANDS[name], strict=True):
        rows = map(json.loads, whole.read_text().splitlines())
        log.write_text("\n".join(json.dumps(row | {"reference": None}) for row in rows))
    seen = on_a_terminal(name, 80, logs)
    (line,) = [line for line in seen.splitlines() if line.startswith("LAAL ")]
    assert len(re.findall(r"[\d,.]+", line)) >= 5
    told = [line for line in seen.splitlines() if line.startswith("BLEU")]  # and its signature
    assert len(told) == (2 if name == "score" else 0)


@pytest.mark.parametrize("columns", [30, 300])
def test_what_is_empty_in_all_rows_is_left_out(columns):
    console = Console(width=columns, record=True, file=StringIO())
    print_rows(console, [Column("a"), Column("b"), Column("c")], [["x", " ", "1"], ["y", "", ""]])
    assert "b" not in console.export_text()
    console = Console(width=columns, record=True, file=StringIO())
    print_rows(console, [Column("a"), Column("b")], [["", "0"]])
    assert console.export_text().split()[:2] == ["a", "b"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_is_as_wide_as_it_needs(name):
    environment = os.environ | {"COLUMNS": "20"}
    done = subprocess.run(command(name), capture_output=True, text=True, env=environment)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("BLEU ")]
    assert "37.32" in line


def test_what_is_named_is_shown_as_it_is(tmp_path, capsys):
    """Neither as a style nor as a picture."""
    log = Log(tmp_path / ":key:.log", "./runs/[v2], greedy", [])
    show(log, score_corpus([], Rules(), ("AL",)), as_json=False)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith(":key:.log  ./runs/[v2], greedy, sentences: 0")

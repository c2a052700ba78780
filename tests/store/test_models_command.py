"""`dragoman models` from the outside."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli.models import _print_table, command
from dragoman.errors import DragomanError
from dragoman.store.prepared import prepared
from tests.cli.terminal import terminal

FILES = {"model.bin": b"weights"}


@pytest.fixture
def toy(enter, hub):
    enter("toy", FILES, hub=hub(FILES))


def run(*arguments, status=0):
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == status
    return done.stdout


def test_a_model_from_get_to_rm(toy, home):
    folder = home / "models" / "toy"
    assert run("get", "toy") == f"{folder}\n"
    assert run("path", "toy") == f"{folder}\n"
    assert run("verify") == "toy: as it should be\n"
    (folder / "model.bin").write_bytes(b"?")
    assert run("verify", "toy", status=1) == "toy: model.bin is damaged\n"
    assert run("get", "toy") == f"{folder}\n"
    assert run("rm", "toy") == "toy: removed\n"
    assert run("verify") == f"There are no models in {home}.\n"


def test_a_model_comes_with_the_one_that_it_stands_behind(toy, enter, hub, home):
    enter("upper", FILES, hub=hub(FILES), behind="toy")
    assert run("get", "upper") == f"{home / 'models' / 'upper'}\n"
    assert run("path", "toy") == f"{home / 'models' / 'toy'}\n"


@pytest.mark.parametrize("around", [True, False])
def test_what_lies_in_a_clone_is_here_before_anybody_has_loaded_it(
    enter, home, tmp_path, monkeypatch, around
):
    """Whether the package is of the clone, or is installed and typed there."""
    enter("ours", FILES)
    enter("upper", FILES, behind="ours")
    clone = tmp_path / "clone"
    package = clone if around else tmp_path / "site-packages"
    monkeypatch.setattr("dragoman.store.home.__file__", str(package / "dragoman/store/home.py"))
    if not around:
        (clone / "weights").mkdir(parents=True)
        monkeypatch.chdir(clone)
    for name in ("upper", "ours"):
        assert json.loads(run("list", "--here", "--json")) == []
        assert "not here" in str(run_refused("path", name))
        lies = clone / "weights" / name
        lies.mkdir(parents=True)
        (lies / "model.bin").write_bytes(b"half")
        assert json.loads(run("list", "--here", "--json")) == []
        (lies / "model.bin").write_bytes(b"weights")
    rows = {row["name"]: row for row in json.loads(run("list", "--here", "--json"))}
    assert {name: row["path"] for name, row in rows.items()} == {
        name: str(clone / "weights" / name) for name in ("ours", "upper")
    }
    assert not home.joinpath("models").exists()  # looking makes nothing
    for name in ("ours", "upper"):
        assert run("path", name) == f"{clone / 'weights' / name}\n"
        assert run("get", name) == f"{home / 'models' / name}\n"


def test_half_of_a_model_is_not_here(enter, tmp_path, monkeypatch):
    """That is one without the model that it stands behind."""
    monkeypatch.setenv("DRAGOMAN_WEIGHTS", str(tmp_path))
    enter("lower", FILES)
    enter("upper", FILES, behind="lower")
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper" / "model.bin").write_bytes(b"weights")
    rows = {row["name"]: row for row in json.loads(run("list", "--json"))}
    assert [rows[name]["partial"] for name in ("upper", "lower")] == [True, False]
    assert rows["upper"]["path"] is None


def run_refused(*arguments):
    with pytest.raises(DragomanError) as told:
        run(*arguments)
    return told.value


def test_list_as_json(toy, home):
    assert json.loads(run("list", "--here", "--json")) == []
    run("get", "toy")
    (row,) = json.loads(run("list", "--here", "--json"))
    assert row == {
        "name": "toy",
        "about": "a toy",
        "task": "translation",
        "languages": ["en"],
        "targets": [],
        "licence": "MIT",
        "bytes": 7,
        "prepared": 0,
        "memory": row["memory"],
        "cost": row["cost"],
        "measured": False,
        "gpu": row["gpu"],
        "speed": "fast",
        "recommended": False,
        "path": str(home / "models" / "toy"),
        "partial": False,
    }


def test_the_table_fits_a_terminal_and_a_pipe():
    lines = run("list").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == [
        "name",
        "task",
        "languages",
        "size",
        "memory",
        "speed",
        "gpu",
        "here",
    ]
    marked = [line.split()[1] for line in lines if line.startswith("* ")]
    assert marked in (["whisper-base"], ["whisper-small"])
    assert all(line[:2] in ("  ", "* ") and not line[2].isspace() for line in lines)
    rows = {line[2:].split()[0]: line[2:].split()[1:] for line in lines[1:]}
    assert rows["whisper-large-v3"][:4] == ["translate", "100→en", "3.1", "GB"]
    assert rows["whisper-medium"][-2].startswith("~")  # what nobody has measured
    assert rows["whisper-medium"][-1] == "yes"  # a GPU will do
    assert rows["whisper-turbo"][:2] == ["recognise", "100"]
    assert rows["opus-en-de"][:2] == ["text", "en→de"]
    assert rows["nllb-600m"][:2] == ["text", "any"]
    tasks = [cells[0] for cells in rows.values()]
    assert tasks == sorted(tasks, key=tasks.index)  # one task after the other


@pytest.mark.parametrize(("columns", "lines"), [("80", 3), ("120", 2)])
def test_long_names_on_a_narrow_terminal(monkeypatch, capsys, columns, lines):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    name = "hub:somebody/faster-whisper-with-a-long-name"
    cells = ("*", name, "translate", "99→en", "148 MB", "~616 MB", "~live", "gpu", "yes")
    _print_table([cells])
    told = capsys.readouterr().out.splitlines()
    assert len(told) == lines
    assert max(map(len, told)) <= int(columns)
    assert told[1].startswith(f"* {name}")
    assert told[-1].split()[-6:] == ["MB", "~616", "MB", "~live", "gpu", "yes"]


def test_what_was_prepared_of_a_model_counts(toy):
    folder = Path(run("get", "toy").strip())
    prepared(folder, "kind", 1, lambda to: (to / "big").write_bytes(b"x" * 2_000_000))
    (row,) = json.loads(run("list", "--here", "--json"))
    assert row["bytes"] == 7
    assert 2_000_000 < row["prepared"] < 2_010_000  # and a stamp
    assert "  2.0 MB  " in run("list", "--here")


def test_a_model_that_is_here_in_part(toy, home):
    run("get", "toy")
    (home / "models" / "toy" / "model.bin").unlink()
    (line,) = [line for line in run("list").splitlines() if line.split()[0] == "toy"]
    assert line.endswith("  part")
    rows = json.loads(run("list", "--json"))
    assert [row["name"] for row in rows if row["partial"]] == ["toy"]
    assert json.loads(run("list", "--here", "--json")) == []


def test_add(tmp_path, home):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "model.bin").write_bytes(b"mine")
    told = run("add", "mine", str(tmp_path / "own"), "--language", "de", "--language", "en")
    assert told == f"{home / 'models' / 'mine'}\n"
    (row,) = json.loads(run("list", "--here", "--json"))
    assert row["languages"] == ["de", "en"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["get", "wisper-base"], "did you mean 'whisper-base'?"),
        (["path", "whisper-base"], "fetch it: dragoman models get whisper-base"),
        (["rm", "whisper-base"], "is not in the store"),
        (["verify", "nonsense"], "see 'dragoman models list'"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(arguments, sentence):
    command = [sys.executable, "-m", "dragoman", "models", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("dragoman: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("columns", "table"), [(80, True), (40, False)])
def test_a_table_where_there_is_room_and_paragraphs_where_there_is_none(columns, table):
    with terminal("models", "list", columns=columns, lines=200) as screen:
        assert screen.rest() == 0
    assert (screen.lines[0].split()[:2] == ["name", "task"]) == table
    row = next(i for i, line in enumerate(screen.lines) if line.endswith(" opus-en-de") or
               line.startswith("  opus-en-de "))  # fmt: skip
    told = screen.lines[row] if table else screen.lines[row + 1]
    assert told.split()[1 if table else 0 :][:2] == ["text", "en→de" if table else "en→de,"]
    words = " ".join(screen.lines).split()
    assert "memory" in words
    assert words.count("opus-en-de") == 1
    assert "--help'." in words

"""`dragoman models` from the outside."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dragoman.cli.models import command

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


def test_list(toy, home):
    told = run("list")
    assert [line.split()[0] for line in told.splitlines()][-1] == "toy"
    assert "whisper-base" in told
    assert json.loads(run("list", "--here", "--json")) == []
    run("get", "toy")
    (row,) = json.loads(run("list", "--here", "--json"))
    assert row == {
        "name": "toy",
        "about": "a toy",
        "task": "translation",
        "languages": ["en"],
        "licence": "MIT",
        "bytes": 7,
        "path": str(home / "models" / "toy"),
    }


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

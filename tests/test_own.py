"""Errors in code of the user's own, as sentences."""

import subprocess
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models.load import load_model
from dragoman.own import OwnError, own_told
from dragoman.policies import make_policy
from tests import warm
from tests.scripted import chunks_of, steady


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a module of the user's own, of a name that no other test has."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, code):
        (tmp_path / f"{name}.py").write_text(code)
        return tmp_path / f"{name}.py"

    return write


def test_a_module_with_a_mistake_in_it_is_told_with_its_line(own):
    own("own_torn", "def x(:\n")
    with pytest.raises(OwnError, match=r"^SyntaxError: invalid syntax \(own_torn.py, line 1\)\.$"):
        make_policy("own_torn.Policy")
    path = own("own_lacking", "import json\n\nimport not_there_at_all\n")
    told = rf"^ModuleNotFoundError in {path}, line 3 \(import not_there_at_all\): No module"
    with pytest.raises(OwnError, match=told):
        make_policy("own_lacking.Policy")


def test_knobs_that_its_class_refuses_are_told():
    with pytest.raises(OwnError, match=r"ValueError in .*: before the beginning\?\.$"):
        make_policy("tests.own_policies.Fails:at=-1")
    with pytest.raises(DragomanError, match=r"^So late is never\.$"):
        make_policy("tests.own_policies.Fails:at=100000")


def test_a_function_that_makes_no_model_is_told_with_its_line(own, monkeypatch):
    own("own_model", "def make():\n    return helper()\ndef helper():\n    return {}['x']\n")
    with pytest.raises(OwnError, match=r"KeyError in .*own_model.py, line 4 \(return {}\['x'\]\)"):
        load_model("own_model:make")
    with pytest.raises(DragomanError, match="There is no model function 'own_model:other'"):
        load_model("own_model:other")


def test_other_errors_stay_what_they_are(monkeypatch):
    monkeypatch.setattr("dragoman.own._packages", set())
    cause = KeyError("why")
    error = ZeroDivisionError("ours")
    error.__cause__ = cause
    with pytest.raises(ZeroDivisionError, match="ours"), own_told():
        raise error
    assert error.__cause__ is cause


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("Silent", "Policy 'Silent' answers 'allow' with None; an Allowance is needed."),
        ("Half", "Policy 'Half' answers 'commit' with 0.0; a whole number of tokens is needed."),
    ],
)
def test_an_answer_of_a_wrong_kind_is_told(policy, told):
    interpreter = Interpreter(steady(), make_policy(f"tests.own_policies.{policy}"))
    with pytest.raises(OwnError) as caught:
        list(interpreter.run(chunks_of(2400, 200)))
    assert str(caught.value) == told


def test_a_command_tells_it_in_one_sentence(tmp_path):
    import numpy as np
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.zeros(16000, np.float32), 16000)
    done = subprocess.run(
        warm.command("-m", "dragoman", "translate", str(tmp_path / "a.wav"), "--quiet")
        + ["--model", "tests.scripted:steady", "--policy", "tests.own_policies.Fails"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    line = (
        Path("tests/own_policies.py")
        .read_text()
        .splitlines()
        .index("        return min([])  # the line")
        + 1
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"dragoman: ValueError in tests/own_policies.py, line {line} (return min([])  # the line): "
    )
    assert "Traceback" not in done.stderr


def test_what_is_dragoman_s_is_nobody_s_own(monkeypatch):
    """Then a module that is not there would be a fault in the line that looks for it."""
    monkeypatch.setattr("dragoman.own._packages", set())
    make_policy("dragoman.policies.Greedy")
    with pytest.raises(DragomanError, match=r"^There is no policy 'no\.such\.Policy' \(No module"):
        make_policy("no.such.Policy")

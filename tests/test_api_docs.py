"""Every example of docs/api.md runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

import dragoman.setup
from tests.scripted import steady

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("code", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example(code, tmp_path, monkeypatch):
    soundfile.write(tmp_path / "talk.wav", np.zeros(80000, np.float32), 16000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dragoman.setup, "load_model", lambda *args, **settings: steady())
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    if "events" in names:
        assert isinstance(names["events"][-1], dragoman.End)

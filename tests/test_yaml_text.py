"""YAML: whatever is wrong with a text is one sentence."""

import pytest

from dragoman.errors import DragomanError
from dragoman.yaml_text import parse_yaml, read_yaml


def test_what_a_file_holds(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: [1, 2.5, true, Straße]\n", encoding="utf-8")
    assert read_yaml(path) == {"a": [1, 2.5, True, "Straße"]}
    with pytest.raises(FileNotFoundError):
        read_yaml(tmp_path / "b.yaml")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"a: [", r"did not find expected node content \(line 2, column 1\)"),
        (b"a: \xff", "it is not UTF-8 text"),
        (b"a: \x07", "control characters are not allowed"),
        (b"a: 2026-13-45", "month must be in 1..12"),
        (b"!!python/name:os.system", "could not determine a constructor"),
    ],
)
def test_a_fault_is_one_sentence(text, fault):
    with pytest.raises(DragomanError, match=rf"^It is not YAML: [^\n]*{fault}[^\n]*; so\.$"):
        parse_yaml(text, "It", "; so")

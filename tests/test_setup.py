"""Setups in YAML."""

import pytest

from dragoman.errors import DragomanError
from dragoman.models.load import load_model
from dragoman.setup import Setup


def test_a_setup_survives_its_file(tmp_path):
    setup = Setup(source="de", policy="wait-k:k=5", utterance_pause_ms=600.0)
    setup.write(tmp_path / "s.yaml")
    assert Setup.read(tmp_path / "s.yaml") == setup


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("polcy: greedy\n", "unknown key 'polcy'. Did you mean 'policy'?"),
        ("step_ms: soon\n", "Expected `float`, got `str`"),
        ("- a\n", "should hold lines of 'key: value'"),
        ("a: [\n", "is not YAML"),
    ],
)
def test_faults_are_named(tmp_path, text, sentence):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(DragomanError) as caught:
        Setup.read(path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


def test_models_from_functions_and_folders(tmp_path):
    assert load_model("tests.scripted:steady").name == "scripted"
    with pytest.raises(DragomanError, match="no model function"):
        load_model("tests.scripted:nothing")
    with pytest.raises(DragomanError, match="holds no model that Dragoman knows"):
        load_model(str(tmp_path))


def test_a_cascade_has_stops_of_its_own():
    cascade, other = Setup(source="en", target="de"), Setup(source="de")
    assert [row[0] for row in cascade.tuned_rows] == [1300.0, 1700.0, 2000.0]
    assert [row[0] for row in other.tuned_rows] == [1300.0, 2000.0]
    below = cascade.tuned(1999.0).policy
    assert below == cascade.tuned(1700.0).policy != other.tuned(1999.0).policy
    for setup in (cascade, other):
        policies = {setup.tuned(row[0]).policy for row in setup.tuned_rows}
        assert len(policies) == len(setup.tuned_rows)
        with pytest.raises(DragomanError, match=r"less than 1\.3 s"):
            setup.tuned(1299.0)

"""Setups in YAML."""

import pytest

from dragoman.cli.setup_options import read_setup
from dragoman.errors import DragomanError
from dragoman.models.load import load_model
from dragoman.policies import make_policy
from dragoman.policies.attention import AgreeAtt
from dragoman.setup import Setup, System
from tests.scripted import steady


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
        (
            "a: [\n",
            "is not YAML: did not find expected node content (line 2, column 1)",
        ),
        ("policy: \xff", "is not YAML: it is not UTF-8 text."),
        ("policy: 2026-13-45\n", "is not YAML: month must be in 1..12."),
        ("source: Germn\n", "'Germn' is not a language that is known here. Did you mean 'German'"),
        ("target: ''\n", "'' is not a language"),
        ("source: 7\n", "Expected `str | null`, got `int`"),
        ("source: no\n", 'got `bool` - at `$.source`. Norwegian is source: "no", in quotes.'),
    ],
)
def test_faults_are_named(tmp_path, text, sentence):
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DragomanError) as caught:
        Setup.read(path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("source", "target"), [("German", "English"), ("deu", "en-GB"), ("de", "en")]
)
def test_languages_are_read_as_on_the_command_line(tmp_path, source, target):
    path = tmp_path / "s.yaml"
    path.write_text(f"source: {source}\ntarget: {target}\n")
    by_options = read_setup(source=source, target=target)
    for setup in (Setup.read(path), Setup().with_changes(source=source, target=target), by_options):
        assert (setup.source, setup.target) == ("de", "en")
    path.write_text("target: German\n")
    assert Setup.read(path) == Setup(target="de")  # who speaks may be detected
    assert read_setup(setup=path, source="English").target == "de"


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


@pytest.mark.parametrize("target", ["de", "es", "fr"])
def test_a_cascade_has_one_policy_whatever_it_translates_into(target):
    """What two drafts agree on is said at once; three made Spanish later, and no better."""
    tuned = Setup(source="en", target=target).tuned(2000.0)
    assert make_policy(tuned.policy) == AgreeAtt(old=0, alone=2000, n=2)
    assert tuned.step_ms == 640


def test_a_system_with_a_model_of_ones_own_keeps_it_under_other_settings():
    """No model of the store fits these languages, and none is looked for."""
    model = steady()
    changed = System(Setup(source="it", target="ja"), model).changed(policy="greedy", target="zh")
    assert (changed.model, changed.vad) == (model, None)
    assert (changed.setup.policy, changed.setup.target) == ("greedy", "zh")
    assert changed.changed(step_ms=500.0).model is model


def test_a_folder_with_a_plus_in_its_name_is_no_cascade(tmp_path):
    folder = tmp_path / "c++"
    folder.mkdir()
    setups = [Setup(model=model, source="en", target="de") for model in (str(folder), "x", "x+y")]
    alone, other, cascade = [setup.tuned_rows for setup in setups]
    assert alone == other != cascade

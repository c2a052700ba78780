"""Numbers and times that cannot be are told before any work."""

import click
import pytest
from click.testing import CliRunner

from dragoman.cli.app import dragoman
from dragoman.cli.ranges import (
    COUNT,
    JOBS,
    MOMENT,
    POLICY_SPECS,
    REPLICAS,
    STEP,
    STEPS,
    Number,
    Time,
)


def test_times_are_read_and_kept_within_their_range():
    assert STEP.convert("40ms", None, None) == 40
    assert STEP.convert("60s", None, None) == 60_000
    assert STEP.convert("0.5 s", None, None) == 500
    assert Time().convert("800", None, None) == 800
    assert STEPS.convert("500ms,1s,1000", None, None) == [500, 1000]
    for text in ("39ms", "60.1s"):
        with pytest.raises(click.UsageError, match="from 40 ms to 60 s is possible"):
            STEP.convert(text, None, None)
    for text in ("", "soon", "-1s", "0", "inf", "nan", "1h"):
        with pytest.raises(click.UsageError, match="is not a time"):
            STEP.convert(text, None, None)
    for text in ("1", "2", "0.5", " 19.9 "):
        with pytest.raises(click.UsageError, match=f"write {text.strip()}s for seconds"):
            Time().convert(text, None, None)
    assert Time().convert("19.9ms", None, None) == 19.9
    assert Time().convert("20", None, None) == 20
    with pytest.raises(click.UsageError, match="5 ms is out of range"):
        STEPS.convert("1s,5ms", None, None)


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (JOBS, "0", "'0' is not a whole number from 1 to 256."),
        (JOBS, "x", "'x' is not a whole number from 1 to 256."),
        (JOBS, "1.5", "'1.5' is not a whole number from 1 to 256."),
        (COUNT, "-3", "'-3' is not a whole number of at least 1."),
        (Number(0, 60), "61", "'61' is not a number from 0 to 60."),
        (Number(0, 60), "half", "'half' is not a number from 0 to 60."),
        (Number(0, min_open=True), "0", "'0' is not a number above 0."),
        (Number(0, min_open=True), "nan", "'nan' is not a number above 0."),
        (Number(0, 1, min_open=True, max_open=True), "1", "'1' is not a number between 0 and 1."),
    ],
)
def test_a_number_that_cannot_be_is_told_with_those_that_can(kind, text, told):
    with pytest.raises(click.UsageError) as raised:
        kind.convert(text, None, None)
    assert raised.value.message == told


def test_a_place_in_a_recording_is_told_as_players_do():
    told = ("90", "90s", "1:30", "0:01:30", "1:30.0")
    assert {MOMENT.convert(text, None, None) for text in told} == {90.0}
    assert MOMENT.convert("1:02:03.5", None, None) == 3723.5
    assert MOMENT.convert(".5", None, None) == 0.5
    for text in ("", "-1", "nan", "inf", "1e3", ":30", "1:", "1:2:3:4", "1m30"):
        with pytest.raises(click.UsageError, match=r"write 90 \(seconds\) or 1:30"):
            MOMENT.convert(text, None, None)


@pytest.mark.parametrize("command", ["tune", "sweep"])
@pytest.mark.parametrize("option", ["--policy=greedy", "--step=1s"])
def test_who_tries_several_does_not_take_one_and_forget_it(command, option):
    result = CliRunner().invoke(dragoman, [command, "corpus.tsv", "out", option])
    assert result.exit_code == 2
    assert f"No such option '{option.partition('=')[0]}'" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "corpus.tsv", ""),
        ("evaluate", "corpus.tsv", "--output", ""),
        ("score", ""),
        ("live", ""),
        ("translate", "talk.wav", "--captions", ""),
        ("translate", "talk.wav", "--speak", ""),
        ("translate", "talk.wav", "--setup", ""),
    ],
    ids=" ".join,
)
def test_no_name_is_not_the_folder_that_one_is_in(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(dragoman, arguments)
    assert result.exit_code == 2
    assert "a name is missing" in result.stderr
    assert not list(tmp_path.iterdir())


def test_steps_and_budgets_out_of_range():
    for args in (["evaluate", "--step", "5ms"], ["sweep", "out", "--steps", "5ms"],
                 ["tune", "out", "--steps", "5ms"], ["tune", "out", "--max-latency", "auto"],
                 ["tune", "out", "--max-latency", "0"]):  # fmt: skip
        result = CliRunner().invoke(dragoman, [args[0], "corpus.tsv", *args[1:]])
        assert result.exit_code == 2
        assert f"Invalid value for '{args[-2]}'" in result.stderr


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("greedy;offline", "--policies greedy --policies offline"),
        ("a;b", "--policies a --policies b"),
        ("wait-k:k=1|3, greedy", "--policies 'wait-k:k=1|3' --policies greedy"),
        ("alignatt:last=300 wait-k:k=3", "--policies alignatt:last=300 --policies wait-k:k=3"),
        ("greedy|offline;", "--policies greedy --policies offline"),
    ],
)
@pytest.mark.parametrize("command", ["tune", "sweep"])
def test_several_policies_are_several_options(command, text, way_out):
    result = CliRunner().invoke(dragoman, [command, "corpus.tsv", "out", "--policies", text])
    assert result.exit_code == 2
    assert f"names several policies; repeat the option: {way_out}" in result.stderr


def test_one_policy_may_have_alternatives():
    for text in ("greedy", "wait-k:k=1|3,strict=true", "own.module.Class:word=greedy"):
        assert POLICY_SPECS.convert(text, None, None) == text


def test_replicas_are_a_number_or_two():
    assert REPLICAS.convert("3", None, None) == (3, 3)
    assert REPLICAS.convert("2-8", None, None) == (2, 8)
    for text in ("", "0", "3-2", "-1", "2-", "many", "1001", "1-2-3"):
        with pytest.raises(click.UsageError, match="is not a number of replicas"):
            REPLICAS.convert(text, None, None)


def test_replicas_are_those_of_a_cluster():
    result = CliRunner().invoke(dragoman, ["serve", "--replicas", "2"])
    assert "give --cluster, too" in str(result.exception)


@pytest.mark.parametrize("command", ["evaluate", "tune", "sweep"])
@pytest.mark.parametrize(
    "option",
    [
        ("--limit", "0"),
        ("--limit", "-1"),
        ("--jobs", "0"),
        ("--jobs", "100000"),
        ("--threads", "-3"),
        ("--threads", "100000"),
        ("--beams", "0"),
    ],
    ids=" ".join,
)
def test_out_of_range(tmp_path, command, option):
    out = [str(tmp_path / "out")] if command != "evaluate" else []
    result = CliRunner().invoke(dragoman, [command, str(tmp_path / "corpus.tsv"), *out, *option])
    assert result.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in result.stderr
    assert f"'{option[1]}' is not a whole number " in result.stderr
    assert not list(tmp_path.iterdir())

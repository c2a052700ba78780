"""Bars are for people, and none is left standing before an error."""

import pytest

from dragoman.audio import source
from dragoman.cli import main
from dragoman.cli.progress import clip_progress
from dragoman.cli.train import Show
from tests.cli.commands import dragoman
from tests.cli.terminal import terminal

FAULTS = [
    (("voice", "nothing.tsv", "out"), "dragoman: There is no file nothing.tsv."),
    (
        ("distill", "nothing", "pack", "out"),
        "dragoman: nothing is not a run: it has no recipe.yaml.",
    ),
]


@pytest.mark.parametrize(("args", "sentence"), FAULTS)
def test_what_is_wrong_with_the_input_is_all_that_is_told(args, sentence, capsys):
    if args[0] == "distill":
        pytest.importorskip("torch")
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_nor_does_a_terminal_show_more():
    args, sentence = FAULTS[0]
    with terminal(*args) as screen:
        assert screen.rest() == 2
    assert screen.lines == [sentence]


def test_where_nobody_sees_a_bar_a_recording_is_not_decoded_to_know_its_length(monkeypatch):
    monkeypatch.setattr(source, "duration", lambda path: pytest.fail("it was asked for"))
    talk = "dragoman/talks/report.en.ogg"
    system = ("--model", "tests.talkers:sentences", "--policy", "greedy")
    assert dragoman("translate", talk, *system).returncode == 0


@pytest.mark.parametrize(
    ("args", "work"),
    [
        (("voice", "nothing.tsv", "out"), "dragoman.train.voicing.corpus.voice_text"),
        (("distill", "nothing", "pack", "out"), "dragoman.train.distill.distill"),
    ],
)
def test_who_stops_long_work_is_told_that_it_goes_on(args, work, monkeypatch, capsys):
    pytest.importorskip("torch")

    def stopped(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(work, stopped)
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "Stopped. The same command goes on from here."


def test_brackets_in_a_name_are_the_name(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with clip_progress("[draft].tsv") as on_clip:
        on_clip(1, 1)
    assert "[draft].tsv" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["note", "preparing"])
def test_training_does_not_end_for_brackets_in_what_it_tells(kind, capsys):
    with Show() as show:
        show({"kind": kind, "text": "reading packs[/old]"})
    assert "packs[/old]" in capsys.readouterr().err

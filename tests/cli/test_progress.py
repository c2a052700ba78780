"""Bars are for people, and none is left standing before an error."""

import pytest

from dragoman.cli import main
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

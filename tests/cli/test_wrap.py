"""Lines on a terminal break between words, however the text comes and whatever it is written in."""

import unicodedata
from itertools import pairwise

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.wrap import Wrapped, filled

WORDS = st.text(alphabet="abcdefghij,.é", min_size=1, max_size=12)


def shown(text, columns, lines=60):
    """What a terminal makes of a text."""
    screen = pyte.Screen(columns, lines)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


@given(st.lists(WORDS, min_size=1, max_size=40), st.integers(13, 40), st.integers(1, 7))
def test_no_word_is_broken_and_none_is_lost(words, columns, size):
    """The terminal itself has nothing to break: what it shows is what was written."""
    text = " ".join(words)
    written = []
    wrapped = Wrapped(written.append, lambda: columns)
    pieces = [f" {word}" if n else word for n, word in enumerate(words)]
    for start in range(0, len(pieces), size):
        wrapped.write("".join(pieces[start : start + size]))
    lines = "".join(written).split("\n")
    assert " ".join(lines) == text
    assert all(len(line) <= columns for line in lines)
    assert shown("".join(written), columns) == lines
    # Greedy: no first word of a line would have found room, with a column to spare, above.
    for above, below in pairwise(lines):
        assert len(above) + 1 + len(below.split(" ")[0]) > columns - 1


def test_a_late_comma_stays_with_its_word():
    written = []
    wrapped = Wrapped(written.append, lambda: 12)
    for piece in ("Hello", " world", ",", " again", " and", "."):
        wrapped.write(piece)
    assert "".join(written) == "Hello world,\nagain and."
    assert filled("Hello worlds", 12) == "Hello\nworlds"  # it would fill the line


def test_a_line_that_ends_begins_anew():
    assert filled("one two three\nfour five\n", 10) == "one two\nthree\nfour five\n"


def test_lines_that_go_on_are_indented_where_there_is_room():
    assert filled("one two three four", 12, indent=4) == "one two\n    three\n    four"
    assert filled("one two three", 8, indent=4) == "one two\n three"
    assert filled("one two three", 7, indent=4) == "one\ntwo\nthree"


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("漢字仮名交じり文です。次の文。", 11, ["漢字仮名交", "じり文で", "す。次の", "文。"]),
        ("これは「日本」です", 9, ["これは", "「日本」", "です"]),
        ("我们用Python写程序", 11, ["我们用", "Python写程", "序"]),
    ],
)
def test_scripts_without_spaces_break_between_characters(text, columns, lines):
    found = filled(text, columns).split("\n")
    assert found == lines
    for line in found:
        assert sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= columns


def test_accents_and_vowel_signs_take_no_room():
    word = "e\u0301" * 10  # ten letters, twenty characters
    assert filled(f"{word} {word}", 22) == f"{word} {word}"
    arabic = "مُحَمَّد"  # four letters, four vowel signs
    assert filled(f"{arabic} {arabic}", 10) == f"{arabic} {arabic}"
    assert filled(f"{arabic} {arabic}", 9) == f"{arabic}\n{arabic}"


def test_a_word_wider_than_the_terminal_is_cut_at_its_edge():
    found = filled(f"ab {'x' * 25} cd", 10)
    assert found == f"ab\n{'x' * 10}\n{'x' * 10}\nxxxxx cd"
    accented = "e\u0301" * 15
    lines = filled(accented, 10).split("\n")
    assert lines == ["e\u0301" * 10, "e\u0301" * 5]  # no accent without its letter


def test_a_terminal_that_becomes_narrower_is_followed():
    columns, written = [40], []
    wrapped = Wrapped(written.append, lambda: columns[0])
    wrapped.write("one two three four five six")  # 27 columns
    columns[0] = 20  # laid out anew by the terminal: 7 on the last line
    wrapped.write(" seven eight nine")
    assert "".join(written) == "one two three four five six seven eight\nnine"
    columns[0] = 3
    wrapped.write(" ten")
    assert "".join(written).endswith("nine\nten")

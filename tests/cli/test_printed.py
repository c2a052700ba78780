"""Both languages as lines: a sentence of the speaker comes before its translation."""

import json
from itertools import chain

import numpy as np
import pytest

from dragoman.audio.chunk import Chunk
from dragoman.cli.printed import WAIT_MS, JsonLines, PairedText, PlainText
from dragoman.interpreter import Update
from dragoman.setup import Setup
from dragoman.trace import Hearing


def printed(*steps, each_ms=1000.0):
    """The lines after each step of (transcript, said, and how many seconds ago either was spoken,
    if it is known), and those at the end."""
    lines, seen = [], []
    printer = PairedText(lines.append, Setup(source="en", target="de"))
    chunk = Chunk(np.zeros(0, np.float32), last=False)
    for number, (transcript, said, *ago) in enumerate(steps, 1):
        now = number * each_ms
        words = tuple(f" {word}" for word in said.split())
        spoken = tuple(f" {word}" for word in transcript.split())
        hearing = Hearing(now, now, now, now)
        ago_ms = [1000 * seconds for seconds in ago] or [None, None]
        update = Update(words, "", hearing, ago_ms[1], spoken, ago_ms[0])
        printer.take(chunk, update)
        seen.append("".join(lines).splitlines())
        lines.clear()
    printer.end()
    return [*seen, "".join(lines).splitlines()]


def test_what_has_waited_is_told_between_two_sentences_of_one_chunk():
    happened = []
    printer = PlainText(happened.append, happened.append, "en")
    said = (" Good", " day.", " Today", " we")
    now = Hearing(*(1000.0,) * 4)
    printer.take(Chunk(np.zeros(0, np.float32), last=False), Update(said, "", now))
    assert happened == [True, "Good day.\n", False, True, "Today we"]
    printer.end()
    assert happened[5:] == ["\n", False]


@pytest.mark.parametrize(("language", "lines"), [("de", 1), ("en", 2)])
def test_a_date_is_not_torn(language, lines):
    written = []
    printer = PlainText(written.append, lambda opens: None, language)
    said = tuple(f" {word}" for word in ["Am", "8.", "September", "war", "es", "soweit."])
    now = Hearing(*(1000.0,) * 4)
    printer.take(Chunk(np.zeros(0, np.float32), last=False), Update(said, "", now))
    assert len("".join(written).splitlines()) == lines


def test_a_shortened_word_ends_no_line():
    written = []
    printer = PlainText(written.append, lambda opens: None, "de")
    text = "Das sind z. B. ca. 5 Mio. Euro. Dann"
    said = tuple(f" {word}" for word in text.split())
    now = Hearing(*(1000.0,) * 4)
    printer.take(Chunk(np.zeros(0, np.float32), last=False), Update(said, "", now))
    assert "".join(written).splitlines() == ["Das sind z. B. ca. 5 Mio. Euro.", "Dann"]


def test_a_translation_waits_for_the_end_of_the_speakers_sentence():
    """The end that the translation has heard is taken back: the sentence goes on."""
    steps = [("We speak", "Wir reden darüber."), ("about it", ""), ("at home.", "Zu")]
    steps += [("Then", "Hause."), ("we go.", "Dann gehen wir.")]
    lines = printed(*steps)
    assert lines[:2] == [[], []]
    assert [*chain(*lines[2:])] == [
        *("en: We speak about it at home.", "de: Wir reden darüber."),
        *("de: Zu Hause.", "en: Then we go.", "de: Dann gehen wir."),
    ]


def test_it_is_printed_at_once_where_what_it_is_of_is_printed():
    assert printed(("Yes, yes.", "Ja.", 1, 1), ("", "Ja, ja.", 0, 2)) == [
        ["en: Yes, yes.", "de: Ja."],
        ["de: Ja, ja."],
        [],
    ]


def test_it_waits_where_nothing_of_what_it_is_of_is_written_down_yet():
    """Whisper writes down what is spoken with the translation, or after it."""
    steps = [("Yes.", "Ja.", 0.5, 0.5), ("", "Und nun.", 0, 0.5), ("And now.", "", 1.5, 0)]
    assert printed(*steps) == [
        ["en: Yes.", "de: Ja."],
        [],
        ["en: And now.", "de: Und nun."],
        [],
    ]


def test_the_first_sentence_is_waited_for_though_nothing_of_it_is_written_down_yet():
    assert printed(("", "Ja."), ("", ""), ("Yes.", "")) == [
        *([], []),
        ["en: Yes.", "de: Ja."],
        [],
    ]
    assert printed(("", "Ja."), *[("", "")] * 4)[4] == ["de: Ja."]  # but not for long


def test_sentences_that_come_at_once_are_paired():
    assert printed(("Yes. Thank you.", "Ja. Danke."), ("So", "")) == [
        ["en: Yes.", "de: Ja.", "en: Thank you.", "de: Danke."],
        [],
        ["en: So"],
    ]


def test_what_was_spoken_before_need_not_be_waited_for():
    assert printed(("Yes. And", "", 0.5, 0), ("so", "Ja.", 0.5, 1.5), ("on.", "", 0.5, 0)) == [
        ["en: Yes."],
        ["de: Ja."],
        ["en: And so on."],
        [],
    ]


@pytest.mark.parametrize("seconds", [3, 4])
def test_a_translation_does_not_wait_for_long(seconds):
    """A recogniser may write no full stops: then what there is comes before the translation."""
    assert WAIT_MS == 4000.0
    steps = [("so it goes", "So geht es."), *[("on and on", "")] * seconds]
    waits = seconds < 4
    shown = printed(*steps)
    spoken = " ".join(["en: so it goes", *["on and on"] * seconds])
    assert shown[seconds] == ([] if waits else [spoken, "de: So geht es."])
    assert shown[-1] == ([spoken, "de: So geht es."] if waits else [])


def test_nothing_is_printed_twice_where_sentences_never_end():
    steps = [(f"a{n} b{n}", "Ja." if n % 3 else "") for n in range(20)]
    lines = [*chain(*printed(*steps))]
    spoken = " ".join(line.removeprefix("en: ") for line in lines if line.startswith("en: "))
    assert spoken == " ".join(f"a{n} b{n}" for n in range(20))
    assert sum(line == "de: Ja." for line in lines) == 13
    assert lines[0].startswith("en: ")


def through_english(said=(), transcript=(), heard_ms=1000.0):
    """An update of French that is translated by way of English."""
    now = Hearing(*(heard_ms,) * 4)
    return Update(said, "", now, None, transcript, language="fr", through="en")


def test_a_line_is_called_what_it_is():
    lines = []
    printer = PairedText(lines.append, Setup(source="fr", target="de"))
    chunk = Chunk(np.zeros(0, np.float32), last=False)
    printer.take(chunk, through_english((" Guten", " Tag."), (" Good", " day.")))
    printer.end()
    assert lines == ["en: Good day.\n", "de: Guten Tag.\n"]


def test_a_sentence_ends_as_its_own_language_ends_one():
    """German has dates in which English would end."""
    lines = []
    printer = PairedText(lines.append, Setup(source="de", target="es"))
    spoken = tuple(f" {word}" for word in ["Room", "8.", "It", "is", "here."])
    printer.take(Chunk(np.zeros(0, np.float32), last=False), through_english((), spoken))
    printer.end()
    assert lines == ["en: Room 8.\n", "en: It is here.\n"]


@pytest.mark.parametrize("both", [True, False])
def test_a_json_line_says_which_language_its_transcript_is_in(both):
    rows = []
    listener = JsonLines(rows.append, both)
    listener.take(Chunk(np.zeros(0, np.float32), last=False), through_english((" Tag",), (" day",)))
    row = json.loads(rows[0])
    assert row["language"] == "fr"
    assert row.get("transcript_language") == ("en" if both else None)

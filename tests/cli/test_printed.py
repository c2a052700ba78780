"""Both languages as lines: a sentence of the speaker comes before its translation."""

import json

import numpy as np
import pytest

from dragoman.audio.chunk import Chunk
from dragoman.cli.printed import WAIT_MS, JsonLines, PairedText, PlainText
from dragoman.interpreter import Update
from dragoman.setup import Setup
from dragoman.trace import Hearing


def printed(*steps, each_ms=1000.0):
    """The lines after each step of (transcript, said), and those at the end."""
    lines, seen = [], []
    printer = PairedText(lines.append, Setup(source="en", target="de"))
    chunk = Chunk(np.zeros(0, np.float32), last=False)
    for number, (transcript, said) in enumerate(steps, 1):
        now = number * each_ms
        words = tuple(f" {word}" for word in said.split())
        spoken = tuple(f" {word}" for word in transcript.split())
        printer.take(chunk, Update(words, "", Hearing(now, now, now, now), None, spoken))
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
    assert printed(
        ("We speak", "Wir reden darüber."),
        ("about it", ""),
        ("at home.", "Zu"),
        ("Then", "Hause."),
        ("we go.", "Dann gehen wir."),
    ) == [
        [],
        [],
        ["en: We speak about it at home.", "de: Wir reden darüber."],
        [],  # it cannot be told from the translation of what is open
        ["en: Then we go.", "de: Zu Hause.", "de: Dann gehen wir."],
        [],
    ]


def test_it_is_printed_at_once_where_nothing_of_the_speakers_is_open():
    assert printed(("Yes.", "Ja."), ("", "Ja, ja.")) == [
        ["en: Yes.", "de: Ja."],
        ["de: Ja, ja."],
        [],
    ]


def test_the_first_sentence_is_waited_for_though_nothing_of_it_is_written_down_yet():
    assert printed(("", "Ja."), ("", ""), ("Yes.", ""), ("", "Ja, ja.")) == [
        *([], []),
        ["en: Yes.", "de: Ja."],
        ["de: Ja, ja."],
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
    assert printed(("Yes. And", ""), ("so", "Ja."), ("on.", "")) == [
        ["en: Yes."],
        ["de: Ja."],
        ["en: And so on."],
        [],
    ]


@pytest.mark.parametrize(("seconds", "waits"), [(3, True), (4, False)])
def test_a_translation_does_not_wait_for_long(seconds, waits):
    """A recogniser may write no full stops."""
    assert WAIT_MS == 4000.0
    steps = [("so it goes", "So geht es."), *[("on and on", "")] * seconds]
    shown = printed(*steps)
    assert shown[seconds] == ([] if waits else ["de: So geht es."])
    assert shown[-1][0].startswith("en: so it goes on and on")
    assert shown[-1][1:] == (["de: So geht es."] if waits else [])


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

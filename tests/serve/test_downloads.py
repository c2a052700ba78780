"""What was said in a room, as files, while somebody still speaks."""

import asyncio
import random
import re

import pytest

from dragoman.serve import rooms
from dragoman.serve.downloads import FILES, Cues, Files, timed
from dragoman.serve.protocol import Said, Summary, Talk, Told, Transcript
from dragoman.text.captions import TimedWord, make_cues
from tests.serve.guests import TOKEN, begin, finish, open_room, speaks
from tests.talkers import SPOKEN, TEXT


def file_of(name, talk):
    return asyncio.run(Files().get(name, len(talk.events), lambda: talk))


def get(web, room, name, token="listener_token"):
    headers = {"Authorization": f"Bearer {room[token]}"}
    return web.get(f"/v1/rooms/{room['room']}/{name}", headers=headers)


def lines_of(captions):
    """The words of a caption file, and nothing else."""
    blocks = captions.removeprefix("WEBVTT\n\n").split("\n\n")
    return " ".join(" ".join(block.splitlines()[2:]) for block in blocks).strip()


def test_files_are_whole_in_mid_talk_and_at_the_end(opened):
    _, web = opened(model="tests.talkers:bilingual")
    room = open_room(web)
    assert get(web, room, "translation.srt").text == ""
    with speaks(web, room) as mouth:
        speaker = begin(mouth, room, transcript=True)
        for _ in range(12):
            speaker.speak()
        while len(speaker.words) < 10:
            speaker.next()
        half = get(web, room, "translation.txt").text.strip()
        assert half.split() == TEXT.split()[: len(half.split())]
        assert len(half.split()) >= 10
        assert lines_of(get(web, room, "translation.srt").text) in TEXT
        finish(speaker, 40)
    assert get(web, room, "translation.txt").text == TEXT + "\n"
    assert get(web, room, "source.txt").text == SPOKEN + "\n"
    for kind in ("srt", "vtt"):
        assert lines_of(get(web, room, f"translation.{kind}").text) == TEXT
        assert lines_of(get(web, room, f"source.{kind}").text) == SPOKEN
    srt = get(web, room, "translation.srt", "speaker_token")
    assert re.match(r"1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\n", srt.text)
    assert srt.headers["content-type"].startswith("application/x-subrip")
    assert srt.headers["cache-control"] == "no-store"


def test_files_are_for_those_with_a_token(opened):
    _, web = opened(token=TOKEN)
    room = open_room(web, TOKEN)
    other = open_room(web, TOKEN)
    path = f"/v1/rooms/{room['room']}/translation.txt"
    assert web.get(path).status_code == 401
    for token in (other["listener_token"], other["speaker_token"], TOKEN):
        assert web.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert get(web, room, "translation.txt").status_code == 200
    assert get(web, room, "translation.exe").status_code == 404


def test_a_word_lasts_until_the_next_but_not_through_a_pause():
    said = [
        Said(1, " One", 1000.0, 0.0, None),
        Said(2, " two", 1200.0, 0.0, None),
        Said(3, ",", 9000.0, 0.0, None),
    ]
    assert timed(said) == [
        TimedWord(" One", 1.0, 1.2),
        TimedWord(" two", 1.2, pytest.approx(1.2 + 4 / 12)),
        TimedWord(",", 9.0, pytest.approx(9.0 + 1 / 12), joined=True),
    ]


def test_the_last_talk_is_the_one_that_is_saved(opened):
    _, web = opened(model="tests.talkers:sentences")
    room = open_room(web)
    for steps in (40, 5):
        with speaks(web, room) as mouth:
            finish(begin(mouth, room), steps)
    assert get(web, room, "translation.txt").text == TEXT + "\n"  # the flush says the rest


def test_a_pause_after_a_sentence_begins_a_paragraph():
    said = [
        Said(1, " One.", 1000.0, 0.0, None),
        Said(2, " Two", 9000.0, 0.0, None),
        Said(3, " three.", 19000.0, 0.0, None),
    ]
    told = Told(4, (Talk(1, "de", "en"), *said, Summary(3, 0.0, None, 0.0, None)))
    assert file_of("translation.txt", told) == "One.\n\nTwo three.\n"


def test_the_language_of_the_speaker_is_the_one_that_was_heard():
    """Japanese lines are half as long; that they are shows which language was taken."""
    text = "漢字仮名" * 8
    written = [Transcript(i + 1, c, 100.0 * i, "ja") for i, c in enumerate(text)]
    told = Told(9, (Talk(1, None, "en"), *written))
    lines = file_of("source.srt", told).splitlines()
    assert max(len(line) for line in lines if "漢" in line) <= 21


def test_the_language_that_the_speaker_has_named_counts_before_the_one_that_was_heard():
    written = [Transcript(i + 1, c, 100.0 * i, "en") for i, c in enumerate("漢字仮名" * 8)]
    told = Told(9, (Talk(1, "ja", "en"), *written))
    lines = file_of("source.srt", told).splitlines()
    assert max(len(line) for line in lines if "漢" in line) <= 21


def test_every_file_is_empty_or_a_header_before_a_talk():
    empty = Told(0, ())
    assert {file_of(name, empty) for name in FILES} == {"", "WEBVTT\n\n"}


def test_the_cues_of_a_text_that_grows_are_those_of_the_whole():
    dice, moment, words = random.Random(13), 0.0, []
    for _ in range(150):
        moment += dice.choice([0.0, 0.2, 0.3, 0.5, 2.5])
        text = "".join(dice.choice("aeinrst") for _ in range(dice.randint(1, 12)))
        words.append(TimedWord(f" {text}{dice.choice(['', '', ',', '.'])}", moment, moment + 0.2))
    cues, come = Cues("en"), 0
    while come < len(words):
        come += dice.randint(0, 9)
        assert cues.of(words[:come]) == list(make_cues(words[:come], "en"))


def test_a_file_is_made_once_for_all_who_ask(monkeypatch):
    room, read = rooms.Room("abcdefgh"), []
    told = Told(2, (Talk(1, "de", "en"), Said(1, " One.", 1000.0, 0.0, None)))
    monkeypatch.setattr(rooms, "_read", lambda entries: read.append(entries) or told)

    async def ask():
        asked = await asyncio.gather(*(room.file("translation.srt") for _ in range(30)))
        assert len(read) == 1
        room._entries.append("another")
        await room.file("translation.srt")
        assert len(read) == 2
        return set(asked)

    assert asyncio.run(ask()) == {"1\n00:00:01,000 --> 00:00:01,840\nOne.\n\n"}


def test_what_was_written_in_english_is_laid_out_as_english():
    """Of Japanese that is translated by way of it: lines of 42 characters, and not of sixteen."""
    words = ["We", "will", "hold", "a", "long", "meeting", "in", "Tokyo."]
    written = [Transcript(n, f" {one}", 500.0 * n, "en") for n, one in enumerate(words, 1)]
    talk = Told(len(words) + 1, (Talk(1, "ja", "de"), *written))
    assert file_of("source.srt", talk).strip().splitlines()[2:] == [" ".join(words)]

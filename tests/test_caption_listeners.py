"""Captions as a talk goes on: the translation, the speaker's own words, or both."""

import numpy as np
import pytest

from dragoman import listeners
from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Update
from dragoman.trace import Hearing

TALK = [  # (heard, said, lag, transcript)
    (1000, (), None, ()),
    (3000, (" Good", " morning"), 1500.0, (" Guten", " Morgen")),
    (4000, (".",), 2000.0, (".",)),
    (9000, (" We", " begin", " with", " the", " first", " report"), 2000.0, ()),
    (10000, (".",), 2000.0, (" Wir", " beginnen", " mit", " dem", " Bericht", ".")),
]


def shown(listener):
    chunk = Chunk(np.zeros(0, np.float32), last=False)
    with listener as file:
        for heard, said, lag, transcript in TALK:
            hearing = Hearing(heard, heard, heard + 40_000.0, heard + 50_000.0)  # a slow machine
            file.take(chunk, Update(said, "", hearing, lag, transcript))


def cues(path):
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [tuple(block.split("\n")[1:]) for block in blocks]


def test_the_translation_stands_where_it_was_spoken_however_slow_the_machine(tmp_path):
    shown(listeners.captions(tmp_path / "a.srt", "en"))
    (first, one), (second, two) = cues(tmp_path / "a.srt")
    assert (one, two) == ("Good morning.", "We begin with the first report.")
    assert first.startswith("00:00:00,9")  # around 1.5 s: 13 letters at 12 a second
    assert "00:00:05" < second < "00:00:07"


def test_the_speakers_words_in_a_file_of_their_own(tmp_path):
    shown(listeners.source_captions(tmp_path / "a.srt", "de"))
    found = cues(tmp_path / "a.srt")
    assert [cue[1] for cue in found] == ["Guten Morgen.", "Wir beginnen mit dem Bericht."]
    assert found[0][0].startswith("00:00:00,9")  # in the middle of three seconds, as a guess


def test_both_in_one_file_each_above_its_own(tmp_path):
    shown(listeners.captions(tmp_path / "a.srt", "en", source="de"))
    assert [cue[1:] for cue in cues(tmp_path / "a.srt")] == [
        ("Good morning.", "Guten Morgen."),
        ("We begin with the first report.", "Wir beginnen mit dem Bericht."),
    ]


def test_the_speakers_words_stand_where_they_were_spoken_if_that_is_known(tmp_path):
    """They were told after five seconds, and heard two seconds before."""
    path = tmp_path / "a.srt"
    update = Update((), "", Hearing(5000, 5000, 5000, 5000), None, (" Guten", " Morgen"), 2000.0)
    with listeners.source_captions(path, "de") as file:
        file.take(Chunk(np.zeros(0, np.float32), last=False), update)
    ((times, text),) = cues(path)
    assert text == "Guten Morgen"
    assert times.startswith("00:00:02,4")  # around 3 s: 13 letters at 12 a second


@pytest.mark.parametrize("both", [False, True])
def test_a_language_that_is_heard_only_later_is_laid_out_as_it_is_written(tmp_path, both):
    """Japanese, of which nobody knew: lines of sixteen characters, broken where it reads well."""
    path, text = tmp_path / "a.srt", "今日は東京で会議があります。明日は京都へ行く予定です。"
    how = listeners.captions(path, "en", source="en") if both else None
    with how or listeners.source_captions(path, "en") as file:
        for number, letter in enumerate(text, 1):
            now = Hearing(*(500.0 * number,) * 4)
            update = Update((), "", now, None, (letter,), 200.0, language="ja")
            file.take(Chunk(np.zeros(0, np.float32), last=False), update)
    lines = [line for cue in cues(path) for line in cue[1:]]
    assert "".join(lines) == text
    assert max(map(len, lines)) <= 16
    assert "今日は東京で会議があります。" in "".join(lines[:2])
    assert any(line.endswith("。") for line in lines[:-1])


@pytest.mark.parametrize("kind", [listeners.captions, listeners.source_captions])
def test_what_a_crash_left_is_gone_on_with(tmp_path, kind):
    path = tmp_path / "a.srt"
    shown(kind(path, "en"))
    before = path.read_text()
    path.write_text(before + "3\n00:00:1")
    shown(kind(path, "en", resume=True))
    assert path.read_text().startswith(before)
    assert len(cues(path)) == 4


@pytest.mark.parametrize(
    ("last_word", "source", "seconds"),
    [(" sentence.", None, 2), (" word", None, 8), (" sentence.", "de", 8)],
)
def test_the_last_cue_before_a_pause_does_not_wait_for_its_end(
    tmp_path, last_word, source, seconds
):
    """Applause, music: who watches live saw the last sentence when somebody spoke again."""
    path, chunk = tmp_path / "a.srt", Chunk(np.zeros(0, np.float32), last=False)
    said = (" This", " is", " the", " last", last_word)
    with listeners.captions(path, "en", source=source) as file:
        file.take(chunk, Update(said, "", Hearing(2000, 2000, 2000, 2000), 500.0))
        for silent in range(1, 15):
            now = 2000.0 + 1000 * silent
            hearing = Hearing(now, now, now, now)
            file.take(chunk, Update((), "", hearing, silence_ms=1000.0 * silent))
            assert bool(path.read_text()) == (silent >= seconds), silent
        file.take(chunk, Update((" And", " on."), "", Hearing(*[20_000] * 4), 500.0))
    assert [" ".join(cue[1:]) for cue in cues(path)] == ["".join(said).strip(), "And on."]


def test_words_that_are_said_late_are_not_torn_by_a_pause(tmp_path):
    """A policy says in the silence what was spoken before it."""
    path, chunk = tmp_path / "a.srt", Chunk(np.zeros(0, np.float32), last=False)
    words = [" Ladies.", " And", " gentlemen,", " good", " morning", " to", " you", " all", "."]
    with listeners.captions(path, "en") as file:
        for count, word in enumerate(words):
            now = 1000.0 * (count + 1)
            hearing = Hearing(now, now, now, now)
            file.take(chunk, Update((word,), "", hearing, None, silence_ms=now))
    (only,) = cues(path)
    assert " ".join(only[1:]) == "Ladies. And gentlemen, good morning to you all."


@pytest.mark.parametrize("both", [False, True])
def test_a_transcript_in_english_is_laid_out_as_english(tmp_path, both):
    """Of Japanese that is translated by way of it: lines of 42 characters, and not of sixteen."""
    path, text = tmp_path / "a.srt", "We will hold a long meeting in Tokyo."
    how = listeners.captions(path, "de", source="ja") if both else None
    with how or listeners.source_captions(path, "ja") as file:
        for number, word in enumerate(text.split(), 1):
            now = Hearing(*(500.0 * number,) * 4)
            words = (f" {word}",)
            update = Update((), "", now, None, words, 200.0, language="ja", through="en")
            file.take(Chunk(np.zeros(0, np.float32), last=False), update)
    assert [cue[1:] for cue in cues(path)] == [(text,)]

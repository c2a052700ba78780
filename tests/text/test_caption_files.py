"""Files are read back by a parser of the tests' own, and by ffmpeg where it is installed."""

import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.caption_files import CaptionFile, srt_block, vtt_block
from dragoman.text.captions import Cue, TimedWord, make_cues

TIME = re.compile(r"(?:(\d\d+):)?([0-5]\d):([0-5]\d)[,.](\d{3})")
TALK = "Ladies & gentlemen, <this> is a talk. It goes on --> and on, as talks do, for a while."


def seconds(clock):
    hours, minutes, whole, milli = map(int, TIME.fullmatch(clock).groups("0"))
    return hours * 3600 + minutes * 60 + whole + milli / 1000


def parse(text):
    """A strict reader of both formats."""
    if text.startswith("WEBVTT\n\n"):
        text, decode = text.removeprefix("WEBVTT\n\n"), unescape
    else:
        decode = str
    cues = []
    assert text == "" or text.endswith("\n\n")
    for number, block in enumerate(text.split("\n\n")[:-1], start=1):
        head, times, *lines = block.split("\n")
        assert head == str(number)
        start, end = times.split(" --> ")
        cues.append(Cue(seconds(start), seconds(end), tuple(map(decode, lines))))
    return cues


def words(text, pace=0.3):
    return [TimedWord(w, i * pace, (i + 1) * pace) for i, w in enumerate(text.split())]


def near(cues):
    return [(round(c.start, 3), round(c.end, 3), c.lines) for c in cues]


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text("ab<>&;é你'\"", min_size=1, max_size=9), st.floats(0, 5000))),
    st.sampled_from([".srt", ".vtt"]),
)
def test_cues_come_back(said, suffix):
    now, timed = 0.0, []
    for text, step in said:
        now += step
        timed.append(TimedWord(text, now, now))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        with CaptionFile(path) as file:
            for word in timed:
                file.say(word)
        assert near(parse(path.read_text(encoding="utf-8"))) == near(make_cues(timed))


def test_exactly_as_the_formats_have_it():
    cue = Cue(3661.0005, 3662.25, ("a < b & c",))
    assert srt_block(7, cue) == "7\n01:01:01,000 --> 01:01:02,250\na < b & c\n\n"
    assert vtt_block(7, cue) == "7\n01:01:01.000 --> 01:01:02.250\na &lt; b &amp; c\n\n"


@pytest.mark.parametrize("suffix", [".srt", ".VTT"])
def test_the_file_is_valid_after_every_word(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    file = CaptionFile(path)
    counts = []
    for word in words(TALK):
        file.say(word)
        counts.append(len(parse(path.read_text(encoding="utf-8"))))
    assert counts == sorted(counts)
    assert counts[-1] >= 1
    file.close()
    file.close()
    assert len(parse(path.read_text(encoding="utf-8"))) == counts[-1] + 1


def test_an_error_keeps_what_was_said(tmp_path):
    def fail():
        with CaptionFile(tmp_path / "a.srt") as file:
            file.say(TimedWord("hello", 0, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert parse((tmp_path / "a.srt").read_text())[0].lines == ("hello",)


def test_an_arrow_in_the_text_is_no_time(tmp_path):
    with CaptionFile(tmp_path / "a.srt") as file:
        file.say(TimedWord("00:00:01,000 --> 00:00:02,000", 0, 1))
    assert parse((tmp_path / "a.srt").read_text())[0].lines == ("00:00:01,000 → 00:00:02,000",)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize(("suffix", "other"), [(".srt", "webvtt"), (".vtt", "srt")])
def test_ffmpeg_reads_the_same(tmp_path, suffix, other):
    path = tmp_path / f"a{suffix}"
    talk = TALK.replace("-->", "on")
    with CaptionFile(path) as file:
        for word in words(talk):
            file.say(word)
    command = ["ffmpeg", "-v", "error", "-i", path, "-f", other, "pipe:1"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times = [seconds(clock) for clock in re.findall(r"[\d:]+[,.]\d{3}", seen)]
    assert times == [round(t, 3) for cue in make_cues(words(talk)) for t in (cue.start, cue.end)]


@pytest.mark.parametrize("name", ["a.txt", "a", "no/a.srt"])
def test_places_where_nothing_can_be_written(tmp_path, name):
    with pytest.raises(DragomanError, match=r"a \.srt or a \.vtt file|cannot be written"):
        CaptionFile(tmp_path / name)

"""Files are read back by a parser of the tests' own, and by ffmpeg where it is installed."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.caption_files import (
    MOST_CUT_OFF,
    CaptionFile,
    captions_of,
    read_captions,
    srt_block,
    vtt_block,
)
from dragoman.text.captions import Cue, TimedWord, make_cues

TIME = re.compile(r"(?:(\d\d+):)?([0-5]\d):([0-5]\d)[,.](\d{3})")
TALK = "Ladies & gentlemen, <this> is a talk. It goes on --> and on, as talks do, für a while."


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
        assert seconds(start) <= seconds(end)
        cues.append(Cue(seconds(start), seconds(end), tuple(map(decode, lines))))
    return cues


def words(text, pace=0.3):
    return [TimedWord(w, i * pace, (i + 1) * pace) for i, w in enumerate(text.split())]


def near(cues):
    return [(round(c.start, 3), round(c.end, 3), c.lines) for c in cues]


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_whole_file_of_cues_is_as_one_that_is_written_as_it_goes(tmp_path, suffix):
    said = ["One", "two.", "Three", "four."]
    words = [TimedWord(text, at, at + 0.5) for at, text in enumerate(said)]
    with CaptionFile(tmp_path / f"a{suffix}") as file:
        for word in words:
            file.say(word)
    text = (tmp_path / f"a{suffix}").read_text(encoding="utf-8")
    assert captions_of(suffix, make_cues(words)) == text


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


def test_a_pipe_gets_every_cue(tmp_path):
    """As a broadcaster's encoder reads them."""
    path = tmp_path / "talk.srt"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with CaptionFile(path) as file:
        for word in words(TALK):
            file.say(word)
    assert parse(os.read(reader, 1 << 16).decode()) == parse(written(tmp_path / "b.srt"))
    os.close(reader)
    with pytest.raises(DragomanError, match="a pipe keeps nothing"):
        CaptionFile(path, resume=True)


def written(path):
    """The captions of the talk as a file has them."""
    with CaptionFile(path) as file:
        for word in words(TALK):
            file.say(word)
    return path.read_text(encoding="utf-8")


def test_an_error_keeps_what_was_said(tmp_path):
    def fail():
        with CaptionFile(tmp_path / "a.srt") as file:
            file.say(TimedWord("hello", 0, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert parse((tmp_path / "a.srt").read_text())[0].lines == ("hello",)


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_what_was_written_is_read_as_it_was_said(tmp_path, suffix):
    path, text = tmp_path / f"talk{suffix}", "Ladies & gentlemen, <this> is &amp; a talk."
    with CaptionFile(path) as file:
        for number, word in enumerate(text.split()):
            file.say(TimedWord(word, 0.3 * number, 0.3 * number + 0.3))
    (cue,) = read_captions(path).cues
    assert " ".join(cue.lines) == text


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


# Going on after a crash.


def write(path, text, **how):
    with CaptionFile(path, **how) as file:
        for word in words(text):
            file.say(word)


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_file_cut_off_anywhere_is_gone_on_with(tmp_path, suffix):
    """Killed after any byte: the whole cues stay as they were, numbers and times go on."""
    path = tmp_path / f"a{suffix}"
    write(path, TALK)
    whole = path.read_bytes()
    before = parse(whole.decode())
    assert len(before) >= 2
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        write(path, "Here I am again.", resume=True)
        cues = parse(path.read_text(encoding="utf-8"))  # checks the numbers
        kept = len(cues) - 1
        assert cues[:kept] == before[:kept]
        end = before[kept - 1].end if kept else 0.0
        assert cues[-1].start == pytest.approx(end)
        assert cues[-1].lines == ("Here I am again.",)
    assert kept == len(before)


def test_hours_are_gone_on_with(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("1\n01:02:03,000 --> 01:02:04,567\nHello.\n\n")
    write(path, "Here I am again.", resume=True)
    assert parse(path.read_text())[-1].start == pytest.approx(3724.567)


@pytest.mark.parametrize("offset", [None, 3.0])
def test_a_file_is_gone_on_with_as_its_times_are_written(tmp_path, offset):
    """Some write SRT with the dots of WebVTT."""
    path = tmp_path / "a.srt"
    cues = [f"{n}\n00:00:0{n}.000 --> 00:00:0{n}.900\nHello.\n\n" for n in (1, 2, 4)]
    path.write_text("".join(cues))
    write(path, "Here I am again.", resume=True, offset=offset)
    written = path.read_text()
    assert written.startswith("".join(cues[:2]))
    assert written.endswith("Here I am again.\n\n")
    assert "," not in written


def test_the_time_to_go_on_at_may_be_told(tmp_path):
    write(tmp_path / "a.srt", TALK)
    write(tmp_path / "a.srt", "Here I am again.", resume=True, offset=100.0)
    cue = parse((tmp_path / "a.srt").read_text())[-1]
    write(tmp_path / "b.srt", "Here I am again.")
    (alone,) = parse((tmp_path / "b.srt").read_text())
    assert (cue.start, cue.end) == (100.0, pytest.approx(100.0 + alone.end))


def test_cues_from_where_to_go_on_are_made_anew_and_none_overlaps(tmp_path):
    for suffix in (".srt", ".vtt"):
        path = tmp_path / f"a{suffix}"
        write(path, TALK)
        before = parse(path.read_text())
        write(path, "Here I am again.", resume=True, offset=before[1].start + 0.01)
        cues = parse(path.read_text())  # checks the numbers
        assert cues[:2] == before[:2]
        assert cues[2].start == before[1].end
        assert cues[2].lines == ("Here I am again.",)
        write(path, "From the beginning.", resume=True, offset=0.0)
        assert [cue.lines for cue in parse(path.read_text())] == [("From the beginning.",)]


def test_a_file_that_is_not_there_is_begun(tmp_path):
    write(tmp_path / "a.vtt", "Here I am.", resume=True)
    assert parse((tmp_path / "a.vtt").read_text())[0].lines == ("Here I am.",)


def test_somebody_elses_text_is_not_cut_off(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("A novel. " * 100, encoding="utf-8")
    with pytest.raises(DragomanError, match="cannot be gone on with: what follows cue 0"):
        CaptionFile(path, resume=True)
    assert path.read_text() == "A novel. " * 100


def test_no_more_than_what_a_crash_may_leave_is_cut_off(tmp_path):
    path = tmp_path / "a.srt"
    head = "1\n00:00:01,000 --> 00:00:02,000\n"
    path.write_text(head + "x" * (MOST_CUT_OFF - len(head)))
    CaptionFile(path, resume=True).close()
    assert path.read_text() == ""
    path.write_text(head + "x" * (MOST_CUT_OFF + 1 - len(head)))
    with pytest.raises(DragomanError, match="cannot be gone on with"):
        CaptionFile(path, resume=True)


def test_the_longest_cue_is_shorter_than_what_may_be_cut_off():
    cue = Cue(360_000.0, 360_007.0, ("<" * 42, "<" * 42))  # each becomes four characters
    assert 360 < len(vtt_block(100_000, cue)) < MOST_CUT_OFF == 500


def test_closing_gives_the_file_back(tmp_path):
    file = CaptionFile(tmp_path / "a.srt")
    file.close()
    assert file._file.closed


def test_without_being_asked_a_file_is_begun_anew(tmp_path):
    write(tmp_path / "a.srt", TALK)
    write(tmp_path / "a.srt", "New.")
    assert [cue.lines for cue in parse((tmp_path / "a.srt").read_text())] == [("New.",)]


def test_both_languages_in_a_file(tmp_path):
    with CaptionFile(tmp_path / "a.srt", "en", source_language="de") as file:
        file.say_source(TimedWord("Guten Tag.", 0.0, 1.0))
        file.say(TimedWord("Hello.", 0.5, 1.0))
    assert parse((tmp_path / "a.srt").read_text())[0].lines == ("Hello.", "Guten Tag.")


def test_a_killed_process_leaves_whole_cues(tmp_path):
    """SIGKILL in the middle of the talk: no buffer of ours holds cues back."""
    script = f"""
import os, signal
from dragoman.text.caption_files import CaptionFile
from dragoman.text.captions import TimedWord
file = CaptionFile({str(tmp_path / "a.srt")!r})
for number in range(200):
    file.say(TimedWord("word" if number % 5 else "end.", number / 3, number / 3))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert len(parse((tmp_path / "a.srt").read_text())) > 10


def test_a_system_that_takes_a_few_bytes_at_a_time_is_told_them_all_once(tmp_path):
    class Slow:
        closed = False

        def __init__(self, file):
            self._file = file

        def write(self, data):
            return self._file.write(data[:7])

        def close(self):
            self._file.close()

    write(tmp_path / "a.srt", TALK)
    with CaptionFile(tmp_path / "b.srt") as file:
        file._file = Slow(file._file)
        for word in words(TALK):
            file.say(word)
    assert (tmp_path / "b.srt").read_bytes() == (tmp_path / "a.srt").read_bytes()


def test_a_last_cue_that_finds_no_room_is_told(tmp_path):
    """A system that has room for a part of it takes that part, and says so by its size alone."""
    write(tmp_path / "a.srt", "A short talk.")
    script = f"""
import resource
from dragoman.errors import DragomanError
from tests.text.test_caption_files import Path, write
limit = {(tmp_path / "a.srt").stat().st_size - 5}
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    write(Path({str(tmp_path / "a.srt")!r}), "A short talk.")
except DragomanError as error:
    print(error)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert "a.srt cannot be written: File too large." in done.stdout, done


FOREIGN = {
    "text.srt": b"A shopping list.\n",
    "latin.srt": b"1\n00:00:01,000 --> 00:00:02,000\nGr\xfc\xdfe.\n\n2\n",
    "windows.srt": b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHello.\r\n\r\n",
    "marked.srt": b"\xef\xbb\xbf1\n00:00:01,000 --> 00:00:02,000\nHello.\n\n",
    "positions.vtt": b"WEBVTT\n\n00:00:01.000 --> 00:00:02.000 align:left\nHello.\n\n",
    "note.vtt": b"WEBVTT\n\nNOTE by hand\n\n1\n00:00:01.000 --> 00:00:02.000\nHello.\n\n",
    "binary.srt": b"\xff\xfe\x00",
    "places.srt": b"1\n00:00:01,000 --> 00:00:02,000 X1:3\nHello.\n\n",
    "words.srt": b"1\n\nHello.\n",
    "of_another_format.vtt": b"1\n00:00:01,000 --> 00:00:02,000\nHello.\n\n",
    "number.vtt": b"7",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_captions_that_somebody_else_wrote_are_left_alone(tmp_path, name):
    """However short they are: what cannot be gone on with is not overwritten either."""
    path = tmp_path / name
    path.write_bytes(FOREIGN[name])
    with pytest.raises(DragomanError, match="cannot be gone on with"):
        CaptionFile(path, resume=True)
    assert path.read_bytes() == FOREIGN[name]

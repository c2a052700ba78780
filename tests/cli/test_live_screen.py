"""`live` on a terminal: the last lines are shown, and nothing but the text is left behind."""

import errno
import json
import signal

import numpy as np
import pytest
import soundfile
from rich.console import Console
from rich.text import Text

from dragoman.audio.chunk import Chunk
from dragoman.cli.notes import Notes
from dragoman.cli.screen import CaptionScreen
from dragoman.interpreter import Update
from dragoman.setup import Setup
from dragoman.trace import Hearing
from tests.cli.terminal import ENTER, HOME, LEAVE, Terminal, terminal

STEP = ("--step", "200ms", "--policy", "greedy", "--from", "de")


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 5 // 2, np.float32), 16000)
    return path


def newest(lines):
    """The highest number on the screen."""
    words = " ".join(lines).replace(".", " ").split()
    return max((int(w[6:]) for w in words if w.startswith("number") and w[6:].isdigit()), default=0)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (30, 12), (200, 60), (12, 4)])
def test_the_newest_words_are_always_shown_and_the_text_stays(wav, columns, lines):
    live = terminal(
        "live", "--file", wav, "--model", "tests.talkers:many", *STEP, columns=columns, lines=lines
    )
    with live as screen:
        assert screen.rest() == 0
    seen = list(dict.fromkeys(map(newest, screen.frames)))
    assert seen == sorted(seen)
    assert newest(screen.last_inside) == 999
    assert len(seen) > 3  # it was shown while it came
    words = " ".join(screen.everything).split()
    expected = [f"number{i}{'.' if i % 50 == 49 else ''}" for i in range(1000)]
    assert words[words.index("number0") :][:1000] == expected  # no line breaks inside a word
    assert words.count("number500") == 1  # no old frames
    assert not screen.inside


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_screen_is_the_same_however_its_bytes_are_read(size):
    """As of a terminal on a busy machine; what is half drawn shows numbers that nobody has said."""
    lines = [f"number{n} number{5 * n}".ljust(80) for n in (23, 4, 567)]
    frames = b"".join(HOME + line.encode() + b"0:01" for line in lines)
    raw = b"before\r\n" + ENTER + frames + HOME + b" " * 80 + LEAVE + b"behind"
    screen = Terminal(-1, None, 80, 24)
    for at in range(0, len(raw), size):
        screen._feed(raw[at : at + size])
    assert [frame[0] for frame in screen.frames] == [line.rstrip() for line in lines]
    assert not screen.inside
    assert screen.lines == ["before", "behind"]


def test_ctrl_z_leaves_the_shell_its_own_screen_and_cursor(wav):
    """Nobody could go on with this session, so the system does not stop it: it is back at once."""
    with terminal("live", "--file", wav, "--model", "tests.talkers:many", *STEP) as screen:
        screen.until("number")
        screen.process.send_signal(signal.SIGTSTP)
        while b"\x1b[?1049l" not in screen.raw:
            assert screen.read()
        assert screen.rest() == 0
    left = screen.raw.index(b"\x1b[?1049l")
    assert b"\x1b[?25h" in screen.raw[left - 20 : left + 20]  # the cursor
    assert screen.raw.count(b"\x1b[?1049h") == 2  # it came back, and was left at the end
    assert screen.raw.count(b"\x1b[?1049l") == 2
    assert not screen.inside
    assert "number999." in " ".join(screen.everything)


def test_a_window_that_is_resized_is_filled_again(wav):
    with terminal("live", "--file", wav, "--model", "tests.talkers:many", *STEP) as screen:
        screen.until("number200")
        screen.resize(40, 10)
        before = len(screen.raw)
        while newest(screen.last_inside) < 700:
            assert screen.read(0.05)
        assert len(screen.last_inside) <= 10
        assert "behind" in screen.last_inside[-1]
        assert len(screen.raw) > before
        screen.resize(100, 30)
        assert screen.rest() == 0
    assert newest(screen.last_inside) == 999


def test_words_wider_than_the_window_and_wide_characters(wav):
    live = terminal("live", "--file", wav, "--model", "tests.talkers:wide", *STEP, columns=30)
    with live as screen:
        assert screen.rest() == 0
    assert "最後。" in "".join(screen.last_inside).replace(" ", "")
    assert "x" * 200 in "".join(screen.everything)


def test_interim_words_are_dim_and_are_not_left_behind(wav):
    system = ("--model", "tests.talkers:changing", *STEP, "--policy", "local-agreement:n=2")
    with terminal("live", "--file", wav, *system) as screen:
        screen.until("perhaps later")
        assert screen.rest() == 0
    assert "word999" in "".join(screen.everything)
    assert "perhaps" not in "".join(screen.everything)


def test_ctrl_c_leaves_the_text_and_the_summary(wav):
    many = ("--model", "tests.talkers:many", *STEP)
    with terminal("live", "--file", wav, *many, columns=40) as screen:
        screen.until("number100")
        screen.process.send_signal(signal.SIGINT)
        assert screen.rest() == 0
    assert "Ending   Ctrl-C leaves the rest out" in screen.last_inside[0]  # all of it
    text = "\n".join(screen.everything)
    assert "number0 number1" in text
    assert "words from" in text
    assert "Aborted" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("command", [("live", "--file"), ("translate", "--realtime")])
def test_a_window_that_is_closed_ends_the_talk_and_costs_no_file(tmp_path, command):
    wav = tmp_path / "long.wav"  # it does not end by itself while we look
    soundfile.write(wav, np.zeros(16000 * 60, np.float32), 16000)
    captions, trace = tmp_path / "talk.srt", tmp_path / "talk.jsonl"
    outputs = ("--captions", captions, "--trace", trace)
    with terminal(*command, wav, "--model", "tests.talkers:many", *STEP, *outputs) as screen:
        screen.until("number100")
        screen.hang_up()
        assert screen.process.wait(60) == 0
    rows = [json.loads(line) for line in trace.open()]
    assert rows[-1] == {"end": True}
    assert "number999." in captions.read_text()  # what was heard is still said
    assert max(row["heard"][0] for row in rows if "heard" in row) < 59_000  # it did end early


@pytest.mark.parametrize("command", [("live", "--file"), ("translate", "--realtime")])
def test_under_nohup_the_talk_goes_on_without_its_window(wav, tmp_path, command):
    captions, trace = tmp_path / "talk.srt", tmp_path / "talk.jsonl"
    args = (*command, wav, "--model", "tests.talkers:many", *STEP)
    outputs = ("--captions", captions, "--trace", trace)
    with terminal(*args, *outputs, hangup=signal.SIG_IGN) as screen:
        screen.until("number10")
        screen.hang_up()
        assert screen.process.wait(60) == 0
    rows = [json.loads(line) for line in trace.open()]
    assert rows[-1] == {"end": True}
    assert max(row["heard"][0] for row in rows if "heard" in row) == 2500  # to its end
    assert "number999." in captions.read_text()


def test_a_note_makes_room_for_the_talk_once_it_was_read():
    notes = Notes()
    screen = CaptionScreen(Setup(source="de"), notes)
    console = Console(width=80, height=24)

    def shown(seconds):
        hearing = Hearing(*(1000.0 * seconds,) * 4)
        screen.take(Chunk(np.zeros(0, np.float32), last=False), Update((" word",), "", hearing))
        with console.capture() as written:
            console.print(screen)
        return written.get()

    assert "odd" not in shown(1)
    notes.latest = "Something is odd."
    assert "Something is odd." in shown(2)
    assert "Something is odd." in shown(20)
    assert "odd" not in shown(23)
    notes.latest = "Something else is odd."
    assert "Something else is odd." in shown(24)


@pytest.mark.parametrize(("through", "way"), [(None, "fr → de "), ("en", "fr → en → de ")])
def test_the_screen_says_by_way_of_which_language_it_translates(through, way):
    screen = CaptionScreen(Setup(source="fr", target="de"), Notes())
    now = Hearing(*(1000.0,) * 4)
    update = Update((" Wort",), "", now, language="fr", through=through)
    screen.take(Chunk(np.zeros(0, np.float32), last=False), update)
    console = Console(width=80, height=24)
    with console.capture() as written:
        console.print(screen)
    assert written.get().startswith(way)


def test_text_that_stays_the_same_is_laid_out_once(monkeypatch):
    """However often it is drawn; anew for other words and for another width."""
    laid_out = []
    wrap = Text.wrap

    def counted(text, *args, **how):
        laid_out.append(text)
        return wrap(text, *args, **how)

    monkeypatch.setattr(Text, "wrap", counted)
    screen = CaptionScreen(Setup(source="de"), Notes())

    def drawn(text, width):
        laid_out.clear()
        screen._final = text
        console = Console(width=width, height=24)
        last = [line.plain for line in screen.__rich_console__(console, console.options)][-3]
        return last.split()[-1], len(laid_out)

    text = "word " * 1000
    assert drawn(text + "end", 80) == ("end", 1)
    assert drawn(text + "end", 80) == ("end", 0)
    assert drawn(text + "end", 40) == ("end", 1)
    assert drawn(text + "new", 40) == ("new", 1)


def test_a_screen_that_cannot_be_written_is_given_up(monkeypatch):
    """The talk, and whoever else listens to it, goes on."""
    given_up = []
    monkeypatch.setattr("dragoman.terminal.lead_nowhere", given_up.append)

    def refresh():
        raise OSError(errno.ENOSPC, "No space left on device")

    screen = CaptionScreen(Setup(source="de"), Notes())
    screen.refresh = refresh
    hearing = Hearing(*(1000.0,) * 4)
    screen.take(Chunk(np.zeros(0, np.float32), last=False), Update((), "", hearing))
    assert given_up == [2]


def test_redirected_the_text_goes_to_the_file_and_the_screen_stays(wav, tmp_path):
    out = tmp_path / "talk.txt"
    with (
        out.open("wb") as file,
        terminal(
            "live", "--file", wav, "--model", "tests.talkers:many", *STEP, stdout=file
        ) as screen,
    ):
        screen.until("number100")
        assert screen.inside
        assert "number0" in out.read_text()  # while it comes
        assert screen.rest() == 0
    assert out.read_text().split()[-1] == "number999."
    assert "\x1b" not in out.read_text()
    assert "number0" not in "".join(screen.everything)


def test_an_error_leaves_the_text(wav):
    with terminal("live", "--file", wav, "--model", "tests.talkers:failing", *STEP) as screen:
        assert screen.rest() == 2
    text = " ".join(screen.everything)
    assert "number0 number1" in text
    assert "dragoman: It is over." in text
    assert not screen.inside

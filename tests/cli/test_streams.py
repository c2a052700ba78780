"""Standard output carries the result and nothing else, whatever is a terminal and what is not."""

import json
import os
import shlex
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from dragoman.cli import main
from tests import warm
from tests.cli.commands import dragoman, process
from tests.cli.terminal import ROOT, terminal

SYSTEM = ("--model", "tests.talkers:sentences", "--step", "500ms", "--policy", "greedy")
TEXT = (
    "This is the first sentence of a talk that goes on and on.\n"
    "Here comes the second one, which is a little longer than a line of eighty columns is.\n"
    "It ends.\n"
)


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 16, np.float32), 16000)
    return path


def test_a_file_gets_the_text_and_the_terminal_the_rest(wav, tmp_path):
    out = tmp_path / "out.txt"
    with out.open("wb") as file, terminal("translate", wav, *SYSTEM, stdout=file) as screen:
        assert screen.rest() == 0
    assert out.read_text() == TEXT
    assert b"sentence" not in screen.raw
    assert b"listening" in screen.raw  # the progress bar
    assert "words from 16.0 s of speech" in " ".join(screen.lines)


def test_a_note_stands_above_the_bar(wav, tmp_path):
    """It was written behind it, on the same line, and broken where the terminal ends."""
    doubting = ("--model", "tests.talkers:doubting", *SYSTEM[2:])
    out = tmp_path / "out.txt"
    with out.open("wb") as file, terminal("translate", wav, *doubting, stdout=file) as screen:
        assert screen.rest() == 0
    assert b"listening" in screen.raw
    told = next(line for line in screen.everything if "does not sound" in line)
    assert told.startswith("This does not sound like Welsh (cy); nothing is said as long as")
    assert not any("listening" in line for line in screen.everything)


def test_no_bar_stands_before_text_that_comes_through_a_pipe(wav):
    """`dragoman translate talk.wav | tee` shows it on the same terminal."""
    with terminal("translate", wav, *SYSTEM, stdout=subprocess.PIPE) as screen:
        assert screen.process.stdout.read() == TEXT
        assert screen.rest() == 0
    assert screen.raw.startswith(b"32 words from 16.0 s")


def test_a_terminal_shows_running_text_and_the_summary_below_it(wav):
    with terminal("translate", wav, *SYSTEM, columns=100) as screen:
        assert screen.rest() == 0
    assert screen.lines[:3] == TEXT.splitlines()
    assert "words from 16.0 s" in screen.lines[3]
    assert screen.raw.startswith(b"This")  # no bar, nothing that moves the cursor


@pytest.mark.parametrize("columns", [24, 80])
def test_a_narrow_terminal_breaks_lines_between_words(wav, columns):
    """The words of every line are words of the text, and so are those of the summary."""
    with terminal("translate", wav, *SYSTEM, columns=columns) as screen:
        assert screen.rest() == 0
    lines = [line.strip() for line in screen.everything if line.strip()]
    words = " ".join(lines).split()
    text = TEXT.split()
    assert words[words.index("This") :][: len(text)] == text
    assert "32 words from 16.0 s of speech, on average" in " ".join(words)
    assert "without computation" in " ".join(words)
    assert screen.raw.count(b"\r\n") >= len(lines) - 1  # the terminal did not break any of them


def test_text_on_the_terminal_and_notes_in_a_file(wav, tmp_path):
    notes = tmp_path / "notes"
    with (
        notes.open("wb") as file,
        terminal("translate", wav, *SYSTEM, stderr=file, columns=100) as screen,
    ):
        assert screen.rest() == 0
    assert screen.raw.replace(b"\r\n", b"\n").decode() == TEXT
    assert notes.read_text().startswith("32 words from 16.0 s")


def test_neither_is_a_terminal(wav):
    done = subprocess.run(
        warm.command("-m", "dragoman", "translate", wav, *SYSTEM),
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == TEXT
    assert done.stderr.startswith("32 words from 16.0 s")
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("narrow", [False, True], ids=["terminal", "file"])
def test_json_is_never_wrapped(wav, tmp_path, narrow):
    out = tmp_path / "out.json"
    with out.open("wb") as file:
        stdout = file if narrow else None
        with terminal("translate", wav, *SYSTEM, "--json", columns=30, stdout=stdout) as screen:
            assert screen.rest() == 0
    data = out.read_bytes() if narrow else screen.raw
    rows = [json.loads(line) for line in data.decode().splitlines() if line.startswith("{")]
    assert "".join(row["said"] for row in rows).split() == TEXT.split()


def test_a_reader_who_has_enough_ends_it_quietly(wav, tmp_path):
    captions = tmp_path / "talk.srt"
    words = ("translate", wav, *SYSTEM, "--captions", captions)
    command = shlex.join(warm.command("-m", "dragoman", *words))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == TEXT.splitlines(keepends=True)[0]
    assert "Broken" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "first sentence" in captions.read_text().replace("\n", " ")


def test_a_full_disk_under_standard_output_is_a_sentence(wav):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            warm.command("-m", "dragoman", "translate", wav, *SYSTEM),
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("args", [("languages",), ("models", "list", "--json"), ("--help",)])
def test_nor_is_it_a_traceback_of_other_commands(args):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            warm.command("-m", "dragoman", *args),
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("dragoman: Cannot write standard output: the disk is full")
    assert done.stderr.count("\n") == 1


def test_a_reader_who_went_away_is_no_fault():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(
            warm.command("-m", "dragoman", "languages"),
            cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_standard_output_may_be_closed():
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m dragoman languages >&-",
        cwd=ROOT, shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_standard_input_may_be_closed():
    done = subprocess.run(
        f"{sys.executable} -m dragoman translate - {' '.join(SYSTEM)} <&-",
        shell=True, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "dragoman: Standard input is closed; name a file, or pipe sound into it.\n"
    )


def test_a_keyboard_brings_no_sound():
    """Whoever typed it waited, without a word; the model cannot be loaded, so it is told first."""
    keyboard, terminal = os.openpty()
    args = ("translate", "-", "--model", "no.such:model", "--from", "de")
    done = process(*args, stdin=terminal)
    os.close(terminal)
    os.close(keyboard)
    assert (done.returncode, done.stderr) == (
        2,
        "dragoman: Standard input is a keyboard; name a file, or pipe sound into it.\n",
    )


def test_nor_is_a_closed_standard_error_a_reason_to_crash():
    script = 'exec "$@" 2>&-'
    command = [sys.executable, "-m", "dragoman", "translate", "x.wav", "--from", "Germn"]
    done = subprocess.run(["sh", "-c", script, "sh", *command], cwd=ROOT, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "2> >(exec true)"])
def test_a_talk_goes_on_where_nobody_can_be_told_anything(where, wav):
    """The note comes in the middle of the first sentence; the talk ended there."""
    command = [sys.executable, "-m", "dragoman", "translate", wav]
    system = ["--model", "tests.talkers:warning", *SYSTEM[2:]]
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {where}', "bash", *command, *system],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, TEXT)


def test_a_letter_that_standard_output_cannot_write_is_a_question_mark():
    """Where the system's encoding is old, or somebody else's: umlauts ended a talk."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "models", "list"],
        cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "99?en" in done.stdout


def test_a_name_that_is_no_text_costs_no_talk(wav, tmp_path):
    """As old archives leave them; a trace holds the name of the recording, as far as that goes."""
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/K\xe4se.wav")
    os.rename(wav, odd)
    done = process("translate", odd, *SYSTEM, "--trace", tmp_path / "t.jsonl")
    assert (done.returncode, done.stdout) == (0, TEXT), done.stderr
    assert "K\ufffdse.wav" in (tmp_path / "t.jsonl").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--from", "Germn"), "'Germn' is not a language that is known here."),
        (("--beams", "0"), "'0' is not a whole number from 1 to 64"),
    ],
)
def test_what_is_wrong_breaks_between_words_too(options, words):
    with terminal("translate", "x.wav", *options, columns=30) as screen:
        assert screen.rest() == 2
    assert words in " ".join(screen.lines)


def test_a_warning_waits_for_the_end_of_the_line(wav):
    """It is given in the middle of the first sentence."""
    system = ("--model", "tests.talkers:warning", *SYSTEM[2:])
    with terminal("translate", wav, *system, columns=100) as screen:
        assert screen.rest() == 0
    assert screen.lines[0] == TEXT.splitlines()[0]
    assert screen.lines[1] == "dragoman: Something is odd."
    assert screen.lines[2:4] == TEXT.splitlines()[1:]


def test_ctrl_c_twice_says_no_aborted(wav):
    with terminal("translate", wav, "--realtime", *SYSTEM) as screen:
        screen.until("This")
        screen.process.send_signal(2)
        status = screen.rest()
    assert status == 0
    assert b"Aborted" not in screen.raw
    with terminal("translate", wav, "--model", "tests.talkers:stuck", *SYSTEM[2:]) as screen:
        screen.until("stuck")
        screen.process.send_signal(2)
        time.sleep(1)  # signals that come together count as one
        screen.process.send_signal(2)
        assert screen.rest() == 130
    assert b"Aborted" not in screen.raw
    assert b"Traceback" not in screen.raw


def test_text_and_notes_in_one_pipe_do_not_meet_within_a_line(wav):
    """`2>&1`: the warning comes in the middle of the first sentence."""
    done = subprocess.run(
        warm.command("-m", "dragoman", "translate", wav, "--model", "tests.talkers:warning",
         *SYSTEM[2:]),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == TEXT.splitlines()[0]
    assert lines[1] == "dragoman: Something is odd."
    assert lines[2:4] == TEXT.splitlines()[1:]


def test_an_interrupt_before_the_command_has_begun_is_quiet(monkeypatch, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.cli._run", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["languages"])
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "speak in 16.0 s of sound. If somebody does, name the language: --from CODE.\n"),
        (
            ("--from", "de"),
            "speak German (de) in 16.0 s of sound. If another language is spoken, name it: "
            "--from CODE.\n",
        ),
    ],
)
def test_a_recording_in_which_nobody_speaks(wav, more, told):
    done = dragoman("translate", wav, "--model", "tests.talkers:speechless", *SYSTEM[2:], *more)
    assert done.stdout == ""
    assert done.stderr == f"Nobody was heard to {told}"

"""No output destroys an input or another output, however it is named; faults are told at once."""

import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests import warm
from tests.cli.commands import ROOT, dragoman, process

SYSTEM = ("--model", "tests.talkers:sentences", "--from", "de", "--step", "500ms",
          "--policy", "greedy")  # fmt: skip


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.ones(16000, np.float32) / 4, 16000)
    return path


def paths_to(wav: Path) -> list[Path]:
    """The recording by other names."""
    symlink, hard, folder = (wav.with_name(name) for name in ("sym.wav", "hard.wav", "folder"))
    symlink.symlink_to(wav)
    os.link(wav, hard)
    folder.symlink_to(wav.parent)
    winding = wav.parent / ".." / wav.parent.name / wav.name
    return [wav, symlink, hard, folder / wav.name, winding]


@pytest.mark.parametrize("option", ["--mix", "--speak", "--trace", "--captions"])
def test_the_recording_is_never_overwritten(wav, option):
    before = wav.read_bytes()
    for path in paths_to(wav):
        done = dragoman("translate", wav, *SYSTEM, option, path)
        assert done.returncode == 2, (path, done.stderr)
        assert "is read by this command" in done.stderr
        assert "Traceback" not in done.stderr
    assert wav.read_bytes() == before


def test_nor_is_what_standard_input_reads(wav):
    before = wav.read_bytes()
    for name in ("-", "/dev/stdin", "/proc/self/fd/0"):
        with wav.open("rb") as stdin:
            done = process("translate", name, *SYSTEM, "--mix", wav, stdin=stdin)
        assert done.returncode == 2, done.stderr
        assert "is read by this command" in done.stderr
    assert wav.read_bytes() == before


def test_nor_is_the_setup(wav, tmp_path):
    setup = tmp_path / "setup.yaml"
    setup.write_text("target: en\n")
    done = dragoman("translate", wav, "--setup", setup, "--trace", setup)
    assert done.returncode == 2
    assert setup.read_text() == "target: en\n"


def test_live_does_not_overwrite_the_file_it_plays(wav):
    before = wav.read_bytes()
    done = dragoman("live", "--file", wav, *SYSTEM, "--trace", wav)
    assert done.returncode == 2
    assert wav.read_bytes() == before


def test_two_outputs_are_two_files(wav, tmp_path):
    (tmp_path / "link.wav").symlink_to(tmp_path / "new.wav")
    for outputs in (
        ("--speak", tmp_path / "new.wav", "--mix", tmp_path / "new.wav"),
        ("--speak", tmp_path / "new.wav", "--mix", tmp_path / "link.wav"),
        ("--captions", tmp_path / "a.srt", "--captions", tmp_path / "." / "a.srt"),
    ):
        done = dragoman("translate", wav, *SYSTEM, *outputs)
        assert done.returncode == 2, outputs
        assert "is written by another option" in done.stderr
    assert not (tmp_path / "new.wav").exists()


def test_nor_the_file_that_the_text_goes_to(wav, tmp_path):
    out = tmp_path / "out.jsonl"
    with out.open("wb") as stdout:
        done = subprocess.run(
            warm.command("-m", "dragoman", "translate", wav, *SYSTEM, "--trace", out),
            cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "standard output goes there" in done.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--captions", "{tmp}/d.srt"), "there is a folder of that name"),
        (("--trace", "{tmp}"), "there is a folder of that name"),
        (("--trace", "{tmp}/talk.wav/t.jsonl"), "there is a file where a folder should be"),
        (("--captions", "{tmp}/a.txt"), "--captions writes a .srt or .vtt file"),
        (("--captions-both", "{tmp}/a.txt"), "--captions-both writes a .srt or .vtt file"),
        (("--resume",), "--resume goes on with captions"),
        (("--resume", "--captions", "{tmp}/a.srt", "--trace", "{tmp}/t.jsonl"),
         "--trace would hold nothing but the rest"),
        (("--resume", "--captions", "{tmp}/a.srt", "--mix", "{tmp}/m.wav"),
         "--mix would hold nothing but the rest"),
        (("--end", "inf"), "'inf' is no place in a recording"),
        (("--start", "5", "--end", "0:03"), "Audio cannot end at 3 s when it starts at 5 s"),
        (("--duck", "3"), "ask for one: --mix FILE"),
        (("--duck", "nan"), "'nan' is not a number from 0 to 60"),
        (("--mix", "{tmp}/film.mp4"), "name a sound file, such as film.wav"),
        (("--mix", "{tmp}/film.mkv", "--start", "5"), "leave out --start, or name a sound file"),
        (("--mix", "{tmp}/film.avi"), ".m4v, .mov or .mkv file, not film.avi"),
        (("--channel", "2"), "has one channel; there is no channel 2"),
        (("--channel", "up"), "'up' is no channel; write left, right, 1, 2, 3, …"),
        (("--track", "2"), "has 1 audio track: 1; there is no track 2"),
        (("--start", "nan"), "'nan' is no place in a recording"),
        (("--to", ""), "'' is not a language"),
        (("--setup", ""), "a name is missing"),
        (("--raw", ""), "Raw audio cannot be ''"),
        (("--policy", "agreeatt:sure=nan"), "takes a number, not 'nan'"),
        (("--speak", "{tmp}/a.xyz"), ".wav, .flac, .mp3, .ogg or .opus file, not a.xyz"),
        (("--speak", "{tmp}/pipe.wav"), "is a device or a pipe; name a file to write to"),
        (("--voice", "espeak"), "--voice needs something to speak into"),
        (("--end", "-1"), "Invalid value for '--end'"),
        (("--threads", "-3"), "Invalid value for '--threads'"),
        (("--threads", "100000"), "Invalid value for '--threads'"),
        (("--step", "5ms"), "Invalid value for '--step'"),
        (("--beams", "0"), "Invalid value for '--beams'"),
        (("--policy", "wait-k:k=three"), "takes a whole number, not 'three'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_before_any_work(wav, tmp_path, args, sentence):
    """The model cannot be loaded at all: whoever tried would say something else."""
    (tmp_path / "d.srt").mkdir()
    os.mkfifo(tmp_path / "pipe.wav")
    args = [arg.format(tmp=tmp_path) for arg in args]
    done = dragoman("translate", wav, "--model", "no.such:model", "--from", "de", *args)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_is_not_gone_on_with_from_its_beginning(wav, tmp_path):
    args = ("--captions", tmp_path / "a.srt", "--resume")
    done = dragoman("live", "--file", wav, "--model", "no.such:model", *args)
    assert done.returncode == 2, done.stderr
    assert "'dragoman translate FILE --realtime --resume'" in done.stderr


@pytest.mark.parametrize("command", ["translate {wav} --model", "languages --model"])
def test_nobodys_home_is_a_sentence(wav, command):
    done = dragoman(*command.format(wav=wav).split(), "~nobody-of-that-name/model")
    assert done.returncode == 2, done.stderr
    assert "A path begins with ~" in done.stderr


WORDS = ("--policy", "wait-k", "--detector", "transcript")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--model", "tests.no_such:model"), "There is no model function"),
        (("--model", "tests.talkers:mute", "--show", "both"), "Showing both languages needs"),
        (("--model", "tests.talkers:mute", "--detector", "fixed"), "words for wait-k alone"),
        (("--model", "tests.talkers:mute", *WORDS), "This detector needs"),
        (("--voice", "nobody", "--speak", "{}/x.wav"), "There is no voice 'nobody'"),
        (("--from", "en", "--model", "tests.talkers:TEXT"), "is not a function that makes a model"),
    ],
)
@pytest.mark.parametrize("command", [("translate",), ("live", "--file")], ids=["translate", "live"])
def test_what_does_not_fit_costs_no_file_that_was_there(wav, tmp_path, command, args, sentence):
    if command[0] == "live":  # which speaks aloud
        args = [arg for arg in args if arg != "{}/x.wav"]
    files = [tmp_path / "talk.srt", tmp_path / "talk.jsonl"]
    for file in files:
        file.write_text("precious")
    outputs = ("--captions", files[0], "--trace", files[1])
    given = [arg.format(tmp_path) for arg in args]
    done = dragoman(*command, wav, *SYSTEM, *outputs, *given)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.read_text() for file in files] == ["precious"] * 2


@pytest.mark.parametrize("suffix", [".flac", ".mp3", ".ogg"])
def test_speech_is_of_the_kind_that_its_name_says(wav, tmp_path, suffix):
    out = tmp_path / f"speech{suffix}"
    done = dragoman("translate", wav, *SYSTEM, "--speak", out)
    assert done.returncode == 0, done.stderr
    assert soundfile.info(out).format == suffix[1:].upper()


def test_a_mix_has_the_rate_and_the_channels_of_the_recording(tmp_path):
    wav, mix = tmp_path / "talk.wav", tmp_path / "mix.wav"
    soundfile.write(wav, np.zeros((44100, 2)), 44100)
    for name, stdin in ((wav, None), ("-", wav)):
        with (stdin or wav).open("rb") as sound:
            done = process(
                "translate", name, *SYSTEM, "--channel", "right", "--mix", mix, stdin=sound
            )
        assert done.returncode == 0, done.stderr
        found = soundfile.info(mix)
        assert (found.samplerate, found.channels) == (44100, 2)
        assert found.duration >= 1.0
        mix.unlink()


def test_live_looks_for_its_file_before_it_loads_anything(tmp_path):
    done = dragoman("live", "--file", tmp_path / "no.wav", "--model", "no.such:model")
    assert done.returncode == 2
    assert "There is no file" in done.stderr
    assert "Loading" not in done.stderr


def test_a_disk_that_is_full_from_the_start_is_told_before_any_work(wav):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = dragoman("translate", wav, *SYSTEM, "--trace", "/dev/full")
    assert done.returncode == 2
    assert done.stderr == (
        "dragoman: Cannot write /dev/full: the disk is full; make room and run the same command "
        "again.\n"
    )
    assert done.stdout == ""


def heard_whole_though_full(
    wav: Path, seconds: int, limit: int, full: Path, *options: object
) -> str:
    """What is said of a talk to its end, and in its captions, while no file may hold more than
    `limit` bytes and `full` finds no more room."""
    soundfile.write(wav, np.zeros(8000 * seconds, np.int16), 8000)
    captions = wav.with_suffix(".srt")
    done = process(
        *("translate", wav, *SYSTEM, *options, full, "--captions", captions),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    assert f"Cannot write {full}: files that large are not allowed here" in done.stderr
    assert "Traceback" not in done.stderr
    assert f"words from {seconds}.0 s" in done.stderr  # it was heard to its end
    assert "It ends." in captions.read_text().replace("\n", " ")
    return str(done.stdout)


def test_a_trace_that_finds_no_more_room_costs_nothing_else(tmp_path):
    """Files may not grow beyond what two minutes in short steps need."""
    wav, trace = tmp_path / "t.wav", tmp_path / "t.jsonl"
    said = heard_whole_though_full(wav, 240, 70_000, trace, "--step", "100ms", "--trace")
    assert said.endswith("It ends.\n")


@pytest.mark.parametrize("option", ["--speak", "--mix"])
def test_sound_that_finds_no_more_room_costs_nothing_else(tmp_path, option):
    """Ten seconds of sound are more than a file may hold here."""
    heard_whole_though_full(tmp_path / "t.wav", 10, 170_000, tmp_path / "out.wav", option)
    assert sorted(os.listdir(tmp_path)) == ["t.srt", "t.wav"]


@pytest.mark.parametrize(
    ("full", "limit", "other"), [("--mix", 170_000, "--speak"), ("--speak", 700_000, "--mix")]
)
def test_nor_does_it_cost_other_sound(tmp_path, full, limit, other):
    """Twenty seconds are 960 kB of speech; on the way to a mix the recording is 640 kB, and the
    interpreter, who has finished after twelve, 600."""
    wav, small = tmp_path / "t.wav", tmp_path / "small.opus"
    heard_whole_though_full(wav, 20, limit, tmp_path / "out.wav", other, small, full)
    assert soundfile.info(small).duration >= 20
    assert sorted(os.listdir(tmp_path)) == ["small.opus", "t.srt", "t.wav"]

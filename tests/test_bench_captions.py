"""How the benchmark judges caption files."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import captions
from benchmarks.captions import named, report
from benchmarks.talks import talks
from dragoman.errors import DragomanError

CUE = "1\n00:00:00,000 --> 00:00:02,000\n{}\n\n"
GERMAN, ENGLISH = "Der Bericht wird morgen angenommen.", "The report will be adopted tomorrow."


def share(tmp_path, text, both):
    path = tmp_path / "talk.srt"
    path.write_text(CUE.format(text), encoding="utf-8")
    return report("talk", *named(f"both:{path}" if both else str(path)), None)


def test_of_two_languages_each_is_read_by_itself(tmp_path):
    """Together 71 characters in two seconds; one reads 36 of them at most."""
    text = f"{GERMAN}\n{ENGLISH}"
    assert share(tmp_path, text, both=True) == 1.0
    assert share(tmp_path, text, both=False) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        f"{GERMAN}\n{ENGLISH} And so.",  # 44 characters: too many for a line and for two seconds
        f"{GERMAN}\nThe report will be adopted tomorrow, yes!",  # fits a line; takes 2.05 s
        f"{GERMAN} Ja, ja, ja.\nYes.",
        f"{GERMAN}\n, the report.",
    ],
)
def test_each_language_has_to_keep_the_rules(tmp_path, text):
    assert share(tmp_path, text, both=True) == 0.0


def test_captions_of_other_programs_are_read(tmp_path):
    """Without numbers, hours and with settings behind the times, as WebVTT may be."""
    path = tmp_path / "talk.vtt"
    times = ["00:01.000 --> 00:03.500 align:start", "01:00:01.000 --> 01:00:02.000"]
    text = f"WEBVTT\n\nNOTE by hand\n\n{times[0]}\nYou &amp; I\n\nlast\n{times[1]}\nYes.\n"
    path.write_text(text, encoding="utf-8-sig")
    one, two = captions.read(path)
    assert (one.start, one.end, one.lines) == (1.0, 3.5, ("You & I",))
    assert (two.start, two.end, two.lines) == (3601.0, 3602.0, ("Yes.",))


@pytest.mark.parametrize("name", ["en-de:talk.srt", "nothing.srt", "both:nothing.srt"])
def test_a_caption_file_that_there_is_not_is_told_with_how_they_are_named(name, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_BENCH_TALKS", name)
    with pytest.raises(DragomanError, match=f"{name.removeprefix('both:')}; a caption file is"):
        captions.run()


@pytest.mark.parametrize("broken", [b"1\n0:0 --> 0:1\nYes.\n", b"\xff\xfe"])
def test_a_caption_file_that_is_none_is_a_sentence(broken, tmp_path):
    path = tmp_path / "talk.srt"
    path.write_bytes(broken)
    with pytest.raises(DragomanError):
        named(str(path))


def test_a_recording_says_its_languages():
    with pytest.raises(DragomanError, match=r"'talk.wav' .* such as de-en:talk.wav"):
        talks(["talk.wav"])


@pytest.mark.parametrize("arguments", [["captions"], ["kaptions"], ["captions", "heard", "--help"]])
def test_what_is_asked_for_wrongly_is_a_sentence(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=Path(__file__).parents[1],
        env={"PATH": "", "DRAGOMAN_BENCH_TALKS": "en-de:talk.srt"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1

"""What the user is told beside the text: the language, a machine too slow, what is missing."""

import json
import re
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import Chunk
from dragoman.cli import EXTRAS
from dragoman.cli.notes import Notes
from dragoman.cli.told import detected, pressed, slow_advice, summary
from dragoman.interpreter import Update
from dragoman.setup import Setup, System
from dragoman.trace import Hearing
from dragoman.trial import Trial
from tests.cli.commands import ROOT, dragoman
from tests.talkers import PLACED

SYSTEM = ("--step", "500ms", "--policy", "greedy")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRA_PACKAGES = PROJECT["optional-dependencies"]


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 3, np.float32), 16000)
    return path


@pytest.mark.parametrize("command", [("translate",), ("live", "--file")], ids=["translate", "live"])
def test_the_language_that_was_detected_is_told(wav, command):
    done = dragoman(*command, wav, "--model", "tests.talkers:detecting", *SYSTEM)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Heard: Welsh (cy).") == 1
    assert "3.0 s of speech, heard as Welsh (cy)" in done.stderr
    assert "Welsh" not in done.stdout


@pytest.mark.parametrize(("hears", "told"), [((), True), (("cy", "de"), True), (("cy",), False)])
def test_who_hears_one_language_alone_has_not_detected_it(hears, told):
    notes = Notes()
    with detected(System(Setup(), SimpleNamespace(hears=hears)), notes) as listener:
        chunk = Chunk(np.zeros(16000, np.float32), False)
        listener.take(chunk, SimpleNamespace(language="cy", said=("Bore",), silence_ms=0.0))
    assert notes.latest.startswith("Heard: Welsh") == told


@pytest.mark.parametrize("said", [(), ("--from", "cy")], ids=["nobody said it", "said"])
@pytest.mark.parametrize(("seconds", "told"), [(5, 0), (12, 1)])
def test_another_language_than_expected_is_told_once(tmp_path, said, seconds, told):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * seconds, np.float32), 16000)
    done = dragoman("translate", path, "--model", "tests.talkers:doubting", *SYSTEM, *said)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("This does not sound like Welsh (cy)") == told
    assert "sound like" not in done.stdout


def test_silence_is_no_other_language():
    chunk = Chunk(np.zeros(16000, np.float32), False)
    notes = Notes()
    with detected(System(Setup(source="en")), notes) as listener:
        listener.take(chunk, SimpleNamespace(language="en", said=(), silence_ms=0.0))
        for second in range(1, 9):  # the last word was foreign, then nobody speaks
            doubt = SimpleNamespace(language=None, said=(), silence_ms=1000.0 * second)
            listener.take(chunk, doubt)
        assert notes.latest == ""
        for _ in range(3):
            assert notes.latest == ""
            listener.take(chunk, SimpleNamespace(language=None, said=(), silence_ms=999.0))
    assert notes.latest.startswith("This does not sound like English (en)")


def test_a_language_that_is_not_known_yet_is_no_other(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:detecting", *SYSTEM)
    assert "does not sound like" not in done.stderr


def test_json_tells_the_language_once_it_is_known(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:detecting", *SYSTEM, "--json")
    languages = [json.loads(line)["language"] for line in done.stdout.splitlines()]
    assert languages[0] is None
    assert languages[-1] == "cy"


def test_nobody_is_told_what_he_said_himself(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:detecting", *SYSTEM, "--from", "cy")
    assert "Welsh" not in done.stderr


def test_words_that_come_a_trifle_too_soon_are_no_minus_nothing_behind():
    notes = Notes()
    hearing = Hearing(2000.0, 1000.0, 1000.0, 1000.0)
    with summary(Setup(source="en"), notes, "") as listener:
        listener.take(None, Update(("word",), "", hearing, lag_ms=-20.0))
    assert ", on average 0.0 s behind the speaker (0.0 s without computation)" in notes.latest


def test_quiet_is_quiet(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:detecting", *SYSTEM, "--quiet")
    assert done.stderr == ""


def test_a_live_speaker_who_is_too_fast_is_told_of_while_he_talks(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 3, np.float32), 16000)
    model = ("--model", "tests.talkers:behind", *SYSTEM, "--step", "200ms")
    done = dragoman("live", "--file", path, *model, "--json")
    told = re.findall(
        "This machine (is too slow for|hardly keeps up with) the setting", done.stderr
    )
    assert len(told) == 1
    assert done.stderr.count("Try --step 1s --beams 1, or a smaller model") == 1


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ((), "Try '--max-latency auto', or --step 1s --beams 1, or a smaller model"),
        (("--max-latency", "auto"), "Try --step 1s --beams 1, or a smaller model"),
        (("--policy", "greedy"), "Try --step 1s --beams 1, or a smaller model"),
        (("--step", "2s", "--beams", "1"), "Try a smaller model"),
    ],
)
@pytest.mark.parametrize("command", [("translate",), ("live", "--file")], ids=["translate", "live"])
def test_what_was_tried_or_cannot_be_is_no_advice(wav, command, options, advice, monkeypatch):
    tried = lambda setup, **_: Trial(System(setup), 0.5)  # noqa: E731
    monkeypatch.setattr("dragoman.trial.suited", tried)
    monkeypatch.setattr("dragoman.lag.Lag.load", property(lambda lag: 1.5))
    done = dragoman(*command, wav, "--model", "tests.talkers:sentences", *options)
    assert f"this machine. {advice}" in done.stderr
    assert ("'--max-latency auto'" in done.stderr) == ("auto" in advice)


def test_auto_tries_the_machine_and_says_what_it_chose(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:sentences", "--max-latency", "auto")
    assert done.returncode == 0, done.stderr
    assert "Tried on this machine: steps of 0.5 s, 5 beams, 0.0" in done.stderr
    assert done.stdout.endswith("It ends.\n")


@pytest.mark.parametrize(("load", "advice"), [(0.5, "Try "), (1.5, "try a smaller model")])
@pytest.mark.parametrize("command", [("translate",), ("live", "--file")], ids=["translate", "live"])
def test_a_machine_that_failed_its_trial_is_not_told_of_again(
    tmp_path, command, load, advice, monkeypatch
):
    """One that kept up then, but not in the talk, is told of after that."""
    wav = tmp_path / "talk.wav"
    soundfile.write(wav, np.zeros(16000, np.float32), 16000)
    tried = lambda setup, **_: Trial(System(setup), load)  # noqa: E731
    monkeypatch.setattr("dragoman.trial.suited", tried)
    monkeypatch.setattr("dragoman.lag.Lag.load", property(lambda lag: 1.5))
    system = ("--model", "tests.talkers:sentences", "--max-latency", "auto")
    done = dragoman(*command, wav, *system)
    assert done.returncode == 0, done.stderr
    assert f"{load:.2f} s of work per second" in done.stderr
    assert done.stderr.lower().count("try ") == done.stderr.count(advice) == 1


WITHOUT_TORCH = """
import sys

from dragoman.cli import EXTRAS, main

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS["train"]:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Hidden())
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "args",
    [
        ("train", "recipes/tiny.yaml"),
        ("export", "runs/x", "out"),
        ("distill", "runs/x", "pack", "out"),
    ],
    ids=lambda args: args[0],
)
def test_without_torch_the_two_lines_that_install_it_are_told(args, tmp_path):
    args = [str(tmp_path / arg) if arg in {"out", "pack"} else arg for arg in args]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *args],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    first, second = done.stderr.splitlines()[-2:]
    wanted = next(line for line in EXTRA_PACKAGES["train"] if line.startswith("torch"))
    assert first.strip() == f"pip install '{wanted}'"  # as the extra asks for it, for any shell
    assert second.strip() == "pip install 'dragoman[train]'"


def test_voicing_needs_no_torch(tmp_path):
    pytest.importorskip("espeakng_loader", reason="the espeak extra is not installed")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "voice", "recipes/tiny.tsv", tmp_path / "out",
         "--limit", "2"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_packages_of_the_extras_are_those_of_the_project():
    for extra, packages in EXTRAS.items():
        wanted = EXTRA_PACKAGES[extra]
        names = {line.split("=")[0].split(">")[0].replace("-", "_") for line in wanted}
        assert names == set(packages)


def test_both_languages_are_shown_a_sentence_a_line(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 8, np.float32), 16000)
    args = ("translate", path, "--model", "tests.talkers:bilingual", *SYSTEM, "--show", "both")
    done = dragoman(*args, "--from", "de")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "de: Dies ist der erste Satz eines Vortrags, der weiter und weiter geht.",
        "en: This is the first sentence of a talk that goes on and on.",
        "de: Hier endet er.",
        "en: Here comes the second one, which is a little longer than a line of eighty columns is.",
        "en: It ends.",
    ]
    rows = [json.loads(line) for line in dragoman(*args, "--json").stdout.splitlines()]
    assert "".join(row["transcript"] for row in rows).split()[:3] == ["Dies", "ist", "der"]


def test_a_model_that_writes_nothing_down_cannot_show_both(wav):
    done = dragoman("translate", wav, "--model", "tests.talkers:mute", *SYSTEM, "--show", "both")
    assert done.returncode == 2
    assert "Showing both languages needs a transcript of the source, which model" in done.stderr


def test_captions_of_the_speaker_and_of_both(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 8, np.float32), 16000)
    files = {name: tmp_path / f"{name}.srt" for name in ("en", "de", "both")}
    args = ("translate", path, "--model", "tests.talkers:bilingual", *SYSTEM, "--from", "de")
    outputs = ("--captions", files["en"], "--captions-source", files["de"])
    done = dragoman(*args, *outputs, "--captions-both", files["both"])
    assert done.returncode == 0, done.stderr
    texts = {name: file.read_text() for name, file in files.items()}
    assert "Dies ist" in texts["de"]
    assert "This is" not in texts["de"]
    assert "This is" in texts["en"]
    assert "Dies ist" not in texts["en"]
    assert "Dies ist" in texts["both"]
    assert "This is" in texts["both"]


@pytest.mark.parametrize(
    ("target", "through", "told"), [("de", "en", 2), ("es", "en", 1), ("de", None, 1)]
)
def test_who_has_his_own_language_translated_back_is_told_how_to_get_it_as_it_is(
    target, through, told
):
    notes, sentences = Notes(), []
    notes.tell = sentences.append
    system = System(Setup(target=target), SimpleNamespace(hears=("de", "en")))
    with detected(system, notes) as listener:
        now = Hearing(*(1000.0,) * 4)
        update = Update((" Tag",), "", now, language="de", through=through)
        listener.take(Chunk(np.zeros(16000, np.float32), last=False), update)
    assert (
        sentences
        == [
            "Heard: German (de). If that is wrong, name the language: --from CODE.",
            "That goes into English (en) and back; what is spoken itself is written down by --from "
            "de --to de.",
        ][:told]
    )


@pytest.mark.parametrize(
    ("wanted", "through", "told"),
    [(True, "en", 1), (False, "en", 0), (True, None, 0)],
    ids=["in English", "not shown", "as it is spoken"],
)
def test_a_transcript_in_another_language_is_told_of_once(wanted, through, told):
    notes, sentences = Notes(), []
    notes.tell = sentences.append
    setup = Setup(source="fr", target="de", model="whisper-base+mt-en")
    with detected(System(setup), notes, wanted) as listener:
        for second in range(1, 4):
            now = Hearing(*(1000.0 * second,) * 4)
            update = Update((), "", now, None, (" day",), language="fr", through=through)
            listener.take(Chunk(np.zeros(16000, np.float32), last=False), update)
    assert (
        sentences
        == [
            "The transcript is in English (en), by way of which whisper-base+mt-en translates "
            "French (fr)."
        ][:told]
    )


@pytest.fixture
def placed(tmp_path):
    """A recording of 41 s, a word every 400 ms, in which every moment can be told."""
    path = tmp_path / "placed.wav"
    seconds = np.arange(16000 * 41, dtype=np.float32) / 16000
    soundfile.write(path, seconds / 1000, 16000, subtype="FLOAT")
    return ("translate", path, "--model", "tests.talkers:placed", *SYSTEM)


def words_of(captions):
    """Without numbers and times."""
    return [word for word in captions.read_text().split() if word[0].isalpha()]


def starts_of(captions):
    lines = captions.read_text().splitlines()
    return [float(line.split(",")[0][-2:]) for line in lines if " --> " in line]


def test_captions_of_a_part_stand_where_in_the_recording_they_were_spoken(placed, tmp_path):
    srt = tmp_path / "talk.srt"
    assert dragoman(*placed, "--captions", srt, "--start", 20, "--end", 30).returncode == 0
    assert words_of(srt)[:2] == PLACED[50:52]
    assert starts_of(srt)[0] == 20


def test_captions_that_a_crash_cut_off_are_gone_on_with_where_they_end(placed, tmp_path):
    """No word is missing, none is there twice, and all stand where they stood."""
    whole, cut = tmp_path / "whole.srt", tmp_path / "cut.srt"
    assert dragoman(*placed, "--captions", whole).returncode == 0
    text = whole.read_text()
    for share in (0.3, 0.6, 0.99):
        cut.write_text(text[: int(share * len(text))])
        done = dragoman(*placed, "--captions", cut, "--resume")
        assert done.returncode == 0, done.stderr
        assert f"with the last sentence of {cut}" in done.stderr
        assert words_of(cut) == words_of(whole) == PLACED
        assert starts_of(cut)[-1] == pytest.approx(starts_of(whole)[-1], abs=1)


def test_of_several_files_the_one_that_breaks_off_first_loses_nothing(placed, tmp_path):
    srt, vtt = tmp_path / "talk.srt", tmp_path / "talk.vtt"
    both = ("--captions", srt, "--captions", vtt)
    assert dragoman(*placed, *both).returncode == 0
    srt.write_text(srt.read_text()[: int(0.9 * srt.stat().st_size)])
    vtt.write_text(vtt.read_text()[: int(0.4 * vtt.stat().st_size)])
    done = dragoman(*placed, *both, "--resume")
    assert f"with the last sentence of {vtt}" in done.stderr
    assert words_of(srt) == PLACED
    assert words_of(vtt)[1:] == PLACED  # after WEBVTT
    vtt.write_text("")
    done = dragoman(*placed, *both, "--resume")
    assert f"Beginning anew: {vtt}" in done.stderr
    assert words_of(srt) == words_of(vtt)[1:] == PLACED


def test_a_place_to_go_on_at_may_be_told(placed, tmp_path):
    srt = tmp_path / "talk.srt"
    assert dragoman(*placed, "--captions", srt, "--end", 10).returncode == 0
    done = dragoman(*placed, "--captions", srt, "--resume", "--start", 30)
    assert done.returncode == 0, done.stderr
    assert words_of(srt) == PLACED[:25] + PLACED[75:]
    assert 30 in starts_of(srt)


@pytest.mark.parametrize(("work_ms", "told"), [(100.0, 0), (900.0, 1), (1500.0, 1)])
def test_a_driver_that_brings_much_at_once_is_no_slow_machine(work_ms, told, monkeypatch):
    """Steps of half a second that come as one second each, and the work on them."""
    heard: list[str] = []
    notes = Notes()
    monkeypatch.setattr(notes, "tell", heard.append)
    chunk = Chunk(np.zeros(16000, np.float32), last=False)
    with pressed(Setup(step_ms=500.0), notes, "Rest.") as listener:
        for n in range(10):
            arrival = 1000.0 * (n + 1)
            hearing = Hearing(arrival, arrival, arrival, arrival + work_ms)
            listener.take(chunk, Update((), "", hearing))
    assert len(heard) == told
    if told:
        total = 4 * work_ms / 1000
        assert f"{total:.1f} s of work for 4.0 s of speech" in heard[0]
        assert ("too slow" in heard[0]) == (total > 4)
        assert ("hardly keeps up" in heard[0]) == (total <= 4)


@pytest.mark.parametrize("live", [True, False])
def test_what_to_do_about_a_slow_machine_is_told_once(live, monkeypatch):
    """During a live talk, else after it."""
    heard: list[str] = []
    notes, setup = Notes(), Setup(step_ms=500.0)
    monkeypatch.setattr(notes, "tell", heard.append)
    chunk = Chunk(np.zeros(16000, np.float32), last=False)
    advice = slow_advice(setup, auto=True)
    with summary(setup, notes, advice) as ending, pressed(setup, notes, advice) as warning:
        for n in range(10):
            arrival = 1000.0 * (n + 1)
            update = Update((" word",), "", Hearing(arrival, arrival, arrival, arrival + 1500))
            for listener in (ending, warning) if live else (ending,):
                listener.take(chunk, update)
    assert sum("'--max-latency auto'" in one for one in heard) == 1
    assert ["This machine is too slow" in one for one in heard] == [live, False]
    assert sum("1.50 s of work per second." in one for one in heard) == 1


@pytest.mark.parametrize(
    ("source", "model", "lighter"),
    [
        ("en", "whisper-base+mt-en", True),
        ("de", "whisper-base+mt-en", False),  # of which Moonshine knows nothing
        ("en", "moonshine-base+mt-en", False),  # it is that already
        ("en", "whisper-base", False),
    ],
)
def test_who_hears_english_is_told_of_a_lighter_recogniser(source, model, lighter):
    advice = slow_advice(Setup(model=model, source=source, target="de"), auto=False)
    assert ("--model moonshine-base+mt-en" in advice) == lighter


def test_the_summary_names_the_language_of_most_words():
    """After a pause another one may be taken for the speaker's, rightly or not."""

    def told(*said, source=None):
        notes, sentences = Notes(), []
        notes.tell = sentences.append
        with summary(Setup(source=source), notes, "") as listener:
            for number, (language, words) in enumerate(said, 1):
                hearing = Hearing(*(1000.0 * number,) * 4)
                texts = tuple(f" {word}" for word in words.split())
                update = Update(texts, "", hearing, language=language)
                listener.take(Chunk(np.zeros(16000, np.float32), last=False), update)
        return sentences[0]

    assert "2.0 s of speech, heard as German (de), shown" in told(("de", "one"), ("de", "two"))
    for said in ([("de", "one two three"), ("nl", "four")], [("nl", "one"), ("de", "two three")]):
        assert " 3.0 s of speech, heard mostly as German (de), shown" in told((None, ""), *said)
    assert "heard as German" in told(("de", "one two"), ("nl", ""))
    assert told(("de", "one"), source="de").startswith("1 word from 1.0 s of speech, shown")


def test_a_recording_that_is_there_is_told_of_before_the_model_is_loaded(tmp_path):
    record = tmp_path / "talk.flac"
    record.write_bytes(b"precious")
    done = dragoman("live", "--record", record, "--model", "tests.no_such:model")
    assert done.returncode == 2
    assert "is there already; choose another name" in done.stderr
    assert record.read_bytes() == b"precious"

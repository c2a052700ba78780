"""`dragoman voices`."""

import json
from dataclasses import replace

import pytest
import soundfile
from click.testing import CliRunner

from dragoman.cli.voices import command
from dragoman.errors import DragomanError
from dragoman.voices import VOICES
from tests.cli.terminal import terminal


def run(*arguments, **how):
    return CliRunner().invoke(command, arguments, catch_exceptions=False, **how)


def test_the_list_names_every_voice_with_licence_and_readiness():
    rows = {row["name"]: row for row in json.loads(run("--json").output)}
    assert {"hibari", "kokoro", "espeak", "elevenlabs"} <= rows.keys()
    assert rows["hibari"]["ready"]
    assert rows["hibari"]["languages"] == ["en"]
    assert all(row["licence"] and row["about"] for row in rows.values())
    assert all(row["ready"] or row["to_do"] for row in rows.values())


def test_the_table_is_for_people():
    shown = run().output
    assert "hibari" in shown
    assert "Apache-2.0" in shown


def test_what_is_to_do_is_shown_in_full(monkeypatch):
    wish = "run: pip install 'dragoman[espeak]'"
    lacking = replace(VOICES["espeak"], languages=lambda: (), missing=lambda language: wish)
    monkeypatch.setitem(VOICES, "espeak", lacking)
    shown = run(env={"COLUMNS": "200"}).output
    assert wish in shown


def test_a_language_can_be_asked_for_by_name():
    names = [row["name"] for row in json.loads(run("--json", "--language", "French").output)]
    assert "hibari" not in names
    assert "kokoro" in names


def test_list_is_what_no_command_does():
    for options in ((), ("--json", "-l", "de")):
        assert run("list", *options).output == run(*options).output
    assert "list  List the voices." in run("--help").output


def test_say_writes_a_wav(tmp_path):
    out = tmp_path / "out.wav"
    assert "spoken by hibari" in run("say", "Good morning.", str(out)).output
    sound, rate = soundfile.read(out)
    assert rate == 24000
    assert 0.5 < len(sound) / rate < 2


def test_say_reads_standard_input_and_faster_is_shorter(tmp_path):
    text = "One two three four five six seven."
    run("say", "-", str(tmp_path / "a.wav"), input=text)
    run("say", text, str(tmp_path / "b.wav"), "--speed", "1.5")
    slow, fast = (soundfile.info(tmp_path / name).duration for name in ("a.wav", "b.wav"))
    assert slow > 1.2 * fast


def test_a_voice_without_the_language_is_a_sentence(tmp_path):
    out = tmp_path / "out.wav"
    with pytest.raises(DragomanError, match="'hibari' does not speak 'de'; choose"):
        run("say", "Guten Morgen.", str(out), "-l", "de", "--voice", "hibari")
    assert not out.exists()


@pytest.mark.parametrize("columns", [80, 40])
def test_nothing_is_torn_on_a_narrow_terminal(columns, monkeypatch):
    """A word that is copied from the terminal is whole: ELEVENLABS_API_KEY, a command."""
    monkeypatch.delenv("ELEVENLABS_API_KEY", raising=False)
    with terminal("voices", columns=columns, lines=60) as screen:
        assert screen.rest() == 0
    words = " ".join(screen.everything).split()
    for word in ("hibari", "Apache-2.0", "piper-en_US-joe", "ELEVENLABS_API_KEY", "speakers"):
        assert word in words
    if columns == 80:
        assert screen.lines[0].split()[0] == "name"  # a table


def test_a_pipe_gets_a_row_a_voice():
    row = next(line for line in run().output.splitlines() if line.startswith("kokoro"))
    assert row.split()[1:8] == ["de", "en", "es", "fr", "hi", "it", "pt"]
    assert "natural, 41 speakers" in row


@pytest.mark.parametrize("text", ["", " ", "…"])
def test_nothing_to_say_makes_no_file(text, tmp_path):
    for said, stdin in ((text, None), ("-", text)):
        with pytest.raises(DragomanError, match="There is nothing to say"):
            run("say", said, str(tmp_path / "out.wav"), input=stdin)
    assert not (tmp_path / "out.wav").exists()


@pytest.mark.parametrize(
    ("name", "sentence"), [("out.txt", "Sound is written to"), ("no/way/out.wav", "Cannot write")]
)
def test_where_nothing_can_be_written_nothing_is_spoken(name, sentence, tmp_path, monkeypatch):
    (tmp_path / "no").touch()
    monkeypatch.setattr("dragoman.cli.voices.open_voice", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(DragomanError, match=sentence):
        run("say", "Good morning.", str(tmp_path / name))


def test_a_text_that_is_none_is_told(tmp_path):
    for said, stdin in (("caf\udce9", None), ("-", b"caf\xe9")):
        with pytest.raises(DragomanError, match="The text is not UTF-8"):
            run("say", said, str(tmp_path / "out.wav"), "--voice", "espeak", input=stdin)

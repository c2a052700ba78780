"""`dragoman voice`: same seed, same bytes, whatever the processes and interruptions."""

import lzma
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dragoman.errors import DragomanError
from dragoman.train.data.pack import Header, Pack
from dragoman.train.data.texts import pack_text
from dragoman.train.voicing import corpus, shard
from dragoman.train.voicing.shard import VoicedShard, Voicing, make_shard, voice_row
from dragoman.train.voicing.spoken import parse_shares
from dragoman.train.voicing.text import Row, columns_of, joined, read_rows
from dragoman.voices.registry import VOICES
from dragoman.workers import FreshProcesses, do_and_tell

pytest.importorskip("espeakng_loader")

ROWS = [
    ("Good morning, dear colleagues.", "Guten Morgen, liebe Kollegen."),
    ("The vote takes place at 12 o’clock.", "Die Abstimmung findet um 12 Uhr statt."),
    ("", "Leer."),
    ("I agree.", "Ich stimme zu."),
    ("word " * 1000, "zu lang"),
    ("Thank you very much!", "Vielen Dank!"),
]


def voicing(**changes) -> Voicing:
    settings = {
        "spoken": "en",
        "seed": 3,
        "shares": parse_shares("espeak"),
        "codec": "pcm",
        "rooms": 0.5,
        "noise": 0.5,
        "max_words": 80,
    }
    return Voicing(**settings | changes)


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "text.tsv"
    path.write_text("en\tde\n" + "".join(f"{en}\t{de}\n" for en, de in ROWS), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(corpus, "ROWS_PER_SHARD", 2)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_same_seed_same_bytes_after_an_interruption_and_with_more_processes(text, tmp_path):
    whole, again = tmp_path / "whole", tmp_path / "again"
    header = corpus.voice_text(text, whole, voicing(), workers=FreshProcesses(1), fault_limit=0.5)
    assert (header.items, header.languages) == (4, ["en", "de"])

    corpus.voice_text(text, again, voicing(), workers=FreshProcesses(2), fault_limit=0.5)
    assert files_of(again) == files_of(whole)

    # As after a kill: a shard is missing, another has sound but no index yet.
    for name in ("pack.json", "shard-00000.jsonl", "shard-00000.pcm", "shard-00001.jsonl"):
        (again / name).unlink()
    corpus.voice_text(text, again, voicing(), workers=FreshProcesses(1), fault_limit=0.5)
    assert files_of(again) == files_of(whole)

    pack = Pack(whole)
    assert [item.text["de"] for item in pack.items] == [ROWS[i][1] for i in (0, 1, 3, 5)]
    for number, item in enumerate(pack.items):
        sound = pack.sound(number)
        assert sound.dtype == np.int16
        assert len(sound) == item.samples > 8000
        assert np.abs(sound).max() > 100
        assert len(item.word_ends) == len(item.text["en"].split())
        assert item.word_ends[-1] <= 1000 * len(sound) / 16000
    faults = (whole / "faults.jsonl").read_text().splitlines()
    assert len(faults) == 2
    assert "row 4" in faults[0]  # the header is line 1, as an editor counts
    assert "1000 en words" in faults[1]

    with pytest.raises(DragomanError, match="other text or settings"):
        corpus.voice_text(text, whole, voicing(seed=4))


def test_command_says_what_it_made_and_is_complete_at_once_the_second_time(text, tmp_path):
    from dragoman.cli.voice import command

    packed = tmp_path / "text.tsv.xz"
    packed.write_bytes(lzma.compress("\n".join("\t".join(r) for r in ROWS[:2]).encode()))
    arguments = [str(packed), str(tmp_path / "out"), "--columns", "en,de", "--jobs", "1",
                 "--voices", "espeak*1,hibari*1", "--codec", "opus"]  # fmt: skip
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "2 utterances" in result.output
    assert "one core's work" in result.output
    assert "Left out" not in result.output
    pack = Pack(tmp_path / "out")
    assert len(pack.sound(0)) == pack.items[0].samples
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "2 utterances" in result.output
    assert "one core's work" not in result.output


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"spoken": "fr"}, "no column 'fr'"),
        ({"columns": "en,en"}, "repeat a name"),
        ({"columns": "_,_"}, "name at least one language"),
        ({"columns": "en,,de"}, "call a column _ that is to be left out"),
    ],
)
def test_bad_columns_are_a_sentence(text, tmp_path, change, sentence):
    columns = change.pop("columns", None)
    with pytest.raises(DragomanError, match=sentence):
        corpus.voice_text(text, tmp_path / "out", voicing(**change), columns=columns)


@pytest.mark.parametrize("columns", ["_", "_,_", " "])
def test_a_text_of_no_language_is_a_sentence(tmp_path, columns):
    with pytest.raises(DragomanError, match="name at least one language"):
        pack_text(text_of(tmp_path, "One.\tEins.\n\n"), tmp_path / "out", columns=columns)


def test_bad_text_files_are_a_sentence(tmp_path):
    with pytest.raises(DragomanError, match="There is no file"):
        corpus.voice_text(tmp_path / "no.tsv", tmp_path / "out", voicing())
    plain = tmp_path / "plain.tsv"
    plain.write_text("Some text.\tEin Text.\n")
    with pytest.raises(DragomanError, match="--columns en,de"):
        corpus.voice_text(plain, tmp_path / "out", voicing())
    for name, content in (
        ("latin.tsv", "en\tde\nx\tgr\xfcn\n".encode("latin-1")),
        ("cut.tsv.xz", lzma.compress(b"en\tde\nOne.\tEins.\n" * 2)[:60]),
        ("no.tsv.gz", b"en\tde\n"),
        ("empty.tsv", b""),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DragomanError, match=f"{name} (is|cannot)"):
            corpus.voice_text(tmp_path / name, tmp_path / "out", voicing())
    with pytest.raises(DragomanError, match="is a file; choose another"):
        corpus.voice_text(text_of(tmp_path), tmp_path / "plain.tsv", voicing())


def text_of(folder: Path, content: str = "en\tde\nOne.\tEins.\n") -> Path:
    (folder / "some.tsv").write_text(content, encoding="utf-8")
    return folder / "some.tsv"


@pytest.mark.parametrize("shares", ["espeak*much", "espeak*-1,hibari*2", "espeak*nan", "espeak,"])
def test_bad_shares_are_a_sentence(shares):
    with pytest.raises(DragomanError, match="in --voices is not a"):
        parse_shares(shares)


def test_a_wrong_voice_is_a_sentence_and_does_not_spoil_the_folder(text, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(DragomanError, match="no voice 'espeaker'"):
        corpus.voice_text(text, out, voicing(shares=parse_shares("espeaker")))
    with pytest.raises(DragomanError, match="'hibari' does not speak 'de'"):
        corpus.voice_text(text, out, voicing(spoken="de", shares=parse_shares("hibari")))
    (out).mkdir()
    (out / "made_from.json").write_text("{}")  # as by a command that was stopped at once
    assert corpus.voice_text(text, out, voicing(), fault_limit=0.5).items == 4


def test_headers_and_cells_as_they_come(tmp_path):
    """A byte order mark, Windows lines, a NUL, names for the first column only."""
    text = text_of(tmp_path, "\ufeffen\tde\r\nOne\0 two.\tEins zwei.\r\n")
    names, header = columns_of(text, None)
    assert (names, header) == (["en", "de"], True)
    (row,) = read_rows(text, names, header)
    assert row.text == {"en": "One  two.", "de": "Eins zwei."}
    assert columns_of(text, "en") == (["en"], True)
    assert columns_of(text, "_,de") == (["_", "de"], True)
    assert columns_of(text, "de,en") == (["de", "en"], False)


def test_a_row_that_a_voice_cannot_speak_is_a_fault():
    class Broken:
        name = "broken"

        def draw(self, language, random):
            return "loud"

        def say(self, text, voice, random):
            raise DragomanError("out of breath")

    row = Row(7, {"en": "One.", "de": "Eins."})
    fault = voice_row(row, Broken(), voicing(), np.random.default_rng(0))
    assert str(fault) == "row 7: voice failed (out of breath)"


def test_a_voice_with_speakers_draws_one_for_every_row(monkeypatch):
    from dragoman.train.voicing import neural

    class Choir:
        rate = 24_000

        def speak(self, text, speed=1.0):
            return np.ones(24_000, np.float32)

    opened = []
    offer = replace(VOICES["kokoro"], draw=lambda _, random: random.choice(["ann", "bob"]))
    monkeypatch.setattr(neural, "VOICES", {"choir": offer})
    monkeypatch.setattr(neural, "open_voice", lambda name, _: opened.append(name) or Choir())
    engine, random = neural.NamedVoice("choir"), np.random.default_rng(0)
    for _ in range(20):
        engine.say("word", engine.draw("en", random), random)
    assert sorted(opened) == ["choir:ann", "choir:bob"]
    opened.clear()
    alone = neural.NamedVoice("choir:ann")
    assert alone.draw("en", random).startswith("choir:ann speed")


def test_any_voice_of_dragoman_can_speak(monkeypatch):
    from dragoman.train.voicing import neural

    class Humming:
        rate = 24_000

        def speak(self, text, speed=1.0):
            return np.ones(int(24_000 * len(text) / 10 / speed), np.float32)

    monkeypatch.setattr(neural, "open_voice", lambda name, language: Humming())
    engine, random = neural.NamedVoice("humming"), np.random.default_rng(0)
    said = engine.say("ten letters", engine.draw("en", random), random)
    # The size changes the rate at which it is heard, not the pace that was drawn.
    assert len(said.sound) / said.rate == pytest.approx(1.1 / 1.02, rel=0.3)
    assert said.word_ends == []


def test_a_worker_tells_how_far_it_is_and_ends_when_nobody_listens(tmp_path, monkeypatch):
    from dragoman.train.data import packing

    class Answer(list):
        send = list.append

    monkeypatch.setattr(packing, "TICK_SECONDS", -1.0)
    rows = [Row(number, {"en": "One."}) for number in range(3)]
    job, answer = shard.VoicedShard(tmp_path, 0, rows, voicing()), Answer()
    do_and_tell(packing.Making(shard.make_shard), job, answer)
    assert [told and told.items for _, told in answer] == [1, 2, 3, None]
    assert answer[-2][1].samples == packing.finished_shard(tmp_path, 0).samples

    class Gone:
        def send(self, message):
            raise BrokenPipeError

    with pytest.raises(SystemExit):
        do_and_tell(packing.Making(shard.make_shard), replace(job, number=1), Gone())
    assert {path.name for path in tmp_path.iterdir()} == {"shard-00000.jsonl", "shard-00000.pcm"}


def test_what_killed_workers_left_is_swept_away(text, tmp_path):
    out = tmp_path / "out"
    corpus.voice_text(text, out, voicing(), fault_limit=0.5)
    before = files_of(out)
    (out / "pack.json").unlink()
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=1)
    (out / f".shard-00001.pcm.0.{int(gone.stdout)}.tmp").write_text("half")
    corpus.voice_text(text, out, voicing(), fault_limit=0.5)
    assert files_of(out) == before


def test_the_command_names_what_it_left_out(text, tmp_path):
    from dragoman.cli.voice import command

    arguments = [str(text), str(tmp_path / "out"), "--fault-limit", "0.5", "--jobs", "1"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "Left out: 1 empty text, 1 text too long" in result.output


def test_mostly_faulty_text_stops_with_examples(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_text("en\tde\n" + "\tleer\n" * 5 + "One.\tEins.\n")
    with pytest.raises(DragomanError, match=r"5 of 6 items are faulty.*row 2"):
        corpus.voice_text(path, tmp_path / "out", voicing())


@pytest.mark.parametrize("codec", ["pcm", "opus"])
def test_a_pack_as_files_is_a_corpus_to_evaluate(text, tmp_path, codec):
    import soundfile

    from dragoman.corpora import read_corpus
    from dragoman.detectors import read_ends
    from dragoman.train.data.unpack import unpack

    folder = tmp_path / "voiced"
    corpus.voice_text(text, folder, voicing(codec=codec), fault_limit=0.5)
    clips = read_corpus(unpack(folder), "en", "de")
    pack = Pack(folder)
    assert [clip.texts["de"] for clip in clips] == [item.text["de"] for item in pack.items]
    for number, clip in enumerate(clips):
        for kind, ends in (("words", "word_ends"), ("phones", "phone_ends")):
            known = read_ends(folder / f"{kind}.ends", clip.audio.name).ends_ms
            assert list(known) == getattr(pack.items[number], ends)
        sound, rate = soundfile.read(clip.audio, dtype="int16")
        assert rate == 16_000
        assert abs(len(sound) - pack.items[number].samples) <= 960  # Opus rounds up to its frames
        if codec == "pcm":
            np.testing.assert_array_equal(sound, pack.sound(number))


def test_rows_are_joined_with_the_next_and_none_is_lost():
    rows = [Row(n, {"en": f"one {n}.", "de": f"eins {n}."}) for n in range(200)]
    told = list(joined(rows, 0.4, 80, seed=1))
    together = [row for row in told if row.text["en"].count(".") == 2]
    assert 30 < len(together) < 80  # a row that was joined cannot begin another pair
    for code in ("en", "de"):
        assert " ".join(row.text[code] for row in told) == " ".join(r.text[code] for r in rows)
    assert told == list(joined(rows, 0.4, 80, seed=1))
    assert list(joined(rows, 1.0, 3, seed=1)) == rows  # both together would be too long
    assert list(joined(rows, 0.0, 80, seed=1)) == rows


@pytest.mark.parametrize("empty", [0, 1])
def test_a_row_without_a_translation_is_not_hidden_behind_another(empty):
    rows = [Row(1, {"en": "Hello.", "de": "Hallo."}), Row(2, {"en": "Bye.", "de": "Tschüss."})]
    rows[empty].text["de"] = ""
    assert list(joined(rows, 1.0, 80, seed=1)) == rows


def test_some_break_off_in_mid_sentence(tmp_path):
    text = tmp_path / "text.tsv"
    line = "We have to come to a decision today\tWir müssen heute zu einer Entscheidung kommen\n"
    text.write_text(line * 8, encoding="utf-8")
    voice_all = voicing(cut=1.0)
    corpus.voice_text(text, tmp_path / "pack", voice_all, columns="en,de")
    for item in Pack(tmp_path / "pack").items:
        assert line.startswith(item.text["en"])
        assert len(item.text["en"].split()) < 8
        assert len(item.word_ends) == len(item.text["en"].split())


def test_workers_that_cannot_start_are_told_and_not_waited_for(tmp_path):
    """A script without `if __name__ == "__main__"` starts none; their work is more than a pipe
    holds, which whoever starts them would wait for ever to hand over."""
    rows = "".join(f"This is sentence {n}, {'and so on, ' * 12}\tSatz {n}\n" for n in range(512))
    (tmp_path / "text.tsv").write_text("en\tde\n" + rows, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from dragoman.train.voicing.corpus import voice_text\n"
        "from dragoman.train.voicing.shard import Voicing\n"
        "from dragoman.train.voicing.spoken import parse_shares\n"
        "voicing = Voicing('en', 1, parse_shares('espeak'), 'pcm', 0, 0, 80)\n"
        "voice_text(Path('text.tsv'), Path('pack'), voicing)\n",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "A worker process failed" in done.stderr


def test_a_gpu_that_is_not_there_is_told_before_any_work(tmp_path, monkeypatch):
    from dragoman.cli.voice import command
    from dragoman.models import device

    monkeypatch.setattr(device, "gpus", lambda: 0)
    (tmp_path / "text.tsv").write_text("One.\tEins.\n")
    result = CliRunner().invoke(
        command, [str(tmp_path / "text.tsv"), str(tmp_path / "out"), "--device", "cuda"]
    )
    assert "no CUDA GPU" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_the_device_reaches_the_process_that_speaks(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(shard, "run_on", told.append)
    make_shard(VoicedShard(tmp_path, 0, [], replace(voicing(), device="cuda")), lambda *_: None)
    assert told == ["cuda"]


def test_the_speed_is_not_told_of_what_another_process_has_spoken(tmp_path, monkeypatch):
    """While this one waited for it; its own work was nothing, and that was divided by."""
    from dragoman.cli.voice import command

    header = Header("pcm", ["en", "de"], "en", 1, 3, 0.5, "", {})
    monkeypatch.setattr(corpus, "voice_text", lambda *_, **__: header)
    monkeypatch.setattr("dragoman.cli.voice._cpu", lambda: 7.0)
    (tmp_path / "text.tsv").write_text("One.\tEins.\n")
    result = CliRunner().invoke(
        command, [str(tmp_path / "text.tsv"), str(tmp_path / "out")], catch_exceptions=False
    )
    assert "3 utterances, 0.50 hours of speech." in result.output
    assert "an hour" not in result.output

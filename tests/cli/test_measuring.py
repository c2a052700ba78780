"""`evaluate`, `sweep` and `tune` as a user calls them, with the scripted model."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from sacrebleu.metrics.bleu import BLEU

from dragoman.cli.app import dragoman
from dragoman.errors import DragomanError
from dragoman.evaluate.result import system_result
from dragoman.metrics.comet import Comet
from dragoman.metrics.logs import read_log
from dragoman.setup import Setup
from tests import warm
from tests.cli.terminal import terminal
from tests.golden.comet.toy import make

ROOT = Path(__file__).parents[2]
MODEL = ("--model", "tests.scripted:steady", "--from", "de")
QUICK = (*MODEL, "--policies", "wait-k:k=1|3")


@pytest.fixture
def corpus(tmp_path):
    rows = ["audio\tde\ten\tzh"]
    for index in range(4):
        soundfile.write(tmp_path / f"{index}.wav", np.zeros(16000 * 5, np.float32), 16000)
        rows.append(f"{index}.wav\tein Wort {index}\tword0 word1 word2 word3\tword0word1")
    (tmp_path / "corpus.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path / "corpus.tsv"


def call(*arguments):
    return CliRunner().invoke(dragoman, list(map(str, arguments)), catch_exceptions=False)


def done(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("command", "kept", "told"),
    [
        ("evaluate", ("--output", "out"), "The same command goes on from here."),
        ("evaluate", (), "With --output DIR, the same command would go on from here."),
        ("sweep", ("out",), "The same command goes on from here."),
        ("tune", ("--runs", "out"), "The same command goes on from here."),
        ("tune", (), "With --runs DIR, the same command would go on from here."),
    ],
)
def test_who_stops_long_work_is_told_whether_it_goes_on(
    command, kept, told, corpus, tmp_path, monkeypatch
):
    def stopped(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.evaluate.run.interpret_clips", stopped)
        result = call(command, corpus, *kept, *MODEL)
    assert result.exit_code
    assert f"Stopped. {told}\n" in result.stderr
    again = MODEL if command == "evaluate" else QUICK
    assert "Stopped" not in done(command, corpus, *kept, *again).stderr


def test_evaluate_scores_by_the_target(corpus):
    english = json.loads(done("evaluate", corpus, *MODEL, "--policy", "greedy", "--json").stdout)
    assert "|tok:13a|" in english["signature"]["BLEU"]
    assert "|unit:word|" in english["signature"]["LAAL"]
    chinese = json.loads(done("evaluate", corpus, *MODEL, "--to", "zh", "--json").stdout)
    assert "|tok:zh|" in chinese["signature"]["BLEU"]
    assert "|unit:char|" in chinese["signature"]["LAAL"]
    assert chinese["scores"]["chrF"] > 0


@pytest.mark.parametrize(
    "words", [("evaluate", "--output"), ("sweep",), ("tune", "best.yaml", "--runs")]
)
def test_a_full_disk_is_told_before_any_work(corpus, tmp_path, words):
    name, *rest = words
    plan = [name, corpus, *rest, tmp_path / "runs"]
    plan = [tmp_path / word if word == "best.yaml" else word for word in plan]
    with open("/dev/full", "w") as full:
        command = warm.command("-m", "dragoman", *map(str, [*plan, *MODEL]))
        told = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert told.returncode == 2
    assert told.stderr == (
        "dragoman: Cannot write standard output: the disk is full; make room and run the same "
        "command again.\n"
    )
    assert not [*(tmp_path / "runs").rglob("*")]


def test_tune_refuses_a_full_device_before_any_work(corpus, tmp_path):
    with pytest.raises(DragomanError, match="Cannot write /dev/full: the disk is full"):
        call("tune", corpus, "/dev/full", *QUICK, "--runs", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_evaluate_takes_a_manifest_of_lhotse(corpus, tmp_path):
    pytest.importorskip("lhotse")
    from dragoman.corpora import read_clips
    from dragoman.train.data.cuts import write_cuts

    cuts = tmp_path / "cuts.jsonl.gz"
    write_cuts(read_clips(corpus, "de", "en"), cuts, "de")
    plan = (*MODEL, "--policy", "greedy", "--json", "--limit", 3)
    told, wanted = (json.loads(done("evaluate", path, *plan).stdout) for path in (cuts, corpus))
    for name in ("BLEU", "LAAL", "WER"):
        assert told["scores"][name] == wanted["scores"][name]
    assert len(told["sentences"]) == 3
    with pytest.raises(DragomanError, match="as number 1 has no text in 'fr'"):
        call("evaluate", cuts, *MODEL, "--to", "fr")
    with pytest.raises(DragomanError, match="--references go with a list of audio files"):
        call("evaluate", cuts, *MODEL, "--references", corpus)
    (tmp_path / "2.wav").unlink()
    with pytest.raises(DragomanError, match=r"names audio that is not there: .*2\.wav"):
        call("evaluate", cuts, *MODEL)
    with pytest.raises(DragomanError, match="There is no manifest"):
        call("evaluate", tmp_path / "no.jsonl.gz", *MODEL)


def test_several_references_of_a_corpus_are_kept_with_the_run(corpus, tmp_path):
    rows = corpus.read_text().splitlines()
    corpus.write_text(
        "\n".join([f"{rows[0]}\ten.2", *(f"{r}\tword0 and" for r in rows[1:])]) + "\n"
    )
    run = tmp_path / "run"
    evaluated = json.loads(done("evaluate", corpus, *MODEL, "--json", "--output", run).stdout)
    said = [json.loads(r)["prediction"] for r in (run / "instances.log").read_text().splitlines()]
    wanted = BLEU().corpus_score(said, [["word0 word1 word2 word3"] * 4, ["word0 and"] * 4])
    for read in (run, run / "instances.log"):
        again = json.loads(done("score", read, "--json").stdout)
        for found in (evaluated, again):
            assert found["scores"]["BLEU"] == pytest.approx(wanted.score)
            assert found["signature"]["BLEU"].startswith("BLEU|nrefs:2|")
    done("sweep", corpus, tmp_path / "out", *QUICK)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count('"references": ["word0 word1 word2 word3", "word0 and"]') == 8
    audio = tmp_path / "audio.txt"
    audio.write_text("".join(f"{n}.wav\n" for n in range(4)))
    lists = []
    for name, text in (("a.txt", "word0 word1 word2 word3"), ("b.txt", "word0 and")):
        (tmp_path / name).write_text(f"{text}\n" * 4)
        lists += ["--references", tmp_path / name]
    listed = json.loads(done("evaluate", audio, *MODEL, *lists, "--json").stdout)
    assert listed["scores"]["BLEU"] == pytest.approx(wanted.score)


def test_evaluate_with_comet(corpus, tmp_path):
    """What is spoken is the corpus's own, clip by clip."""
    net = make(tmp_path / "net", "usual")
    spoken = ["Der Bericht", "ist", "sehr gut", "danke"]
    corpus.write_text(
        "audio\tde\ten\n" + "".join(f"{n}.wav\t{text}\tthe sea\n" for n, text in enumerate(spoken))
    )
    options = ("--policy", "greedy", "--comet", net, "--json")
    done_with = done("evaluate", corpus, *MODEL, *options, "--output", tmp_path / "run")
    said = [
        json.loads(line)["prediction"]
        for line in (tmp_path / "run" / "instances.log").read_text().splitlines()
    ]
    wanted = Comet(net).scores(spoken, said, ["the sea"] * 4)
    assert len(set(wanted)) == 4
    rows = json.loads(done_with.stdout)["sentences"]
    assert [row["COMET"] for row in rows] == pytest.approx(list(wanted))
    with pytest.raises(DragomanError, match="must have a text in the spoken language"):
        call("evaluate", corpus, "--model", MODEL[1], "--from", "fr", "--to", "en", *options)


def test_evaluate_tries_the_machine_where_that_is_wanted(corpus):
    """What `translate` would do with the same option is what is measured."""
    result = done("evaluate", corpus, *MODEL, "--max-latency", "auto", "--json")
    assert result.stderr.startswith("Tried on this machine: steps of ")
    assert json.loads(result.stdout)


def test_sweep_scores_by_the_target_and_shows_what_was_spoken(corpus, tmp_path):
    done("sweep", corpus, tmp_path / "out", *QUICK, "--to", "zh")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "tok:zh|" in page
    assert "unit:char|" in page
    assert "ein Wort 3" in page
    assert page.count("data:audio/ogg") == 4
    done("sweep", corpus, tmp_path / "quiet", *QUICK, "--sound", "0")
    assert "data:audio" not in (tmp_path / "quiet" / "report.html").read_text()


def test_the_report_of_a_sweep_that_fails_has_what_was_done(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.evaluate.sparing.SHARE", 0.0)  # never in between
    results = []

    def third_fails(setup, run, scorer):
        results.append(setup)
        if len(results) == 3:
            raise DragomanError("The third one fails.")
        return system_result(setup, run, scorer)

    monkeypatch.setattr("dragoman.evaluate.result.system_result", third_fails)
    with pytest.raises(DragomanError, match="The third one fails"):
        call("sweep", corpus, tmp_path / "sweep", *MODEL, "--policies", "wait-k:k=1|2|3|4")
    assert len((tmp_path / "sweep" / "scores.tsv").read_text().splitlines()) == 3


def test_every_run_of_a_sweep_has_a_log_for_other_tools(corpus, tmp_path):
    done("sweep", corpus, tmp_path / "sweep", *MODEL, "--policies", "greedy")
    plan = ("--policy", "greedy", "--step", "1s")
    done("evaluate", corpus, *MODEL, *plan, "--output", tmp_path / "one")
    logs = [read_log(tmp_path / name / "instances.log") for name in ("sweep/greedy-1000ms", "one")]
    first, second = ([(i.index, i.prediction, i.delays) for i in log.instances] for log in logs)
    assert first == second


def test_the_numbers_of_systems_stand_below_one_another(corpus, tmp_path):
    """The names, which may be long, come last; all of it fits into a line of eighty columns."""
    policies = ("--policies", "wait-k:k=1|30", "--policies", "local-agreement:n=2")
    shown = done("sweep", corpus, tmp_path / "out", *MODEL, *policies).stdout.splitlines()
    form = r"BLEU +[\d.]+  LAAL +[\d.-]+ s  LAAL_CA +[\d.-]+ s  RTF [\d.]+  "
    assert [re.sub(f"^{form}", "", line) for line in shown] == [
        *(f"wait-k:k={k}, 1 s steps" for k in (1, 30)),
        "local-agreement:n=2, 1 s steps",
    ]
    assert len({line.index("RTF") for line in shown}) == 1
    told = done("tune", corpus, tmp_path / "b.yaml", *MODEL, *policies, "--max-latency", "9s")
    form = r"best: BLEU +[\d.]+  latency +[\d.]+ s  (wait-k|local-agreement):.*, 0.5 s steps"
    assert re.fullmatch(form, told.stdout.splitlines()[0])


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_a_sweep_leaves_out_what_the_model_cannot_follow(corpus, tmp_path, monkeypatch, jobs):
    monkeypatch.setattr("dragoman.evaluate.grid.STANDARD", ("greedy", "confidence:gamma=0.5|0.9"))
    model = ("--model", "tests.talkers:deaf_to_silence", "--from", "de")
    result = done("sweep", corpus, tmp_path / "out", *model, "--steps", "1s,2s", *jobs)
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.count("left out: confidence:gamma=0.5: This policy needs a silence") == 1
    asked = ("--policies", "greedy", "--policies", "confidence")
    with pytest.raises(DragomanError, match="needs a silence probability"):
        call("sweep", corpus, tmp_path / "asked", *model, *asked, *jobs)
    assert not (tmp_path / "asked" / "greedy-1000ms").exists()  # it is said before all else


def test_tuning_leaves_out_what_the_model_cannot_follow(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.cli.tune.CANDIDATES", ("greedy", "confidence:gamma=0.5"))
    model = ("--model", "tests.talkers:deaf_to_silence", "--from", "de")
    result = done("tune", corpus, tmp_path / "best.yaml", *model, "--max-latency", "9s")
    assert "best: " in result.stdout
    assert "left out: confidence:gamma=0.5: This policy needs a silence" in result.stderr


@pytest.mark.parametrize(("spoken", "told"), [("fr", 1), ("de", 0), ("en", 0)])
def test_a_language_that_a_corpus_knows_nothing_of_is_told(corpus, spoken, told):
    result = done("evaluate", corpus, "--model", MODEL[1], "--from", spoken, "--to", "en")
    asked = f"has texts in de, en, zh, and none in '{spoken}': is that what is spoken in it"
    assert result.stderr.count(asked) == told
    assert result.stderr.count("(--from)?") == told


def test_references_alone_say_nothing_of_what_is_spoken(corpus, tmp_path):
    (tmp_path / "wavs.txt").write_text("0.wav\n1.wav\n")
    (tmp_path / "refs.txt").write_text("a word\na word\n")
    result = done("evaluate", tmp_path / "wavs.txt", *MODEL, "--references", tmp_path / "refs.txt")
    assert "none in" not in result.stderr


def test_tune_shows_that_it_works(corpus, tmp_path):
    """A trial of a dozen talks takes minutes; its line comes at the end, and stands alone."""
    (tmp_path / "3.wav").write_bytes(b"no sound")
    trials = ("--steps", "1s", "--max-latency", "9s")
    with terminal("tune", corpus, tmp_path / "best.yaml", *QUICK, *trials, columns=300) as screen:
        assert screen.rest() == 0
    assert b"corpus.tsv" in screen.raw
    assert b"4/4" in screen.raw  # clips, of the first trial
    heads = [line.split()[0] for line in screen.lines if line[:1] != "/"]
    assert heads[:4] == ["left", "3", "3", "best:"]
    assert not any("\u2501" in line for line in screen.everything)  # of the bar


def test_tune_ranks_by_the_target(corpus, tmp_path, monkeypatch):
    """What it maximises is BLEU by the tokenizer of the target, on its unit."""
    from dragoman.evaluate.result import Scorer

    used = []
    values = Scorer.values
    monkeypatch.setattr(Scorer, "values", lambda self, t: used.append(self) or values(self, t))
    done("tune", corpus, tmp_path / "best.yaml", *QUICK, "--to", "zh", "--max-latency", "9s")
    assert set(used) == {Scorer("char", "zh")}
    assert Setup.read(tmp_path / "best.yaml").target == "zh"


@pytest.mark.parametrize("command", ["evaluate", "sweep", "tune"])
def test_a_clip_that_cannot_be_read_is_named_and_the_others_count(corpus, tmp_path, command):
    (tmp_path / "2.wav").write_bytes(b"not sound at all")
    arguments = {
        "evaluate": ("evaluate", corpus, *MODEL),
        "sweep": ("sweep", corpus, tmp_path / "out", *QUICK),
        "tune": ("tune", corpus, tmp_path / "best.yaml", *QUICK, "--max-latency", "9s"),
    }[command]
    result = done(*arguments)
    assert result.stderr.count("clip 2 (2.wav)") == 1
    if command == "sweep":
        assert "1 clip could not be interpreted" in (tmp_path / "out/report.html").read_text()
    if command == "tune":
        assert Setup.read(tmp_path / "best.yaml").policy.startswith("wait-k")


def test_a_policy_of_ones_own_that_fails_does_not_end_a_sweep(corpus, tmp_path):
    """Of some clips it is named with its setting; what fails at all of them is left out."""
    soundfile.write(tmp_path / "2.wav", np.zeros(16000 * 7, np.float32), 16000)
    own = "tests.own_policies.Fails:at=0|6000"
    options = (*MODEL, "--policies", own)
    result = done("sweep", corpus, tmp_path / "out", *options, "--policies", "greedy")
    first, second = [line for line in result.stderr.splitlines() if line.startswith("left out")]
    assert first.startswith("left out: tests.own_policies.Fails:at=0, 1 s steps: None of the 4 ")
    assert second.startswith(
        "left out: tests.own_policies.Fails:at=6000, 1 s steps: clip 2 (2.wav): ValueError in "
    )
    assert result.stdout.count("BLEU") == 2
    page = (tmp_path / "out/report.html").read_text()
    assert "1 clip could not be interpreted" in page
    assert "2 of 3 systems; 1 failed in code of their own" in page
    with pytest.raises(DragomanError, match=r"None of the 4 clips .* ValueError in tests"):
        call("sweep", corpus, tmp_path / "none", *MODEL, "--policies", own.partition("|")[0])


@pytest.mark.parametrize("command", ["evaluate", "sweep", "tune"])
@pytest.mark.parametrize("missing", [0, 2])
def test_a_clip_without_word_ends_is_named_and_the_others_count(corpus, tmp_path, command, missing):
    """In a file of `--detector boundaries:`, whichever clip it is."""
    ends = tmp_path / "words.ends"
    known = [n for n in range(4) if n != missing]
    ends.write_text("".join(f"{n}.wav\t400 900 1500\n" for n in known))
    options = [*MODEL, "--detector", f"boundaries:{ends}"]
    if command == "evaluate":
        arguments = [command, corpus, *options, "--policy", "wait-k:k=1", "--json"]
    else:
        arguments = [command, corpus, tmp_path / "out", *options, "--policies", "wait-k:k=1"]
    result = done(*arguments)
    if command == "sweep":
        page = (tmp_path / "out" / "report.html").read_text()
        assert f"tests.scripted:steady, words by boundaries:{ends}, 4 clips" in page
    told = f"left out: clip {missing} ({missing}.wav): {ends} has no word ends of '{missing}.wav'"
    assert result.stderr.count(told) == 1
    if command == "evaluate":
        report = json.loads(result.stdout)
        assert [row["index"] for row in report["sentences"]] == known
        assert len(report["left_out"]) == 1
        done(*arguments, "--output", tmp_path / "run")
        again = done("score", tmp_path / "run", "--json")  # the run remembers it
        assert json.loads(again.stdout)["left_out"] == report["left_out"]
        assert again.stderr.count(told) == 1
    ends.write_text("other.wav\t400\n")
    arguments[2:3] = [tmp_path / "other"] if command == "sweep" else arguments[2:3]
    with pytest.raises(DragomanError, match=r"None of the 4 clips .* no word ends of '\d.wav'"):
        call(*arguments)


@pytest.mark.parametrize("command", ["evaluate", "sweep", "tune"])
def test_references_beside_a_corpus_that_has_its_own_are_told_where_to_go(
    corpus, tmp_path, command
):
    out = [] if command == "evaluate" else [tmp_path / "out"]
    with pytest.raises(DragomanError, match=r"references are columns 'en\.2', 'en\.3'"):
        call(command, corpus, *out, *MODEL, "--references", corpus)


def test_a_clip_in_which_a_run_was_stopped_is_not_scored(corpus, tmp_path):
    run, part = tmp_path / "run", tmp_path / "part"
    done("evaluate", corpus, *MODEL, "--policy", "greedy", "--output", run)
    shutil.copytree(run, part)
    lines = (run / "traces.jsonl").read_text().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"dragoman_trace"' in line)
    cut = next(n for n in range(last, len(lines)) if '"said"' in lines[n]) + 1
    (part / "traces.jsonl").write_text("".join(lines[:cut]))
    told = done("score", part, "--json")
    assert [row["index"] for row in json.loads(told.stdout)["sentences"]] == [0, 1, 2]
    assert "the run was stopped there; the same command goes on with it" in told.stderr
    assert done("score", run, "--json").stderr == ""
    (tmp_path / "talk.jsonl").write_text("".join(lines[last:cut]))  # of no run
    told = done("score", tmp_path / "talk.jsonl", "--json").stdout
    assert len(json.loads(told)["sentences"]) == 1


def test_references_find_their_clips_in_a_run_that_lacks_some(corpus, tmp_path):
    (tmp_path / "1.wav").write_bytes(b"not sound at all")
    done("evaluate", corpus, *MODEL, "--policy", "greedy", "--output", tmp_path / "run")
    lines = [f"word0 word1 word2 word3 of{n}" for n in range(4)]
    (tmp_path / "refs.txt").write_text("\n".join(lines) + "\n")
    told = done("score", tmp_path / "run", "--references", tmp_path / "refs.txt", "--json").stdout
    log = (tmp_path / "run" / "instances.log").read_text().splitlines()
    said = {row["index"]: row["prediction"] for row in map(json.loads, log)}
    assert list(said) == [0, 2, 3]
    wanted = BLEU().corpus_score(list(said.values()), [[lines[n] for n in said]])
    assert json.loads(told)["scores"]["BLEU"] == pytest.approx(wanted.score)
    (tmp_path / "refs.txt").write_text("\n".join(lines[:3]) + "\n")  # as many as there are
    done("score", tmp_path / "run", "--references", tmp_path / "refs.txt")
    (tmp_path / "refs.txt").write_text("\n".join(lines[:2]) + "\n")
    with pytest.raises(DragomanError, match=r"has 2 references but .* has 3 sentences"):
        call("score", tmp_path / "run", "--references", tmp_path / "refs.txt")


@pytest.mark.parametrize("command", ["evaluate", "sweep", "tune"])
def test_a_corpus_of_which_nothing_can_be_read_is_one_sentence(corpus, tmp_path, command):
    for index in range(4):
        (tmp_path / f"{index}.wav").write_bytes(b"not sound at all")
    out = {"evaluate": (), "sweep": (tmp_path / "out",), "tune": (tmp_path / "best.yaml",)}
    more = MODEL if command == "evaluate" else QUICK
    with pytest.raises(DragomanError, match="None of the 4 clips could be interpreted"):
        call(command, corpus, *out[command], *more)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "CORPUS", "FILE/best.yaml"),
        ("tune", "CORPUS", "FOLDER"),
        ("tune", "CORPUS", "FOLDER/best.yaml", "--runs", "FILE"),
        ("sweep", "CORPUS", "FILE"),
        ("evaluate", "CORPUS", "--output", "FILE/runs"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_an_output_that_cannot_be_written_is_told_before_the_model_is_loaded(
    corpus, tmp_path, monkeypatch, arguments
):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    named = {"CORPUS": corpus, "FILE": tmp_path / "file", "FOLDER": tmp_path / "folder"}
    for name, path in named.items():
        arguments = [str(each).replace(name, str(path)) for each in arguments]
    monkeypatch.setattr("dragoman.setup.load_model", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(DragomanError, match="Cannot write"):
        call(*arguments, *(MODEL if arguments[0] == "evaluate" else QUICK))


@pytest.mark.parametrize("lacking", [3, 4])
def test_what_cannot_be_compared_is_told(corpus, tmp_path, lacking):
    """Without a single text every policy was as good, and one of them won."""
    head, *rows = [line.split("\t") for line in corpus.read_text().splitlines()]
    rows = [[*row[:2], *([""] if n < lacking else row[2:3]), row[3]] for n, row in enumerate(rows)]
    corpus.write_text("\n".join(map("\t".join, [head, *rows])) + "\n")
    done("sweep", corpus, tmp_path / "out", *QUICK[:-1], "greedy", "--sound", "0")
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"4 clips ({lacking} without a reference), 1 of 1 systems" in page
    plan = ("tune", corpus, tmp_path / "best.yaml", *QUICK, "--max-latency", "9s")
    if lacking < 4:
        done(*plan)
    else:
        with pytest.raises(DragomanError, match="has no text in 'en' for any of its clips"):
            call(*plan)


def test_tune_does_not_overwrite_its_corpus(corpus):
    before = corpus.read_text()
    with pytest.raises(DragomanError, match="is read by this command"):
        call("tune", corpus, corpus, *QUICK)
    assert corpus.read_text() == before


def test_evaluate_that_was_killed_goes_on(corpus, tmp_path):
    """A real kill, in the middle of the corpus; the second call interprets only the rest."""
    folder = tmp_path / "run"
    slow = "tests.talkers:killed_in_the_middle"
    command = ["evaluate", corpus, "--model", slow, "--from", "de", "--output", folder, "--json"]
    process = warm.Copy(
        *("-m", "dragoman", *command),
        env=os.environ | {"SLOWLY": "yes"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    traces = folder / "traces.jsonl"
    while process.poll() is None and not (traces.is_file() and b'"end"' in traces.read_bytes()):
        time.sleep(0.05)
    process.kill()
    process.wait()
    text = traces.read_text()
    kept = text[: text.rindex('{"end":true}') + 13]
    assert 1 <= kept.count('"end"') <= 2
    with traces.open("a") as file:
        file.write('{"dragoman_trace": 1, "ind')  # and the kill was inside a line
    result = json.loads(done(*command).stdout)
    assert len(result["sentences"]) == 4
    assert traces.read_text().count('"end"') == 4
    assert traces.read_text().startswith(kept)


@pytest.mark.parametrize("command", ["evaluate", "sweep", "tune"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_wrong_with_a_recording_is_told_once(corpus, tmp_path, command, jobs):
    """However many clips are in it, and however many processes and settings read it."""
    recording = tmp_path / "0.wav"
    recording.write_bytes(recording.read_bytes()[:-1000])
    rows = [f"0.wav\t{start}\t{start + 1}\tWort\tword0" for start in range(4)]
    corpus.write_text("\n".join(["audio\tstart\tend\tde\ten", *rows]) + "\n")
    arguments = {
        "evaluate": (),
        "sweep": (tmp_path / "out", *QUICK[-2:]),
        "tune": (tmp_path / "best.yaml", *QUICK[-2:], "--max-latency", "9s"),
    }[command]
    result = done(command, corpus, *arguments, *MODEL, "--jobs", jobs)
    assert result.stderr.count("0.wav is cut short") == 1

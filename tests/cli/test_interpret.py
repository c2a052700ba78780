"""The commands that interpret, on the scripted model: what they print and what they write."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest
import soundfile

from tests import warm
from tests.cli.commands import ROOT, dragoman
from tests.evaluate.simuleval_runs import run_cli

WORDS = [f"word{i}" for i in range(12)]
SYSTEM = ("--model", "tests.scripted:steady", "--from", "de", "--step", "500ms")


@pytest.fixture
def wav(tmp_path):
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16000 * 5, np.float32), 16000)
    return path


@pytest.fixture
def corpus(tmp_path, wav):
    path = tmp_path / "corpus.tsv"
    path.write_text("audio\tde\ten\n" + f"talk.wav\tx\t{' '.join(WORDS)}\n" * 3)
    return path


def test_translate_prints_words_and_a_summary(wav):
    done = dragoman("translate", wav, *SYSTEM, "--policy", "greedy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == WORDS
    assert "12 words from 5.0 s of speech, on average 0." in done.stderr


def test_the_summary_stands_on_a_line_of_its_own(wav):
    command = warm.command("-m", "dragoman", "translate", str(wav), *SYSTEM)
    both = subprocess.run(command, cwd=ROOT, stdout=-1, stderr=subprocess.STDOUT, text=True)
    assert f"{WORDS[-1]}\n12 words from 5.0 s" in both.stdout


def test_translate_from_a_pipe_of_raw_samples(wav):
    samples, _ = soundfile.read(wav, dtype="int16")
    done = subprocess.run(
        warm.command("-m", "dragoman", "translate", "-", "--raw", "s16le:16000:1",
         *SYSTEM, "--policy", "greedy", "--json"),
        cwd=ROOT, input=samples.tobytes(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(row["said"] for row in rows).split() == WORDS
    assert all(row["shown_ms"] >= 0 for row in rows)


def test_translate_writes_captions_a_trace_and_speech(wav, tmp_path):
    files = {name: tmp_path / f"out.{name}" for name in ("srt", "vtt", "jsonl", "wav", "mix.wav")}
    done = dragoman(
        *("translate", wav, *SYSTEM, "--policy", "wait-k:k=2", "--captions", files["srt"]),
        *("--captions", files["vtt"], "--trace", files["jsonl"], "--speak", files["wav"]),
        *("--mix", files["mix.wav"]),
    )
    assert done.returncode == 0, done.stderr
    assert "word0 word1" in files["srt"].read_text().replace("\n", " ")
    assert files["vtt"].read_text().startswith("WEBVTT")
    scored = json.loads(dragoman("score", files["jsonl"], "--json").stdout)
    assert scored["sentences"][0]["StartOffset"] == 1000
    speech, mix = soundfile.info(files["wav"]), soundfile.info(files["mix.wav"])
    assert speech.duration >= 5
    assert mix.channels == 2
    right = soundfile.read(files["mix.wav"])[0][:, 1]
    assert np.abs(right).max() > 0.05


def test_loading_the_model_is_no_lag(wav, tmp_path):
    system = ("--model", "tests.scripted:slow_to_load", *SYSTEM[2:], "--policy", "greedy")
    trace = ("--trace", tmp_path / "t.jsonl")
    done = dragoman("translate", wav, *system, "--realtime", "--end", 1, *trace)
    assert done.returncode == 0, done.stderr
    rows = map(json.loads, (tmp_path / "t.jsonl").read_text().splitlines())
    _, arrived, began, _ = next(row["heard"] for row in rows if "heard" in row)
    assert began - arrived < 2000


def test_a_recording_waits_while_the_process_is_stopped(wav, tmp_path):
    """At its own pace and as fast as it goes: both at once, since it takes its time."""
    system = ("--model", "tests.talkers:slow", *SYSTEM[2:], "--policy", "greedy", "--end", "2")
    traces = {tmp_path / "fast.jsonl": (), tmp_path / "realtime.jsonl": ("--realtime",)}
    processes = [
        warm.Copy(
            "-m", "dragoman", "translate", wav, *system, *pace, "--trace", trace,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for trace, pace in traces.items()
    ]  # fmt: skip
    for process, trace in zip(processes, traces, strict=True):
        while not trace.exists() or "heard" not in trace.read_text():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
    time.sleep(8)
    for process in processes:
        process.send_signal(signal.SIGCONT)
    for process, trace in zip(processes, traces, strict=True):
        _, err = process.communicate()
        assert process.returncode == 0, err
        rows = [json.loads(line) for line in trace.read_text().splitlines()]
        heard = [row["heard"] for row in rows if "heard" in row]
        assert heard[-1][0] == 2000
        assert max(end - begin for _, _, begin, end in heard) < 6_000
        assert max(end - arrived for _, arrived, _, end in heard) < 8_000


def test_ctrl_c_says_the_rest_and_completes_the_files(wav, tmp_path):
    process = warm.Copy(
        "-m", "dragoman", "translate", wav, "--realtime", *SYSTEM, "--policy", "offline",
        "--trace", tmp_path / "t.jsonl", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not (tmp_path / "t.jsonl").exists() or "heard" not in (tmp_path / "t.jsonl").read_text():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.split()[:2] == WORDS[:2]
    assert "Traceback" not in err
    assert '{"end":true}' in (tmp_path / "t.jsonl").read_text()


def test_evaluate_prints_the_object_that_score_prints(corpus, tmp_path):
    done = dragoman(
        *("evaluate", corpus, *SYSTEM, "--policy", "wait-k:k=3", "--json"),
        *("--output", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["scores"]["BLEU"] == pytest.approx(100)
    again = json.loads(dragoman("score", tmp_path / "run" / "traces.jsonl", "--json").stdout)
    assert again["scores"] == result["scores"]
    assert again["signature"] == result["signature"]
    assert len(result["sentences"]) == 3
    theirs = json.loads(dragoman("score", tmp_path / "run" / "instances.log", "--json").stdout)
    assert theirs["scores"]["LAAL"] == pytest.approx(result["scores"]["LAAL"])
    assert theirs["scores"]["LAAL_CA"] == pytest.approx(result["scores"]["LAAL_CA"], rel=1e-3)


def test_simuleval_scores_the_log_of_our_run(corpus, tmp_path):
    pytest.importorskip("simuleval", reason="SimulEval is not installed")
    out = tmp_path / "run"
    done = dragoman("evaluate", corpus, *SYSTEM, "--policy", "wait-k:k=3", "--output", out)
    assert done.returncode == 0, done.stderr
    words = ("--score-only", "--output", out, "--quality-metrics", "BLEU")
    told = run_cli(tmp_path, *words, "--latency-metrics", "AL", "LAAL", "DAL", "AP")
    names, values = (line.split() for line in told.splitlines())
    theirs = dict(zip(names, values[1:], strict=True))
    ours = json.loads(dragoman("score", out, "--json").stdout)["scores"]
    for name in ("BLEU", "AL", "LAAL", "DAL", "AP"):
        assert float(theirs[name]) == pytest.approx(ours[name], abs=6e-4)


def test_sweep_writes_a_report_that_needs_no_network(corpus, tmp_path):
    out = tmp_path / "sweep"
    policies = ("--policies", "wait-k:k=1|4", "--policies", "offline")
    done = dragoman("sweep", corpus, out, *SYSTEM[:-2], *policies, "--steps", "500ms,1s")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 6
    html = (out / "report.html").read_text()
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert html.count("<circle") == 12
    rows = (out / "scores.tsv").read_text().splitlines()
    assert rows[0].split("\t")[:2] == ["system", "BLEU"]
    assert len(rows) == 7


def test_tune_writes_a_setup_that_translate_takes(corpus, wav, tmp_path):
    setup = tmp_path / "best.yaml"
    done = dragoman(
        *("tune", corpus, setup, *SYSTEM[:-2], "--max-latency", "1500ms", "--steps", "500ms"),
        *("--policies", "wait-k:k=1|3|9"),
    )
    assert done.returncode == 0, done.stderr
    assert "policy: wait-k:k=" in setup.read_text()
    used = dragoman("translate", wav, "--setup", setup, "--quiet")
    assert used.stdout.split() == WORDS


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("translate", "nothing.wav"), "nothing.wav"),
        (("translate", "README.md", "--policy", "wait"), "There is no policy 'wait'."),
        (("translate", "README.md", "--from", "Klingonish"), "'Klingonish' is not a language"),
        (("translate", "README.md", "--step", "soon"), "'soon' is not a time"),
        (("translate", "README.md", "--policy", "greedy", "--max-latency", "1s"), "not both"),
        (("translate", "README.md", "--max-latency", "10ms"), "No policy is tuned for less"),
        (("translate", "README.md", "--setup", "no.yaml"), "Cannot read the setup no.yaml"),
        (("evaluate", "no.tsv", "--from", "de"), "There is no corpus at no.tsv."),
        (("live", "--file", "x.wav", "--microphone", "2"), "A file needs no microphone"),
        (("live", "x.wav", "--record", "y.wav"), "A file needs no microphone"),
        (("live", "--track", "2"), "--track is about a recording"),
        (("live", "--channel", "left"), "--channel is about a recording"),
        (("live", "--raw", "s16le"), "--raw is about a recording"),
        (("live", "x.wav", "--file", "y.wav"), "x.wav and y.wav cannot both be heard"),
        (("score", "x" * 300), "cannot be used: File name too long"),
        (("compare", "a", "b", "--resamples", "99999999999"), "from 1 to 1,000,000"),
        (("serve", "--voice", "nobody"), "There is no voice 'nobody'"),
        (("serve", "--origin", "talks.example"), "--origin takes an address that begins with"),
        (("serve", "--origin", "https://[x"), "--origin takes a site, like https://talks.example"),
        (("serve", "--captions-to", ""), "--captions-to takes an address that begins with"),
        (("languages", "Elvish"), "No language that whisper-base hears is called 'Elvish'."),
    ],
)
def test_mistakes_get_a_sentence_and_status_2(args, sentence):
    model = () if args[0] in ("languages", "score", "compare") else SYSTEM[:2]
    done = dragoman(*args, *model)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written_is_named(wav):
    for option, name in (("--captions", "a.srt"), ("--speak", "a.wav"), ("--trace", "a.jsonl")):
        path = f"/proc/nowhere/{name}"
        done = dragoman("translate", wav, *SYSTEM, option, path)
        assert done.returncode == 2, done.stderr
        assert path in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("named", [("--file",), ()])
def test_live_plays_a_file_as_if_it_were_spoken(tmp_path, named):
    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(16000, np.float32), 16000)
    done = dragoman("live", *named, path, *SYSTEM, "--policy", "greedy", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(row["said"] for row in rows).split() == WORDS
    assert rows[-1]["shown_ms"] >= 1000


def test_live_hears_plain_samples_and_the_track_and_channel_that_are_wanted(tmp_path):
    path = tmp_path / "talk.raw"
    path.write_bytes(bytes(16000 * 2))  # half a second of two channels
    live = ("live", path, *SYSTEM, "--policy", "greedy", "--json")
    done = dragoman(*live, "--raw", "s16le:16000:2", "--track", "1", "--channel", "right")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["heard_ms"]) == (0, 500)
    assert "no track 2" in dragoman(*live, "--raw", "s16le", "--track", "2").stderr
    assert "there is no channel 2" in dragoman(*live, "--raw", "s16le", "--channel", "2").stderr

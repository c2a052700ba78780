"""Runs over a corpus: resumed, in processes, with a broken clip."""

import errno
import hashlib
import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dragoman import __version__, versions
from dragoman.awake import Awake
from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.evaluate.claim import NOTED, _weight_files, files_of, fingerprint, weights_of
from dragoman.evaluate.run import TRACES, _here, run_corpus
from dragoman.metrics.logs import clips_left_out
from dragoman.setup import Setup, System
from dragoman.trace import read_traces
from dragoman.workers import WarmProcesses, told_by
from tests.scripted import ScriptedModel, steady

SETUP = Setup(model="tests.scripted:steady", policy="greedy", source="de", step_ms=500)


@pytest.fixture
def clips(tmp_path):
    made = []
    for index in range(5):
        path = tmp_path / f"{index}.wav"
        soundfile.write(path, np.zeros(16000 * (index + 2), np.float32), 16000)
        made.append(Clip(index, path, {"en": "word0 word1"}))
    return made


def test_a_run_says_every_clip_and_keeps_its_traces(tmp_path, clips):
    seen = []
    run = run_corpus(clips, SETUP, tmp_path / "r", on_clip=lambda d, t: seen.append((d, t)))
    assert [trace.index for trace in run.traces] == [0, 1, 2, 3, 4]
    assert run.traces[0].prediction.split() == [f"word{i}" for i in range(12)]
    assert run.traces[0].instance().delays[:5] == (500, 1000, 1500, 2000, 2000)
    assert seen == [(done, 5) for done in range(6)]
    assert list(read_traces(tmp_path / "r" / TRACES)) == run.traces


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, clips):
    whole = run_corpus(clips, SETUP, tmp_path / "r")
    path = tmp_path / "r" / TRACES
    lines = path.read_text().splitlines(keepends=True)
    ends = [i for i, line in enumerate(lines) if '"end"' in line]
    path.write_text("".join(lines[: ends[2] + 3]))  # three whole traces, the fourth cut short
    seen = []
    again = run_corpus(clips, SETUP, tmp_path / "r", on_clip=lambda d, t: seen.append(d))
    assert seen[0] == 3
    assert [t.prediction for t in again.traces] == [t.prediction for t in whole.traces]
    assert again.traces[:3] == whole.traces[:3]


def test_processes_give_what_one_gives(tmp_path, clips):
    one = run_corpus(clips, SETUP, tmp_path / "one")
    two = run_corpus(clips, SETUP, tmp_path / "two", workers=WarmProcesses(2))
    assert [t.instance().delays for t in two.traces] == [t.instance().delays for t in one.traces]


def test_traces_are_in_the_order_of_the_clips_whoever_is_done_first(tmp_path, clips):
    """References that are given line by line go by it."""

    class Backwards:
        def each(self, work, tasks):
            for task in reversed(list(tasks)):
                yield from told_by(work, task)

    run = run_corpus(clips, SETUP, tmp_path / "r", workers=Backwards(), only=[1, 3, 4])
    assert list(read_traces(tmp_path / "r" / TRACES)) == run.traces
    run = run_corpus(clips, SETUP, tmp_path / "r", workers=Backwards())
    assert [trace.index for trace in run.traces] == [0, 1, 2, 3, 4]
    assert list(read_traces(tmp_path / "r" / TRACES)) == run.traces


@pytest.mark.parametrize("together", [2, 5, 99])
def test_side_by_side_says_what_one_after_the_other_says(tmp_path, clips, together):
    one = run_corpus(clips, SETUP, tmp_path / "one")
    many = run_corpus(clips, SETUP, tmp_path / "many", together=together)
    assert [t.prediction for t in many.traces] == [t.prediction for t in one.traces]
    assert [t.instance().delays for t in many.traces] == [t.instance().delays for t in one.traces]


@pytest.mark.parametrize("together", [1, 4])
def test_a_broken_clip_is_counted_and_named(tmp_path, clips, together):
    clips[2].audio.write_bytes(b"not sound at all")
    run = run_corpus(clips, SETUP, tmp_path / "r", together=together)
    assert [trace.index for trace in run.traces] == [0, 1, 3, 4]
    (failure,) = run.failures
    assert failure.index == 2
    assert str(failure).startswith("clip 2 (2.wav): ")
    assert run.checked() is run


def test_a_model_that_was_trained_on_is_another_one(tmp_path, clips):
    """It has the same name and the same sizes; whether it was copied does not matter."""
    net = tmp_path / "net"
    net.mkdir()
    (net / "decoder.onnx").write_bytes(b"before")
    setup, system = SETUP.with_changes(model=str(net)), System(SETUP)
    first = run_corpus(clips, setup, tmp_path / "r", system=system)
    os.utime(net / "decoder.onnx", (1, 1))
    assert run_corpus(clips, setup, tmp_path / "r", system=system).traces == first.traces
    (net / "decoder.onnx").write_bytes(b"after!")
    with pytest.raises(DragomanError, match="the weights are others now"):
        run_corpus(clips, setup, tmp_path / "r", system=system)
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    del mark["weights"]  # of a run that was begun before they were noted
    (tmp_path / "r" / "run.json").write_text(json.dumps(mark))
    assert run_corpus(clips, setup, tmp_path / "r", system=system).traces == first.traces


def test_a_recording_that_was_changed_is_another_one(tmp_path, clips):
    """The same talks with noise have the same names: what was told were the numbers of the clean
    ones."""
    first = run_corpus(clips[:3], SETUP, tmp_path / "r")
    content = clips[1].audio.read_bytes()
    clips[1].audio.write_bytes(content)  # copied: it has another date
    noise = np.random.default_rng(1).normal(0, 0.1, 16000 * 6).astype(np.float32)
    soundfile.write(clips[4].audio, noise, 16000)  # which was not heard yet
    assert run_corpus(clips, SETUP, tmp_path / "r").traces[:3] == first.traces
    for clip in (clips[1], clips[4]):
        soundfile.write(clip.audio, noise[: 16000 * (clip.index + 2)] / 2, 16000)
    with pytest.raises(DragomanError, match=r"/1\.wav and 1 more has been changed since"):
        run_corpus(clips, SETUP, tmp_path / "r")
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    del mark["recordings"]  # of a run that was begun before they were noted
    (tmp_path / "r" / "run.json").write_text(json.dumps(mark))
    assert len(run_corpus(clips, SETUP, tmp_path / "r").traces) == 5


def test_a_recording_that_was_mended_is_heard_after_all(tmp_path, clips):
    content = clips[2].audio.read_bytes()
    clips[2].audio.write_bytes(b"not sound at all")
    assert len(run_corpus(clips, SETUP, tmp_path / "r").traces) == 4
    clips[2].audio.write_bytes(content)
    assert len(run_corpus(clips, SETUP, tmp_path / "r").traces) == 5
    clips[2].audio.write_bytes(clips[3].audio.read_bytes())
    with pytest.raises(DragomanError, match=r"/2\.wav has been changed since"):
        run_corpus(clips, SETUP, tmp_path / "r")


def test_a_policy_of_ones_own_that_was_changed_is_another_one(tmp_path, clips, monkeypatch):
    """What is written about a draft is a researcher's daily change: no run mixes two versions."""
    monkeypatch.syspath_prepend(tmp_path)
    code = "from dragoman.policies import Greedy\nclass Own(Greedy):\n    pass\n"
    (tmp_path / "own_of_a_test.py").write_text(code)
    setup, system = SETUP.with_changes(policy="own_of_a_test.Own"), System(SETUP)
    first = run_corpus(clips, setup, tmp_path / "r", system=system)
    assert run_corpus(clips, setup, tmp_path / "r", system=system).traces == first.traces
    (tmp_path / "own_of_a_test.py").write_text(code + "# other\n")
    with pytest.raises(DragomanError, match=r"with own_of_a_test.py as it was before"):
        run_corpus(clips, setup, tmp_path / "r", system=system)


@pytest.mark.parametrize("workers", [None, WarmProcesses(1)])
def test_a_clip_at_which_a_policy_of_ones_own_fails_is_named(tmp_path, clips, workers):
    """It ended the whole run, and with it a sweep, with a traceback."""
    setup = SETUP.with_changes(policy="tests.own_policies.Fails:at=5500")
    run = run_corpus(clips, setup, tmp_path / "r", workers=workers)
    assert [trace.index for trace in run.traces] == [0, 1, 2, 3]
    (failure,) = run.failures
    assert failure.own
    assert str(failure).startswith("clip 4 (4.wav): ValueError in tests/own_policies.py, line ")


def test_a_run_that_came_to_nothing_is_in_nobody_s_way(tmp_path, clips):
    """Whoever mends his policy and calls the same command again was sent to another folder."""
    setup = SETUP.with_changes(policy="tests.own_policies.Fails")
    assert run_corpus(clips, setup, tmp_path / "r").traces == []
    assert len(run_corpus(clips, SETUP, tmp_path / "r").traces) == 5
    with pytest.raises(DragomanError, match="holds another run"):
        run_corpus(clips, setup, tmp_path / "r")


def test_word_ends_that_were_changed_are_another_run(tmp_path, clips):
    ends = tmp_path / "words.ends"
    ends.write_text("300 900 1400\n")
    setup = SETUP.with_changes(policy="wait-k:k=1", detector=f"boundaries:{ends}")
    run_corpus(clips, setup, tmp_path / "r")
    ends.write_text("300 900 1500\n")
    with pytest.raises(DragomanError, match=r"with words.ends as it was before"):
        run_corpus(clips, setup, tmp_path / "r")


def test_time_for_which_a_run_was_stopped_is_no_work(tmp_path, clips, monkeypatch):
    """A lid that was closed over night would be in every latency with computation."""
    ticks = itertools.count()
    stopped = Awake(lambda: 3600.0 * next(ticks), lambda: 0.0)  # before every look for an hour
    monkeypatch.setattr("dragoman.evaluate.run.awake", lambda: stopped)
    run = run_corpus(clips, SETUP, tmp_path / "r")
    assert sum(trace.instance().compute or 0.0 for trace in run.traces) == 0


def test_a_run_goes_on_with_more_clips(tmp_path, clips):
    """What was heard in a night is not heard again because of one more clip."""
    first = run_corpus(clips[:2], SETUP, tmp_path / "r")
    seen = []
    run = run_corpus(clips, SETUP, tmp_path / "r", on_clip=lambda d, t: seen.append((d, t)))
    assert seen[0] == (2, 5)
    assert [trace.index for trace in run.traces] == [0, 1, 2, 3, 4]
    assert run.traces[:2] == first.traces
    assert run_corpus(clips, SETUP, tmp_path / "r").traces == run.traces
    with pytest.raises(DragomanError, match=r"holds a run of 5 clips, and these are 2; .*--limit"):
        run_corpus(clips[:2], SETUP, tmp_path / "r")
    others = [Clip(0, clips[0].audio, {"en": "other words"}), *clips[1:]]
    with pytest.raises(DragomanError, match="its corpus differs"):
        run_corpus([*others, Clip(5, clips[0].audio, {"en": "word0"})], SETUP, tmp_path / "r")


def test_a_corpus_is_known_by_what_is_heard_and_what_it_is_compared_with():
    """Packs and runs of before are found by it, in whatever language they are."""
    clip = Clip(3, Path("talks/a.wav"), {"en": "x", "de": "grün"}, 0.5, None, ("rot",))
    text = '[[3, "a.wav", 0.5, null, [["de", "grün"], ["en", "x"]], "rot"]]'
    assert fingerprint([clip]) == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_run_of_which_nobody_counted_the_clips_goes_on_as_it_was(tmp_path, clips):
    first = run_corpus(clips[:4], SETUP, tmp_path / "r")
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    del mark["clips"]
    (tmp_path / "r" / "run.json").write_text(json.dumps(mark))
    assert run_corpus(clips[:4], SETUP, tmp_path / "r").traces == first.traces
    with pytest.raises(DragomanError, match="its corpus differs"):
        run_corpus(clips, SETUP, tmp_path / "r")


def test_recordings_of_one_name_are_told_apart_by_their_folders(tmp_path, clips):
    """As in a corpus of talks that are each called talk.wav, in a folder of the speaker's."""
    made = []
    for index, place in enumerate(("a/x/talk.wav", "b/x/talk.wav", "b/y/talk.wav", "b/other.wav")):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(clips[2].audio.read_bytes())
        made.append(Clip(index, path, {"en": "word0 word1"}))
    ends = tmp_path / "words.ends"
    ends.write_text("a/x/talk.wav\t500 3900\nb/x/talk.wav\t3000 3900\nother.wav\t100 3900\n")
    setup = SETUP.with_changes(policy="wait-k:k=1", detector=f"boundaries:{ends}")
    run = run_corpus([*made, made[0]][:4], setup, tmp_path / "r")
    assert [trace.source for trace in run.traces] == ["a/x/talk.wav", "b/x/talk.wav", "other.wav"]
    assert [trace.instance().delays[0] for trace in run.traces] == [500, 3000, 500]
    (failure,) = run.failures
    assert "no word ends of 'b/y/talk.wav'" in str(failure)


def test_two_do_not_write_into_each_others_traces(tmp_path, clips):
    told = []

    def meanwhile(done, total):
        if done == 2:
            with pytest.raises(DragomanError, match="Another process writes its traces") as error:
                run_corpus(clips, SETUP, tmp_path / "r")
            told.append(str(error.value))

    run = run_corpus(clips, SETUP, tmp_path / "r", on_clip=meanwhile)
    assert len(told) == 1
    assert list(read_traces(tmp_path / "r" / TRACES)) == run.traces
    assert run_corpus(clips, SETUP, tmp_path / "r").traces == run.traces  # it is given back


def test_a_run_of_which_nothing_came_says_why(tmp_path, clips):
    for clip in clips:
        clip.audio.write_bytes(b"not sound at all")
    with pytest.raises(DragomanError, match=r"None of the 5 clips .* first is clip 0 \(0.wav\): "):
        run_corpus(clips, SETUP, tmp_path / "r").checked()


def test_whoever_reads_a_file_says_that_it_is_missing(tmp_path):
    assert files_of(SETUP.with_changes(model="nowhere:model")) == {}
    ends = tmp_path / "ends.txt"
    ends.write_text("100 200")
    setup = SETUP.with_changes(detector=f"boundaries:{ends}")
    assert ends.name in files_of(setup)
    ends.unlink()
    assert ends.name not in files_of(setup)


class LastFirst:
    """Workers of whom whoever has the last clips is done first."""

    def each(self, work, tasks):
        for task in reversed(tasks):
            told = []
            work(task, told.append)
            yield from told


def test_what_failed_is_told_in_the_order_of_the_corpus(tmp_path, clips):
    for clip in clips[1:]:
        clip.audio.write_bytes(b"not sound at all")
    run = run_corpus(clips, SETUP, tmp_path / "r", workers=LastFirst())
    assert [failure.index for failure in run.failures] == [1, 2, 3, 4]
    alone = run_corpus(clips[1:2], SETUP, tmp_path / "alone")
    with pytest.raises(DragomanError, match=r"^The only clip could not be interpreted: clip 1 \("):
        alone.checked()


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.55, 0.999])
def test_a_run_that_was_killed_inside_a_line_goes_on(tmp_path, clips, kept):
    whole = run_corpus(clips, SETUP, tmp_path / "r")
    path = tmp_path / "r" / TRACES
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    again = run_corpus(clips, SETUP, tmp_path / "r")
    assert [t.prediction for t in again.traces] == [t.prediction for t in whole.traces]
    assert len(list(read_traces(path))) == 5  # and nothing of the torn one is left


@pytest.mark.parametrize("torn", [b"", b'{"setup": {"mod', b"\xff\xfe\x00"])
def test_a_torn_mark_is_a_sentence(tmp_path, clips, torn):
    run_corpus(clips, SETUP, tmp_path / "r")
    (tmp_path / "r" / "run.json").write_bytes(torn)
    with pytest.raises(DragomanError, match=r"run\.json is damaged"):
        run_corpus(clips, SETUP, tmp_path / "r")


def test_the_mark_is_written_whole_or_not_at_all(tmp_path, clips, monkeypatch):
    """Whoever looks while it is written finds no file, never half of one."""
    seen = []
    dump = json.dump

    def slow_dump(mark, file, **options):
        dump(mark, file, **options)
        file.flush()
        seen.append((tmp_path / "r" / "run.json").exists())

    monkeypatch.setattr("dragoman.evaluate.claim.json.dump", slow_dump)
    run_corpus(clips, SETUP, tmp_path / "r")
    assert seen == [False, True]  # who interprets is noted later
    assert (tmp_path / "r" / "run.json").exists()


def test_a_full_disk_is_a_sentence(tmp_path, clips, monkeypatch):
    def full(self, row):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dragoman.trace.TraceWriter._write", full)
    with pytest.raises(DragomanError, match="the disk is full"):
        run_corpus(clips, SETUP, tmp_path / "r")


def test_two_runs_are_never_mixed(tmp_path, clips):
    run_corpus(clips, SETUP, tmp_path / "r")
    with pytest.raises(DragomanError, match="holds another run"):
        run_corpus(clips, SETUP.with_changes(policy="offline"), tmp_path / "r")
    with pytest.raises(DragomanError, match="holds another run"):
        run_corpus(clips[::-1], SETUP, tmp_path / "r")


def on(device):
    """The model on some device."""
    model = steady()
    model.device = device
    return System(SETUP, model)


class Workers:
    """They work in this process, on some device."""

    def __init__(self, monkeypatch, device):
        monkeypatch.setattr(ScriptedModel, "device", device, raising=False)

    def each(self, work, tasks):
        _here.clear()
        for task in tasks:
            yield from told_by(work, task)


def test_a_run_does_not_go_on_with_another_device(tmp_path, clips):
    """Whether it was named, or found: with `--device auto` the setup is the same."""
    run_corpus(clips[:3], SETUP, tmp_path / "r", system=on("cpu"))
    with pytest.raises(DragomanError, match="on the device cpu, and these would be on cuda") as why:
        run_corpus(clips, SETUP, tmp_path / "r", system=on("cuda"))
    assert "--device cpu" in why.value.advice
    assert len(list(read_traces(tmp_path / "r" / TRACES))) == 3
    run = run_corpus(clips, SETUP.with_changes(device="cpu"), tmp_path / "r", system=on("cpu"))
    assert len(run.traces) == 5


def test_workers_on_another_device_do_not_go_on_with_a_run(tmp_path, clips, monkeypatch):
    run_corpus(clips[:3], SETUP, tmp_path / "r", workers=Workers(monkeypatch, "cuda"))
    with pytest.raises(DragomanError, match="on the device cuda, and these would be on cpu"):
        run_corpus(clips, SETUP, tmp_path / "r", workers=Workers(monkeypatch, "cpu"))
    assert len(list(read_traces(tmp_path / "r" / TRACES))) == 3


def test_what_is_interpreted_already_is_looked_at_on_any_device(tmp_path, clips):
    run = run_corpus(clips, SETUP, tmp_path / "r", system=on("cuda"))
    assert run_corpus(clips, SETUP, tmp_path / "r", system=on("cpu")).traces == run.traces


def test_another_device_is_another_run_where_nobody_has_noted_which_it_was(tmp_path, clips):
    run_corpus(clips[:3], SETUP, tmp_path / "r")
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    (tmp_path / "r" / "run.json").write_text(json.dumps(without_notes(mark)))
    with pytest.raises(DragomanError, match="its setup differs"):
        run_corpus(clips, SETUP.with_changes(device="cpu"), tmp_path / "r")
    run_corpus(clips, SETUP, tmp_path / "r", system=on("cuda"))
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    assert mark == without_notes(mark)  # whoever began it: nobody knows still


def without_notes(mark):
    return {key: value for key, value in mark.items() if key not in NOTED}


def test_another_version_goes_on_with_a_run_and_tells_so_once(tmp_path, clips, monkeypatch, caplog):
    run_corpus(clips[:2], SETUP, tmp_path / "r")
    assert not caplog.text
    monkeypatch.setattr(versions, "__version__", "9.9")
    run_corpus(clips[:2], SETUP, tmp_path / "r")
    assert not caplog.text  # it only reads
    run_corpus(clips[:4], SETUP, tmp_path / "r")
    assert f"was begun by Dragoman {__version__} and goes on with 9.9" in caplog.text
    run_corpus(clips, SETUP, tmp_path / "r")
    assert caplog.text.count("goes on with") == 1
    mark = json.loads((tmp_path / "r" / "run.json").read_text())
    assert mark["versions"] == [__version__, "9.9"]


def test_a_run_remembers_which_clips_were_left_out_and_why(tmp_path, clips):
    whole = clips[2].audio.read_bytes()
    for clip in clips[2:4]:
        clip.audio.write_bytes(b"not sound at all")
    run = run_corpus(clips, SETUP, tmp_path / "r")
    assert clips_left_out(tmp_path / "r" / "run.json") == list(map(str, run.failures))
    clips[2].audio.write_bytes(whole)
    run_corpus(clips, SETUP, tmp_path / "r", only=[0, 2])
    (left,) = clips_left_out(tmp_path / "r" / "run.json")
    assert left.startswith("clip 3 (3.wav): ")


def test_a_setup_that_does_not_fit_fails_the_run(tmp_path, clips):
    with pytest.raises(DragomanError, match="no policy 'wait'"):
        run_corpus(clips, SETUP.with_changes(policy="wait"), tmp_path / "r")


def test_the_files_of_a_setup_are_the_users_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mymodel", "mypolicy", "mydetector"):
        (tmp_path / f"{name}.py").write_text("")
    ends = tmp_path / "ends.jsonl"
    parts = {"model": "mymodel:make", "policy": "mypolicy.Mine:k=2", "detector": "mydetector.Mine"}
    assert [*files_of(SimpleNamespace(**parts))] == ["mypolicy.py", "mydetector.py", "mymodel.py"]
    ends.write_text("{}")
    bounded = SETUP.with_changes(detector=f"boundaries:{ends}")
    before = files_of(bounded)
    assert [*before] == ["scripted.py", "ends.jsonl"]
    ends.write_text("{}\n")
    after = files_of(bounded)
    assert (after["ends.jsonl"] == before["ends.jsonl"], after["scripted.py"]) == (
        False, before["scripted.py"],
    )  # fmt: skip


def test_two_files_of_one_name_are_both_looked_at(tmp_path, monkeypatch):
    """A package of policies and one of detectors may each begin with the same file."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("policies_of_a_test", "detectors_of_a_test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    parts = {"model": "any", "policy": "policies_of_a_test.A", "detector": "detectors_of_a_test.B"}
    seen = [files_of(SimpleNamespace(**parts))]
    for name in ("policies_of_a_test", "detectors_of_a_test"):
        (tmp_path / name / "__init__.py").write_text("# changed")
        seen.append(files_of(SimpleNamespace(**parts)))
    assert [*seen[0]] == ["__init__.py"]
    assert len({each["__init__.py"] for each in seen}) == 3


def test_the_weights_of_a_folder_are_its_files_but_for_what_is_written_about_them(tmp_path):
    assert _weight_files(tmp_path / "none") == []
    (tmp_path / "logs").mkdir()
    for name in ("model.bin", "config.json", "README.md"):
        (tmp_path / name).touch()
    assert [path.name for path in _weight_files(tmp_path)] == ["config.json", "model.bin"]
    for name in ("onnx/encoder_model.onnx", ".cache/a/fetched"):  # as exporters, as downloads do
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert _weight_files(tmp_path)[-1] == tmp_path / "onnx/encoder_model.onnx"
    assert len(_weight_files(tmp_path)) == 3
    (tmp_path / "final.pt").touch()  # of a training run, beside its logs
    assert [path.name for path in _weight_files(tmp_path)] == ["final.pt"]


def test_the_weights_are_found_where_the_model_is(tmp_path, monkeypatch):
    """In the user's own folder, in one with a plus in its name, in both halves of a cascade."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("one", "other", "a+b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.bin").write_text(name)

    def weights(model):
        return weights_of(SETUP.with_changes(model=model))

    assert weights("~/one") == weights(str(tmp_path / "one")) != ""
    assert weights(str(tmp_path / "a+b")) not in ("", weights("~/one"))
    both = weights(f"{tmp_path}/one+~/other")
    (tmp_path / "other" / "model.bin").write_text("trained on")
    assert weights(f"{tmp_path}/one+~/other") != both
    assert weights("one+") == ""  # whoever loads it says what is missing


def test_each_of_several_workers_has_one_thread(tmp_path, clips):
    class Here:
        def each(self, work, groups):
            assert work.setup.threads == 1
            for group in groups:
                yield from told_by(work, group)

    run = run_corpus(clips, SETUP.with_changes(threads=5), tmp_path / "r", workers=Here())
    assert len(run.traces) == 5

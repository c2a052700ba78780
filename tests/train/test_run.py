"""A run from recipe to final weights; killed at any moment it goes on as if it had not been."""

import errno
import json
import os
import shutil
import signal
import time
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
import yaml

from dragoman import __version__
from dragoman.cli import main
from dragoman.errors import DragomanError
from dragoman.train import loop
from dragoman.train.checkpoints import around, average, load_weights, numbered
from dragoman.train.data.faults import FAULTS, Fault, write_faults
from dragoman.train.data.loader import Loader
from dragoman.train.loop import Training
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert, merge
from dragoman.train.train import train
from dragoman.train.trained import open_run
from tests.train.conftest import make_pack
from tests.train.copies import METHOD


def recipe_of(settings: dict, **changes) -> Recipe:
    return convert(Recipe, merge(settings, changes))


def same_weights(one: Path, other: Path) -> bool:
    first, second = load_weights(one), load_weights(other)
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory) -> Path:
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(recipe_of(tiny), folder)
    return folder


def test_the_folder_tells_all(whole):
    assert yaml.safe_load((whole / "recipe.yaml").read_text())["optimiser"]["rate"] == 0.005
    assert set(json.loads((whole / "code.json").read_text())) >= {"dragoman", "git", "torch"}
    data = json.loads((whole / "data.json").read_text())
    assert data["train"]["items"] == 54
    assert len(data["dev"]["fingerprint"]) == 64
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "dev"] == [4, 8, 12]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [2, 4, 6, 8, 10, 12]
    assert len(numbered(whole, "resume")) == 2
    final = json.loads((whole / "final.json").read_text())
    assert len(final["averaged"]) == 2


def test_tensorboard_reads_the_same_numbers(whole, tiny, tmp_path):
    """Also after a stop between two checkpoints: what is made again replaces what was there."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = Path(shutil.copytree(whole, tmp_path / "run"))
    numbered(run, "resume")[-1][1].unlink()  # back to step 9
    train(recipe_of(tiny), run)
    for folder in (whole, run):
        board = EventAccumulator(str(folder / "board")).Reload()
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for kind in ("train", "dev"):
            found = [(event.step, event.value) for event in board.Scalars(f"{kind}/loss")]
            wanted = [(line["step"], line["loss"]) for line in lines if line["kind"] == kind]
            assert found == [(step, pytest.approx(loss, rel=1e-6)) for step, loss in wanted]


def test_waiting_for_data_is_seen(tiny, tmp_path, monkeypatch):
    make = Loader.make

    def slowly(*planned):
        time.sleep(1)
        return make(*planned)

    monkeypatch.setattr(Loader, "make", slowly)
    recipe = recipe_of(tiny, machine={"threads": 1}, steps={"total": 2, "validate": 2})
    train(recipe, tmp_path / "run")
    first, *_ = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert 0.05 < first["waited"] < 1  # a second, and the step takes what a busy machine needs


def test_a_mean_of_checkpoints_counts_each_as_often_as_it_is_named(whole):
    final = json.loads((whole / "final.json").read_text())
    first, second = (whole / name for name in final["averaged"])
    one, other = load_weights(first), load_weights(second)
    blend = [first, first, second, second, second]
    mean = open_run(whole, blend).task.net.state_dict()
    assert any(not torch.equal(one[key], other[key]) for key in one)
    for key, value in mean.items():
        if value.is_floating_point():
            torch.testing.assert_close(value, 0.4 * one[key] + 0.6 * other[key])


def test_checkpoints_of_different_nets_have_no_mean(whole, tmp_path):
    weights = load_weights(whole)
    name = next(key for key, value in weights.items() if value.ndim == 2)
    torch.save({"net": weights | {name: weights[name][:-1]}}, tmp_path / "other.pt")
    with pytest.raises(DragomanError, match=r"other\.pt and .*different nets"):
        average([tmp_path / "other.pt", whole])


class Clock:
    """Ten seconds go by with every update; stops the run before a step, if asked to."""

    def __init__(self, monkeypatch, now, stop=None):
        self.now = now
        monkeypatch.setattr(loop, "time", self)
        update = Training.update

        def slow(training, batches):
            if training.state.step == stop:
                raise KeyboardInterrupt
            self.now += 10
            return update(training, batches)

        monkeypatch.setattr(Training, "update", slow)

    def perf_counter(self):
        self.now += 1e-6
        return self.now


def test_a_run_with_a_time_limit_falls_in_its_last_quarter(tiny, tmp_path, monkeypatch):
    steps = {"total": 50, "minutes": 2, "validate": 6, "save": 3, "log": 1, "patience": 0}
    recipe = recipe_of(tiny, steps=steps, optimiser={"schedule": "trapezoid", "warmup": 1})
    told = []
    with monkeypatch.context() as patch:
        Clock(patch, 500.0, stop=8)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run")
    with monkeypatch.context() as patch:  # goes on from step 6, with the minute that was spent
        Clock(patch, 9.0)
        train(recipe, tmp_path / "run", told.append)
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    rates = {line["step"]: line["rate"] for line in lines if line["kind"] == "train"}
    peak = recipe.optimiser.rate
    assert sorted(rates) == list(range(1, 13))
    assert rates[9] == peak
    assert [rates[step] / peak for step in (10, 11, 12)] == pytest.approx([2 / 3, 1 / 3, 0])
    assert {"kind": "total", "total": 12} in told


def test_a_time_limit_may_change_and_is_kept_between_lines_of_the_log(tiny, tmp_path, monkeypatch):
    def trained(**steps) -> int:
        steps = {"total": 50, "validate": 6, "save": 3, "log": 1, "patience": 0} | steps
        settings = {"schedule": "trapezoid", "warmup": 1}
        with monkeypatch.context() as patch:
            Clock(patch, 7.0)
            train(recipe_of(tiny, steps=steps, optimiser=settings), tmp_path / "run")
        return numbered(tmp_path / "run", "resume")[-1][0]

    assert trained(minutes=1) == 6
    assert trained(minutes=1) == 6
    assert trained(minutes=2) == 12  # and one that is over may go on
    assert trained(minutes=3, log=16) == 18  # though it is late when it is seen: not after 22
    assert trained(total=19) == 19
    assert trained(minutes=9, total=20) == 20


def test_a_run_may_be_ended_before_its_first_validation(tiny, tmp_path):
    steps = {"total": 9, "validate": 9, "save": 2}

    def stop(line):
        if line["kind"] == "train" and line["step"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe_of(tiny, steps=steps | {"log": 1}), tmp_path / "run", stop)
    train(recipe_of(tiny, steps=steps | {"total": 2}), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "final.json").read_text())["best_step"] == 2


def test_averages_are_means(whole):
    final = json.loads((whole / "final.json").read_text())
    first, second = (load_weights(whole / name) for name in final["averaged"])
    for key, value in load_weights(whole).items():
        if value.is_floating_point():
            torch.testing.assert_close(value, (first[key] + second[key]) / 2)


def test_a_file_that_somebody_has_named_is_no_checkpoint(tmp_path):
    for name in ("weights-00000010.pt", "weights-best.pt", "weights-00000002.pt", "weights-.pt"):
        (tmp_path / name).touch()
    assert [step for step, _ in numbered(tmp_path, "weights")] == [2, 10]


def test_killed_in_the_middle_and_resumed_gives_the_same_weights(perturbed, tmp_path):
    """kill -9 while the second process is somewhere after step 4; dropout, masks, speeds are on.

    All three are processes of their own: none goes on with what another has left in memory.
    """
    path, folder, whole = tmp_path / "recipe.yaml", tmp_path / "killed", tmp_path / "whole"
    path.write_text(yaml.safe_dump(perturbed))
    assert _ended(_started(path, whole)) == 0
    while not _killed_midway(path, folder):
        shutil.rmtree(folder)  # it was quicker than we looked
    assert not (folder / "final.pt").exists()
    assert 0 < numbered(folder, "resume")[-1][0] < 12

    assert _ended(_started(path, folder)) == 0
    assert same_weights(folder / "final.pt", whole / "final.pt")
    assert _validations(folder) == _validations(whole)


def _started(recipe: Path, folder: Path) -> BaseProcess:
    process = get_context(METHOD).Process(target=_quietly, args=(recipe, folder))
    process.start()
    return process


def _quietly(recipe: Path, folder: Path) -> None:
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        main(["train", str(recipe), "--run", str(folder)])


def _ended(process: BaseProcess) -> int:
    process.join()
    return process.exitcode


def _killed_midway(recipe: Path, folder: Path) -> bool:
    """Start a run, kill it after its fourth step; False if it had ended before."""
    process = _started(recipe, folder)
    while process.is_alive() and not _step_reached(folder, 4):
        time.sleep(0.01)
    process.kill()
    ended = _ended(process)
    assert ended in (0, -signal.SIGKILL), "the run failed by itself"
    return ended != 0 and not (folder / "resume-00000012.pt").exists()


def _step_reached(folder: Path, step: int) -> bool:
    path = folder / "metrics.jsonl"
    return path.exists() and any(
        json.loads(line)["step"] >= step for line in path.read_text().splitlines()[:-1]
    )


def _validations(folder: Path) -> list[dict]:
    """Lines of the log; those of training are means since the process began."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "dev"]


def test_stopped_at_every_checkpoint_gives_the_same_weights(whole, tiny, tmp_path):
    for total in (3, 7, 12):
        train(recipe_of(tiny, steps={"total": total}), tmp_path / "steps")
    name = "weights-00000012.pt"
    assert same_weights(tmp_path / "steps" / name, whole / name)


def test_bpe_dropout_is_the_same_after_a_stop(tiny, tmp_path):
    units = {"vocabulary": {"target": {"kind": "bpe", "size": 40, "dropout": 0.5}}}
    once = recipe_of(tiny, **units, steps={"total": 6})
    train(once, tmp_path / "once")
    for total in (3, 6):
        train(recipe_of(tiny, **units, steps={"total": total}), tmp_path / "twice")
    name = "weights-00000006.pt"
    assert same_weights(tmp_path / "once" / name, tmp_path / "twice" / name)
    none = {"vocabulary": {"target": {"kind": "bpe", "size": 40}}}
    train(recipe_of(tiny, **none, steps={"total": 6}), tmp_path / "none")
    assert not same_weights(tmp_path / "once" / name, tmp_path / "none" / name)


def test_a_damaged_checkpoint_gives_way_to_the_one_before(whole, tiny, tmp_path):
    whole = Path(shutil.copytree(whole, tmp_path / "copy"))
    last = numbered(whole, "resume")[-1][1]
    before = load_weights(whole / "final.pt")
    for damage in (last.read_bytes()[:1000], b"", b"\x80\x45" + bytes(range(256))):
        last.write_bytes(damage)
        (whole / "final.pt").unlink()
        train(recipe_of(tiny), whole)
        after = load_weights(whole / "final.pt")
        assert all(torch.equal(before[key], after[key]) for key in before)


def test_a_run_without_a_checkpoint_that_can_be_read_keeps_what_it_has(whole, tiny, tmp_path):
    """A network disk may be away for a moment: days of training must not begin anew for that."""
    whole = Path(shutil.copytree(whole, tmp_path / "copy"))
    resumes = [path for _, path in numbered(whole, "resume")]
    for path in resumes:
        path.write_bytes(path.read_bytes()[:1000])
    before = {path.name: path.stat().st_size for path in whole.glob("*.pt")}
    metrics = (whole / "metrics.jsonl").read_bytes()
    with pytest.raises(DragomanError, match=f"{resumes[-1].name} is damaged .*; {resumes[0].name}"):
        train(recipe_of(tiny), whole)
    assert {path.name: path.stat().st_size for path in whole.glob("*.pt")} == before
    assert (whole / "metrics.jsonl").read_bytes() == metrics
    for path in resumes:
        path.unlink()
    train(recipe_of(tiny, steps={"total": 1, "validate": 1}), whole)  # as it says
    assert json.loads((whole / "final.json").read_text())["best_step"] == 1


def test_training_stops_when_nothing_improves_any_more(tiny, tmp_path):
    """A rate of 0 in a net without running statistics: every validation is like the first."""
    net = {key: value for key, value in tiny["net_settings"].items() if key != "kernel"}
    still = tiny | {"net": "transformer", "net_settings": net}
    steps = {"total": 12, "validate": 1, "patience": 2, "average": 7}
    train(recipe_of(still, optimiser={"rate": 0.0}, steps=steps), tmp_path / "still")
    final = json.loads((tmp_path / "still" / "final.json").read_text())
    assert final["best_step"] == 1
    assert len(final["averaged"]) == 3  # the best and the two that were no better


def test_long_texts_are_left_out_and_counted(tiny, tmp_path):
    changes = {"data": {"max_units": 12}, "steps": {"total": 1, "validate": 1}}
    train(recipe_of(tiny, **changes), tmp_path / "short")
    data = json.loads((tmp_path / "short" / "data.json").read_text())
    assert data["train"]["items"] < 54
    assert "text too long" in data["faults"]


def test_texts_that_nobody_could_say_so_fast_are_left_out_and_counted(tiny, tmp_path):
    folder = make_pack(tmp_path / "pack", 60)
    index = folder / "shard-00000.jsonl"
    lines = index.read_text().splitlines()
    first = json.loads(lines[0])
    first["text"]["en"] = "red green " * 20  # in half a second
    index.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    changes = {"data": {"train": [str(folder)]}, "steps": {"total": 1, "validate": 1}}
    train(recipe_of(tiny, **changes), tmp_path / "run")
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert data["train"]["items"] + data["dev"]["items"] == 59
    assert data["faults"] == "1 text too long for its sound"


def test_another_recipe_is_refused_in_the_same_folder(whole, tiny):
    with pytest.raises(DragomanError, match="another 'seed': 1 there, 2 here"):
        train(recipe_of(tiny, seed=2), whole)
    with pytest.raises(DragomanError, match=r"another 'optimiser.rate': 0.005 there, 0.1 here"):
        train(recipe_of(tiny, optimiser={"rate": 0.1}), whole)
    with pytest.raises(DragomanError, match="not empty and not a run"):
        train(recipe_of(tiny), whole.parent)


def test_other_data_are_refused_where_they_may_lie_is_free(whole, tiny, sung, tmp_path):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    pack = Path(shutil.copytree(sung, tmp_path / "pack"))
    settings = yaml.safe_load((run / "recipe.yaml").read_text())
    settings["data"]["train"] = [str(pack)]
    (run / "recipe.yaml").write_text(yaml.safe_dump(settings))
    moved = {"train": [str(pack)], "resident": "host", "packs": "elsewhere"}
    train(recipe_of(tiny, data=moved), run)  # the same bytes in another place
    make_pack(pack, 59)
    with pytest.raises(DragomanError, match=r"train data are not those .*54 items then"):
        train(recipe_of(tiny, data=moved), run)


def test_two_at_a_time_are_refused(whole, tiny):
    with (
        RunFolder(whole).held(),
        pytest.raises(DragomanError, match="Another process is training in"),
    ):
        train(recipe_of(tiny), whole)
    train(recipe_of(tiny), whole)  # which is finished, and free again


def test_other_code_that_goes_on_is_noted(whole, tiny, tmp_path, monkeypatch, caplog):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    monkeypatch.setattr("dragoman.train.run.code_version", lambda: {"dragoman": "later"})
    monkeypatch.setattr("dragoman.versions.__version__", "later")
    for _ in range(2):
        train(recipe_of(tiny), run)
    code = json.loads((run / "code.json").read_text())
    assert set(code) >= {"git", "torch"}
    assert code["later"].count({"dragoman": "later"}) == 1  # whatever is edited meanwhile
    assert caplog.text.count(f"begun by Dragoman {__version__} and goes on with later") == 1


def test_half_written_files_are_swept_away(whole, tiny, tmp_path):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    (run / ".resume-00000015.pt.tmp").write_text("half")
    train(recipe_of(tiny), run)
    assert not list(run.glob(".*.tmp"))
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / f".recipe.yaml.0.{2**22 + 1}.tmp").write_text("half")  # beyond all process ids
    train(recipe_of(tiny, steps={"total": 1, "validate": 1}), begun)


def test_text_alone_is_nothing_to_hear(tiny, tmp_path):
    (tmp_path / "text.tsv").write_text("en\tde\n" + "red green\trot grün\n" * 20)
    data = {"train": [f"text:{tmp_path / 'text.tsv'}"], "packs": str(tmp_path)}
    with pytest.raises(DragomanError, match="hears speech, and data"):
        train(recipe_of(tiny, data=data), tmp_path / "run")


def test_nothing_left_is_a_sentence(tiny, tmp_path):
    with pytest.raises(DragomanError, match=r"Nothing is left .*60 text too long"):
        train(recipe_of(tiny, data={"max_units": 1}), tmp_path / "run")
    with pytest.raises(DragomanError, match=r"nothing to train on .*60 odd length"):
        train(recipe_of(tiny, data={"max_seconds": 0.1}), tmp_path / "run")


def test_a_run_that_has_learned_nothing_yet_is_begun_anew(whole, tiny, tmp_path):
    """A wrong setting must not lock the folder for the right one."""
    folder = tmp_path / "begun"
    with pytest.raises(DragomanError, match="There is no nope"):
        train(recipe_of(tiny, init="nope"), folder)
    assert not folder.exists()
    with pytest.raises(DragomanError, match="no 'fr' text"):
        train(recipe_of(tiny, data={"target": "fr"}), folder)
    (folder / "target.model").write_text("of the other recipe")
    train(recipe_of(tiny), folder)
    assert same_weights(folder / "final.pt", whole / "final.pt")


def test_faults_that_were_met_when_the_data_was_packed_are_told_again(tiny, sung, tmp_path):
    pack = Path(shutil.copytree(sung, tmp_path / "pack"))
    write_faults(pack / FAULTS, [Fault("corrupt recording", "clip 7", "no header")])
    steps = {"total": 1, "validate": 1}
    train(recipe_of(tiny, data={"train": [str(pack)]}, steps=steps), tmp_path / "run")
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert data["faults"] == "1 corrupt recording"


def test_a_full_disk_leaves_no_half_checkpoint(tiny, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dragoman.train.checkpoints.put_in_place", full)
    with pytest.raises(DragomanError, match="the disk is full; make room"):
        train(recipe_of(tiny, steps={"total": 1}), tmp_path / "full")
    assert not [path for path in (tmp_path / "full").iterdir() if ".pt" in path.name]


def test_starting_from_another_run(whole, tiny, tmp_path):
    changes = {"init": str(whole), "steps": {"total": 1, "validate": 1}}
    parts = ["subsampling", "layers"]
    train(recipe_of(tiny, **changes, init_parts=parts), tmp_path / "next")
    settings = {"net_settings": {"size": 32}}
    with pytest.raises(DragomanError, match="do not fit"):
        train(recipe_of(tiny, **changes, init_parts=parts, **settings), tmp_path / "wide")
    with pytest.raises(DragomanError, match="no part named encoder"):
        train(recipe_of(tiny, **changes, init_parts=["encoder:layers"]), tmp_path / "none")


def test_the_export_command_hands_over_the_final_weights_and_what_surrounds_them(
    whole, tmp_path, monkeypatch
):
    """The export itself is slow, and tested with the nets."""
    from click.testing import CliRunner

    from dragoman.cli.export import command
    from dragoman.train import export

    given = {}
    monkeypatch.setattr(export, "export", lambda *args, **kwargs: given.update(all=args, **kwargs))
    arguments = [str(whole), str(tmp_path / "model"), "--int8"]
    assert CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code == 0
    net, out, around = given["all"]
    assert out == tmp_path / "model"
    assert given["int8"]
    assert (around.source, around.target, around.suffix) == ("en", "de", True)
    assert around.target_units.exists()
    for key, value in load_weights(whole).items():
        assert torch.equal(net.state_dict()[key], value)
    with pytest.raises(DragomanError, match="is not a run"):
        CliRunner().invoke(command, [str(tmp_path), "out"], catch_exceptions=False)
    with pytest.raises(DragomanError, match="'kernel=3' is nothing that a trained net can"):
        CliRunner().invoke(command, [*arguments, "kernel=3"], catch_exceptions=False)


def test_a_run_that_has_not_come_to_its_end_says_what_else_can_be_exported(whole, tmp_path):
    begun = Path(shutil.copytree(whole, tmp_path / "begun"))
    (begun / "final.pt").unlink()
    last = numbered(begun, "weights")[-1][1]
    with pytest.raises(DragomanError, match=rf"Go on with it, or name .*{last}.*--weights"):
        open_run(begun)
    open_run(begun, [last])


def test_half_a_line_of_metrics_stops_no_run(whole, tiny, tmp_path):
    """A power cut leaves what it likes in a file that was being written."""
    again = Path(shutil.copytree(whole, tmp_path / "again"))
    path = again / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0\xff\0\n", b'{"ste\n', b"7\n", *lines[2:], b'{"st']))
    train(recipe_of(tiny), again)
    assert RunFolder(again).metrics() == [json.loads(line) for line in lines]


def test_divergence_is_a_sentence(tiny, tmp_path):
    wild = {"rate": 1e30, "warmup": 1, "clip": 1e30}
    with pytest.raises(DragomanError, match="diverged"):
        train(recipe_of(tiny, optimiser=wild), tmp_path / "wild")


def test_around_the_best():
    steps = [10, 20, 30, 40, 50]
    assert around(steps, 30, 3) == [20, 30, 40]
    assert around(steps, 10, 3) == [10, 20, 30]
    assert around(steps, 50, 3) == [30, 40, 50]
    assert around(steps, 20, 9) == steps

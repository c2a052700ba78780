"""Steps on fixed buffers, and as CUDA graphs, learn what plain steps learn."""

import json

import pytest
import torch

from dragoman.train.capture import CapturedStep, Repeated, shape_of
from dragoman.train.checkpoints import load_weights
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Place, Plan
from dragoman.train.recipe import Recipe
from dragoman.train.settings import convert, merge
from dragoman.train.train import train
from tests.train.toy_tasks import NETS, make

AUGMENT = {"spec": "LD", "speeds": [0.9, 1.0, 1.1], "rooms": 0.5, "noise": 0.5}
STEPS = {"total": 6, "validate": 3, "save": 2, "log": 1, "average": 2}


def run(settings, folder, notes=None, **changes):
    lines = []
    train(convert(Recipe, merge(settings, changes)), folder, lines.append)
    if notes is not None:
        notes += [line["text"] for line in lines if line["kind"] == "note"]
    return load_weights(folder)


def losses(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.fixture
def text(tiny, tmp_path):
    """Text translation from a TSV file."""
    rows = [f"{a} {b}\t{b} {a}" for a in ("red", "green", "blue") for b in ("small", "large")]
    (tmp_path / "text.tsv").write_text("en\tde\n" + "\n".join(rows * 5) + "\n")
    name = f"text:{tmp_path / 'text.tsv'}"
    return tiny | {
        **{"net": "text-transformer", "task": "mt"},
        "net_settings": {
            **{"size": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_heads": 2},
            **{"decoder_heads": 2, "encoder_ffn": 64, "decoder_ffn": 64},
        },
        "data": {"train": [name], "dev": [name], "packs": str(tmp_path)},
        "batch": {"seconds": 10, "buckets": 3},
    }


@pytest.fixture
def kinds(tiny, text):
    """What can be captured, in kinds that differ in what a step does."""
    mma, joint = (
        tiny | {"task": name, "net": NETS[name][0], "net_settings": NETS[name][1]}
        for name in ("mma", "joint")
    )
    mma |= {"task_settings": {"latency": {"average": 0.05, "after": 3}}}
    joint |= {"task_settings": {"weights": {"kd_after": 3}}}
    return {"speech": tiny, "text": text, "mma": mma, "joint": joint}


@pytest.mark.parametrize(
    ("kind", "accumulate"),
    [("speech", 1), ("speech", 2), ("text", 1), ("mma", 1), ("joint", 1)],
)
def test_steps_on_buffers_are_plain_steps(kind, accumulate, kinds, tmp_path, monkeypatch):
    used, stages = set(), set()
    fill = CapturedStep.learn

    def note(step, batch, *rest):
        used.add(shape_of(batch))
        terms = fill(step, batch, *rest)
        stages.update(key[-1] for key in step.shapes)
        return terms

    monkeypatch.setattr(CapturedStep, "learn", note)
    settings = kinds[kind]
    changes = {
        "augment": AUGMENT,
        "steps": STEPS,
        "batch": {"accumulate": accumulate, "buckets": 3},
    }
    plain = run(settings, tmp_path / "plain", **changes, machine={"capture": False})
    assert not used
    fixed = run(settings, tmp_path / "fixed", **changes, machine={"capture": True})
    assert 1 < len(used) <= 3  # one for each bucket, whatever the speeds
    # Once more where another loss began to count on the way.
    assert len(stages) == (2 if kind in ("mma", "joint") else 1)
    assert losses(tmp_path / "fixed") == losses(tmp_path / "plain")
    for key, value in plain.items():
        assert torch.equal(value, fixed[key]), key


def test_buffers_go_on_where_plain_steps_stopped(tiny, tmp_path):
    """And the other way round: `machine` may change within a run."""
    run(tiny, tmp_path / "whole", machine={"capture": False})
    for total, capture in ((3, False), (6, True), (9, False), (12, True)):
        run(tiny, tmp_path / "twice", machine={"capture": capture}, steps={"total": total})
    last = "weights-00000012.pt"
    whole, twice = (load_weights(tmp_path / name / last) for name in ("whole", "twice"))
    assert all(torch.equal(whole[key], twice[key]) for key in whole)


def test_who_cannot_be_captured_is_told_why(tiny, tmp_path):
    notes, steps = [], {"total": 1, "validate": 1}
    captured = {"net_settings": {"ctc_compression": True}, "machine": {"capture": True}}
    run(tiny, tmp_path / "run", notes, **captured, steps=steps)
    assert any("not captured: CTC compression makes" in note for note in notes)
    notes.clear()
    run(tiny, tmp_path / "cpu", notes, steps=steps)  # left to itself, without a GPU: nothing to say
    assert not any("not captured" in note for note in notes)


@pytest.mark.parametrize(
    ("net_settings", "task_settings"),
    [
        ({}, {"decisions": "oracle"}),
        ({"decisions": "learned", "encoder_settings": {"boundaries": True}}, {}),
    ],
)
def test_decisions_that_are_counted_are_not_captured(net_settings, task_settings, corpus):
    own = NETS["mma"][1]["encoder_settings"]
    if "encoder_settings" in net_settings:
        net_settings = net_settings | {"encoder_settings": own | net_settings["encoder_settings"]}
    assert (
        "counted on the host" in make("mma", corpus, net_settings, **task_settings).host_decisions()
    )
    assert not make("mma", corpus).host_decisions()


def test_a_plan_has_one_shape_for_each_bucket(corpus):
    data, _ = corpus
    from dragoman.train.recipe import Batch

    plan = Plan(data, Batch(seconds=2, buckets=2), 3, (0.9, 1.0, 1.1))
    shapes = {}
    for _, planned in zip(range(40), plan.stream(Place(0, 0)), strict=False):
        batch = Loader(data).make(0, planned)
        shapes.setdefault(planned.shape, set()).add(shape_of(batch))
    assert len(shapes) == 2
    assert all(len(found) == 1 for found in shapes.values())


on_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@on_device
@pytest.mark.parametrize(
    ("kind", "compiled"),
    [
        *((kind, "") for kind in ("speech", "text", "mma", "joint")),
        pytest.param("speech", "default", marks=pytest.mark.slow),
    ],
)
def test_captured_steps_learn_what_plain_ones_do(kind, compiled, kinds, tmp_path, monkeypatch):
    captured = []
    capture = Repeated._capture
    monkeypatch.setattr(
        Repeated, "_capture", lambda self, *a, **k: (captured.append(1), capture(self, *a, **k))[1]
    )
    settings = kinds[kind]
    steps = {"total": 50, "validate": 50, "save": 50, "log": 1, "average": 1}
    machine = {"accelerator": "cuda", "precision": "bf16-mixed", "compile": compiled}
    changes = {"augment": AUGMENT, "steps": steps, "optimiser": {"rate": 0.001}}
    run(settings, tmp_path / "plain", **changes, machine={**machine, "capture": False})
    assert not captured
    run(settings, tmp_path / "graphs", **changes, machine=machine)
    assert len(captured) > 1  # the optimiser's, and one for every shape that came three times
    plain, graphs = (torch.tensor(losses(tmp_path / name)) for name in ("plain", "graphs"))
    assert plain[-5:].mean() < 0.9 * plain[:5].mean()
    torch.testing.assert_close(graphs, plain, rtol=0.02, atol=0.02)


@on_device
def test_a_captured_run_goes_on_as_if_never_stopped(tiny, tmp_path):
    machine = {"accelerator": "cuda"}
    steps = {"total": 24, "validate": 8, "save": 8, "log": 1, "average": 1}
    run(tiny, tmp_path / "whole", machine=machine, steps=steps)
    for total in (8, 16, 24):
        run(tiny, tmp_path / "twice", machine=machine, steps={**steps, "total": total})
    whole, twice = (torch.tensor(losses(tmp_path / name)) for name in ("whole", "twice"))
    torch.testing.assert_close(twice, whole, rtol=2e-3, atol=2e-3)

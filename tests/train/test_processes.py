"""Two processes give the gradients of one."""

import json

import pytest
import torch

from dragoman.train.checkpoints import load_weights
from dragoman.train.recipe import Machine, Recipe
from dragoman.train.settings import convert, merge
from dragoman.train.train import PATIENCE, lost_company, strategy_of, train
from tests.train.copies import METHOD
from tests.train.toy_tasks import NETS


@pytest.mark.parametrize("kind", ["offline", "joint"])
def test_two_processes_learn_what_one_learns(kind, perturbed, tmp_path):
    """Dropout, masks and speeds are on; one process takes both micro-batches in turn.

    With a large epsilon Adam's step is proportional to the gradient, so weights show gradients.
    """
    net, sizes, _ = NETS[kind]  # without batch normalisation, which sees both batches at once
    settings = {"joint": {"latency": {"average": 0.1}}}.get(kind, {})
    text = {"text": perturbed["data"]["train"], "text_share": 0.5} if kind == "joint" else {}
    base = perturbed | {
        "net": net,
        "task": kind,
        "net_settings": {**sizes, "dropout": 0.1},
        "task_settings": settings,
        "data": {**perturbed["data"], **text},
        "optimiser": {"rate": 0.5, "eps": 1.0, "warmup": 1},
        "steps": {"total": 3, "validate": 3, "save": 3, "log": 1, "average": 1},
    }
    one = merge(base, {"batch": {"accumulate": 2}})
    two = merge(base, {"machine": {"devices": 2, "strategy": f"ddp_{METHOD}"}})
    train(convert(Recipe, one), tmp_path / "one")
    train(convert(Recipe, two), tmp_path / "two")

    first, second = load_weights(tmp_path / "one"), load_weights(tmp_path / "two")
    for key, value in first.items():
        torch.testing.assert_close(second[key], value, atol=1e-5, rtol=1e-4, msg=key)
    dev = [_lines(tmp_path / name, "dev")[-1]["loss"] for name in ("one", "two")]
    assert abs(dev[0] - dev[1]) < 1e-4
    logged = [[line["loss"] for line in _lines(tmp_path / n, "train")] for n in ("one", "two")]
    torch.testing.assert_close(torch.tensor(logged[0]), torch.tensor(logged[1]), atol=1e-4, rtol=0)
    assert logged[0][-1] < logged[0][0]


def test_two_processes_agree_on_what_translates_best(perturbed, tmp_path):
    """One of them translates; all need to know when nothing gets better any more."""
    net, sizes, _ = NETS["offline"]
    steps = {"total": 5, "log": 1, "validate": 1, "save": 1, "average": 1}
    settings = perturbed | {
        **{"net": net, "net_settings": sizes, "optimiser": {"rate": 0.0}},
        "steps": steps | {"translate": 2, "best": "chrf", "patience": 2},
        "machine": {"devices": 2, "strategy": f"ddp_{METHOD}"},
    }
    train(convert(Recipe, settings), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert (final["best_by"], final["best_step"]) == ("chrf", 1)
    assert [line["step"] for line in _lines(tmp_path / "run", "dev")] == [1, 2, 3]


def _lines(folder, kind):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]


def test_processes_wait_while_the_first_one_packs_a_corpus():
    """Torch's own patience ends after ten minutes (NCCL) or thirty (gloo)."""
    for machine in (Machine(devices=2), Machine(nodes=2), Machine(strategy="ddp_spawn")):
        assert strategy_of(machine)._timeout == PATIENCE
    assert strategy_of(Machine()) == "auto"
    assert strategy_of(Machine(strategy="nonsense")) == "nonsense"  # Lightning says so


def test_a_process_whose_company_has_gone_is_told_from_one_with_a_fault():
    assert lost_company(RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer"))
    assert lost_company(torch.distributed.DistNetworkError("reset"))
    assert not lost_company(RuntimeError("The size of tensor a (3) must match"))

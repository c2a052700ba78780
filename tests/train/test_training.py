"""What the loop does with gradients, validations and given weights, against plain arithmetic."""

import json

import pytest
import torch

from dragoman.train.checkpoints import load_weights
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.nets.base import Vocabularies
from dragoman.train.prepare import prepare
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert, merge
from dragoman.train.tally import Tally
from dragoman.train.train import make_net, make_task, train


@pytest.fixture
def plain(tiny) -> dict:
    """A net without running statistics, every step logged, validated and kept."""
    net = {key: value for key, value in tiny["net_settings"].items() if key != "kernel"}
    steps = {"total": 1, "validate": 1, "save": 1, "log": 1, "average": 1}
    return tiny | {"net": "transformer", "net_settings": net, "steps": steps}


def recipe_of(settings: dict, **changes) -> Recipe:
    return convert(Recipe, merge(settings, changes))


def fresh_net(recipe: Recipe, folder):
    data = prepare(recipe, RunFolder(folder), 1)
    return data, make_net(recipe, Vocabularies(len(data.target), len(data.source)))


@pytest.mark.parametrize("clip", [0.01, 1e9])
def test_an_update_is_a_clipped_step_down_the_mean_of_all_units(plain, tmp_path, clip):
    """Adam's first step is rate g / (|g| + epsilon): with a large epsilon, the gradient itself."""
    optimiser = {"rate": 8.0, "eps": 1e3, "warmup": 4, "clip": clip}
    recipe = recipe_of(plain, optimiser=optimiser, batch={"accumulate": 2})
    train(recipe, tmp_path / "run")
    data, net = fresh_net(recipe, tmp_path / "run")
    before = {key: value.clone() for key, value in net.named_parameters()}
    task = make_task(recipe, net, data, RunFolder(tmp_path / "run"), torch.device("cpu")).train()
    planned = Plan(data.train, recipe.batch, recipe.seed, recipe.augment.speeds).epoch(0)[:2]
    batches = list(Loader(data.train).batches(enumerate(planned)))
    units = sum(int(batch.target_lengths.sum()) for batch in batches)
    for batch in batches:
        torch.manual_seed(recipe.seed * 1_000_003 + batch.number)
        (sum(task(batch).losses.values()) / units).backward()
    gradients = {key: p.grad for key, p in net.named_parameters()}
    norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
    logged = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert logged["norm"] == pytest.approx(float(norm), rel=1e-4)
    assert logged["rate"] == 2.0  # a quarter of the warm-up
    scale = 2.0 / 1e3 * min(1.0, clip / float(norm))
    after = load_weights(tmp_path / "run")
    for key, gradient in gradients.items():
        moved = after[key] - before[key]
        torch.testing.assert_close(moved, -scale * gradient, atol=2e-7, rtol=1e-2, msg=key)


@pytest.fixture
def scripted(monkeypatch):
    """Validations that say what they are told to."""

    def tell(*losses: float) -> None:
        script = iter(losses)
        monkeypatch.setattr(Tally, "means", lambda self, fabric: {"loss": next(script)})

    return tell


@pytest.mark.parametrize(
    ("losses", "patience", "best", "averaged"),
    [
        ((5.0, 3.0, 1.0, 2.0, 4.0, 6.0), 0, 3, [2, 3, 4]),
        ((1.0, 3.0, 5.0, 2.0, 4.0, 6.0), 0, 1, [1, 2, 3]),
        ((6.0, 5.0, 4.0, 3.0, 2.0, 1.0), 2, 6, [4, 5, 6]),
        ((5.0, 3.0, 4.0, 3.5), 2, 2, [1, 2, 3]),  # stopped early, after the fourth
        ((9.0, 5.0, 6.0, 4.0, 7.0, 4.5), 3, 4, [3, 4, 5]),
    ],
)
def test_weights_around_the_best_are_averaged(
    plain, tmp_path, scripted, losses, patience, best, averaged
):
    steps = {"total": 6, "log": 100, "average": 3, "patience": patience}
    scripted(*losses)
    train(recipe_of(plain, steps=steps), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["best_step"] == best
    assert final["averaged"] == [f"weights-{step:08d}.pt" for step in averaged]
    each = [load_weights(tmp_path / "run" / name) for name in final["averaged"]]
    for key, value in load_weights(tmp_path / "run").items():
        mean = sum(weights[key].double() for weights in each) / len(each)
        torch.testing.assert_close(value.double(), mean, atol=1e-7, rtol=1e-6)


def test_parts_of_another_run_are_taken_over_and_stay_if_frozen(plain, tmp_path):
    first = recipe_of(plain, seed=5)
    train(first, tmp_path / "first")
    parts = ["layers", "subsampling.first:subsampling.first"]
    changes = {"init": str(tmp_path / "first"), "init_parts": parts, "freeze": ["layers"]}
    second = recipe_of(plain, **changes, steps={"total": 3, "validate": 3})
    train(second, tmp_path / "second")
    given, made = load_weights(tmp_path / "first"), load_weights(tmp_path / "second")
    _, net = fresh_net(second, tmp_path / "second")
    for key, drawn in net.state_dict().items():
        if key.startswith("layers."):
            assert torch.equal(made[key], given[key]), key
        elif "norm.mean" not in key and "norm.deviation" not in key and drawn.any():
            assert not torch.equal(made[key], drawn), key  # learned

    still = recipe_of(plain, **changes, optimiser={"rate": 0.0})
    train(still, tmp_path / "still")
    for key, value in load_weights(tmp_path / "still").items():
        taken = key.startswith(("layers.", "subsampling.first."))
        source = given if taken else net.state_dict()
        if "norm.mean" not in key and "norm.deviation" not in key:
            assert torch.equal(value, source[key]), key


def test_a_part_may_have_another_name_here(plain, tmp_path):
    train(recipe_of(plain, seed=5), tmp_path / "ears")
    encoder = {**plain["net_settings"], "ctc_layer": 0}
    sizes = {"decoder_layers": 1, "decoder_heads": 2, "decoder_ffn": 32, "ratio": 2}
    parts = ["layers:source.layers", "decoder.embedding:decoder.embedding"]
    settings = {
        **{"net": "mma", "task": "mma", "net_settings": {"encoder_settings": encoder, **sizes}},
        **{"init": str(tmp_path / "ears"), "init_parts": parts, "optimiser": {"rate": 0.0}},
    }
    train(convert(Recipe, {**plain, **settings}), tmp_path / "mma")
    given, made = load_weights(tmp_path / "ears"), load_weights(tmp_path / "mma")
    for key, value in given.items():
        if key.startswith("layers."):
            assert torch.equal(made[f"source.{key}"], value)
    assert torch.equal(made["decoder.embedding.weight"], given["decoder.embedding.weight"])
    assert not torch.equal(made["decoder.output.weight"], given["decoder.output.weight"])

"""With 16-mixed losses are scaled up, so that small gradients are not lost in half floats."""

import pytest
import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision

from dragoman.train.checkpoints import load_weights
from dragoman.train.recipe import Recipe
from dragoman.train.settings import convert, merge
from dragoman.train.step import make_optimiser
from dragoman.train.train import train
from tests.train.toy_tasks import make


def recipe_of(tiny: dict, **changes) -> Recipe:
    return convert(Recipe, merge(tiny, {"machine": {"precision": "16-mixed"}} | changes))


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_gradients_are_clipped_as_they_are(tiny, corpus, kind):
    """A fused optimiser would scale them down itself, after they were clipped: Lightning refuses
    to clip for one. Without half floats a GPU has the fused one, which is quicker."""
    gpu, task = torch.device("cuda"), make("offline", corpus)
    recipe = recipe_of(tiny, optimiser={"kind": kind})
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    precision = MixedPrecision("16-mixed", "cpu", scaler=scaler)
    optimiser = make_optimiser(task, recipe, gpu, captured=False)
    task.net.decoder.output.weight.sum().backward()
    for parameter in task.parameters():
        if parameter.grad is not None:
            parameter.grad *= 1024.0
    scaler.scale(torch.ones(()))  # which makes it ready
    precision.unscale_gradients(optimiser)
    assert (task.net.decoder.output.weight.grad == 1.0).all()
    plain = recipe_of(tiny, machine={"precision": "32-true"})
    assert make_optimiser(task, plain, gpu, captured=False).defaults["fused"]


def test_a_run_that_goes_on_scales_as_before(tiny, tmp_path, monkeypatch):
    scalers = []

    def fabric_for(machine):
        scalers.append(torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2))
        precision = MixedPrecision("16-mixed", "cpu", scaler=scalers[-1])
        return Fabric(accelerator="cpu", devices=1, plugins=precision)

    monkeypatch.setattr("dragoman.train.train.fabric_for", fabric_for)
    steps = {"total": 6, "validate": 3, "save": 3, "log": 1, "average": 1}
    train(recipe_of(tiny, steps=steps), tmp_path / "whole")
    for total in (3, 6):
        train(recipe_of(tiny, steps=steps | {"total": total}), tmp_path / "parts")
    whole, first, second = (scaler.state_dict() for scaler in scalers)
    assert whole["scale"] == 64.0 * 2**3
    assert first["scale"] == 64.0 * 2
    assert first["_growth_tracker"] == 1  # of the two updates after which it grows again
    assert second == whole
    for key, value in load_weights(tmp_path / "whole").items():
        assert torch.equal(load_weights(tmp_path / "parts")[key], value), key

"""Weights that come from elsewhere: an exported net teaches as the run did that it was made of."""

import shutil

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train.check import check
from dragoman.train.data.pack import Pack
from dragoman.train.distill import distill
from dragoman.train.foreign import weights_in
from dragoman.train.quantise import quantise
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert
from dragoman.train.train import train
from dragoman.train.trained import open_run

SMALL = {
    "size": 48,
    "heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "ffn": 64,
    "turning": 8,
    "dropout": 0.0,
}


@pytest.fixture(scope="module")
def exported(exported_teacher, tmp_path_factory):
    """The teacher in eight bits."""
    folder = tmp_path_factory.mktemp("exported") / "net"
    quantise(shutil.copytree(exported_teacher, folder))
    return folder


@torch.no_grad()
def test_an_exported_net_is_the_net_again_but_for_rounding(teacher, exported):
    before, after = open_run(teacher), open_run(exported)
    assert after.recipe.data.source == "en"
    tokens, lengths = torch.tensor([[5, 6, 7]]), torch.tensor([3])
    said = torch.tensor([[1, 8, 9]])
    wanted, found = (
        one.task.net.decode(said, one.task.net.encode(tokens, lengths)).softmax(-1)
        for one in (before, after)
    )
    assert float((wanted - found).abs().sum(-1).max()) < 0.2
    for name, weight in before.task.net.state_dict().items():
        other = after.task.net.state_dict()[name]
        assert float((weight - other).abs().max()) <= 0.01 * float(weight.abs().max()) + 1e-6


def test_an_exported_teacher_says_what_the_run_says(teacher, exported, sung, tmp_path):
    distill(teacher, sung, tmp_path / "one", beam=1)
    header = distill(exported, sung, tmp_path / "other", beam=1)
    assert header.languages == ["en", "de"]
    one, other = (Pack(tmp_path / name).items for name in ("one", "other"))
    alike = sum(a.text["de"] == b.text["de"] for a, b in zip(one, other, strict=True))
    assert alike > 0.9 * len(one)


def test_what_is_no_model_has_no_weights(tmp_path):
    assert weights_in(tmp_path) is None


def test_a_moonshine_without_its_files_is_a_sentence(tmp_path):
    """It was a traceback."""
    (tmp_path / "dragoman.json").write_text('{"kind": "moonshine"}')
    with pytest.raises(DragomanError, match=r"Cannot read .*encoder_model\.onnx"):
        weights_in(tmp_path)


def test_a_net_that_hears_sound_is_trained(tiny, tmp_path):
    """Its features are the sound itself: it learns colours that are sung."""
    recipe = convert(
        Recipe,
        tiny
        | {
            "net": "moonshine",
            "net_settings": SMALL,
            "task": "offline",
            "task_settings": {"ctc": 0.0, "boundaries": 0.0},
            "augment": {"spec": "none", "noise": 0.5},
            "optimiser": {"rate": 0.005, "warmup": 10},
            "steps": {"total": 60, "validate": 20, "save": 60, "average": 1, "translate": 8},
        },
    )
    train(recipe, tmp_path / "run")
    dev = [line for line in RunFolder(tmp_path / "run").metrics() if line["kind"] == "dev"]
    assert dev[-1]["loss"] < 0.8 * dev[0]["loss"]


def test_masks_need_features(tiny):
    recipe = convert(
        Recipe,
        tiny
        | {
            "net": "moonshine",
            "net_settings": SMALL,
            "task": "offline",
            "task_settings": {},
            "augment": {"spec": "LD"},
        },
    )
    with pytest.raises(DragomanError, match=r"augment\.spec to none"):
        check(recipe)

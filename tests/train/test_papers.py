"""The recipes against the papers: their numbers, their sizes, and the runs they start from."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.models.exported.config import ExportedNet
from dragoman.train.check import check
from dragoman.train.checkpoints import fitting
from dragoman.train.data.vocabulary import Pieces
from dragoman.train.make import make_net
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Units, read_recipe
from dragoman.train.start import starts_of

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = sorted(FOLDER.glob("*.yaml"))
CLAIMS = sorted((FOLDER / "claims").glob("*.yaml"))
TINY = {"size": 288, "heads": 8, "encoder_layers": 6, "decoder_layers": 6, "ffn": 1152}
MOONSHINE = {"store:moonshine-base": {}, "store:moonshine-tiny": TINY}


def net_of(recipe):
    units = recipe.vocabulary
    with torch.device("meta"):  # shapes only
        return make_net(recipe, Vocabularies(units.target.size, units.source.size))


def millions(name):
    net = net_of(read_recipe(FOLDER / f"{name}.yaml"))
    return sum(parameter.numel() for parameter in net.parameters()) / 1e6


@pytest.mark.parametrize(
    ("name", "paper"),
    [("transformer-ctc.en-de", 32.4), ("conformer-ctc.en-de", 35.7), ("mt.en-de", 212)],
)
def test_nets_have_the_papers_sizes(name, paper):
    assert millions(name) == pytest.approx(paper, rel=0.02)


def net_before(run):
    """The net of a run that a recipe starts from, or Moonshine with its own units, or a net that
    is shipped."""
    if run.startswith("store:"):
        with torch.device("meta"):
            return build("moonshine", MOONSHINE[run], Vocabularies(32_768, 1))
    if run.startswith("weights/"):
        folder = FOLDER.parent / run
        known = ExportedNet.read(folder)
        target, source = (
            len(Pieces(folder / f"{side}.model", Units())) for side in ("target", "source")
        )
        with torch.device("meta"):
            return build(known.net, known.settings, Vocabularies(target, source))
    return net_of(read_recipe(FOLDER / f"{Path(run).relative_to('runs')}.yaml"))


def check_fit(recipe):
    """Every run it starts from is one of the recipes here, and has the parts, as large as here."""
    for before in starts_of(recipe):
        given, ours = net_before(before.run).state_dict(), net_of(recipe).state_dict()
        chosen = fitting(given, ours, before.parts, Path(before.run))
        assert chosen
        if not before.parts:
            assert chosen.keys() == ours.keys()


@pytest.mark.parametrize("path", [*RECIPES, *CLAIMS], ids=lambda path: path.stem)
def test_what_a_recipe_starts_from_fits(path):
    check_fit(read_recipe(path))


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.stem)
def test_claims_are_tried_with_small_nets(path):
    recipe = read_recipe(path)
    check(recipe)
    assert sum(parameter.numel() for parameter in net_of(recipe).parameters()) < 25e6


def claims_plan():
    """The runs of recipes/claims/claims.py, which is a script."""
    spec = importlib.util.spec_from_file_location("claims", FOLDER / "claims" / "claims.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["claims"] = module
    spec.loader.exec_module(module)
    return module.plan(["001", "000", "003", "004"])


@pytest.mark.parametrize(("name", "run"), claims_plan().items(), ids=list(claims_plan()))
def test_settings_of_the_claims_are_settings(name, run):
    recipe = read_recipe(FOLDER / "claims" / f"{run.recipe}.yaml", run.settings)
    check(recipe)
    assert not recipe.init or Path(recipe.init).name in sys.modules["claims"].needs(run)


@pytest.mark.parametrize(("name", "run"), claims_plan().items(), ids=list(claims_plan()))
def test_claims_in_another_language_have_nothing_of_german(name, run):
    path = FOLDER / "claims" / f"{run.recipe}.yaml"
    settings = sys.modules["claims"].for_target(path, list(run.settings), "pt")
    german, recipe = read_recipe(path, run.settings), read_recipe(path, tuple(settings))
    check(recipe)
    assert recipe.data.train == tuple(t.replace(".en-de", ".en-pt") for t in german.data.train)
    assert recipe.data.dev == ("packs/claims-dev.en-pt",)
    assert recipe.data.target == {"de": "pt", "en": "en"}[german.data.target]
    assert recipe.init == german.init.replace("runs/claims/", "runs/claims.pt/")
    for side in ("source", "target"):
        model = getattr(german.vocabulary, side).model
        found = getattr(recipe.vocabulary, side).model
        assert found == model.replace("claims-units/", "claims-units.pt/")
    assert recipe.net_settings == german.net_settings
    assert recipe.steps == german.steps


def test_runs_that_others_start_from_come_first():
    names = list(claims_plan())
    for name, run in claims_plan().items():
        assert not run.after or names.index(run.after) < names.index(name)


COMMANDS = [  # as the recipes tell them
    ("mma-il.en-de", "net_settings.encoder=s-transformer", "init=runs/asr-s.en"),
    ("waitk-fixed.en-de", "net=s-transformer", "init=runs/asr-s.en"),
    ("conformer-ctc-kd.en-de", "task=wait-k", "task_settings.words=ctc"),
    ("mma-oracle.en-de", "data.ends=phones"),
    ("waitk-oracle.en-de", "data.ends=phones"),
    ("incremental.en-de", "net_settings.boundaries=false"),
    ("caat.en-de", "net_settings.decision=16"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_that_recipes_name_work(command):
    name, *changes = command
    recipe = read_recipe(FOLDER / f"{name}.yaml", tuple(changes))
    check(recipe)
    check_fit(recipe)
    text = "".join(path.read_text() for path in RECIPES)
    assert all(change in text for change in changes)


A1 = {"optimiser.clip": 10.0, "steps.patience": 10, "steps.average": 7, "augment.spec": "LB"}
MA = A1 | {"optimiser.rate": 1e-4, "optimiser.warmup": 4000, "task_settings.label_smoothing": 0.1}
VGG = {"net_settings.features": 83, "augment.speeds": (0.9, 1.0, 1.1)}
PAPERS = {
    "transformer-ctc.en-de": MA
    | {"vocabulary.target.kind": "unigram", "vocabulary.target.size": 8000}
    | {"vocabulary.source.kind": "bpe", "vocabulary.source.size": 5000, "task_settings.ctc": 0.5},
    "conformer-ctc.en-de": A1
    | {"optimiser.rate": 2e-3, "optimiser.warmup": 25_000, "optimiser.betas": (0.9, 0.98)}
    | {"vocabulary.target.size": 8000, "vocabulary.source.size": 5000},
    "mt.en-de": {"net_settings.size": 1024, "net_settings.encoder_heads": 16},
    "waitk-fixed.en-de": MA | {"task_settings.ratio": 7},  # 280 ms
    "asr-char.en": {"optimiser.rate": 5e-4, "optimiser.warmup": 10_000, "optimiser.clip": 10.0},
    "mma-il.en-de": MA | {"vocabulary.target.size": 10_000, "net_settings.ratio": 7},
    "mma-il-latency.en-de": {"task_settings.latency": {"average": 0.01, "metric": "al"}},
    "s-transformer.en-de": {"optimiser.rate": 5e-3, "optimiser.warmup": 4000},
    "vgg-blstm-char.en-de": VGG | {"augment.spec": "LD", "vocabulary.target.kind": "char"},
    "vgg-blstm-char.en-pt": VGG | {"augment.spec": "none", "vocabulary.target.kind": "char"},
    "vgg-blstm-bpe400.en-pt": VGG | {"augment.spec": "none", "vocabulary.target.size": 400},
    "vgg-blstm-bpe2k.en-pt": VGG | {"augment.spec": "none", "vocabulary.target.size": 2000},
    "joint-mma.en-de": {
        "optimiser.rate": 2e-3,
        "optimiser.betas": (0.9, 0.999),
        "optimiser.warmup": 20_000,
        "optimiser.clip": 10.0,
        "task_settings.label_smoothing": 0.1,
        "task_settings.weights": {"kd": 0.2, "car": 0.02, "mt": 0.5, "dar": 0.01},
    },
    "joint-mma-latency.en-de": {"task_settings.latency": {"average": 0.05, "metric": "dal"}},
    "caat.en-de": {
        "optimiser.rate": 5e-4,
        "optimiser.betas": (0.9, 0.98),
        "optimiser.warmup": 4000,
        "optimiser.clip": 2.0,
        "vocabulary.joint": True,
        "vocabulary.target.size": 30_000,
        "vocabulary.target.dropout": 0.1,
        "task_settings.label_smoothing": 0.1,
    },
}


@pytest.mark.parametrize("name", PAPERS)
def test_settings_are_the_papers(name):
    recipe = read_recipe(FOLDER / f"{name}.yaml")
    for key, wanted in PAPERS[name].items():
        found = recipe
        for part in key.split("."):
            found = found[part] if isinstance(found, dict) else getattr(found, part)
        assert found == wanted, key


MUST_C = 408 * 3600  # seconds


@pytest.mark.parametrize(
    ("name", "packs", "epochs"),
    [
        ("transformer-ctc.en-de", 1, 100),
        ("conformer-ctc.en-de", 1, 100),
        ("conformer-ctc-kd.en-de", 2, 100),
        ("caat.en-de", 2, 80),
        ("joint-mma.en-de", 2, 150),
        ("joint-mma-latency.en-de", 2, 50),
    ],
)
def test_training_is_as_long_as_the_papers(name, packs, epochs):
    """Validations and checkpoints come once an epoch, as the papers' do."""
    recipe = read_recipe(FOLDER / f"{name}.yaml")
    assert len(recipe.data.train) == packs
    update = recipe.batch.seconds * recipe.batch.accumulate
    text = recipe.data.text_share if recipe.data.text else 0.0  # of batches without speech
    epoch = packs * MUST_C / update / (1 - text)
    assert recipe.steps.total / epoch == pytest.approx(epochs, rel=0.01)
    assert recipe.steps.validate / epoch == pytest.approx(1, rel=0.01)


LAYERS = {"encoder_layers": 12, "decoder_layers": 6, "size": 256, "ctc_layer": 8, "dropout": 0.1}
SIZES = {  # that recipes leave to their nets
    "transformer-ctc.en-de": LAYERS
    | {"encoder_heads": 4, "decoder_heads": 4, "encoder_ffn": 2048, "decoder_ffn": 2048},
    "conformer-ctc.en-de": LAYERS | {"encoder_heads": 4, "decoder_heads": 8, "kernel": 31},
    "joint-mma.en-de": {"speech_layers": 12, "text_layers": 6, "decoder_layers": 6}
    | {"size": 512, "ffn": 2048, "heads": 8, "dropout": 0.1},
    "caat.en-de": {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1}
    | {"chunk": 8, "right": 4, "reach": 32, "conv_channels": 128, "decoder_ffn": 1024},
    "s-transformer.en-de": {"size": 256, "encoder_ffn": 768, "encoder_heads": 4, "maps": 4}
    | {"dropout": 0.3, "conv_channels": 64, "encoder_layers": 6, "penalty": "log"},
    "vgg-blstm-char.en-de": {"size": 1024, "encoder_layers": 5, "features": 83},
}


@pytest.mark.parametrize("name", SIZES)
def test_layers_are_the_papers(name):
    config = net_of(read_recipe(FOLDER / f"{name}.yaml")).config
    assert {key: getattr(config, key) for key in SIZES[name]} == SIZES[name]


def test_curves_are_compared_at_the_same_lag(tmp_path):
    points = {"a-dal0.0": (20, 2000), "a-dal0.1": (10, 1000), "b-dal0.0": (23, 2500)}
    points |= {"b-dal0.1": (18, 1500), "b-dal0.2": (14, 1250), "a": (99, 1500)}
    for name, (bleu, lag) in points.items():
        folder = tmp_path / "004" / f"{name}-follow"
        folder.mkdir(parents=True)
        (folder / "scores.tsv").write_text(f"system\tBLEU\tLAAL\nfollow\t{bleu}\t{lag}\n")
    script = FOLDER / "claims" / "gain.py"
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(
        [sys.executable, script, "a", "b", tmp_path], capture_output=True, env=environment
    )
    lines = done.stdout.decode().splitlines()
    assert lines[2:4] == [
        "| 1.25 | 12.5 | 14.0 | +1.5 | +12% |",
        "| 1.50 | 15.0 | 18.0 | +3.0 | +20% |",
    ]  # at 2.5 s there is nothing to compare with
    assert lines[-1].startswith("mean +2.25 BLEU, p = 0.205"), done

"""Recipes: typed, with a sentence for every mistake."""

import re
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.train.recipe import Optimiser, read_recipe
from dragoman.train.schedule import rate_at

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
TEXT = "net: conformer\ndata: {train: [a], dev: [b]}\n"


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "base.yaml").write_text(TEXT + "steps: {total: 7, save: 3}\n")
    (tmp_path / "next.yaml").write_text("base: base.yaml\nsteps: {total: 9}\n")
    return tmp_path / "next.yaml"


def test_base_and_changes_are_merged(path):
    recipe = read_recipe(path, ("steps.log=2", "data.train=[x, y]", "optimiser.betas=[0.9, 0.999]"))
    assert (recipe.steps.total, recipe.steps.save, recipe.steps.log) == (9, 3, 2)
    assert recipe.data.train == ("x", "y")
    assert recipe.data.dev == ("b",)
    assert recipe.optimiser.betas == (0.9, 0.999)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("optimiser.warmpu=3", "no setting 'optimiser.warmpu'; did you mean 'warmup'"),
        ("optmiser.warmup=3", "did you mean 'optimiser'"),
        ("steps.total=many", "'steps.total' is 'many'"),
        ("steps.total=0", "'steps.total' is 0: Expected a whole number >= 1"),
        ("optimiser.rate=.nan", "'optimiser.rate' is nan: Expected a number >= 0"),
        ("optimiser.betas=[0.9, 1.5]", "'optimiser.betas' is .* < 1"),
        ("augment.speeds=[]", "'augment.speeds' is .* of length >= 1"),
        ("data.fault_limit=2", "'data.fault_limit' is 2: Expected a number <= 1"),
        ("data.train=a.tsv", "'data.train' is 'a.tsv': Expected a list such as"),
        ('data.train=["voice:a"?b=1]', "a name with . or : needs quotes"),
        ("seed=-1", "'seed' is -1"),
        ("augment.spec=XX", "'augment.spec' is 'XX'; it may be none, LB, LD"),
        ("steps=3", "'steps' must hold settings"),
        ("steps.total", "write key=value"),
        ("data.train=[", "is not YAML"),
    ],
)
def test_mistakes_are_sentences(path, change, sentence):
    with pytest.raises(DragomanError, match=sentence):
        read_recipe(path, (change,))


def test_nothing_after_the_sign_is_an_empty_word(path):
    assert read_recipe(path, ("init=runs/other", "init=")).init == ""


def test_missing_things_are_sentences(tmp_path):
    with pytest.raises(DragomanError, match="There is no recipe"):
        read_recipe(tmp_path / "no.yaml")
    (tmp_path / "short.yaml").write_text("net: conformer\n")
    (tmp_path / "tabs.yaml").write_text("net: conformer\n\tdata: 1\n")
    with pytest.raises(DragomanError, match=r"is not YAML: [^\n]*line 2, column 1\)\.$"):
        read_recipe(tmp_path / "tabs.yaml")
    with pytest.raises(DragomanError, match="'data' is missing"):
        read_recipe(tmp_path / "short.yaml")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"base: that.yaml\nnet: mma", "is its own base"),
        (b"base: [a.yaml, b.yaml]", r"base of .* is \['a.yaml', 'b.yaml'\]; name one"),
        (b"PK\x03\x04\xff\xfe", "not UTF-8 text"),
    ],
)
def test_what_is_no_recipe_is_a_sentence(tmp_path, content, sentence):
    (tmp_path / "this.yaml").write_bytes(content)
    (tmp_path / "that.yaml").write_text("base: this.yaml")
    with pytest.raises(DragomanError, match=sentence):
        read_recipe(tmp_path / "this.yaml")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_of_the_project_builds_its_net_and_task(path):
    from dragoman.train.check import check

    check(read_recipe(path))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("net_settings.encoder_layer=3", "'net_settings.encoder_layer'; did you mean"),
        ("task_settings.label_smooth=0", "'task_settings.label_smooth'; did you mean"),
        ("net=conformr", "no net 'conformr'"),
        ("task=ofline", "no task 'ofline'"),
        ("task=mma", "cannot be trained for the task 'mma'"),
        ("freeze=[encoder]", "no part 'encoder'"),
        ("net_settings.encoder_heads=7", "do not fit 'conformer'"),
        ("net_settings.size=wide", "'net_settings.size' is 'wide': Expected a whole number"),
        ("net_settings.size=-4", "'net_settings.size' is -4: Expected a whole number >= 1"),
        ("net_settings.size=0", "'net_settings.size' is 0: Expected a whole number >= 1"),
        ("net_settings.ctc_layer=13", "CTC cannot listen to layer 13 of 12"),
        ("task_settings.label_smoothing=5", "'task_settings.label_smoothing' is 5"),
        ("machine.compile=hard", "no machine.compile 'hard'"),
    ],
)
def test_nets_and_tasks_are_checked_before_any_data_is_touched(path, change, sentence):
    from dragoman.train.check import check

    with pytest.raises(DragomanError, match=sentence):
        check(read_recipe(path, (change,)))


@pytest.mark.parametrize(
    ("net", "settings", "sentence"),
    [
        ("caat", "decision: 0", "'net_settings.decision' is 0: Expected a whole number >= 1"),
        ("caat", "left: -1", "'net_settings.left' is -1: Expected a whole number >= 0"),
        ("transformer", "decoder_layers: -1", "'net_settings.decoder_layers' is -1"),
        ("transformer", "decoder_heads: -1", "'net_settings.decoder_heads' is -1"),
        ("transformer", "attention_dropout: 3", "attention_dropout' is 3: Expected a number < 1"),
        ("conformer", "dropout: .nan", "'net_settings.dropout' is nan: Expected a number"),
        ("incremental", "train_chunks: []", "'net_settings.train_chunks' is .* of length >= 1"),
        ("incremental", "train_chunks: [0]", "'net_settings.train_chunks' is .* >= 1"),
        ("mma", "noise: -1", "'net_settings.noise' is -1: Expected a number >= 0"),
        ("mma", "encoder_settings: {conv_channels: 0}", "encoder_settings.conv_channels' is 0"),
        ("mma", "attention: soft", "attention' is 'soft'; it may be infinite, hard"),
        ("mma", "pooling: first", "pooling' is 'first'; it may be average, last"),
        ("mma", "decisions: odd", "decisions' is 'odd'; it may be fixed, learned"),
        ("mma", "ratio: 0", "'net_settings.ratio' is 0"),
        ("joint-mma", "wait: -1", "'net_settings.wait' is -1"),
        ("conformer", "positions: absolute", "'absolute'; it may be relative, rotary"),
        ("s-transformer", "penalty: linear", "penalty' is 'linear'; it may be log, gauss, none"),
        ("incremental", "chunk: 0", "'net_settings.chunk' is 0"),
        ("moonshine", "hidden: 1.0", "'net_settings.hidden' is 1.0"),
        ("moonshine", "chunk: -8", "'net_settings.chunk' is -8"),
        ("grafted", "joined: 0", "'net_settings.joined' is 0"),
    ],
)
def test_sizes_that_no_net_can_have(tmp_path, net, settings, sentence):
    """They were found when data had been packed, by a traceback, or never."""
    from dragoman.train.check import check

    path = tmp_path / "recipe.yaml"
    path.write_text(f"net: {net}\ndata: {{train: [a]}}\nnet_settings: {{{settings}}}\n")
    with pytest.raises(DragomanError, match=sentence):
        check(read_recipe(path))


@pytest.mark.parametrize("weights", ["kd: 1.5", "kd: -0.1", "car: -1", "dar: .nan", "mt: .inf"])
def test_a_loss_has_no_weight_below_zero(path, weights):
    """With more than all of it for the teacher, speech would unlearn what it says."""
    from dragoman.train.check import check

    change = f"task_settings={{weights: {{{weights}}}}}"
    name = weights.partition(":")[0]
    with pytest.raises(DragomanError, match=rf"task_settings\.weights\.{name}' is"):
        check(read_recipe(path, ("net=joint-mma", "task=joint", change)))


def test_the_settings_of_a_borrowed_encoder_are_checked(path):
    from dragoman.train.check import check

    change = "net_settings={encoder_settings: {encoder_layer: 3}}"
    with pytest.raises(DragomanError, match=r"encoder_settings.encoder_layer'; did you mean"):
        check(read_recipe(path, ("net=mma", "task=mma", change)))


SECTIONS = "data|vocabulary|augment|batch|optimiser|steps|machine"
DOCS = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
NAMED = {found.rstrip(".,;") for found in re.findall(rf"\b(?:{SECTIONS})\.[\w.]+=[^\s`')]+", DOCS)}


@pytest.mark.parametrize("change", sorted(NAMED))
def test_settings_that_the_docs_name_are_accepted(path, change):
    read_recipe(path, ("vocabulary.target.kind=bpe", change))


def test_rates_follow_their_formulas():
    inverse = Optimiser(rate=2.0, warmup=100, schedule="inverse_sqrt")
    assert rate_at(50, 1000, inverse) == 1.0
    assert rate_at(100, 1000, inverse) == 2.0
    assert rate_at(400, 1000, inverse) == 1.0
    cosine = Optimiser(rate=2.0, warmup=100, schedule="cosine")
    assert rate_at(550, 1000, cosine) == pytest.approx(1.0)
    assert rate_at(1000, 1000, cosine) == pytest.approx(0.0)
    trapezoid = Optimiser(rate=2.0, warmup=100, schedule="trapezoid")
    steps = (50, 100, 749, 750, 875, 1000)
    rates = [rate_at(step, 1000, trapezoid) for step in steps]
    assert rates == pytest.approx([1.0, 2.0, 2.0, 2.0, 1.0, 0.0])
    constant = Optimiser(rate=2.0, warmup=0, schedule="constant")
    assert rate_at(5, 10, constant) == 2.0


def test_a_cosine_cannot_end_by_the_clock(path):
    with pytest.raises(DragomanError, match=r"cosine must know its end.*steps\.minutes"):
        read_recipe(path, ("steps.minutes=3", "optimiser.schedule=cosine"))
    with pytest.raises(DragomanError, match=r"steps\.minutes"):
        read_recipe(path, ("steps.minutes=-3",))

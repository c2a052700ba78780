"""What the loop does with gradients, validations and given weights, against plain arithmetic."""

import json

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train import loop
from dragoman.train.checkpoints import load_weights
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.make import make_net, make_task
from dragoman.train.nets.base import Vocabularies
from dragoman.train.prepare import prepare
from dragoman.train.recipe import Batch, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert, merge
from dragoman.train.tally import Tally
from dragoman.train.tasks.offline import Offline
from dragoman.train.train import train
from dragoman.train.trained import open_run
from tests.train.conftest import make_pack
from tests.train.toy_tasks import NETS


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


@pytest.mark.parametrize("capture", [False, True])
def test_every_micro_batch_has_chance_of_its_own(plain, tmp_path, monkeypatch, capture):
    """Dropout is drawn by a generator whose seed no other micro-batch of the run has."""
    seeds, forward = [], Offline.forward

    def noted(self, batch):
        if self.training:
            seeds.append((batch.number, torch.initial_seed()))
        return forward(self, batch)

    monkeypatch.setattr(Offline, "forward", noted)
    changes = {"machine": {"capture": capture}, "batch": {"accumulate": 2}}
    steps = {"total": 4, "validate": 4}
    train(recipe_of(plain, **changes, steps=steps), tmp_path / "whole")
    assert [number for number, _ in seeds] == list(range(8))
    assert len({seed for _, seed in seeds}) == 8
    whole, seeds[:] = list(seeds), []
    for total in (2, 4):
        train(recipe_of(plain, **changes, steps=steps | {"total": total}), tmp_path / "twice")
    assert seeds == whole
    seeds.clear()
    train(recipe_of(plain, **changes, steps=steps, seed=2), tmp_path / "other")
    assert not set(seeds) & set(whole)


@pytest.fixture
def scripted(monkeypatch):
    """Validations that say what they are told to."""

    def tell(*losses: float, **scores: tuple[float, ...]) -> None:
        script = iter(losses)
        monkeypatch.setattr(Tally, "means", lambda self, fabric: {"loss": next(script)})
        translated = (
            dict(zip(scores, one, strict=True)) for one in zip(*scores.values(), strict=True)
        )
        monkeypatch.setattr(loop, "translation_quality", lambda *_, **__: next(translated))

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


def killed_after(losses: list[float], monkeypatch) -> None:
    """Validations that say what they are told to, until the run is killed in one."""
    script = iter(losses)

    def means(self, fabric):
        try:
            return {"loss": next(script)}
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(Tally, "means", means)


def test_a_run_goes_on_from_before_its_best(plain, tmp_path, monkeypatch, scripted):
    """It is killed after a better validation, of which its last point to resume from, whose best
    is another one, knows nothing."""
    recipe = recipe_of(plain, steps={"total": 8, "save": 5, "log": 100, "average": 1})
    killed_after([5.0, 4.0, 1.0, 3.0, 3.0, 2.0, 0.5], monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run")
    scripted(2.0, 1.5, 3.0)
    train(recipe, tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["averaged"] == ["weights-00000003.pt"]


def test_weights_of_steps_that_are_not_made_again_are_not_averaged(
    plain, tmp_path, monkeypatch, scripted
):
    steps = {"save": 3, "log": 100, "average": 3}
    killed_after([5.0, 4.0, 3.0, 2.9, 2.8], monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(recipe_of(plain, steps=steps | {"total": 9}), tmp_path / "run")
    scripted(2.9)
    train(recipe_of(plain, steps=steps | {"total": 4}), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["averaged"] == [f"weights-{step:08d}.pt" for step in (2, 3, 4)]


@pytest.mark.parametrize(
    ("losses", "patience", "best", "averaged"),
    [
        # Latency counts from step 4 on: losses are higher then, and cannot be compared.
        ((3.0, 1.0, 2.0, 9.0, 7.0, 8.0), 0, 5, [4, 5, 6]),
        ((3.0, 1.0, 2.0, 7.0, 8.0, 9.0), 0, 4, [4, 5, 6]),
        ((1.0, 2.0, 3.0, 9.0, 8.0, 7.0), 3, 6, [4, 5, 6]),  # patience begins anew
        ((1.0, 2.0, 3.0, 9.0, 8.0, 7.0), 1, 6, [4, 5, 6]),  # and ends nothing before
        ((9.0, 8.0, 7.0, 1.0, 2.0, 3.0), 0, 4, [4, 5, 6]),
    ],
)
def test_the_best_is_sought_among_losses_of_the_same_terms(
    plain, tmp_path, scripted, losses, patience, best, averaged
):
    net, sizes, _ = NETS["mma"]
    steps = {"total": 6, "log": 100, "average": 3, "patience": patience}
    latency = {"latency": {"average": 0.1, "after": 4}}
    settings = plain | {"net": net, "task": "mma", "net_settings": sizes, "task_settings": latency}
    scripted(*losses)
    train(recipe_of(settings, steps=steps), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["best_step"] == best
    assert final["averaged"] == [f"weights-{step:08d}.pt" for step in averaged]


# The loss is best at first, BLEU at the end, chrF in between.
APART = {
    "losses": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    "scores": {"bleu": (9.0, 5.0, 6.0, 7.0, 20.0, 19.0), "chrf": (1.0, 2.0, 9.5, 9.0, 9.5, 8.0)},
}


@pytest.mark.parametrize(
    ("by", "best", "averaged"),
    [("loss", 1, [1, 2, 3]), ("bleu", 5, [4, 5, 6]), ("chrf", 3, [2, 3, 4])],
)
def test_the_recipe_says_by_what_the_best_is_judged(plain, tmp_path, scripted, by, best, averaged):
    steps = {"total": 6, "log": 100, "average": 3, "translate": 2, "best": by, "patience": 0}
    scripted(*APART["losses"], **APART["scores"])
    told = []
    train(recipe_of(plain, steps=steps), tmp_path / "run", told.append)
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["averaged"] == [f"weights-{step:08d}.pt" for step in averaged]
    values = {"loss": APART["losses"]} | APART["scores"]
    found = {"best": values[by][best - 1], "best_by": by, "best_step": best}
    assert {key: final[key] for key in found} == found
    assert told[-1] == {"kind": "end"} | found
    dev = [line for line in RunFolder(tmp_path / "run").metrics() if line["kind"] == "dev"]
    assert (dev[-1]["best"], dev[-1]["best_step"]) == (found["best"], best)


def test_patience_waits_as_long_as_translations_get_better(plain, tmp_path, scripted):
    steps = {"total": 6, "log": 100, "translate": 2, "patience": 2}
    for by, last in (("loss", 3), ("bleu", 3), ("chrf", 5)):
        scripted(*APART["losses"], **APART["scores"])
        train(recipe_of(plain, steps=steps | {"best": by}), tmp_path / by)
        assert RunFolder(tmp_path / by).metrics()[-1]["step"] == last


def test_a_finished_run_may_be_judged_by_another_measure(plain, tmp_path, scripted):
    """Among the weights that are still there: those around the best loss, and the last."""
    steps = {"total": 6, "log": 100, "average": 2, "translate": 2, "patience": 0}
    scripted(*APART["losses"], **APART["scores"])
    train(recipe_of(plain, steps=steps), tmp_path / "run")
    assert not (tmp_path / "run" / "weights-00000003.pt").exists()
    for by, best in (("bleu", 5), ("chrf", 5), ("loss", 1)):
        train(recipe_of(plain, steps=steps | {"best": by}), tmp_path / "run")
        final = json.loads((tmp_path / "run" / "final.json").read_text())
        assert (final["best_by"], final["best_step"]) == (by, best)


def test_a_run_that_goes_on_may_be_judged_by_another_measure(plain, tmp_path, scripted):
    """What was validated before counts, with the patience since, as far as it was translated."""
    steps = {"total": 3, "log": 100, "average": 3, "translate": 2, "patience": 0}
    scripted(*APART["losses"], **APART["scores"])
    train(recipe_of(plain, steps=steps), tmp_path / "run")
    later = steps | {"total": 6, "best": "bleu", "patience": 4}
    scripted(4.0, 5.0, 6.0, bleu=(8.0, 7.0, 6.0), chrf=(1.0, 1.0, 1.0))
    train(recipe_of(plain, steps=later), tmp_path / "run")
    state = torch.load(tmp_path / "run" / "resume-00000005.pt")["state"]
    assert (state["best"], state["best_by"], state["best_step"]) == (9.0, "bleu", 1)
    assert state["stale"] == 4
    assert not (tmp_path / "run" / "resume-00000006.pt").exists()


def test_what_was_never_translated_is_judged_from_now_on(plain, tmp_path, scripted):
    """A run that its patience had ended goes on."""
    steps = {"total": 4, "log": 100, "patience": 2}
    scripted(*APART["losses"])
    train(recipe_of(plain, steps=steps), tmp_path / "run")
    assert RunFolder(tmp_path / "run").metrics()[-1]["step"] == 3
    for _ in range(2):  # and once more when it has come to its end
        scripted(4.0, bleu=(3.0,))
        later = {"translate": 2, "best": "bleu"}
        train(recipe_of(plain, steps=steps | later), tmp_path / "run")
        final = json.loads((tmp_path / "run" / "final.json").read_text())
        assert (final["best"], final["best_by"], final["best_step"]) == (3.0, "bleu", 4)


def test_what_was_translated_before_other_losses_is_no_best(plain, tmp_path, scripted):
    net, sizes, _ = NETS["mma"]
    latency = {"latency": {"average": 0.1, "after": 4}}
    settings = plain | {"net": net, "task": "mma", "net_settings": sizes, "task_settings": latency}
    steps = {"log": 100, "average": 3, "patience": 0}
    scripted(*APART["losses"], bleu=(9.0, 5.0, 6.0))
    train(recipe_of(settings, steps=steps | {"total": 3, "translate": 2}), tmp_path / "run")
    train(recipe_of(settings, steps=steps | {"total": 5}), tmp_path / "run")
    scripted(5.0, bleu=(4.0,))
    again = steps | {"total": 5, "translate": 2, "best": "bleu"}
    train(recipe_of(settings, steps=again), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert (final["best"], final["best_by"], final["best_step"]) == (4.0, "bleu", 5)


def test_the_best_by_translation_is_of_the_last_losses_too(plain, tmp_path, scripted):
    """A net that has not learned yet to be early translates better, and is not what is wanted."""
    net, sizes, _ = NETS["mma"]
    latency = {"latency": {"average": 0.1, "after": 4}}
    settings = plain | {"net": net, "task": "mma", "net_settings": sizes, "task_settings": latency}
    steps = {"total": 6, "log": 100, "translate": 2, "best": "bleu", "average": 1}
    scripted(*APART["losses"], bleu=(9.0, 30.0, 8.0, 7.0, 7.5, 7.0))
    train(recipe_of(settings, steps=steps), tmp_path / "run")
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert (final["best"], final["best_step"]) == (7.5, 5)


def test_who_judges_by_translation_must_translate(plain):
    with pytest.raises(DragomanError, match=r"'steps': the best by chrf is found by translating"):
        recipe_of(plain, steps={"best": "chrf"})
    with pytest.raises(DragomanError, match=r"'steps\.best' is 'wer'; it may be loss, bleu, chrf"):
        recipe_of(plain, steps={"best": "wer", "translate": 9})


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
    # Another seed holds out other items, so its vocabulary has other units, though as many.
    with pytest.raises(DragomanError, match=r"target units of .*ears are others"):
        train(convert(Recipe, {**plain, **settings}), tmp_path / "others")
    units = {"target": {"kind": "char", "model": str(tmp_path / "ears" / "target.model")}}
    train(convert(Recipe, {**plain, **settings, "vocabulary": units}), tmp_path / "mma")
    given, made = load_weights(tmp_path / "ears"), load_weights(tmp_path / "mma")
    for key, value in given.items():
        if key.startswith("layers."):
            assert torch.equal(made[f"source.{key}"], value)
    assert torch.equal(made["decoder.embedding.weight"], given["decoder.embedding.weight"])
    assert not torch.equal(made["decoder.output.weight"], given["decoder.output.weight"])


def test_parts_may_come_from_several_runs(plain, tmp_path):
    for seed in (5, 6):
        train(recipe_of(plain, seed=seed), tmp_path / str(seed))
    more = [{"run": str(tmp_path / "6"), "parts": ["norm", "subsampling.second"]}]
    changes = {"init": str(tmp_path / "5"), "init_parts": ["layers", "norm"], "init_more": more}
    train(recipe_of(plain, **changes, optimiser={"rate": 0.0}), tmp_path / "run")
    five, six, made = (load_weights(tmp_path / name) for name in ("5", "6", "run"))
    for key, value in made.items():
        if key.startswith("layers."):
            assert torch.equal(value, five[key]), key
        if key.startswith(("norm.", "subsampling.second.")):
            assert torch.equal(value, six[key]), key
    typo = recipe_of(plain, init_more=[{"run": str(tmp_path / "6"), "parts": ["nurm"]}])
    with pytest.raises(DragomanError, match="no part 'nurm'"):
        train(typo, tmp_path / "typo")
    nowhere = recipe_of(plain, init_more=[{"run": "nowhere", "parts": ["norm"]}])
    with pytest.raises(DragomanError, match="There is no nowhere"):
        train(nowhere, tmp_path / "typo")
    with pytest.raises(DragomanError, match="missing required field `parts`"):
        recipe_of(plain, init_more=[{"run": "nowhere"}])


def test_both_languages_may_share_a_vocabulary(plain, tmp_path):
    units = {"target": {"kind": "bpe", "size": 70}, "joint": True}
    recipe = recipe_of(plain, vocabulary=units)
    data, _ = fresh_net(recipe, tmp_path)
    assert (tmp_path / "source.model").read_bytes() == (tmp_path / "target.model").read_bytes()
    unknown = data.source.model.unk_id()
    for text in ("small green", "klein grün"):
        (ids,) = data.target.encode([text])
        assert unknown not in ids
        assert data.target.decode(ids) == text
    assert recipe.vocabulary.source.size == 70
    assert data.train.source.flat.max() < len(data.target)


ORACLES = [
    {"task": "wait-k", "task_settings": {"words": "oracle"}},
    {"net_settings": {"boundaries": True}},  # a head that would learn nothing
]


@pytest.mark.parametrize("recipe", ORACLES)
def test_who_learns_from_word_ends_needs_data_that_knows_them(plain, tmp_path, recipe):
    data = {"train": [str(make_pack(tmp_path / "pack", 20, ends=False))], "dev_items": 2}
    with pytest.raises(DragomanError, match=r"Nothing in data\.train knows where its words end"):
        train(recipe_of(plain, data=data, **recipe), tmp_path / "run")


@pytest.mark.parametrize("part", ["train", "dev"])
@pytest.mark.parametrize("task", ["wait-k", "mma"])
def test_an_oracle_needs_every_item_to_know_its_word_ends(plain, sung, tmp_path, part, task):
    """A pack of several voices, some of which do not tell: such items would be heard to their end
    before the first word, and what should wait would learn to translate offline."""
    deaf = str(make_pack(tmp_path / "pack", 20, ends=False))
    data = {"train": [str(sung)], "dev": [str(sung)]}
    data[part] = [*data[part], deaf]
    oracle = {"wait-k": {"words": "oracle"}, "mma": {"decisions": "oracle"}}[task]
    net, sizes, _ = NETS[task]
    recipe = plain | {"net": net, "net_settings": sizes, "task": task, "task_settings": oracle}
    with pytest.raises(DragomanError, match=rf"20 of 80 items in data\.{part} do not know"):
        train(recipe_of(recipe, data=data), tmp_path / "run")


def test_validations_of_word_ends_need_them_too(plain, sung, tmp_path):
    """A head that is trained alone would be validated on nothing, and every validation the best."""
    alone = {"net_settings": {"boundaries": True}, "task_settings": {"ce": 0.0, "ctc": 0.0}}
    deaf = {"dev": [str(make_pack(tmp_path / "pack", 20, ends=False))]}
    with pytest.raises(DragomanError, match=r"Nothing in data\.dev knows"):
        train(recipe_of(plain, data=deaf, **alone), tmp_path / "run")
    together = {"net_settings": {"boundaries": True}, "task_settings": {"ctc": 0.5}}
    train(recipe_of(plain, data=deaf, **together), tmp_path / "run")


def test_phones_may_stand_for_words(plain, tmp_path):
    """The other oracle of paper 000."""
    data, _ = fresh_net(recipe_of(plain, data={"ends": "phones"}), tmp_path)
    (batch,) = Loader(data.dev).batches(enumerate(Plan(data.dev, Batch(buckets=1), 0).once()))
    for item, ends in zip(batch.items, batch.word_ends.tolist(), strict=True):
        words = len(data.dev.item(int(item)).text["en"].split())
        assert [ms for ms in ends if ms >= 0] == [125 * (n + 1) for n in range(2 * words)]


def test_a_trained_net_may_decide_in_other_steps(plain, tmp_path):
    encoder = {**plain["net_settings"], "ctc_layer": 0}
    sizes = {"decoder_layers": 1, "decoder_heads": 2, "decoder_ffn": 32, "ratio": 2}
    settings = {"net": "mma", "task": "mma", "net_settings": {"encoder_settings": encoder, **sizes}}
    train(convert(Recipe, {**plain, **settings}), tmp_path / "mma")
    nets = [open_run(tmp_path / "mma", changes=c).task.net for c in ((), ("ratio=5",))]
    source = nets[0].encode(torch.randn(1, 80, 80), torch.tensor([80]))  # 20 states
    assert [net.decisions(source).counts.item() for net in nets] == [10, 4]
    for key, value in nets[0].state_dict().items():
        assert torch.equal(nets[1].state_dict()[key], value)
    for change in ("decoder_heads=1", "ratio=many", "ratio", "encoder_settings.size=8"):
        with pytest.raises(DragomanError, match="nothing that a trained net can do otherwise"):
            open_run(tmp_path / "mma", changes=(change,))
    with pytest.raises(DragomanError, match=r"'net_settings\.ratio' is 0: Expected a whole"):
        open_run(tmp_path / "mma", changes=("ratio=0",))
    with pytest.raises(DragomanError, match=r"no setting 'net_settings\.chunk'"):
        open_run(tmp_path / "mma", changes=("chunk=4",))


def test_the_joint_net_also_learns_from_text_alone(plain, tmp_path):
    """WMT beside MuST-C, in paper 004."""
    (tmp_path / "more.tsv").write_text("en\tde\n" + "small blue\tklein blau\n" * 30)
    net, sizes, _ = NETS["joint"]
    data = {**plain["data"], "packs": str(tmp_path), "text": [f"text:{tmp_path / 'more.tsv'}"]}
    changes = {"net": net, "task": "joint", "net_settings": sizes, "data": data}
    steps = {"total": 6, "validate": 6, "save": 3, "log": 6, "average": 1}
    joint = merge(plain | changes | {"steps": steps}, {"data": {"text_share": 0.5}})
    train(recipe_of(joint), tmp_path / "both")
    described = json.loads((tmp_path / "both" / "data.json").read_text())
    assert described["text"]["items"] == 30
    train(recipe_of(joint, data={"text": []}), tmp_path / "speech")
    lines = [
        json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[0])
        for name in ("both", "speech")
    ]
    # Half of the batches have no speech to learn from.
    assert lines[0]["loss/st"] < 0.8 * lines[1]["loss/st"]
    for total in (3, 6):  # stopped and gone on with
        train(recipe_of(joint, steps={"total": total}), tmp_path / "twice")
    name = "weights-00000006.pt"
    whole, twice = (load_weights(tmp_path / run / name) for run in ("both", "twice"))
    assert all(torch.equal(whole[key], twice[key]) for key in whole)
    with pytest.raises(DragomanError, match=r"'offline' does not learn from data\.text"):
        train(recipe_of(plain, data={"text": ["text:more.tsv"]}), tmp_path / "offline")


def test_other_units_than_a_run_was_trained_with_are_noticed(plain, tmp_path):
    """As many, in a vocabulary of the same size, mean other words."""
    train(recipe_of(plain), tmp_path / "run")
    open_run(tmp_path / "run")
    units = (tmp_path / "run" / "target.model").read_bytes()
    (tmp_path / "run" / "target.model").write_bytes(units.replace(b"\x0a\x01r", b"\x0a\x01z"))
    with pytest.raises(DragomanError, match=r"target\.model holds other units"):
        open_run(tmp_path / "run")

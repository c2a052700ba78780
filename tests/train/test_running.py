"""Which encoder a run has, by what it and the runs before it say."""

from __future__ import annotations

import pytest
import yaml

from dragoman.train.recipe import Recipe
from dragoman.train.running import kept_encoder
from dragoman.train.settings import convert

STORE = {"init": "store:moonshine-base", "init_parts": ["encoder"], "freeze": ["encoder"]}
DATA = {"net": "grafted", "data": {"train": ["packs/a"]}}


def goes_on_from(folder, before: dict, **more) -> Recipe:
    folder.mkdir()
    (folder / "recipe.yaml").write_text(yaml.safe_dump(DATA | before))
    return convert(Recipe, DATA | {"init": str(folder), "freeze": ["encoder"]} | more)


def test_a_run_that_goes_on_has_the_first_ones_encoder(tmp_path):
    assert kept_encoder(convert(Recipe, DATA | STORE)) == "moonshine-base"
    assert kept_encoder(goes_on_from(tmp_path / "one", STORE)) == "moonshine-base"
    by_file = goes_on_from(tmp_path / "two", STORE, init=str(tmp_path / "two" / "final.pt"))
    assert kept_encoder(by_file) == "moonshine-base"


@pytest.mark.parametrize("learned", ["before", "now"])
def test_an_encoder_that_has_learned_is_not_the_stores(learned, tmp_path):
    before = STORE | ({"freeze": []} if learned == "before" else {})
    recipe = goes_on_from(tmp_path / "one", before, freeze=[] if learned == "now" else ["encoder"])
    assert kept_encoder(recipe) == ""


@pytest.mark.parametrize("init", ["", "runs/lost"])
def test_nobody_knows_where_an_encoder_came_from(init):
    assert kept_encoder(convert(Recipe, DATA | {"init": init, "freeze": ["encoder"]})) == ""

"""Faults of data that is met more than once count once."""

import shutil
from pathlib import Path

import pytest

from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import FAULTS, Fault, Faults, write_faults
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Data, Units
from tests.train.conftest import make_pack


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    """Two with as many items, called the same, and with the same fault."""
    first = make_pack(tmp_path / "a" / "pack", items=6)
    second = Path(shutil.copytree(first, tmp_path / "b" / "pack"))
    for folder in (first, second):
        write_faults(folder / FAULTS, [Fault("corrupt recording", "clip 7", "no header")])
    return [first, second]


def told(packs, *parts: list[int], **settings) -> str:
    """What is told of sets of these packs, all of whose items are too long."""
    data = Data(train=("unused",), source="en", target="de", max_units=1, **settings)
    faults = Faults()
    for part in parts:
        opened = open_set([packs[number] for number in part], data, faults)
        units = Units("char", 30)
        model = packs[0].parent / "units.model"
        train_pieces([*opened.texts("en"), *opened.target_texts()], units, model)
        opened.with_units(Pieces(model, units), Pieces(model, units), faults)
    assert faults.items == 6 * len({number for part in parts for number in part})
    return faults.summary()


def test_a_pack_that_is_trained_and_validated_on_has_its_faults_once(packs):
    assert told(packs, [0], [0]) == told(packs, [0]) == "6 text too long, 1 corrupt recording"
    assert told(packs, [0, 0]) == told(packs, [0])


def test_packs_of_one_name_have_faults_of_their_own(packs):
    assert told(packs, [0], [1]) == "12 text too long, 2 corrupt recording"


def test_lengths_count_once(packs):
    once = told(packs, [0], min_seconds=0.6)
    assert "odd length" in once
    assert told(packs, [0], [0], min_seconds=0.6) == once

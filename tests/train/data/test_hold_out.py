"""What is held out for validation is learned from under no other name."""

from pathlib import Path

import msgspec
import pytest

from dragoman.errors import DragomanError
from dragoman.train.data.corpus import TrainingSet, hold_out, open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.pack import Item, read_header, write_header
from dragoman.train.data.texts import pack_text
from dragoman.train.recipe import Data
from tests.train.conftest import make_pack


def retold(gold: Path, folder: Path) -> Path:
    """A pack with the sound of another and other texts, as distillation makes it."""
    folder.mkdir()
    for shard in gold.glob("shard-*.jsonl"):
        *lines, report = shard.read_bytes().splitlines()
        items = [msgspec.json.decode(line, type=Item) for line in lines]
        told = [msgspec.structs.replace(item, text=item.text | {"de": "nein"}) for item in items]
        rows = [*map(msgspec.json.encode, told), report]
        (folder / shard.name).write_bytes(b"".join(row + b"\n" for row in rows))
    header = msgspec.structs.replace(read_header(gold), sound_of=f"../{gold.name}")
    write_header(folder, header)
    return folder


def opened(*packs: Path) -> TrainingSet:
    return open_set(list(packs), Data(tuple(map(str, packs))), Faults())


def rows(some: TrainingSet) -> set[str]:
    return {item.id for item in map(some.item, range(len(some)))}


@pytest.fixture(params=["sound", "text"])
def gold(request, tmp_path) -> Path:
    if request.param == "sound":
        return make_pack(tmp_path / "gold", 40)
    lines = "".join(f"one {n}\teins {n}\n" for n in range(40))
    (tmp_path / "text.tsv").write_text("en\tde\n" + lines)
    pack_text(tmp_path / "text.tsv", tmp_path / "gold")
    return tmp_path / "gold"


def test_what_is_held_out_is_not_learned_with_another_translation(gold, tmp_path):
    both = opened(gold, retold(gold, tmp_path / "kd"))
    assert len(both) == 80
    train, dev = hold_out(both, 8, seed=1)
    assert len(dev) == 8
    assert rows(train).isdisjoint(rows(dev))
    assert len(rows(train)) + len(rows(dev)) == 40
    assert len(train) == 2 * len(rows(train))


def test_of_one_pack_nothing_is_lost(gold):
    train, dev = hold_out(opened(gold), 4, seed=1)
    assert (len(train), len(dev)) == (36, 4)
    assert len(rows(train) | rows(dev)) == 40


def test_packs_with_nothing_but_one_sound_cannot_be_split(tmp_path):
    pack = make_pack(tmp_path / "gold", 1)
    with pytest.raises(DragomanError, match=r"held out for validation; give data\.dev"):
        hold_out(opened(*[pack] * 10), 1, seed=1)

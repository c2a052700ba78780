"""States that a frozen encoder makes once: training on them is training on the sound."""

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.fabric import Fabric

from dragoman.errors import DragomanError
from dragoman.train.check import check
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.loader import Loader
from dragoman.train.data.pack import Pack, read_header, write_header
from dragoman.train.data.plan import Plan
from dragoman.train.data.states import KeptStates
from dragoman.train.keep import kept_states
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.moonshine import Moonshine, MoonshineConfig, states_in
from dragoman.train.recipe import Batch, Data, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert
from dragoman.train.train import train

SIZES = {"size": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 1, "ffn": 32, "turning": 8}
BELOW = ["encoder.stem", "encoder.layers.0"]


def recipe_of(tiny: dict, **data: object) -> dict:
    return tiny | {
        "net": "moonshine",
        "net_settings": SIZES | {"dropout": 0.2, "ctc": True},
        "data": tiny["data"] | data,
        "task_settings": {"ctc": 0.3, "boundaries": 0.0},
        "augment": {"spec": "none"},
        "freeze": ["encoder"],
        "steps": {"total": 6, "validate": 3, "save": 3, "log": 1, "average": 1, "translate": 2},
    }


def losses(
    tiny: dict,
    folder: Path,
    learns: int = 0,
    capture: bool = False,
    chunks: dict[str, int] | None = None,
    **data: object,
) -> list[float]:
    recipe = recipe_of(tiny, **data) | {"machine": tiny["machine"] | {"capture": capture}}
    settings = recipe["net_settings"] | {"learns": learns} | (chunks or {})
    recipe |= {"net_settings": settings, "freeze": BELOW if learns else ["encoder"]}
    train(convert(Recipe, recipe), folder)
    return [line["loss"] for line in RunFolder(folder).metrics()]


@pytest.mark.parametrize("chunks", [{}, {"chunk": 11, "ahead": 5}])
@pytest.mark.parametrize("learns", [0, 1])
def test_losses_are_the_same_without_hearing_again(tiny, tmp_path, learns, chunks):
    kept = {"keep_states": True, "resident": "device"}
    wanted = losses(tiny, tmp_path / "heard", learns, chunks=chunks)
    found = losses(tiny, tmp_path / "kept", learns, capture=True, chunks=chunks, **kept)
    assert len(wanted) == 8
    assert found == pytest.approx(wanted, rel=1e-4)
    weights = [torch.load(tmp_path / one / "final.pt")["net"] for one in ("heard", "kept")]
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-2, atol=1e-4)


def test_only_the_last_layers_of_the_encoder_learn(tiny, tmp_path):
    losses(tiny, tmp_path / "run", learns=1, keep_states=True, resident="host")
    early, late = (
        torch.load(tmp_path / "run" / f"weights-0000000{step}.pt")["task"] for step in (3, 6)
    )
    moved = {name for name, value in early.items() if not torch.equal(value, late[name])}
    assert any(name.startswith("net.encoder.layers.1.") for name in moved)
    assert not [name for name in moved if name.startswith(tuple(f"net.{part}." for part in BELOW))]


def test_the_encoder_is_asked_once(tiny, tmp_path, monkeypatch):
    from dragoman.train.nets import moonshine

    heard, plain = [], moonshine.Encoder.heard

    def listened(self, sound, samples):
        heard.append(len(samples))
        return plain(self, sound, samples)

    monkeypatch.setattr(moonshine.Encoder, "heard", listened)
    losses(tiny, tmp_path / "kept", keep_states=True, resident="host")
    validations = 2 * (6 + 2)  # each hears the six items of the dev set, and two to translate
    assert sum(heard) == 54 + validations


class Numbered:
    """Hears the number of every row, and whose it is: two rows of every state."""

    @staticmethod
    def states_in(samples):
        return states_in(samples)

    @staticmethod
    def rows_in(samples):
        return 2 * states_in(samples)

    @staticmethod
    def listen(batch):
        lengths = states_in(batch.samples)
        width = 2 * int(lengths.max()) + 3
        states = torch.zeros(len(batch.items), width, 2)
        states[..., 0] = torch.from_numpy(np.asarray(batch.items))[:, None]
        states[..., 1] = torch.arange(width)
        return states, lengths


def test_every_item_has_the_states_of_its_sound(sung, tmp_path):
    """Of two packs that share their sound, it is heard once."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "shard-00000.jsonl").write_bytes((sung / "shard-00000.jsonl").read_bytes())
    header = read_header(sung)
    header.sound_of, header.fingerprint = str(sung), "other"
    write_header(other, header)
    data = open_set([sung, other], Data((str(sung),)), Faults())
    assert len(data) == 120
    kept = KeptStates(data, Numbered)
    assert len(kept.chosen) == 60
    some = data.subset(kept.chosen)
    plan = enumerate(Plan(some, Batch(20, buckets=3), 1).once())
    kept.fill(Loader(some).batches(plan), Numbered.listen, torch.empty(0))
    items = np.array([5, 65, 0, 119, 64])
    width = int(data.samples.max())
    states, lengths = kept.take(items, width)
    assert states.shape[1] % 8 == 0
    pack = Pack(sung)
    for item, row, length in zip(items, states, lengths.tolist(), strict=True):
        number = item % 60
        assert length == int(states_in(torch.tensor(pack.items[number].samples)))
        sound = kept.chosen[int(row[0, 0])]  # which item it was heard of
        assert data.item(sound).offset == pack.items[number].offset
        assert row[: 2 * length, 1].tolist() == list(range(2 * length))
        assert not row[2 * length :].any()
    assert torch.equal(states[0], states[1])


def test_as_many_rows_are_counted_as_there_are():
    config = MoonshineConfig(**SIZES, chunk=11, ahead=5)
    net = Moonshine(config, Vocabularies(40, 40)).eval()
    for samples in (1000, 5000, 9100, 16000):
        with torch.no_grad():
            rows, lengths = net.listen(torch.zeros(1, samples), torch.tensor([samples]))
        assert rows.shape[1] == int(net.rows_in(torch.tensor(samples)))
        assert int(lengths[0]) == int(net.states_in(torch.tensor(samples)))


def test_where_precision_is_half_states_are(tiny, sung):
    from dragoman.train.make import make_net
    from dragoman.train.tasks.base import front_of
    from dragoman.train.tasks.registry import build_task

    settings = recipe_of(tiny, keep_states=True) | {"machine": {"precision": "bf16-mixed"}}
    recipe = convert(Recipe, settings)
    net = make_net(recipe, Vocabularies(40, 40))
    task = build_task("offline", {}, net, front_of(net, recipe.augment, 1))
    data = open_set([sung], recipe.data, Faults())
    told = []
    fabric = Fabric(accelerator="cpu", precision="bf16-mixed")
    kept = kept_states(fabric, recipe, task, data, told.append)
    assert kept.rows.dtype == torch.bfloat16
    assert told[0].startswith(f"60 sounds became {len(kept.rows)} states")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"freeze": []}, "add encoder.stem, encoder.layers.0, encoder.layers.1 to freeze"),
        ({"freeze": BELOW}, "add encoder.layers.1 to freeze"),
        ({"net_settings": SIZES | {"learns": 3}}, "3 of 2 layers"),
        ({"augment": {"spec": "none", "noise": 0.1}}, "augment to"),
        ({"augment": {"spec": "none", "speeds": [0.9, 1.0]}}, "augment to"),
        ({"net": "conformer", "net_settings": {}, "freeze": []}, "nets moonshine and grafted"),
    ],
)
def test_what_changes_cannot_be_kept(tiny, change, said):
    with pytest.raises(DragomanError, match=said):
        check(convert(Recipe, recipe_of(tiny, keep_states=True) | change))

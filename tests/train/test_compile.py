"""A compiled net learns what a plain one learns."""

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train.checkpoints import load_weights
from dragoman.train.compiled import compile_layers
from dragoman.train.nets.layers import EncoderLayer, LayerConfig
from dragoman.train.recipe import Machine, Recipe
from dragoman.train.settings import convert, merge
from dragoman.train.train import fabric_for, strategy_of, train

NO_CHANCE = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("net", ["conformer", "mma"])
def test_a_compiled_net_learns_what_a_plain_one_learns(net, tiny, tmp_path):
    """`aot_eager` traces forward and backward as every backend does, and needs no C compiler."""
    ears = tiny["net_settings"] | NO_CHANCE | {"encoder_layers": 2}
    reader = {"decoder_layers": 1, "decoder_heads": 2, "decoder_ffn": 32, "noise": 0.0, "ratio": 2}
    base = merge(tiny, {
        "optimiser": {"rate": 0.5, "eps": 1.0, "warmup": 1},  # weights show gradients
        "steps": {"total": 2, "validate": 2, "save": 2, "log": 1, "average": 1},
    })  # fmt: skip
    base["net_settings"] = ears
    if net == "mma":
        base |= {"net": "mma", "task": "mma"}
        base["net_settings"] = (
            NO_CHANCE
            | reader
            | {
                "encoder": "conformer",
                "encoder_settings": ears,
            }
        )
    compiled = merge(base, {"machine": {"compile": "aot_eager"}})
    train(convert(Recipe, base), tmp_path / "plain")
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    train(convert(Recipe, compiled), tmp_path / "compiled")
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"] - before
    # One for each kind of layer; a monotonic one is cut up around its kernels.
    assert graphs == {"conformer": 3, "mma": 6}[net]

    first, second = load_weights(tmp_path / "plain"), load_weights(tmp_path / "compiled")
    assert first.keys() == second.keys()
    for key, value in first.items():
        torch.testing.assert_close(
            second[key], value, atol=1e-5, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
        )


@pytest.mark.parametrize(("dynamic", "graphs"), [(False, 3), (True, 1)])
def test_every_shape_has_its_own_code_unless_there_are_many(dynamic, graphs):
    """Whatever becomes of a graph once it is found: `eager` runs it as it is."""
    net = torch.nn.Sequential(*(EncoderLayer(LayerConfig(8, 2, 16)) for _ in range(2)))
    torch._dynamo.reset()
    compile_layers(net, "eager", dynamic)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for length in (4, 7, 9):
        net(torch.zeros(3, length, 8, requires_grad=True))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before == graphs


@pytest.mark.parametrize("compresses", [False, True])
def test_a_task_that_makes_shapes_of_its_own_has_one_code_for_all(
    compresses, tiny, tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "dragoman.train.train.compile_layers", lambda *_, dynamic: asked.append(dynamic)
    )
    more = {
        "net_settings": {"ctc_compression": compresses},
        "machine": {"compile": "aot_eager"},
        "steps": {"total": 1, "validate": 1, "save": 1},
    }
    train(convert(Recipe, merge(tiny, more)), tmp_path / "run")
    assert asked == [compresses]


def test_what_cannot_be_compiled_is_told(tiny, tmp_path):
    odd = merge(tiny, {"machine": {"compile": "fastest"}})
    with pytest.raises(DragomanError, match=r"no machine\.compile 'fastest'; there are default"):
        train(convert(Recipe, odd), tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_a_sharded_net_does_not_translate(tiny, tmp_path):
    odd = merge(tiny, {"machine": {"strategy": "fsdp"}, "steps": {"translate": 5}})
    with pytest.raises(DragomanError, match="sharded net cannot translate"):
        train(convert(Recipe, odd), tmp_path / "odd")


def test_sharding_reaches_lightning():
    """FSDP itself needs GPUs; Lightning says so, and the run saves one whole file."""
    from lightning.fabric.strategies import FSDPStrategy

    strategy = strategy_of(Machine(strategy="fsdp"))
    assert isinstance(strategy, FSDPStrategy)
    assert strategy._state_dict_type == "full"
    with pytest.raises(DragomanError, match="FSDP is only available on GPU"):
        fabric_for(Machine(accelerator="cpu", devices=2, strategy="fsdp"))
    with pytest.raises(DragomanError, match="do not fit this machine"):
        fabric_for(Machine(accelerator="cpu", strategy="dpp"))

"""An exported text net's engine for GPUs, on the CPU: the numbers of the net, the texts of the
engine that runs its graphs.

Where there is a GPU, the last test runs there.
"""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.cascade.engine import OnnxEngine, bound_to_cpu, load_engine
from dragoman.models.cascade.gpu.engine import TorchEngine
from dragoman.models.cascade.weights import sinusoids, text_weights
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.net import BOS, EOS, PAD, OnnxNet
from dragoman.models.exported.weights import ExportedWeights
from dragoman.models.options import CpuOnlyError, Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.weights import Weights
from dragoman.train.export import export
from dragoman.train.exporting import Surroundings
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.layers import sinusoids as sinusoids_of_torch
from dragoman.train.nets.registry import build
from dragoman.train.quantise import quantise
from tests.shared import made_once, shared_folder

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
UNITS = 300
SMALL = {"size": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_heads": 2}
SMALL |= {"decoder_heads": 4, "encoder_ffn": 48, "decoder_ffn": 64}
APART = {"shared_vocabulary": False, "tied_output": False}


def made_net(seed: int = 1, **more):
    """A net of random numbers, norms and biases too, whose texts differ and sometimes end."""
    torch.manual_seed(seed)
    net = build("text-transformer", SMALL | more, Vocabularies(UNITS, UNITS)).eval()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.15 * torch.randn_like(parameter)
            elif "output" not in name:
                parameter *= 3
        # As after training, padding and the beginning of a text do not come out; an end may.
        output, norm = net.decoder.output, net.decoder.norm
        norm.weight[0], norm.bias[0] = 0.1, 8.0
        output.weight *= 2
        output.weight[:, 0] = 0.0
        output.weight[[PAD, BOS], 0] = -2.0
        output.weight[EOS, 0] = 0.2
    return net


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A net with two vocabularies, in floats and in eight bits."""
    root = shared_folder(tmp_path_factory)

    def make(folder: Path) -> None:
        export(made_net(**APART), folder / "apart", Surroundings())
        copytree(folder / "apart", folder / "int8")
        quantise(folder / "int8")

    made = made_once(root / "text-nets-for-gpus", make)
    return {path.name: path for path in made.iterdir()}


def read(folder: Path) -> tuple[Weights, ExportedNet]:
    config = ExportedNet.read(folder)
    return text_weights(folder, config), config


def engine_of(folder: Path, device: str = "cpu", compute: str = "float32", **more) -> TorchEngine:
    weights, config = read(folder)
    return TorchEngine(weights, config.attention_layer, compute, device, **more)


@pytest.fixture(scope="module")
def engine(folders) -> TorchEngine:
    return engine_of(folders["apart"])


@pytest.fixture(scope="module")
def graphs(folders) -> OnnxEngine:
    return OnnxEngine(OnnxNet(folders["apart"], threads=1))


NAMES = {
    "encoder/layer_1/self_attention/linear_0/weight": "layers.1.attention.qkv.weight",
    "encoder/layer_1/self_attention/linear_0/bias": "layers.1.attention.qkv.bias",
    "encoder/layer_0/self_attention/linear_1/weight": "layers.0.attention.out.weight",
    "encoder/layer_0/ffn/linear_0/weight": "layers.0.feed_forward.wide.weight",
    "encoder/layer_0/ffn/linear_1/weight": "layers.0.feed_forward.narrow.weight",
    "encoder/layer_0/self_attention/layer_norm/gamma": "layers.0.attention_norm.weight",
    "encoder/layer_1/ffn/layer_norm/beta": "layers.1.feed_forward_norm.bias",
    "encoder/layer_norm/gamma": "norm.weight",
    "decoder/layer_1/self_attention/linear_0/weight": "decoder.layers.1.attention.qkv.weight",
    "decoder/layer_1/attention/linear_0/weight": "decoder.layers.1.cross.query.weight",
    "decoder/layer_1/attention/linear_1/weight": "decoder.layers.1.cross.key_value.weight",
    "decoder/layer_1/attention/linear_1/bias": "decoder.layers.1.cross.key_value.bias",
    "decoder/layer_0/attention/linear_2/weight": "decoder.layers.0.cross.out.weight",
    "decoder/layer_0/attention/layer_norm/gamma": "decoder.layers.0.cross_norm.weight",
    "decoder/layer_norm/beta": "decoder.norm.bias",
    "decoder/projection/weight": "decoder.output.weight",
}


@pytest.mark.parametrize("kind", ["shared", "apart"])
def test_the_weights_are_those_of_the_net(folders, tagged, kind):
    """One vocabulary for source and target, and the output's, or three of their own."""
    net, folder = (made_net(**APART), folders["apart"]) if kind == "apart" else tagged
    weights, state = read(folder)[0], net.state_dict()
    assert weights.path == folder / "decoder.onnx"
    layers, size = len(net.layers), net.config.size
    for name, module in NAMES.items():
        if layers > 1 or "layer_1/" not in name:
            np.testing.assert_array_equal(weights.array(name), state[module], err_msg=name)
    for side, module in (("encoder", "embedding"), ("decoder", "decoder.embedding")):
        rows = state[f"{module}.weight"].numpy() * np.float32(size**0.5)
        np.testing.assert_allclose(weights.array(f"{side}/embeddings/weight"), rows, rtol=1e-6)
    assert (weights.layers("encoder"), weights.layers("decoder")) == (layers, layers)


def test_positions_are_those_of_the_net():
    expected = sinusoids_of_torch(torch.arange(70), 32)
    np.testing.assert_allclose(sinusoids(70, 32), expected, atol=1e-5)


def test_positions_of_few_numbers():
    """One frequency, or two, of which the second turns ten thousand times as slowly."""
    one, two = sinusoids(2, 2), sinusoids(2, 4)
    np.testing.assert_allclose(one, [[0, 1], [0.841471, 0.540302]], atol=1e-6)
    wanted = [[0, 0, 1, 1], [0.841471, 0.0001, 0.540302, 1]]
    np.testing.assert_allclose(two, wanted, atol=1e-6)
    assert (one.dtype, two.dtype) == (np.float32, np.float32)


def test_units_behind_the_last_position_stand_at_it(folders):
    """Sentences are filled up to 64 units; here are positions for eight."""
    short, long = engine_of(folders["apart"]), engine_of(folders["apart"])
    known = short._encoder._positions[:8]
    short._encoder._positions = known
    long._encoder._positions = torch.cat([known, known[7:].expand(56, -1)])
    (found,), (expected,) = (one.encode([list(range(4, 20))]) for one in (short, long))
    np.testing.assert_array_equal(found, expected)


def test_weights_in_eight_bits_are_what_their_bytes_stand_for(folders):
    """Never further from the net's than half a step, which is a 254th of a column's greatest."""
    weights, exact = read(folders["int8"])[0], read(folders["apart"])[0]
    assert set(weights) == set(exact)
    matrices = [name for name in exact if name.endswith("weight")]
    assert len(matrices) == 2 * 4 + 2 * 7 + 3
    for name in set(exact) - set(matrices):
        np.testing.assert_array_equal(weights.stored(name), exact.stored(name))
    for name in matrices:
        one, other = weights.array(name), exact.array(name)
        step = np.abs(other).max(axis=1, keepdims=True) / 127
        assert (np.abs(one - other) <= 0.501 * step).all(), name
        assert not np.array_equal(one, other), name
        steps = one / step
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3, err_msg=name)


def test_states_and_probabilities_are_those_of_the_graphs(folders, engine, graphs):
    """The states by way of what the decoder reads of them, all that the graph gives away."""
    net, decoder = graphs._net, engine._speaker.decoder
    source = list(range(5, 17))
    encoded = net.encode(np.array([source]), np.array([len(source)]))
    (states,) = engine.encode([source])
    tape = decoder.begin(states[None], torch.tensor([len(source)]), 1, 1)
    for mine, theirs in zip(tape.memory.transpose(0, 1), encoded.memory, strict=True):
        np.testing.assert_allclose(mine[:, 0], theirs[0], atol=1e-4)
    text = (BOS, 7, 40, 9)
    step = net.step(np.array([text]), encoded.memory, np.array([len(source)]), net.begin(1))
    (found,) = engine.speak([source], [Prompt((BOS,), 1, text[1:], least=1)], 1)
    assert found.tokens == (4 + int(step.log_probs[0, -1, 4:].argmax()),)
    np.testing.assert_allclose(found.log_probs, step.log_probs[0, -1, 4:].max(), atol=1e-4)
    layer = net.config.attention_layer
    np.testing.assert_allclose(found.looks[0], step.attention[0, layer, -1], atol=1e-4)


units = st.integers(4, UNITS - 1)
task = st.tuples(
    st.lists(units, min_size=1, max_size=80),
    st.integers(1, 30),
    st.lists(units, max_size=9).map(tuple),
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors],
)
@given(tasks=st.lists(task, min_size=1, max_size=6), beams=st.sampled_from([1, 5]))
def test_a_batch_says_what_the_graphs_say_one_by_one(engine, graphs, tasks, beams):
    """However long the sentences are, and however much was said of each: token for token."""
    sources = [source for source, _, _ in tasks]
    prompts = [Prompt((BOS,), most, said) for _, most, said in tasks]
    found, expected = (one.speak(sources, prompts, beams) for one in (engine, graphs))
    for one, other, (source, most, _) in zip(found, expected, tasks, strict=True):
        assert one.tokens == other.tokens
        assert one.ended == other.ended
        assert len(one.tokens) <= most
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-3)
        assert [look.shape for look in one.looks] == [(len(source),)] * len(one.tokens)
        for look, theirs in zip(one.looks, other.looks, strict=True):
            np.testing.assert_allclose(look, theirs, atol=1e-3)


def test_such_texts_end_and_do_not(graphs):
    """Else the test above would say little."""
    random = np.random.default_rng(0)
    sources = [random.integers(4, UNITS, size=random.integers(1, 60)) for _ in range(40)]
    found = graphs.speak(sources, [Prompt((BOS,), 30)] * 40, 5)
    assert {one.ended for one in found} == {True, False}
    assert len({len(one.tokens) for one in found}) > 4


def test_a_guess_changes_nothing(engine):
    source = list(range(20, 40))
    (plain,) = engine.speak([source], [Prompt((BOS,), 12)], 1)
    for guess in (plain.tokens[:5], (9, 9, 9)):
        (same,) = engine.speak([source], [Prompt((BOS,), 12, guess=guess)], 1)
        assert same.tokens == plain.tokens


def test_captured_steps_say_the_same(folders, engine):
    captured = engine_of(folders["apart"], captured=(2, 4))
    sources = [list(range(4, 6 + 3 * n)) for n in range(7)]
    prompts = [Prompt((BOS,), 4 + 5 * n) for n in range(7)]
    for beams in (1, 5):
        found, expected = (one.speak(sources, prompts, beams) for one in (captured, engine))
        assert [one.tokens for one in found] == [one.tokens for one in expected]


def test_little_memory_means_several_batches_and_the_same_texts(folders, engine):
    poor = engine_of(folders["apart"])
    poor._speaker.memory = 2 * poor._encoder.bytes_of(64)
    sources = [list(range(4, 8 + 30 * n)) for n in range(5)]
    prompts = [Prompt((BOS,), 9)] * 5
    found, expected = (one.speak(sources, prompts, 5) for one in (poor, engine))
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, other in zip(poor.encode(sources), engine.encode(sources), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("units", [1, 63, 64, 65])
def test_a_sentence_may_fill_its_row_to_the_last(engine, units):
    """Rows have 64 units, or 128."""
    source = list(range(4, 4 + units))
    with torch.no_grad():
        net = made_net(**APART)
        wanted = net.encode(torch.tensor([source]), torch.tensor([units])).states[0]
    (found,) = engine.encode([source])
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize(("room", "together"), [(2.5, [2, 2, 1]), (5, [5]), (0.5, [1] * 5)])
def test_as_many_sentences_go_together_as_there_is_memory_for(folders, monkeypatch, room, together):
    engine, groups = engine_of(folders["apart"]), []
    encoded = engine._encoded
    monkeypatch.setattr(engine, "_encoded", lambda some: groups.append(len(some)) or encoded(some))
    engine._speaker.memory = room * engine._encoder.bytes_of(64)
    engine.encode([[4, 5, 6, 7]] * 5)
    assert groups == together


@pytest.mark.parametrize(
    ("room", "together"), [(9, [5]), (4.5, [3, 2]), (2.5, [2, 2, 1]), (0.5, [1] * 5)]
)
def test_texts_are_made_in_batches_of_about_the_same_size(folders, monkeypatch, room, together):
    """As few as there is memory for; one goes in any case."""
    engine, groups = engine_of(folders["apart"]), []
    speaker = engine._speaker
    stacked = speaker.stacked
    monkeypatch.setattr(speaker, "stacked", lambda some: groups.append(len(some)) or stacked(some))
    speaker.memory = room * speaker.decoder.bytes_of(64, 2)
    sources = [[4 + n, 5, 6, 7] for n in range(5)]
    found = engine._speaker.speak(engine.encode(sources), [Prompt((BOS,), 3, least=1)] * 5, 2)
    assert groups == together
    assert [len(one.looks[0]) for one in found] == [4] * 5


def test_states_are_filled_up_to_as_few_as_may_be(engine):
    states, counts = engine._speaker.stacked([torch.ones(3, 32), torch.ones(70, 32)])
    assert (states.shape, counts.tolist()) == ((2, 128, 32), [3, 70])
    assert states.sum(dim=(1, 2)).tolist() == [3 * 32, 70 * 32]


def test_steps_are_not_captured_where_there_is_no_gpu(engine):
    assert engine._speaker._buffers(1) == []


def test_a_sentence_takes_memory_for_its_rows_and_for_its_looks(engine):
    """Of ten units: sixteen rows of 32 numbers each, and a look of two heads at each of the ten."""
    assert engine._encoder.bytes_of(10) == 4 * 10 * (16 * 32 + 2 * 10)


def test_steps_are_captured_where_there_is_memory_for_them(folders):
    """A quarter of it: for eight texts as long as is usual, that is two."""
    rich = engine_of(folders["apart"], captured=(1, 2, 3))._speaker
    rich.memory = 8 * rich.decoder.bytes_of(128, 5, 192)
    assert [one.sounds for one in rich._buffers(5)] == [1, 2]
    assert rich._buffers(5) is rich._buffers(5)


def test_a_graph_that_lacks_a_layer_is_a_sentence(folders):
    file = ExportedWeights(folders["apart"] / "decoder.onnx")
    for wrong in (
        lambda: file.matrix("net.decoder.layers.7.attention.qkv"),
        lambda: file.array("net.nothing"),
        lambda: file.table("source"),
    ):
        with pytest.raises(DragomanError, match=r"decoder\.onnx has no .*, or take --device cpu"):
            wrong()
    with pytest.raises(DragomanError, match=r"encoder\.onnx has no matrix behind which probab"):
        ExportedWeights(folders["apart"] / "encoder.onnx").last()
    with pytest.raises(DragomanError, match=r"Cannot read .* as an ONNX model"):
        ExportedWeights(folders["apart"] / "config.json")


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({}, None),
        ({"net": "mma"}, "A net 'mma'"),
        ({"decides": "monotonic"}, "A net 'text-transformer'"),
        ({"settings": {}}, None),  # they are before the layers unless it is said
        ({"settings": {"pre_norm": False}}, "A text net with its norms behind the layers"),
    ],
)
def test_which_nets_run_on_a_gpu(folders, monkeypatch, changes, bound):
    from dragoman.models import options

    config = ExportedNet.read(folders["apart"])
    for name, value in changes.items():
        object.__setattr__(config, name, value)
    assert bound_to_cpu(config) == bound
    monkeypatch.setattr(options, "why_no_gpu", lambda: None)
    monkeypatch.setattr(options, "gpu_found", lambda: True)
    monkeypatch.setattr(TorchEngine, "load", lambda folder, config, options: options)
    folder = folders["apart"]
    assert load_engine(folder, config, Options(device="cpu")).device == "cpu"
    assert load_engine(folder, config, Options(compute="int8")).device == "cpu"
    assert load_engine(folder, config, Options()).device == ("cpu" if bound else "cuda")
    if bound is None:
        assert load_engine(folder, config, Options(device="cuda")).compute == "float16"
        return
    with pytest.raises(CpuOnlyError, match=f"{bound} runs on the CPU only; leave --device cuda"):
        load_engine(folder, config, Options(device="cuda"))


def test_what_a_gpu_has_no_room_for_is_refused_before_it_is_loaded(folders, monkeypatch):
    folder = folders["int8"]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2 * 10**9, 4 * 10**9))
    monkeypatch.setattr(Weights, "numbers", 10**9)
    with pytest.raises(DragomanError, match=r"3\.5 GB of the GPU's .* 2\.0 GB are free"):
        TorchEngine.load(folder, ExportedNet.read(folder), Options(device="cuda"))


@on_gpu
@pytest.mark.parametrize("compute", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("captured", [(), (2, 4), None])
def test_on_a_gpu_it_is_the_same(folders, engine, compute, captured):
    """In 16 bits nearly so."""
    there = engine_of(folders["apart"], "cuda", compute, captured=captured)
    sources = [list(range(4, 6 + 3 * n)) for n in range(20)]
    prompts = [Prompt((BOS,), 12 + n % 5, tuple(range(9, 9 + n % 4))) for n in range(20)]
    for beams in (1, 5):
        found, expected = (one.speak(sources, prompts, beams) for one in (there, engine))
        same = [one.tokens == other.tokens for one, other in zip(found, expected, strict=True)]
        assert all(same) if compute == "float32" else any(same)

"""A net behind Moonshine's encoder as a folder: it says what the net says, in steps too."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models.base import Feature
from dragoman.models.exported.config import ExportedNet, Languages
from dragoman.models.exported.net import BOS
from dragoman.models.exported.pieces import open_units
from dragoman.models.grafted.encoder import GraftedNet, Heard
from dragoman.models.grafted.model import GraftedEngine, settings_of
from dragoman.models.kind import kind_of
from dragoman.models.load import exported_net, load_model
from dragoman.models.moonshine.encoder import BEHIND, STATE, Level
from dragoman.models.search import Prompt
from dragoman.policies import make_policy
from dragoman.train.checkpoints import load_weights, start_from
from dragoman.train.data.vocabulary import train_pieces
from dragoman.train.export import export
from dragoman.train.export_grafted import compare
from dragoman.train.exporting import Surroundings
from dragoman.train.graphs import DecoderGraph
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.grafted import Grafted, GraftedConfig
from dragoman.train.recipe import Recipe, Units
from dragoman.train.running import surroundings
from dragoman.train.settings import convert
from dragoman.train.train import train
from dragoman.train.trained import open_run
from tests.models import made_onnx
from tests.models.test_moonshine_decoder import held
from tests.shared import made_once, shared_folder

UNITS, SOURCE = 40, 12
EARS = {
    "ears_size": made_onnx.MOONSHINE_WIDTH,
    "ears_heads": made_onnx.MOONSHINE_HEADS,
    "ears_layers": made_onnx.MOONSHINE_LAYERS,
    "ears_ffn": made_onnx.INNER,
    "ears_turning": made_onnx.TURNING,
}
SIZES = {"size": 32, "heads": 4, "ffn": 48, "ctc_layer": 1}
LAYERS = {"encoder_layers": 2, "decoder_layers": 2}
CHUNKS = {"chunk": 28, "ahead": 12}


@pytest.fixture(scope="module")
def ears(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Moonshine, whose numbers are as they are: not in eight bits."""

    def write(folder: Path) -> None:
        folder.mkdir()
        made_onnx.moonshine_encoder(folder / "encoder_model.onnx", None)
        made_onnx.moonshine_decoder(folder / "decoder_model_merged.onnx", None)

    return made_once(shared_folder(tmp_path_factory) / "grafted-ears", write)


def made(ears: Path, **settings: object) -> Grafted:
    torch.manual_seed(1)
    config = GraftedConfig(**SIZES | LAYERS | EARS | {"dropout": 0.0} | settings)
    net = Grafted(config, Vocabularies(UNITS, SOURCE)).eval()
    start_from(net, ears, ("encoder",))
    with torch.no_grad():  # opinions are strong, so that a mistake changes what it says
        for name, weight in net.named_parameters():
            if name.startswith(("decoder.layers", "layers")) and weight.ndim > 1:
                weight.mul_(3)
            elif weight.ndim == 1 and not name.startswith("encoder."):  # none is like another
                weight.add_(0.01 * torch.randn(weight.shape))
    return net


@pytest.fixture(scope="module")
def folder(ears, tmp_path_factory) -> Path:
    around = Surroundings("en", "de", encoder=str(ears))
    return made_once(
        shared_folder(tmp_path_factory) / "grafted",
        lambda out: export(made(ears, **CHUNKS), out, around),
    )


@pytest.fixture
def copied_graphs(folder, monkeypatch) -> None:
    """An export takes the graphs of `folder`, whatever the net: to make them anew takes longer
    than all else."""

    def copied(graph, inputs, axes, out):
        name = "decoder.onnx" if isinstance(graph, DecoderGraph) else "encoder.onnx"
        shutil.copy(folder / name, out / name)

    monkeypatch.setattr("dragoman.train.export_grafted.write", copied)


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    pitch, level = (np.repeat(random.uniform(*of, 100), 1600) for of in ((0.01, 0.5), (0.02, 1)))
    return (level * np.sin(np.cumsum(pitch)))[: int(seconds * 16_000)].astype(np.float32)


def whole(samples: np.ndarray) -> np.ndarray:
    return samples[: (len(samples) - BEHIND) // STATE * STATE + BEHIND]


def engine_of(folder: Path) -> GraftedEngine:
    return GraftedEngine.of(GraftedNet(folder, threads=1), threads=1)


@torch.no_grad()
def heard_by(net: Grafted, samples: np.ndarray):
    encoded = net.encode(torch.from_numpy(samples)[None], torch.tensor([len(samples)]))
    count = int(encoded.lengths[0])
    memory = [part[:, :, :, :count].numpy() for part in net.memory(encoded.states)]
    return memory, encoded.ctc_logits[0, :count].argmax(-1).numpy()


@pytest.mark.parametrize("seconds", [0.3, 0.9, 1.0, 3.1])
def test_it_hears_what_the_net_hears(ears, folder, seconds):
    samples = whole(sound(seconds, 4))
    window = engine_of(folder).encode([Heard()], [samples])[0]
    memory, labels = heard_by(made(ears, **CHUNKS), samples)
    for found, wanted in zip(window.texts, memory, strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert (window.labels == labels).mean() > 0.9  # near ties may fall otherwise
    assert window.joined == -(-len(window) // 4) == len(labels)


def test_of_nothing_heard_nothing_is_said(folder):
    assert Heard().joined == 0
    assert engine_of(folder).speak([Heard()], [Prompt((BOS,), 8)], 1)[0].tokens == ()


def test_it_says_what_the_net_says(ears, folder):
    net, engine = made(ears, **CHUNKS), engine_of(folder)
    different = set()
    for seed in range(3):
        samples = whole(sound(1.5, seed))
        window = engine.encode([Heard()], [samples])[0]
        found = engine.speak([window], [Prompt((BOS,), 8)], 1)[0]
        memory = tuple(torch.from_numpy(part) for part in heard_by(net, samples)[0])
        length, tokens = torch.tensor([memory[0].shape[3]]), [BOS]
        with torch.no_grad():
            for _ in found.tokens:
                logits = net.step(torch.tensor([tokens]), memory, length, net.begin(1)).logits[
                    0, -1
                ]
                logits[:2] = -torch.inf
                tokens.append(int(logits.argmax()))
        assert found.tokens == tuple(tokens[1:])
        different.add(found.tokens)
    assert len(different) > 1  # it does listen


def test_in_steps_only_what_is_new_or_open_is_read(ears, folder, monkeypatch):
    engine, samples = engine_of(folder), sound(4.0, 5)
    counts = []
    read = GraftedNet.read
    monkeypatch.setattr(
        GraftedNet, "read", lambda net, given: counts.append(given[0].shape[1]) or read(net, given)
    )
    window = Heard(Level(0.01, 0.3, 10**6))
    for end in range(8000, len(samples) + 8000, 8000):
        before = window
        window = engine.encode([window], [samples[len(window) * STATE : end]])[0]
        for old, new in zip(before.texts, window.texts, strict=False):
            np.testing.assert_array_equal(new[:, :, :, : before.read], old[:, :, :, : before.read])
        np.testing.assert_array_equal(window.labels[: before.read], before.units)
        assert window.joined == -(-len(window) // 4) == len(window.labels)
        assert window.read == len(window.units) == window.kept[0].shape[3]
        assert 0 < window.joined - window.read <= 4
    assert max(counts) <= 11  # of 42: half a second of new ones, and three or four that were open


def test_speakers_together_are_heard_as_alone(folder):
    engine = engine_of(folder)
    sounds = [sound(2.0, 6), sound(0.7, 7), sound(1.1, 8)]
    together = engine.encode([Heard()] * 3, sounds)
    for window in together:  # nothing that was made for the others is kept
        assert all(held(part) == part.nbytes for part in (*window.kept, *window.texts))
    more = engine.encode(together, [sound(0.6, seed) for seed in range(3)])
    for index, one in enumerate(sounds):
        alone = engine.encode([Heard()], [one])[0]
        then = engine.encode([alone], [sound(0.6, index)])[0]
        for found, wanted in ((together[index], alone), (more[index], then)):
            for part, other in zip(found.texts, wanted.texts, strict=True):
                np.testing.assert_allclose(part, other, atol=1e-4)


@pytest.mark.usefixtures("copied_graphs")  # they do not know of chunks
def test_a_net_that_hears_all_at_once_looks_a_second_ahead(ears, tmp_path):
    net = made(ears)
    export(net, tmp_path / "net", Surroundings("en", "de", encoder=str(ears)))
    samples = whole(sound(2.0, 9))
    window = engine_of(tmp_path / "net").encode([Heard()], [samples])[0]
    for found, wanted in zip(window.texts, heard_by(net, samples)[0], strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert window.joined - window.read == 12  # a second, a part of one, and what is no whole one


@pytest.mark.usefixtures("copied_graphs")
def test_in_bytes_it_is_nearly_the_same(ears, folder, tmp_path):
    net = made(ears, **CHUNKS)
    export(net, tmp_path / "small", Surroundings("en", "de", encoder=str(ears)), int8=True)
    assert ExportedNet.read(tmp_path / "small").precision == "int8"
    offs = [off for _, off in compare(net, tmp_path / "small")]
    assert all(0 < off < 0.25 for off in offs)
    assert max(off for _, off in compare(net, folder)) < 1e-3


@pytest.mark.usefixtures("copied_graphs")
def test_another_net_begins_with_what_was_exported(ears, tmp_path):
    """All but Moonshine's encoder, which is not in the folder."""
    net = made(ears, **CHUNKS)
    export(net, tmp_path / "small", Surroundings("en", "de", encoder=str(ears)), int8=True)
    found, wanted = load_weights(tmp_path / "small"), net.state_dict()
    assert found.keys() == {name for name in wanted if not name.startswith("encoder.")}
    for name, weight in found.items():
        off = float((weight - wanted[name]).abs().max())
        assert off <= 0.01 * float(wanted[name].abs().max()) + 1e-6, name


@pytest.mark.usefixtures("copied_graphs")
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize(
    ("part", "weight"), [("encoder", "graft.wide"), ("decoder", "decoder.norm")]
)
def test_another_net_is_refused(ears, tmp_path, part, weight, int8):
    net = made(ears, **CHUNKS)
    with torch.no_grad():
        net.get_parameter(f"{weight}.weight").mul_(1.5)
    with pytest.raises(DragomanError, match=f"{part} differs"):
        export(net, tmp_path / "net", Surroundings("en", "de", encoder=str(ears)), int8=int8)
    assert not list(tmp_path.iterdir())


def test_an_encoder_of_its_own_is_refused(ears, tmp_path):
    with pytest.raises(DragomanError, match="freeze the encoder"):
        export(made(ears), tmp_path / "net", Surroundings("en", "de"))


# ---------------------------------------------------------------- a run, from training to talking


@pytest.fixture(scope="module")
def run(tiny, sung, ears, tmp_path_factory) -> Path:
    one_layer = {"encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    recipe = tiny | {
        "net": "grafted",
        "net_settings": SIZES | one_layer | EARS | CHUNKS,
        "data": {"train": [str(sung)], "dev_items": 6, "keep_states": True, "resident": "host"},
        "init": str(ears),
        "init_parts": ["encoder"],
        "freeze": ["encoder"],
        "task_settings": {"ctc": 0.3, "boundaries": 0.0},
        "augment": {"spec": "none"},
        "batch": {"seconds": 20, "buckets": 1},
        "optimiser": {"rate": 0.004, "warmup": 10},
        "steps": {"total": 60, "validate": 60, "save": 60, "average": 1, "translate": 8},
    }
    return made_once(
        shared_folder(tmp_path_factory) / "grafted-run",
        lambda folder: train(convert(Recipe, recipe), folder),
    )


@pytest.fixture(scope="module")
def model_folder(run, ears) -> Path:
    def write(folder: Path) -> None:
        trained = open_run(run)
        export(trained.task.net, folder, replace(surroundings(run, trained), encoder=str(ears)))

    return made_once(run.with_name("grafted-model"), write)


def interpreted(name: Path, samples: np.ndarray) -> str:
    model = load_model(str(name), threads=1, beams=1)
    interpreter = Interpreter(model, make_policy("greedy"), source="en", target="de")
    pieces = [samples[at : at + 8000] for at in range(0, len(samples), 8000)]
    said = []
    for index, piece in enumerate(pieces):
        said += interpreter.hear(Chunk(piece, index == len(pieces) - 1)).said
    return "".join(said)


def test_a_run_becomes_a_model(run, ears, model_folder, monkeypatch):
    assert kind_of(model_folder) == "grafted"
    assert exported_net(str(model_folder)).languages.targets == ("de",)
    said = interpreted(model_folder, sound(3.0, 1))
    assert said.strip()
    monkeypatch.setattr("dragoman.train.running.kept_encoder", lambda recipe: str(ears))
    assert interpreted(run, sound(3.0, 1)) == said  # the run itself says so, too


def test_attention_tells_the_time(model_folder):
    model = load_model(str(model_folder), threads=1, beams=1)
    assert {Feature.ATTENTION, Feature.CTC} <= model.features
    stream = model.open("en", "de")
    stream.samples = np.zeros(STATE * 42, np.float32)
    assert (stream.span.frames, stream.span.frame_ms) == (11, 96.0)


def test_words_are_counted_wherever_the_window_is_cut(model_folder):
    """Where sound goes, the words that were heard in it stay counted, and no others."""
    stream = load_model(str(model_folder), threads=1).open("en", "de")
    stream.words_in = lambda labels: int((labels == 1).sum())
    labels = np.array([1, 0, 1, 0, 0, 1])
    stream.samples = np.zeros(STATE * 24, np.float32)
    stream.states = replace(Heard(), count=24, labels=labels)
    stream.forget(12 * STATE / 16)
    assert stream.words_before == 2
    assert stream.start == 12 * STATE
    assert isinstance(stream.states, Heard)
    assert not len(stream.states)


def test_of_several_targets_a_tag_says_which(folder, tmp_path):
    one = ExportedNet.read(folder)
    assert settings_of(folder, one).tags == {}
    train_pieces(
        ["ein Haus", "una casa"], Units("char", 60), tmp_path / "target.model", ("es", "de")
    )
    names = open_units(tmp_path / "target.model")
    several = settings_of(tmp_path, replace(one, languages=Languages("en", "de,es")))
    assert {code: names.id_to_piece(tag) for code, tag in several.tags.items()} == {
        "de": "<2de>",
        "es": "<2es>",
    }
    assert (several.languages.targets, several.encoder) == (("de", "es"), one.encoder)
    assert (several.target_units, several.source_units) == (UNITS, SOURCE)


def test_a_net_of_which_nobody_said_the_languages_is_opened_for_any(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "net")
    replace(ExportedNet.read(model_folder), languages=Languages()).write(tmp_path / "net")
    stream = load_model(str(tmp_path / "net"), threads=1).open(None, "cy")
    assert (stream.target, isinstance(stream.states, Heard)) == ("cy", True)


def test_damage_is_a_sentence(model_folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(model_folder, broken)
    graph = (broken / "encoder.onnx").read_bytes()
    (broken / "encoder.onnx").write_bytes(graph[: len(graph) // 2])
    with pytest.raises(DragomanError, match=r"Cannot load .*encoder\.onnx"):
        load_model(str(broken))
    (broken / "encoder.onnx").write_bytes(graph)
    said = json.loads((broken / "config.json").read_text())
    for encoder, told in (
        ("no-such", "no-such"),
        (str(tmp_path), "holds no Moonshine"),
    ):
        (broken / "config.json").write_text(json.dumps(said | {"encoder": encoder}))
        with pytest.raises(DragomanError, match=told):
            load_model(str(broken))

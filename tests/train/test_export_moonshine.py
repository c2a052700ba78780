"""A net in Moonshine's shape as a folder: it says what the net says, in steps as at once."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models.base import Feature
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.net import BOS, PAD, OnnxNet, Stepped
from dragoman.models.exported.pieces import Pieces
from dragoman.models.load import exported_net, load_model
from dragoman.models.moonshine import encoder as encoder_module
from dragoman.models.moonshine.encoder import BEHIND, STATE, Encoded
from dragoman.models.moonshine.trained import (
    Settings,
    TrainedMoonshine,
    count_words,
    engine_of,
)
from dragoman.models.search import Found, Prompt, search
from dragoman.models.whisper.weights import Weights
from dragoman.policies import make_policy
from dragoman.train.data.pack import Header, Item, Pack, ShardWriter, write_header
from dragoman.train.export import export
from dragoman.train.export_moonshine import compare
from dragoman.train.exporting import Surroundings
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.moonshine import Moonshine, MoonshineConfig
from dragoman.train.recipe import Recipe
from dragoman.train.running import surroundings
from dragoman.train.settings import convert
from dragoman.train.train import train
from dragoman.train.trained import open_run

UNITS, SOURCE = 40, 12
SIZES = {"size": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 3, "ffn": 64, "turning": 6}


def made(seed: int = 1, **settings: object) -> Moonshine:
    """A net whose opinions are strong, so that a mistake changes what it says."""
    torch.manual_seed(seed)
    net = Moonshine(MoonshineConfig(**SIZES | settings), Vocabularies(UNITS, SOURCE)).eval()
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if name.endswith("norm.weight"):
                weight.add_(0.2 * torch.randn_like(weight))
            elif name.startswith("decoder.layers"):
                weight.mul_(4)
    return net


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    pitch, level = (np.repeat(random.uniform(*of, 100), 1600) for of in ((0.01, 0.5), (0.02, 1)))
    return (level * np.sin(np.cumsum(pitch)))[: int(seconds * 16_000)].astype(np.float32)


class TorchSteps(OnnxNet):
    """The net as the search of exported nets sees it: another way through all of decoding."""

    def __init__(self, net: Moonshine) -> None:
        self.net = net
        config = type("Config", (), {})()
        config.memory_time, config.attention_layer, config.cache = net.memory_time, 0, ()
        self.config = config

    def begin(self, batch: int) -> tuple:
        return tuple(part.numpy() for part in self.net.begin(batch))

    @torch.no_grad()
    def step(self, tokens, memory, lengths, cache, final=None) -> Stepped:
        tensors = [tuple(map(torch.from_numpy, part)) for part in (memory, cache)]
        step = self.net.step(
            torch.from_numpy(tokens), tensors[0], torch.from_numpy(lengths), tensors[1]
        )
        step.logits[:, :, [PAD, BOS]] = -1e9
        cache = tuple(part.numpy() for part in step.cache)
        return Stepped(step.logits.log_softmax(-1).numpy(), step.attention.numpy(), cache)


@torch.no_grad()
def said_by(net: Moonshine, samples: np.ndarray, first: int, said: tuple, beams: int):
    whole = samples[: (len(samples) - BEHIND) // STATE * STATE + BEHIND]
    encoded = net.encode(torch.from_numpy(whole)[None], torch.tensor([len(whole)]))
    count = int(encoded.lengths[0])
    memory = tuple(part[:, :, :, :count].numpy() for part in net.memory(encoded.states))
    prompts = [Prompt((first,), 12, said)]
    return search(Texts(TorchSteps(net), [memory], [count], prompts), prompts, beams)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made_in = tmp_path_factory.mktemp("moonshine") / "net"
    export(made(), made_in, Surroundings("en", "de"))
    return made_in


def engine_in(folder: Path, **settings: object):
    known = replace(Settings.read(folder), **settings)
    return engine_of(folder, known, Weights(folder / "model.bin"), threads=1)


@pytest.mark.parametrize("beams", [1, 4])
def test_it_says_what_the_net_says(folder, beams):
    net, engine = made(), engine_in(folder)
    different = set()
    for seed, said in ((0, ()), (1, (7, 9)), (2, (30,)), (3, ())):
        samples = sound(1.0 + 0.3 * seed, seed)
        window = engine.encode([Encoded()], [samples])[0]
        found = engine.speak([window], [Prompt((BOS,), 12, said)], beams)[0]
        wanted = said_by(net, samples, BOS, said, beams)
        assert found.tokens == wanted.tokens
        assert found.ended == wanted.ended
        np.testing.assert_allclose(found.log_probs, wanted.log_probs, atol=2e-3)
        different.add(found.tokens)
    assert len(different) == 4  # it does listen


def test_in_steps_it_is_the_same_as_at_once(folder, monkeypatch):
    """As long as no state is final, and once the level of the sound is known."""
    monkeypatch.setattr(encoder_module, "LONG", 10**18)
    engine, samples = engine_in(folder, ahead=10**6), sound(3.0, 5)
    known = Encoded(encoder_module.Level(0.01, 0.3, 10**15))
    at_once, window = engine.encode([known], [samples])[0], known
    for end in range(5000, len(samples) + 5000, 5000):
        window = engine.encode([window], [samples[len(window) * STATE : end]])[0]
    prompt = Prompt((BOS,), 12)
    assert engine.speak([window], [prompt], 1)[0].tokens == (
        engine.speak([at_once], [prompt], 1)[0].tokens
    )
    np.testing.assert_allclose(
        window.memory["memory_values_1"], at_once.memory["memory_values_1"], atol=1e-3
    )


def test_any_other_net_looks_a_second_ahead(folder):
    settings = Settings.read(folder)
    assert (settings.chunk, settings.ahead) == (0, encoder_module.OPEN)


def test_a_net_of_chunks_is_heard_in_chunks(tmp_path):
    """As it was trained: the comparison that every export makes would not pass otherwise."""
    net, folder = made(chunk=20, ahead=12), tmp_path / "net"
    export(net, folder, Surroundings("en", "de"))
    settings = Settings.read(folder)
    assert (settings.chunk, settings.ahead) == (20, 12)
    samples = sound(2.5, 6)
    window = engine_in(folder).encode([Encoded()], [samples])[0]
    assert window.final == len(window) - 12
    other = engine_in(folder, chunk=0).encode([Encoded()], [samples])[0]
    name = "memory_values_1"
    assert np.abs(window.memory[name] - other.memory[name]).max() > 0.01
    found = engine_in(folder).speak([window], [Prompt((BOS,), 12)], 1)[0]
    assert found.tokens == said_by(net, samples, BOS, (), 1).tokens
    offs = dict(compare(net, folder, replace(settings, chunk=0)))
    assert offs["encoder"] > 0.01


def test_in_bytes_it_is_nearly_the_same_and_a_quarter_of_the_size(folder, tmp_path):
    export(made(), tmp_path / "small", Surroundings("en", "de"), int8=True)
    sizes = [(one / "model.bin").stat().st_size for one in (tmp_path / "small", folder)]
    assert sizes[0] < 0.55 * sizes[1]  # convolutions stay as they are, and this net has little else
    offs = dict(compare(made(), tmp_path / "small", Settings.read(tmp_path / "small")))
    assert all(0 < off < 0.2 for off in offs.values())
    assert max(off for _, off in compare(made(), folder, Settings.read(folder))) < 1e-3


def test_another_net_is_refused(tmp_path, monkeypatch):
    """What is written is compared with the net before the folder appears."""
    from dragoman.train import export_moonshine as module

    right = module.arrays_of

    def wrong(net, settings):
        arrays = right(net, settings)
        name = "decoder/layer_1/attention/linear_1/weight"
        return arrays | {name: 1 + arrays[name]}

    monkeypatch.setattr(module, "arrays_of", wrong)
    for int8 in (False, True):
        with pytest.raises(DragomanError, match=r"encoder (differs|is off)"):
            export(made(), tmp_path / "net", Surroundings("en", "de"), int8=int8)
        assert not (tmp_path / "net").exists()


def test_a_ctc_head_hears_the_same_units(tmp_path):
    net = made(ctc=True)
    export(net, tmp_path / "net", Surroundings("en", "de"))
    engine, samples = engine_in(tmp_path / "net"), sound(2.0, 3)
    window = engine.encode([Encoded()], [samples])[0]
    with torch.no_grad():
        encoded = net.encode(torch.from_numpy(samples)[None], torch.tensor([len(samples)]))
    wanted = encoded.ctc_logits[0, : len(window)].argmax(-1)
    assert len(set(wanted.tolist())) > 2
    assert (window.labels == wanted.numpy()).mean() > 0.95  # near ties may fall otherwise
    later = engine.encode([window], [sound(3.0, 3)[len(window) * STATE :]])[0]
    assert len(later.labels) == len(later) > len(window)
    np.testing.assert_array_equal(later.labels[: window.final], window.labels[: window.final])


# ---------------------------------------------------------------- a run, from training to talking


@pytest.fixture(scope="module")
def run(tiny, sung, tmp_path_factory) -> Path:
    """Colours that are sung, into German and into a Spanish of one's own."""
    folder = tmp_path_factory.mktemp("hearing")
    spanish = folder / "es"
    pack = Pack(sung)

    def again():
        for number, item in enumerate(pack.items):
            text = {"en": item.text["en"], "es": item.text["en"].upper()}
            yield Item(item.id, 0, 0, 0, text), np.array(pack.sound(number))

    report = ShardWriter(spanish, 0, "pcm").write(again())
    write_header(spanish, Header("pcm", ["en", "es"], "en", 1, report.items, 0.1, "again", {}))
    recipe = tiny | {
        "net": "moonshine",
        "net_settings": SIZES | {"dropout": 0.0, "ctc": True},
        "data": {"train": [str(sung), str(spanish)], "dev_items": 6, "target": "de,es"}
        | {"keep_states": True, "resident": "host"},
        "freeze": ["encoder"],
        "task_settings": {"ctc": 0.3, "boundaries": 0.0},
        "augment": {"spec": "none"},
        "batch": {"seconds": 20, "buckets": 1},
        "optimiser": {"rate": 0.004, "warmup": 10},
        "steps": {"total": 120, "validate": 120, "save": 120, "average": 1, "translate": 8},
    }
    train(convert(Recipe, recipe), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def model_folder(run) -> Path:
    trained = open_run(run)
    out = run.parent / "model"
    export(trained.task.net, out, surroundings(run, trained), int8=True)
    return out


def interpreted(name: Path, samples: np.ndarray, target: str) -> str:
    model = load_model(str(name), threads=1, beams=1)
    interpreter = Interpreter(model, make_policy("greedy"), source="en", target=target)
    pieces = [samples[at : at + 8000] for at in range(0, len(samples), 8000)]
    said = []
    for index, piece in enumerate(pieces):
        said += interpreter.hear(Chunk(piece, index == len(pieces) - 1)).said
    return "".join(said)


def talk(sung: Path, items: range) -> np.ndarray:
    pack = Pack(sung)
    parts = [np.array(pack.sound(number), np.float32) / 32768 for number in items]
    return np.concatenate([*parts, np.zeros(4000, np.float32)])


def test_a_run_becomes_a_model_that_is_told_the_language(run, model_folder, sung):
    settings = exported_net(str(model_folder))
    assert settings.languages.targets == ("de", "es")
    assert settings.encoder == ""
    assert len(set(settings.tags.values())) == 2
    german, spanish = (interpreted(model_folder, talk(sung, range(1)), to) for to in ("de", "es"))
    assert german.strip().islower()
    assert spanish.strip().isupper()  # which is how they differ
    assert interpreted(run, talk(sung, range(1)), "de") == german  # the run itself says so, too


class Pulses:
    """A net that hears a unit in every loud state, and has nothing to say."""

    def __init__(self, unit: int, blank: int) -> None:
        self.unit, self.blank = unit, blank

    def new(self):
        return Encoded()

    def encode(self, windows, sounds):
        return [self.heard(window, sound) for window, sound in zip(windows, sounds, strict=True)]

    def heard(self, window: Encoded, sound: np.ndarray) -> Encoded:
        states = sound[: len(sound) // STATE * STATE].reshape(-1, STATE)
        labels = np.where(states.mean(axis=1) > 0.5, self.unit, self.blank)
        labels = np.concatenate([window.labels, labels])
        return replace(window, count=len(labels), labels=labels)

    def speak(self, windows, prompts, beams, pasts=None):
        return [Found(ended=True) for _ in windows]


def test_words_are_counted_wherever_the_window_is_cut(model_folder):
    """Of a minute, in which the window is full several times."""
    settings = Settings.read(model_folder)
    trained = load_model(str(model_folder), threads=1)
    assert Feature.CTC in trained.features
    source = Pieces.load(model_folder / "source.model", settings.source_units, suffix=True)
    word = next(n for n, name in enumerate(source.names) if name.endswith("▁") and n > 3)
    units = {"de": Pieces.of_target(model_folder, settings, "de")}
    count = partial(count_words, source, settings.source_units)
    model = TrainedMoonshine("toy", Pulses(word, settings.source_units), settings, units, count)
    interpreter = Interpreter(model, make_policy("greedy"), source="en", target="de")
    counts = []
    for second in range(60):
        pulse = np.repeat(np.float32([0.9, 0.0]), 8000)
        interpreter.hear(Chunk(pulse, second == 59))
        counts.append(interpreter.stream.words_heard)
    assert counts == list(range(1, 61))
    assert interpreter.stream.start_ms > 20_000


def test_languages_that_it_does_not_know_are_refused(model_folder):
    model = load_model(str(model_folder), threads=1)
    with pytest.raises(DragomanError, match="speaks 'de' and 'es', not 'fr'"):
        model.open("en", "fr")
    with pytest.raises(DragomanError, match="hears 'en', not 'de'"):
        model.open("de", "de")


def test_damage_is_a_sentence(model_folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(model_folder, broken)
    weights = (broken / "model.bin").read_bytes()
    (broken / "model.bin").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(DragomanError, match=r"Cannot read .*model\.bin"):
        load_model(str(broken))
    (broken / "model.bin").write_bytes(weights)
    said = json.loads((broken / "dragoman.json").read_text())
    (broken / "dragoman.json").write_text(json.dumps(said | {"target_units": "many"}))
    with pytest.raises(DragomanError, match="does not describe a net"):
        load_model(str(broken))
    (broken / "dragoman.json").write_text(json.dumps(said | {"encoder": "no-such-model"}))
    with pytest.raises(DragomanError, match="no-such-model"):
        load_model(str(broken))

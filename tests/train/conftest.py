"""A small corpus with real sound for the training tests, made once without any synthesiser."""

import functools
from copy import copy
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from dragoman.train.data.pack import Header, Item, Pack, ShardWriter, write_header
from tests.shared import made_once, shared_folder

WORDS = {"red": "rot", "green": "grün", "blue": "blau", "small": "klein", "large": "groß"}
RATE = 16_000


def tone(number: int, random: np.random.Generator) -> np.ndarray:
    """A word as a quarter of a second of two tones that belong to it alone."""
    time = np.arange(RATE // 4) / RATE
    sound = sum(np.sin(2 * np.pi * pitch * (number + 1) * time) for pitch in (300, 450))
    return 4000 * sound + 30 * random.standard_normal(len(time))


def make_pack(
    folder: Path, items: int, seed: int = 0, codec: str = "pcm", ends: bool = True
) -> Path:
    """Sentences of two to four colour words, sung; a word is two phones. `ends`: known or not."""
    random = np.random.default_rng(seed)
    names = list(WORDS)

    def sung():
        for number in range(items):
            words = random.integers(len(names), size=random.integers(2, 5))
            sound = np.concatenate([tone(word, random) for word in words]).astype(np.int16)
            english = " ".join(names[word] for word in words)
            german = " ".join(WORDS[names[word]] for word in words)
            item = Item(str(number), 0, 0, 0, {"en": english, "de": german})
            if ends:
                item.word_ends = [250 * (place + 1) for place in range(len(words))]
                item.phone_ends = [125 * (place + 1) for place in range(2 * len(words))]
            yield item, sound

    report = ShardWriter(folder, 0, codec).write(sung())
    hours = report.samples / RATE / 3600
    header = Header(codec, ["en", "de"], "en", 1, report.items, hours, f"sung-{items}-{seed}", {})
    write_header(folder, header)
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Tiny nets gain nothing from threads, and results stay the same on every machine and in
    every order of the tests.

    Before the fixtures of every test, since libraries change the number for the whole process.
    """
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def torchlib_is_read_once():
    """Torch's exporter reads anew, for every graph, what all of its operations are in ONNX, which
    takes more than a second. Who adds to what is known has lists of his own."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    read = functools.cache(ONNXRegistry.from_torchlib)

    def copied(**opset: int) -> ONNXRegistry:
        registry = copy(read(**opset))
        registry.functions = {name: list(known) for name, known in registry.functions.items()}
        return registry

    with patch.object(ONNXRegistry, "from_torchlib", staticmethod(copied)):
        yield


@pytest.fixture(scope="session")
def sung(tmp_path_factory) -> Path:
    return make_pack(tmp_path_factory.mktemp("packs") / "sung", 60)


@pytest.fixture(scope="session")
def tiny(sung) -> dict:
    """Plain settings of a recipe that takes a second or two."""
    return {
        "net": "conformer",
        "task": "offline",
        "net_settings": {
            **{"conv_channels": 16, "size": 16, "encoder_layers": 1, "decoder_layers": 1},
            **{"encoder_heads": 2, "decoder_heads": 2, "encoder_ffn": 32, "decoder_ffn": 32},
            **{"kernel": 5, "ctc_layer": 1, "dropout": 0.1},
        },
        "data": {"train": [str(sung)], "dev_items": 6},
        "vocabulary": {
            "source": {"kind": "char", "size": 40},
            "target": {"kind": "char", "size": 40},
        },
        "augment": {"spec": "LB"},
        "batch": {"seconds": 6, "buckets": 2},
        "optimiser": {"rate": 0.005, "warmup": 5},
        "steps": {"total": 12, "validate": 4, "save": 3, "log": 2, "average": 2},
        "machine": {"accelerator": "cpu", "carbon": False},
    }


@pytest.fixture(scope="session")
def perturbed(tiny) -> dict:
    """The same with all chance that there is: speeds too, which take as long as all else."""
    return tiny | {"augment": {"spec": "LB", "speeds": [0.9, 1.0]}}


@pytest.fixture(scope="session")
def exporter(tmp_path_factory):
    """Tiny nets, each exported when it is first asked for."""
    from tests.train.exported import Exporter

    return Exporter(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def corpus(sung, tmp_path_factory):
    """Eight of the sung sentences as units, and the two vocabularies."""
    from dragoman.train.data.corpus import open_set
    from dragoman.train.data.faults import Faults
    from dragoman.train.data.vocabulary import Pieces, train_pieces
    from dragoman.train.recipe import Data, Units

    folder = tmp_path_factory.mktemp("units")
    whole = open_set([sung], Data((str(sung),)), Faults())
    pieces = []
    for side, language in (("source", "en"), ("target", "de")):
        units = Units("char", 40)
        train_pieces(whole.texts(language), units, folder / f"{side}.model")
        pieces.append(Pieces(folder / f"{side}.model", units))
    return whole.with_units(*pieces, Faults()).subset(range(8)), pieces


TEXT_NET = {
    **{"size": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_heads": 2},
    **{"decoder_heads": 2, "encoder_ffn": 64, "decoder_ffn": 64, "dropout": 0.0},
}


@pytest.fixture(scope="session")
def teacher(tiny, sung, tmp_path_factory):
    """Trained on text alone, from a TSV file, until it knows the five words."""
    from dragoman.train.recipe import Recipe
    from dragoman.train.settings import convert
    from dragoman.train.train import train

    folder = shared_folder(tmp_path_factory) / "teacher"
    folder.mkdir(exist_ok=True)
    text = f"text:{folder / 'text.tsv'}"
    settings = tiny | {
        "net": "text-transformer",
        "task": "mt",
        "net_settings": TEXT_NET,
        "data": {"train": [text], "dev": [text], "packs": str(folder)},
        "vocabulary": {side: {"kind": "bpe", "size": 60} for side in ("source", "target")},
        "batch": {"seconds": 60, "buckets": 1},
        "optimiser": {"rate": 0.01, "warmup": 10},
        "steps": {"total": 160, "validate": 80, "save": 80, "average": 1, "translate": 20},
    }

    def learn(run: Path) -> None:
        items = Pack(sung).items
        rows = "".join(f"{item.text['en']}\t{item.text['de']}\n" for item in items)
        (folder / "text.tsv").write_text("en\tde\n" + rows)
        train(convert(Recipe, settings), run)

    return made_once(folder / "run", learn)


@pytest.fixture(scope="session")
def exported_teacher(teacher, tmp_path_factory) -> Path:
    """Its graphs, for all to read; who changes them takes a copy."""
    from dragoman.train.export import export
    from dragoman.train.running import surroundings
    from dragoman.train.trained import open_run

    def write(folder: Path) -> None:
        trained = open_run(teacher)
        export(trained.task.net, folder, surroundings(teacher, trained))

    return made_once(shared_folder(tmp_path_factory) / "exported-teacher", write)


@pytest.fixture(scope="session")
def tagged(tmp_path_factory):
    """An untrained text net with one vocabulary for its source and two targets, and its graphs."""
    from dragoman.train.data.vocabulary import Pieces, train_pieces
    from dragoman.train.export import export
    from dragoman.train.exporting import Surroundings
    from dragoman.train.nets.base import Vocabularies
    from dragoman.train.nets.registry import build
    from dragoman.train.recipe import Units

    torch = pytest.importorskip("torch")
    texts = ["one house", "ein Haus", "una casa"] * 3
    units = made_once(
        shared_folder(tmp_path_factory) / "tagged.model",
        lambda path: train_pieces(texts, Units("char", 60), path, ("de", "es")),
    )
    size = len(Pieces(units, Units("char", 60)))
    torch.manual_seed(1)
    small = TEXT_NET | {"size": 16, "encoder_ffn": 16, "decoder_ffn": 16}
    shared = {"shared_vocabulary": True, "tied_output": True}
    net = build("text-transformer", small | shared, Vocabularies(size, size)).eval()
    with torch.no_grad():  # zeros that are alike would become one
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    around = Surroundings("en", "de,es", target_units=units, source_units=units, suffix=True)
    folder = shared_folder(tmp_path_factory) / "tagged"
    return net, made_once(folder, lambda path: export(net, path, around))

"""A text teacher learns the corpus and translates it; search finds what brute force finds."""

from itertools import product

import numpy as np
import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train import distill as distillation
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import FAULTS, Faults, read_faults
from dragoman.train.data.pack import Header, Item, Pack, ShardWriter, write_header
from dragoman.train.distill import distill
from dragoman.train.nets.base import BOS, EOS, Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Data, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.search import translate
from dragoman.train.settings import convert
from dragoman.train.train import train
from tests.train.conftest import TEXT_NET


def test_the_teacher_learns_and_bleu_is_watched(teacher):
    dev = [line for line in RunFolder(teacher).metrics() if line["kind"] == "dev"]
    assert dev[-1]["chrf"] > 80
    assert dev[-1]["bleu"] > dev[0]["bleu"] or dev[0]["bleu"] > 80


def test_distilled_packs_share_the_sound(teacher, sung, tmp_path):
    header = distill(teacher, sung, tmp_path / "kd", beam=3)
    gold, made = Pack(sung), Pack(tmp_path / "kd")
    assert header.items == len(gold)
    assert not list((tmp_path / "kd").glob("*.pcm"))
    right = 0
    for number, item in enumerate(made.items):
        assert item.text["en"] == gold.items[number].text["en"]
        assert (made.sound(number) == gold.sound(number)).all()
        right += item.text["de"] == gold.items[number].text["de"]
    assert right > 0.8 * len(gold)
    assert distill(teacher, sung, tmp_path / "kd", beam=3) == header  # found, not made again

    # Gold and synthetic together: every recording twice, with either text.
    data = Data((str(sung), str(tmp_path / "kd")))
    both = open_set([sung, tmp_path / "kd"], data, Faults())
    assert len(both) == 2 * len(gold)
    assert both.texts("de") == [item.text["de"] for pack in (gold, made) for item in pack.items]
    assert (both.sound(len(gold) + 3) == gold.sound(3)).all()


def test_a_teacher_must_read(tiny, sung, tmp_path):
    settings = tiny | {"steps": {"total": 1, "validate": 1, "average": 1}}
    train(convert(Recipe, settings), tmp_path / "speech")
    with pytest.raises(DragomanError, match="hears speech"):
        distill(tmp_path / "speech", sung, tmp_path / "kd")


def test_a_wide_beam_finds_the_best_of_all():
    """Over a tiny vocabulary, against every sequence of up to three units."""
    torch.manual_seed(3)
    net = build("text-transformer", TEXT_NET, Vocabularies(target=7, source=7)).eval()
    encoded = net.encode(torch.tensor([[4, 5, 6], [6, 6, 4]]), torch.tensor([3, 3]))
    best = []
    for item in range(2):
        alone = net.encode(torch.tensor([[4, 5, 6], [6, 6, 4]])[item : item + 1], torch.tensor([3]))
        scored = []
        for length in range(3):
            for units in product((3, 4, 5, 6), repeat=length):
                labels = [*units, EOS]
                logits = net.decode(torch.tensor([[BOS, *units]]), alone)[0]
                logits[:, [BOS, 0]] = -1e9
                scores = logits.log_softmax(-1)[range(len(labels)), labels]
                scored.append((scores.sum().item() / len(labels), list(units)))
        best.append(max(scored)[1])
    assert translate(net, encoded, beam=60, longest=3, penalty=1.0) == best


def test_greedy_is_a_beam_of_one():
    torch.manual_seed(0)
    net = build("text-transformer", TEXT_NET, Vocabularies(target=20, source=20)).eval()
    encoded = net.encode(torch.randint(4, 20, (3, 6)), torch.tensor([6, 4, 2]))
    found = translate(net, encoded, beam=1, longest=10)
    for item, units in enumerate(found):
        tokens = [BOS]
        for _ in range(10):
            alone = net.encode(torch.zeros(1, 1, dtype=torch.long), torch.tensor([1]))
            alone.states = encoded.states[item : item + 1]
            alone.lengths = encoded.lengths[item : item + 1]
            logits = net.decode(torch.tensor([tokens]), alone)[0, -1]
            logits[[BOS, 0]] = -1e9
            tokens.append(int(logits.argmax()))
            if tokens[-1] == EOS:
                break
        assert units == [unit for unit in tokens[1:] if unit != EOS]


def test_an_interrupted_distillation_goes_on_and_packs_may_move(teacher, tmp_path, monkeypatch):
    """Two shards; the second stops at first. What the teacher cannot read is counted."""
    gold = many_shards(tmp_path / "packs" / "gold")
    out = tmp_path / "packs" / "kd"
    done = []
    real = distillation._translate

    def once(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return real(*arguments)

    monkeypatch.setattr(distillation, "_translate", once)
    with pytest.raises(KeyboardInterrupt):
        distill(teacher, gold, out, beam=1)
    assert not (out / "pack.json").exists()
    done.clear()
    header = distill(teacher, gold, out, beam=1)
    assert len(done) == 1  # the first shard was found, not made again
    assert header.items == 5
    assert [fault.kind for fault in read_faults(out / FAULTS)] == ["no translation"]

    moved = tmp_path / "elsewhere"
    (tmp_path / "packs").rename(moved)
    pack = Pack(moved / "kd")
    assert (pack.sound(0) == Pack(moved / "gold").sound(0)).all()


def many_shards(folder):
    """Three items in each of two shards; one has no words."""
    texts = ["red green", "blue", "small red", "large", " ", "green blue"]
    reports = []
    for shard in range(2):
        items = (
            (Item(str(3 * shard + n), 0, 0, 0, {"en": text, "de": "?"}), np.arange(160 + n))
            for n, text in enumerate(texts[3 * shard : 3 * shard + 3])
        )
        sound = ((item, one.astype(np.int16)) for item, one in items)
        reports.append(ShardWriter(folder, shard, "pcm").write(sound))
    write_header(folder, Header("pcm", ["en", "de"], "en", 2, 6, 0.0, "two shards", {}))
    return folder


def test_a_device_that_is_not_there_is_a_sentence(teacher, sung, tmp_path):
    with pytest.raises(DragomanError, match="cannot compute on 'nowhere'"):
        distill(teacher, sung, tmp_path / "kd", device="nowhere")

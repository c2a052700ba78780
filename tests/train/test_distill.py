"""A text teacher learns the corpus and translates it; search finds what brute force finds."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import soundfile
import torch

from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.train import distill as distillation
from dragoman.train import search
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import FAULTS, Faults, read_faults
from dragoman.train.data.pack import Header, Item, Pack, ShardWriter, write_header
from dragoman.train.distill import distill
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Data, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.search import translate
from dragoman.train.settings import convert
from dragoman.train.train import train
from dragoman.train.trained import open_run
from tests.train.conftest import TEXT_NET, WORDS


def test_the_teacher_learns_and_bleu_is_watched(teacher):
    dev = [line for line in RunFolder(teacher).metrics() if line["kind"] == "dev"]
    assert dev[-1]["chrf"] > 80
    assert dev[-1]["bleu"] > dev[0]["bleu"] or dev[0]["bleu"] > 80


def test_texts_have_no_hours(teacher):
    """They are batched as if a unit lasted a tenth of a second, which is no speech."""
    about = json.loads((teacher / "data.json").read_text())
    assert [about[part]["hours"] for part in ("train", "dev")] == [0.0, 0.0]
    trained = [line for line in RunFolder(teacher).metrics() if line["kind"] == "train"]
    assert {line["hours_per_second"] for line in trained} == {0.0}


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


def test_a_distilled_pack_says_what_the_teacher_says(teacher, tmp_path):
    """Of a gold text that it would never write, in several batches: every item its own."""
    random = np.random.default_rng(1)
    sentences = [" ".join(random.choice(list(WORDS), size=n)) for n in (2, 4, 3, 4, 2, 3, 4)]
    items = (
        (Item(str(n), 0, 0, 0, {"en": text, "de": f"gold {n}"}), np.full(800, n, np.int16))
        for n, text in enumerate(sentences)
    )
    ShardWriter(tmp_path / "gold", 0, "pcm").write(items)
    header = Header("pcm", ["en", "de"], "en", 1, len(sentences), 0.0, "gold", {})
    write_header(tmp_path / "gold", header)
    run = open_run(teacher)
    for beam in (1, 3):
        distill(teacher, tmp_path / "gold", tmp_path / f"kd{beam}", beam=beam, together=20)
        made = Pack(tmp_path / f"kd{beam}")
        assert [item.text["en"] for item in made.items] == sentences
        for item in made.items:
            (ids,) = run.source.encode([item.text["en"]])
            encoded = run.task.net.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
            (said,) = translate(run.task.net, encoded, beam)
            assert item.text["de"] == run.target.decode(said)
            assert set(item.text["de"].split()) <= set(WORDS.values())
        assert len({item.text["de"] for item in made.items}) > 4


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
    assert translate(net, encoded, beam=60, longest=3) == best


def plain_beam_search(net, encoded, beam, longest):
    """Without caches: every prefix is decoded anew. Returns the best, and how often beams swap."""
    beams, swaps = [(0.0, [BOS])], 0
    for _ in range(longest):
        options = []
        for place, (score, units) in enumerate(beams):
            if units[-1] == EOS:
                options.append((score, units, place))
                continue
            logits = net.decode(torch.tensor([units]), encoded)[0, -1]
            logits[[BOS, PAD]] = -1e9
            scores = logits.log_softmax(-1)
            options += [
                (score + scores[unit].item(), [*units, unit], place)
                for unit in range(len(scores))
                if unit not in (BOS, PAD)
            ]
        options = sorted(options, key=lambda option: -option[0])[:beam]
        swaps += [place for *_, place in options] != list(range(len(beams)))
        beams = [option[:2] for option in options]
    done = [b for b in beams if b[1][-1] == EOS] or beams
    _, units = max(done, key=lambda one: one[0] / (len(one[1]) - 1))
    return [unit for unit in units[1:] if unit != EOS], swaps


@pytest.mark.parametrize("seed", [0, 1, 12, 20, 24])
def test_beams_take_their_past_with_them(seed):
    """Three beams over eight units overtake each other; each goes on from its own words."""
    torch.manual_seed(seed)
    net = build("text-transformer", TEXT_NET, Vocabularies(target=9, source=9)).eval()
    with torch.no_grad():
        net.decoder.layers[0].attention.out.weight *= 30  # what was said before decides
    source, lengths = torch.randint(4, 9, (2, 5)), torch.tensor([5, 3])
    expected = []
    for item in range(2):
        alone = net.encode(source[item : item + 1, : lengths[item]], lengths[item : item + 1])
        units, swaps = plain_beam_search(net, alone, beam=3, longest=8)
        assert swaps
        assert len(units) >= 4
        expected.append(units)
    assert translate(net, net.encode(source, lengths), beam=3, longest=8) == expected


@pytest.mark.parametrize("beam", [1, 3])
def test_who_has_finished_leaves_the_batch(beam, monkeypatch):
    """In whatever order items finish, each has what it has alone."""
    torch.manual_seed(7)
    net = build("text-transformer", TEXT_NET, Vocabularies(target=9, source=9)).eval()
    with torch.no_grad():
        net.decoder.layers[0].attention.out.weight *= 30
        net.decoder.layers[0].cross.out.weight *= 30
        net.decoder.output.weight[EOS] *= 2
    source, lengths = torch.randint(4, 9, (12, 5)), torch.tensor([5, 3, 4] * 4)
    alone = []
    for item in range(12):
        encoded = net.encode(source[item : item + 1, : lengths[item]], lengths[item : item + 1])
        alone += translate(net, encoded, beam, longest=30)
    sizes, step = [], net.step
    monkeypatch.setattr(search, "EVERY", 1)
    monkeypatch.setattr(search, "ENOUGH", 0.05)
    monkeypatch.setattr(net, "step", lambda *given: sizes.append(len(given[0])) or step(*given))
    assert translate(net, net.encode(source, lengths), beam, longest=30) == alone
    assert len(set(map(len, alone))) > 2
    assert sizes[0] == 12 * beam > sizes[-1]
    assert sizes == sorted(sizes, reverse=True)


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
    monkeypatch.setattr(distillation, "ITEMS_AT_ONCE", 3)
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


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([2, 3, 5, 1], [[0, 1], [2], [3]]),
        ([9, 1, 9], [[0], [1], [2]]),  # none is left out for its size
        ([1, 1, 1], [[0, 1, 2]]),
    ],
)
def test_as_many_shards_as_hold_enough_are_translated_together(monkeypatch, sizes, groups):
    monkeypatch.setattr(distillation, "ITEMS_AT_ONCE", 5)
    assert list(distillation._groups(sizes)) == groups


def test_text_alone_is_distilled_too(teacher, tmp_path, monkeypatch):
    """And learned from like any other text; the gold text is not kept."""
    monkeypatch.chdir(tmp_path)
    rows = [("red green", "?"), ("small blue", "??"), ("large red", "???")]
    (tmp_path / "text.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    header = distill(teacher, "text:text.tsv?columns=en,de&skip=1", tmp_path / "kd", beam=2)
    assert (header.items, header.hours, header.spoken) == (2, 0.0, "")
    made = open_set([tmp_path / "kd"], Data((str(tmp_path / "kd"),)), Faults())
    assert made.texts("en") == ["small blue", "large red"]
    assert {word for text in made.texts("de") for word in text.split()} <= set(WORDS.values())
    with pytest.raises(DragomanError, match=r"no file nothing\.tsv"):
        distill(teacher, "text:nothing.tsv", tmp_path / "other")


def test_recordings_need_no_translation_to_be_distilled(teacher, tmp_path, monkeypatch):
    """Even where the teacher has several languages: it is asked for one, and reads another."""
    monkeypatch.chdir(tmp_path)
    soundfile.write(tmp_path / "a.wav", np.full(16_000, 0.1), 16_000)
    (tmp_path / "talks.tsv").write_text("audio\ten\na.wav\tred green\n")
    several = distillation.open_run(teacher)
    recipe = several.recipe
    object.__setattr__(
        several, "recipe", replace(recipe, data=replace(recipe.data, target="de,es"))
    )
    monkeypatch.setattr(distillation, "open_run", lambda folder: several)
    monkeypatch.setattr(type(several.source), "tag", lambda self, code: 5)
    header = distill(teacher, "talks.tsv", tmp_path / "kd", target="es")
    assert (header.items, header.languages) == (1, ["en", "es"])


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

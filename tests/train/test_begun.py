"""Sentences that are cut off, with as much of their translation as the teacher would have said."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS
from dragoman.train import begun
from dragoman.train.begun import as_likely, first_words
from dragoman.train.data.corpus import Ragged
from dragoman.train.data.pack import Pack
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.distill import distill
from dragoman.train.recipe import Data, Units
from dragoman.train.trained import open_run
from tests.train.conftest import WORDS


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Forty sentences of four to eight of the teacher's words; it has learned from two to four."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    rows = [" ".join(random.choice(list(WORDS), size=random.integers(4, 9))) for _ in range(40)]
    (tmp_path / "text.tsv").write_text("".join(f"{row}\t?\n" for row in rows))
    return "text:text.tsv?columns=en,de"


@torch.no_grad()
def chances(run, source: str, said: str) -> list[float]:
    """Of the units of a translation, one at a time."""
    (read,), (units,) = run.source.encode([source]), run.target.encode([said])
    encoded = run.task.net.encode(torch.tensor([read]), torch.tensor([len(read)]))
    found: list[float] = []
    for count, unit in enumerate(units):
        logits = run.task.net.decode(torch.tensor([[BOS, *units[:count]]]), encoded)
        found.append(float(logits[0, -1].softmax(-1)[unit]))
    return found


def test_what_the_teacher_would_have_said_is_kept(teacher, text, tmp_path):
    """Of several batches each item has its own."""
    distill(teacher, text, tmp_path / "whole", beam=1)
    distill(teacher, text, tmp_path / "some", beam=1, cut=0.7, together=40)
    run = open_run(teacher)
    counts, kept = [], 0
    pairs = zip(Pack(tmp_path / "whole").items, Pack(tmp_path / "some").items, strict=True)
    for whole, item in pairs:
        source, said = item.text["en"], whole.text["de"]
        if source == whole.text["en"]:
            assert item.text == whole.text
            kept += 1
            continue
        assert whole.text["en"].startswith(f"{source} ")
        (units,) = run.target.encode([said])
        count = as_likely(chances(run, source, said), chances(run, whole.text["en"], said))
        assert item.text["de"] == first_words(run.target, units, count, "de")
        counts.append(len(item.text["de"].split()))
    assert len(counts) > 12
    assert len(set(counts)) > 2
    assert kept > 5


def test_what_becomes_unlikely_is_not_said():
    """What is unlikely anyway, since there are other words for it, is."""
    assert as_likely([0.9, 0.2, 0.6], [0.9, 0.3, 0.7]) == 3
    assert as_likely([0.9, 0.2, 0.9], [0.9, 0.8, 0.9]) == 1
    assert as_likely([0.1, 0.9], [0.9, 0.9]) == 0
    assert as_likely([], []) == 0


def test_what_cannot_be_said_yet_is_not_learned_as_nothing(teacher, text, tmp_path, monkeypatch):
    monkeypatch.setattr(begun, "AS_LIKELY", 1e9)
    distill(teacher, text, tmp_path / "whole", beam=1)
    distill(teacher, text, tmp_path / "some", beam=1, cut=1.0)
    whole, some = Pack(tmp_path / "whole"), Pack(tmp_path / "some")
    assert [item.text for item in whole.items] == [item.text for item in some.items]


def test_the_same_texts_are_cut_again(teacher, text, tmp_path):
    for name in ("once", "twice"):
        distill(teacher, text, tmp_path / name, beam=1, cut=0.5)
    once, twice = (
        [item.text for item in Pack(tmp_path / name).items] for name in ("once", "twice")
    )
    assert once == twice


def test_a_pack_that_was_not_cut_is_not_taken_for_one_that_was(teacher, text, tmp_path):
    distill(teacher, text, tmp_path / "made", beam=1)
    with pytest.raises(DragomanError, match="made"):
        distill(teacher, text, tmp_path / "made", beam=1, cut=0.5)


def test_sound_is_not_cut(teacher, sung, tmp_path):
    with pytest.raises(DragomanError, match=r"has sound.*leave --cut out"):
        distill(teacher, sung, tmp_path / "made", cut=0.5)


def test_a_beginning_keeps_the_tag_of_its_language(corpus):
    """A net with several targets is told in the first unit which one, also of what is cut off."""
    texts, (pieces, _) = corpus
    tags = [len(pieces) + place for place in range(len(texts))]
    tagged = copy(texts)
    tagged.source = Ragged.of([[tag, *texts.source[place]] for place, tag in enumerate(tags)])
    sources = [text.split()[0] for text in texts.texts("en")]
    units = pieces.encode(sources)
    for target, whole, expected in (
        ("de,es", tagged, [[tag, *row] for tag, row in zip(tags, units, strict=True)]),
        ("de", texts, units),
    ):
        recipe = SimpleNamespace(data=Data(("unused",), target=target))
        short = begun._cut_short(SimpleNamespace(source=pieces, recipe=recipe), whole, sources)
        assert [list(short.source[place]) for place in range(len(short))] == expected
        assert (short.samples == [1600 * len(row) for row in expected]).all()
        assert short.target is whole.target


def test_only_whole_words_are_kept(teacher):
    pieces = open_run(teacher).target
    (units,) = pieces.encode(["rot grün blau"])
    assert first_words(pieces, units, len(units), "de") == "rot grün blau"
    said = [first_words(pieces, units, count, "de") for count in range(len(units) + 1)]
    assert set(said) <= {"", "rot", "rot grün", "rot grün blau"}
    assert said == sorted(said, key=len)


def test_without_spaces_characters_are_kept(tmp_path):
    """A sentence that is one word would never be said before its end."""
    texts = ["猫は眠る。", "犬は走る。", "GPUは速い。"]
    train_pieces(texts, Units("char", 40), tmp_path / "units.model")
    pieces = Pieces(tmp_path / "units.model", Units("char", 40))
    (units,) = pieces.encode(texts[:1])
    said = [first_words(pieces, units, count, "ja") for count in range(len(units) + 1)]
    assert said[0] == ""
    assert said[-1] == texts[0]
    assert {"猫", "猫は", "猫は眠"} <= set(said)
    (units,) = pieces.encode(texts[2:])
    said = {first_words(pieces, units, count, "ja") for count in range(len(units) + 1)}
    assert {"GPU", "GPUは"} <= said
    assert "GP" not in said  # a word among characters stays whole

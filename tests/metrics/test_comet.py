"""COMET, against what its own tool says of the same nets; see tests/golden/comet/toy.py."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.metrics.comet import Comet, sparsemax, with_comet
from dragoman.metrics.instance import Instance
from dragoman.metrics.score import score_corpus
from tests.golden.comet.toy import EXPECTED, NETS, TRIPLES, make

SOURCES, SAID, REFERENCES = (list(texts) for texts in zip(*TRIPLES, strict=True))


@pytest.mark.parametrize("name", NETS)
def test_scores_are_those_of_the_tool(name: str, tmp_path: Path):
    comet = Comet(make(tmp_path / "net", name))
    wanted = json.loads(EXPECTED.read_text())[name]
    found = comet.scores(SOURCES, SAID, REFERENCES)
    np.testing.assert_allclose(found, 100 * np.array(wanted), atol=2e-3)


def test_company_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Texts are read in batches with padding; what a sentence scores does not hang on them."""
    net = make(tmp_path / "net", "normed")
    together = Comet(net).scores(SOURCES, SAID, REFERENCES)
    monkeypatch.setattr("dragoman.metrics.comet.BATCH", 1)
    alone = Comet(net).scores(SOURCES, SAID, REFERENCES)
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_progress_is_told_and_nothing_is_read_twice(tmp_path: Path):
    comet, told = Comet(make(tmp_path / "net", "usual")), []
    comet.scores(SOURCES, SAID, REFERENCES, lambda *counts: told.append(counts))
    texts = len({*SOURCES, *SAID, *REFERENCES})
    assert told[-1] == (texts, texts)
    told.clear()
    comet.scores(SOURCES, ["something else"] * 5, REFERENCES, lambda *counts: told.append(counts))
    assert told == [(1, 1)]


def test_sparsemax_is_the_nearest_share():
    """By brute force: no point of a fine grid of shares lies nearer."""
    import torch

    grid = [(a, b, 100 - a - b) for a in range(101) for b in range(101 - a)]
    points = torch.tensor(grid, dtype=torch.float64) / 100
    for x in ([0.2, 0.1, 0.3], [2.0, 0.5, -1.0], [0.9, 0.8, -3.0], [1.0, 1.0, 1.0]):
        wanted = torch.tensor(x, dtype=torch.float64)
        found = sparsemax(wanted)
        assert found.sum() == pytest.approx(1.0)
        nearest = points[((points - wanted) ** 2).sum(dim=1).argmin()]
        assert torch.allclose(found, nearest, atol=0.011)


def sentences() -> list[Instance]:
    return [
        Instance(
            index=number, prediction=said, reference=reference, delays=(), source_length=1000.0
        )
        for number, (said, reference) in enumerate(zip(SAID, REFERENCES, strict=True))
    ]


def test_a_report_gets_the_mean(tmp_path: Path):
    comet = Comet(make(tmp_path / "net", "usual"))
    report = with_comet(score_corpus(sentences(), metrics=["BLEU"]), comet, SOURCES, "|align:soft")
    score = report.scores["COMET"]
    each = comet.scores(SOURCES, SAID, REFERENCES)
    assert score.value == pytest.approx(each.mean())
    assert score.sentences == pytest.approx(each)
    assert score.signature.startswith("COMET|model:net|weights:")
    assert score.signature.endswith("|align:soft")
    assert list(report.scores) == ["COMET", "BLEU"]


def test_sentences_without_reference_are_left_out(tmp_path: Path):
    comet = Comet(make(tmp_path / "net", "usual"))
    some = sentences()
    some[1] = replace(some[1], reference=None)
    score = with_comet(score_corpus(some, metrics=["BLEU"]), comet, SOURCES).scores["COMET"]
    each = comet.scores(SOURCES, SAID, REFERENCES)
    assert np.isnan(score.sentences[1])
    assert score.value == pytest.approx(np.delete(each, 1).mean())


def test_every_sentence_needs_what_was_spoken(tmp_path: Path):
    comet = Comet(make(tmp_path / "net", "usual"))
    with pytest.raises(DragomanError, match="there are 2 lines of it for 5 sentences"):
        with_comet(score_corpus(sentences(), metrics=["BLEU"]), comet, SOURCES[:2])


def test_another_kind_of_net_is_refused(tmp_path: Path):
    folder = make(tmp_path / "net", "usual")
    settings = folder / "hparams.yaml"
    kiwi = settings.read_text().replace("regression_metric", "unified_metric")
    settings.write_text(kiwi)
    with pytest.raises(DragomanError, match=r"another kind \(class_identifier unified_metric\)"):
        Comet(folder)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("hparams.yaml", "holds no net of COMET's"),
        ("checkpoints/model.ckpt", "Cannot read the weights"),
        ("sentencepiece.bpe.model", "XLM-RoBERTa's sentencepiece.bpe.model belongs there"),
    ],
)
def test_what_is_missing_is_named(file: str, sentence: str, tmp_path: Path):
    folder = make(tmp_path / "net", "usual")
    (folder / file).unlink()
    with pytest.raises(DragomanError, match=sentence):
        Comet(folder)


@pytest.mark.parametrize(
    "file", ["hparams.yaml", "checkpoints/model.ckpt", "sentencepiece.bpe.model"]
)
def test_what_is_damaged_is_named(file: str, tmp_path: Path):
    folder = make(tmp_path / "net", "usual")
    (folder / file).write_bytes(b"{[no" * 9)
    with pytest.raises(DragomanError, match=r"is (damaged|not YAML)"):
        Comet(folder)

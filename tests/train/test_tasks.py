"""Every task learns the same little corpus with its net; masks and switches do what they say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.models.exported import pieces as runtime_pieces
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.losses.waitk import target_words
from dragoman.train.make import words_of
from dragoman.train.recipe import Augment, Data, Units
from dragoman.train.tasks.base import Words
from dragoman.train.tasks.registry import TASKS, build_task
from tests.train.toy_tasks import ENCODER, NETS, make, one_batch


@pytest.mark.parametrize("name", NETS)
def test_every_task_learns_eight_sentences(name, corpus):
    data, _ = corpus
    task, batch = make(name, corpus).train(), one_batch(data)
    optimiser = torch.optim.Adam(task.parameters(), lr=5e-3)
    first = None
    for step in range(1, 61):
        task.at_step(step)
        torch.manual_seed(step)
        terms = task(batch)
        loss = terms.total / batch.units
        first = first or loss.item()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(task.parameters(), 5.0)
        optimiser.step()
        optimiser.zero_grad()
        right, units = terms.shown["accuracy"]
        if loss.item() < 0.5 * first and float(right) / float(units) > 0.8:
            break
    assert loss.item() < 0.5 * first
    assert float(right) / float(units) > 0.8


def test_the_table_is_whole():
    assert set(NETS) == set(TASKS)


def test_sound_is_augmented_while_training_only(corpus):
    task, batch = make("offline", corpus), one_batch(corpus[0])
    task.front = FrontEnd(80, Augment(spec="LD", effects=1.0), seed=0)
    plain, _ = FrontEnd(80, Augment(spec="none"), seed=0)(batch)
    assert torch.equal(task.eval().features(batch)[0], plain)
    heard, _ = task.train().features(batch)
    assert (heard == 10.0).any()  # masks show the mean that the net was given
    assert not torch.equal(heard, plain)


def test_frozen_parts_stay_as_they_are(corpus):
    data, _ = corpus
    task, batch = make("offline", corpus), one_batch(data)
    task.freeze_parts(("layers", "subsampling"))
    task.train()
    assert not task.net.layers.training
    assert task.net.decoder.training
    task(batch).total.backward()
    for name, parameter in task.net.named_parameters():
        frozen = name.startswith(("layers.", "subsampling."))
        assert parameter.requires_grad is not frozen, name
        assert (parameter.grad is None) or not frozen, name


def test_wait_k_hides_the_future(corpus):
    """Changing sound that a unit may not yet see does not change its logits, with k words read."""
    data, _ = corpus
    task, batch = make("wait-k", corpus, k=1).eval(), one_batch(data)
    with torch.no_grad():
        encoded = task.net.encode(*task.features(batch))
    seen = task.seen(batch, encoded)
    ends = torch.where(batch.word_ends < 0, 10**6, batch.word_ends)
    heard = torch.minimum((ends[:, :1] + 39) // 40, encoded.lengths.unsqueeze(1))
    assert torch.equal(seen[:, :1], heard)  # the first unit sees the first word, no more
    assert (seen.diff(dim=1) >= 0).all()
    assert (seen[:, -1] == encoded.lengths).all()


def test_latency_is_switched_on_at_its_step(corpus):
    data, _ = corpus
    task = make("mma", corpus, latency={"average": 1.0, "after": 10}).eval()
    batch = one_batch(data)
    task.at_step(9)
    assert task(batch).losses["latency"].item() == 0
    task.at_step(10)
    assert task(batch).losses["latency"].item() > 0


def test_oracle_decisions_lie_at_word_ends(corpus):
    data, _ = corpus
    task, batch = make("mma", corpus, decisions="oracle").eval(), one_batch(data)
    encoded = task.net.encode(*task.features(batch))
    decisions = task.decisions(batch, encoded)
    words = (batch.word_ends >= 0).sum(1)
    assert ((decisions.counts - words).abs() <= 1).all()  # the end may be one more


def test_a_monotonic_net_learns_where_words_end_and_decides_there(corpus):
    data, _ = corpus
    learned = {"decisions": "learned", "encoder_settings": ENCODER | {"boundaries": True}}
    task = make("mma", corpus, learned, decisions="oracle", boundaries=1.0)
    batch, optimiser = one_batch(data), torch.optim.Adam(task.parameters(), 0.003)
    for _ in range(60):
        terms = task(batch)
        optimiser.zero_grad()
        (terms.total / batch.units).backward()
        optimiser.step()
    encoded = task.eval().encode(batch)
    true, fired = task.decisions(batch, encoded), task.net.decisions(encoded)
    right = [
        len(set(a[:n].tolist()) & set(b[:m].tolist())) / n
        for a, n, b, m in zip(true.ends, true.counts, fired.ends, fired.counts, strict=True)
    ]
    assert sum(right) / len(right) > 0.8


def test_distillation_waits_for_its_step(corpus):
    data, _ = corpus
    task = make("joint", corpus, weights={"kd_after": 5}).eval()
    batch = one_batch(data)
    task.at_step(4)
    assert "kd" not in task(batch).losses
    task.at_step(5)
    assert {"st", "kd", "mt", "car", "dar"} <= task(batch).losses.keys()


@pytest.mark.parametrize(
    ("task", "net", "sentence"),
    [("mma", "offline", "cannot be trained"), ("mt", "offline", "cannot be trained")],
)
def test_a_net_that_cannot_do_the_task_is_refused(task, net, sentence, corpus):
    with pytest.raises(DragomanError, match=sentence):
        build_task(task, {}, make(net, corpus).net, FrontEnd(80, Augment(), 0))


def test_wait_k_needs_word_ends(corpus):
    net = make("offline", corpus).net
    front = FrontEnd(80, Augment(), 0)
    with pytest.raises(DragomanError, match=r"vocabulary\.target\.suffix"):
        build_task("wait-k", {}, net, front, Words())
    with pytest.raises(DragomanError, match="no task 'offlin'"):
        build_task("offlin", {}, net, front)


@pytest.mark.parametrize("suffix", [True, False])
def test_without_spaces_wait_k_waits_for_each_unit_as_at_work(tmp_path, suffix):
    """Were the sentence one word, all of it would be learned from its first k words of speech."""
    texts = ["猫は眠る。", "犬は走る。", "鳥は歌う。"]
    units = Units("char", 40, suffix=suffix)
    train_pieces(texts, units, tmp_path / "target.model")
    pieces = Pieces(tmp_path / "target.model", units)
    data = Data(("pack",), source="zh", target="ja")
    prepared = SimpleNamespace(source=pieces, target=pieces, train=SimpleNamespace(data=data))
    words = words_of(prepared)
    (ids,) = pieces.encode(texts[:1])
    runtime = runtime_pieces.Pieces.load(
        tmp_path / "target.model", len(pieces), suffix=suffix, spaced=False
    )
    at_work = np.searchsorted(runtime.words(ids, ended=True).ends, np.arange(1, len(ids) + 1))
    in_training = target_words(torch.tensor([ids]), words.target)[0].tolist()
    assert in_training == at_work.tolist()
    assert in_training[-1] >= 4
    assert sum(words.source[ids]) == runtime.count(ids)
    assert not words.source[-1]  # the blank


COMPRESSED = ENCODER | {"ctc_compression": True}


@pytest.mark.parametrize(
    ("name", "net", "settings"),
    [
        ("wait-k", {"ctc_compression": True}, {}),
        ("offline", {"ctc_compression": True, "boundaries": True}, {}),
        ("mma", {"encoder_settings": COMPRESSED}, {"decisions": "oracle"}),
        ("mma", {"encoder_settings": COMPRESSED | {"boundaries": True}}, {}),
    ],
)
def test_merged_states_have_no_times(name, net, settings, corpus):
    """Of a hundred states 67 were left, and an end at the 58th was marked at the 58th of them."""
    with pytest.raises(DragomanError, match="set ctc_compression to false"):
        make(name, corpus, net, **settings)
    uncompressed = {key: value for key, value in net.items() if key == "boundaries"}
    make(name, corpus, uncompressed, **settings)


def test_states_may_be_merged_where_nobody_asks_for_times(corpus):
    make("offline", corpus, {"ctc_compression": True})
    make("mma", corpus, {"encoder_settings": COMPRESSED})


def test_a_stage_ends_where_other_losses_begin_to_count(corpus):
    mma = make("mma", corpus, latency={"average": 1.0, "after": 10})
    assert mma.stage(1) == mma.stage(9) != mma.stage(10) == mma.stage(99)
    silent = make("mma", corpus, latency={"after": 10})
    assert silent.stage(9) == silent.stage(10)
    joint = make("joint", corpus, weights={"kd_after": 5}, latency={"variance": 1.0, "after": 8})
    assert [joint.stage(step) == joint.stage(step - 1) for step in (4, 5, 6, 8)] == [
        *(True, False, True, False)
    ]
    taught = make("joint", corpus, weights={"kd": 0.0, "kd_after": 5})
    assert taught.stage(4) == taught.stage(5)
    assert make("offline", corpus).stage(1) == make("offline", corpus).stage(10**6)


def test_a_word_may_be_noticed_with_the_next_one(corpus):
    """Equation 3 of paper 000 triggers at the first state that belongs to another word."""
    batch = one_batch(corpus[0])
    oracle = {"decisions": "oracle"}
    for name, settings in (("mma", oracle), ("wait-k", {"words": "oracle", "k": 1})):
        found = []
        for trigger in ("end", "next"):
            task = make(name, corpus, **settings, trigger=trigger).eval()
            encoded = task.encode(batch)
            if name == "mma":
                decisions = task.decisions(batch, encoded)
                found.append((decisions.ends, decisions.counts))
            else:
                found.append((task.seen(batch, encoded)[:, :1], torch.ones(len(batch.items))))
        for item, length in enumerate(encoded.lengths.tolist()):
            first, later = (ends[item, : int(n[item])].tolist() for ends, n in found)
            inner = [end for end in first if end < length]
            assert inner
            moved = [end + 1 for end in inner if end + 1 < length]
            assert [end for end in later if end < length] == moved

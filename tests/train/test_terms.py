"""What tasks make of their nets' output: every term with its weight, every mask as it is told."""

import math

import pytest
import torch

from dragoman.models.exported.net import BOS, PAD
from dragoman.train.data.front import FrontEnd
from dragoman.train.losses.attentive import cross_attentive, decision_attentive
from dragoman.train.losses.latency import differentiable_average_lagging, fold_heads
from dragoman.train.losses.transducer import arc_scores, transducer
from dragoman.train.nets.base import Encoded, Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Augment
from dragoman.train.tasks.base import Words
from dragoman.train.tasks.registry import build_task
from tests.train.toy_tasks import make, one_batch


@pytest.fixture
def batch(corpus):
    return one_batch(corpus[0])


def likelihood(logits, labels, share=None):
    """-sum over real units of sum_v share(v) log p(v); by default all on the label."""
    log_p = logits.log_softmax(-1)
    if share is None:
        share = torch.nn.functional.one_hot(labels, log_p.shape[-1]).float()
    return -(share * log_p).sum(-1)[labels != PAD].sum()


def smoothed(logits, labels, share=0.1):
    return (1 - share) * likelihood(logits, labels) + share * likelihood(
        logits, labels, torch.full_like(logits, 1 / logits.shape[-1])
    )


def same(terms, expected):
    assert terms.losses.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(terms.losses[name], value, atol=1e-3, rtol=1e-4, msg=name)
    torch.testing.assert_close(terms.total, sum(expected.values()), atol=1e-3, rtol=1e-4)


@torch.no_grad()
def test_joint_training_is_equation_13(corpus, batch):
    """(1 - a) ST + a KD + b CAR + c MT + d DAR + l DAL, the last of speech and of text."""
    weights = {"kd": 0.3, "car": 0.05, "mt": 0.7, "dar": 0.2, "kd_after": 3}
    latency = {"average": 0.4, "metric": "dal", "after": 3}
    task = make("joint", corpus, weights=weights, latency=latency).eval()
    net, labels, units = task.net, batch.labels, batch.target_lengths
    speech, text = task.encode(batch), net.encode_text(batch.source, batch.source_lengths)
    st = net.align(batch.tokens, speech, energies=True)
    mt = net.align_text(batch.tokens, text, energies=True)
    counts = -(-speech.lengths // 3), text.lengths  # of decisions: three states each, every unit
    car = cross_attentive(speech.states, speech.lengths, text.states, text.lengths)
    dar = decision_attentive(st.energies, mt.energies, *counts, units)
    dal = [
        differentiable_average_lagging(fold_heads(side.delays), source.lengths, units).clamp(min=0)
        for side, source in ((st, speech), (mt, text))
    ]
    taught = likelihood(st.logits, labels, mt.logits.softmax(-1))
    expected = {
        "st": 0.7 * likelihood(st.logits, labels),  # beside a teacher, without smoothing
        "kd": 0.3 * taught,
        "mt": 0.7 * smoothed(mt.logits, labels),
        "car": 0.05 * car,
        "dar": 0.2 * dar,
        "latency": 0.4 * dal[0].sum(),
        "text latency": 0.4 * dal[1].sum(),
    }
    task.at_step(3)
    same(task(batch), expected)
    task.at_step(2)  # neither distillation nor latency yet
    early = expected | {"st": smoothed(st.logits, labels)}
    early |= {"latency": torch.zeros(()), "text latency": torch.zeros(())}
    same(task(batch), {name: early[name] for name in early if name != "kd"})


def test_text_alone_teaches_translation_and_its_latency(corpus, batch):
    task = make("joint", corpus, weights={"mt": 0.7}, latency={"average": 0.4}).eval()
    net, units = task.net, batch.target_lengths
    text = net.encode_text(batch.source, batch.source_lengths)
    mt = net.align_text(batch.tokens, text)
    delays = differentiable_average_lagging(fold_heads(mt.delays), text.lengths, units)
    expected = {
        "mt": 0.7 * smoothed(mt.logits, batch.labels),
        "text latency": 0.4 * delays.clamp(min=0).sum(),
    }
    batch.sound = batch.sound[:, :0]
    terms = task(batch)
    same(terms, expected)
    terms.total.backward()
    assert all(not p.grad.any() for p in net.speech_layers.parameters())  # zeros, for all to have
    assert any(p.grad.any() for p in net.shared_layers.parameters())


@torch.no_grad()
def test_text_may_be_left_out_of_latency(corpus, batch):
    task = make("joint", corpus, latency={"average": 0.4}, text_latency=False).eval()
    assert "text latency" not in task(batch).losses


@torch.no_grad()
def test_caat_weighs_likelihood_latency_and_cross_entropy(corpus, batch):
    task = make("caat", corpus, latency=0.3, ce=0.6).eval()
    net, labels, encoded = task.net, batch.labels, task.encode(batch)
    path = torch.cat([torch.full((len(labels), 1), BOS), labels], 1)
    lattice = net.lattice(path, encoded)
    arcs = arc_scores(lattice.hidden, net.output, labels, blank=BOS)
    log_p, lag = transducer(*arcs, -(-encoded.lengths // 8), batch.target_lengths)
    whole = net.decode(batch.tokens, encoded)
    expected = {
        "ce": 0.6 * smoothed(whole, labels),
        "transducer": -log_p.sum(),
        "latency": 0.3 * lag.sum(),
    }
    same(task(batch), expected)


@torch.no_grad()
def test_offline_weighs_translation_ctc_and_word_ends(corpus, batch):
    head = {"boundaries": True}
    task = make("offline", corpus, head, ce=0.5, ctc=0.3, boundaries=0.2).eval()
    batch.word_ends[0] = -1  # of the first item nobody knows them
    encoded = task.encode(batch)
    logits = task.net.decode(batch.tokens, encoded)
    ctc = torch.nn.functional.ctc_loss(
        encoded.ctc_logits.log_softmax(-1).transpose(0, 1),
        batch.source,
        encoded.ctc_lengths,
        batch.source_lengths,
        blank=task.net.vocabularies.source,
        reduction="sum",
        zero_infinity=True,
    )
    ends = 0.0
    for item in range(1, len(batch.labels)):
        states = {math.ceil(ms / 40) - 1 for ms in batch.word_ends[item].tolist() if ms >= 0}
        last = int(encoded.lengths[item]) - 1
        for state in range(last + 1):
            score = encoded.boundary_logits[item, state]
            is_end = any(min(one, last) == state for one in states)
            ends += 6 * math.log1p(math.exp(-score)) if is_end else math.log1p(math.exp(score))
    expected = {
        "ce": 0.5 * smoothed(logits, batch.labels),
        "ctc": 0.3 * ctc,
        "boundaries": torch.tensor(0.2 * ends),
    }
    same(task(batch), expected)
    assert make("offline", corpus, head, ce=0.0, ctc=0.0)(batch).losses.keys() == {"boundaries"}


def words_of(labels, ends_word):
    """Which word each unit belongs to, unit after unit."""
    word, found = 0, []
    for label in labels:
        found.append(word)
        word += bool(ends_word[label])
    return found


def ends_by_ctc(labels, blank, ends_word):
    """States heard when each word ends."""
    found, before = [], blank
    for state, label in enumerate(labels):
        if label not in (before, blank) and ends_word[label]:
            found.append(state + 1)
        before = label
    return found


@torch.no_grad()
@pytest.mark.parametrize("words", ["fixed", "ctc", "oracle"])
@pytest.mark.parametrize("per", ["word", "unit"])
def test_wait_k_sees_k_words_more_than_it_has_said(corpus, batch, words, per):
    k, ratio = 2, 5
    task = make("wait-k", corpus, words=words, per=per, k=k, ratio=ratio).eval()
    encoded = task.encode(batch)
    if words == "ctc":  # an untrained head hears nothing; this one hears words
        generator = torch.Generator().manual_seed(0)
        scores = torch.rand(encoded.ctc_logits.shape, generator=generator)
        end = int(task.source_word_ends.nonzero()[0])
        scores[..., [end, task.net.blank]] += 0.6
        encoded.ctc_logits = scores
    seen = task.seen(batch, encoded).tolist()
    for item, length in enumerate(encoded.lengths.tolist()):
        labels = batch.labels[item].tolist()
        said = words_of(labels, task.target_word_ends) if per == "word" else range(len(labels))
        if words == "fixed":
            ends = range(ratio, 10**4, ratio)
        elif words == "ctc":
            heard = encoded.ctc_logits[item, :length].argmax(-1).tolist()
            ends = ends_by_ctc(heard, task.net.blank, task.source_word_ends)
            assert len(ends) > k
        else:
            ends = [math.ceil(ms / 40) for ms in batch.word_ends[item].tolist() if ms >= 0]
        expected = [min(ends[k + v - 1], length) if k + v <= len(ends) else length for v in said]
        assert seen[item] == expected


VGG = {"channels": 2, "size": 16, "encoder_layers": 1, "attention": 8, "ctc": True}
EARS = {"heads": 4, "encoder_layers": 1, "decoder_layers": 1, "ffn": 32}
MOONSHINE = {"size": 32, "turning": 4, "ctc": True, **EARS}
GRAFTED = {
    **{"size": 32, "ctc_layer": 1, "ears_size": 32, "ears_layers": 1, "ears_heads": 4},
    **{"ears_ffn": 32, "ears_turning": 4, **EARS},
}


@torch.no_grad()
@pytest.mark.parametrize(
    ("net", "settings", "ms"),
    [("moonshine", MOONSHINE, 24), ("grafted", GRAFTED, 96), ("vgg-blstm", VGG, 40)],
)
def test_words_end_in_states_as_long_as_the_net_makes_them(corpus, batch, net, settings, ms):
    data, (source, target) = corpus
    made = build(net, settings, Vocabularies(len(target), len(source)))
    features = 0 if made.hears_sound else 80
    front = FrontEnd(features, Augment(spec="none"), seed=0)
    words = Words(torch.tensor(source.word_ends(1)), torch.tensor(target.word_ends()))
    oracle = {"words": "oracle", "k": 1}
    task = build_task("wait-k", oracle, made, front, words).eval()
    encoded = task.encode(batch)
    seconds = data.samples / 16_000
    longest = int(encoded.lengths.max()) * ms / 1000
    assert longest == pytest.approx(seconds.max(), abs=0.1)
    first = [math.ceil(ends[0] / ms) for ends in batch.word_ends.tolist()]
    assert task.seen(batch, encoded)[:, 0].tolist() == first
    by_ctc = build_task("wait-k", oracle | {"words": "ctc"}, made, front, words).eval()
    assert (by_ctc.seen(batch, encoded) <= encoded.lengths.unsqueeze(1)).all()


@torch.no_grad()
def test_wait_k_is_trained_under_its_mask(corpus, batch):
    """The loss is that of a decoder each of whose units has only the states it may see."""
    task = make("wait-k", corpus, k=1, words="oracle", ctc=0.0, label_smoothing=0.0).eval()
    encoded = task.encode(batch)
    seen, expected = task.seen(batch, encoded), 0.0
    for item, units in enumerate(batch.target_lengths.tolist()):
        for unit in range(units):
            heard = int(seen[item, unit])
            part = Encoded(encoded.states[item : item + 1, :heard], torch.tensor([heard]))
            logits = task.net.decode(batch.tokens[item : item + 1, : unit + 1], part)[0, -1]
            expected -= logits.log_softmax(-1)[batch.labels[item, unit]]
    same(task(batch), {"ce": expected})
    assert (seen[:, 0] < encoded.lengths).all()


def test_no_k_beyond_the_longest_source(corpus, batch):
    """Multi-path training draws k from 1 to the words of the source, at most k_max."""
    task = make("wait-k", corpus, k=0, k_max=50, words="oracle").train()
    encoded, counts = task.encode(batch), (batch.word_ends >= 0).sum(1)
    item, words = int(counts.argmax()), int(counts.max())
    ends = (batch.word_ends[item, :words] / 40).ceil().tolist()
    torch.manual_seed(0)
    first_seen = {int(task.seen(batch, encoded)[item, 0]) for _ in range(60)}
    assert first_seen == {min(int(end), int(encoded.lengths[item])) for end in ends}
    assert {task.k(3.2) for _ in range(80)} == {1, 2, 3, 4}
    assert max(task.k(1000) for _ in range(300)) == 50
    assert {task.eval().k(3) for _ in range(5)} == {25}

"""Joint speech-text MMA: what is shared, who teaches whom, and that it learns with every loss."""

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train.losses.attentive import cross_attentive, decision_attentive
from dragoman.train.losses.latency import LatencyLoss
from dragoman.train.losses.multitask import JointWeights
from dragoman.train.losses.tokens import cross_entropy, distillation
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.joint import JointConfig, JointMma
from tests.train.nets.tiny_nets import VOCABULARIES, sentences

SIZES = {
    "features": 8,
    "conv_channels": 16,
    "size": 32,
    "speech_layers": 2,
    "text_layers": 1,
    "decoder_layers": 1,
    "heads": 4,
    "ffn": 64,
    "ratio": 2,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}


@pytest.fixture
def net():
    torch.manual_seed(0)
    return JointMma(JointConfig(**SIZES), VOCABULARIES)


def corpus(items):
    torch.manual_seed(1)
    features, frames = torch.randn(items, 40, 8), torch.full((items,), 40)
    units, lengths = torch.randint(4, 11, (items, 6)), torch.full((items,), 6)
    return features, frames, units, lengths


def test_the_papers_sizes():
    with torch.device("meta"):
        net = JointMma(JointConfig(), Vocabularies(10_000, 10_000))
    assert (len(net.speech_layers), len(net.shared_layers)) == (6, 6)
    assert len(net.decoder.layers) == 6
    with pytest.raises(DragomanError, match="at least as many"):
        JointConfig(speech_layers=4, text_layers=6)


def test_both_encoders_pass_through_the_shared_layers(net):
    features, frames, units, lengths = corpus(2)
    for states in (
        net.encode(features, frames).states,
        net.encode_text(units, lengths).states,
    ):
        net.zero_grad()
        states.sum().backward()
        assert all(p.grad is not None for p in net.shared_layers.parameters())
    assert all(p.grad is None or not p.grad.any() for p in net.speech_layers.parameters())


def test_text_is_a_reference_only(net):
    """CAR and DAR pull the speech side alone."""
    features, frames, units, lengths = corpus(2)
    tokens, _ = sentences(2, 5)
    speech, text = net.encode(features, frames), net.encode_text(units, lengths)
    st = net.align(tokens, speech, energies=True)
    mt = net.align_text(tokens, text, energies=True)
    car = cross_attentive(speech.states, speech.lengths, text.states, text.lengths)
    dar = decision_attentive(st.energies, mt.energies, st.counts, mt.counts, torch.full((2,), 5))
    (car + dar).backward()
    assert net.embedding.weight.grad is None
    assert net.subsampling.first.weight.grad.abs().sum() > 0


def test_text_decides_at_every_unit(net):
    _, _, units, lengths = corpus(2)
    tokens, _ = sentences(2, 5)
    aligned = net.align_text(tokens, net.encode_text(units, lengths), energies=True)
    assert aligned.energies[0].shape == (2, 4, 5, 6)


def test_learns_eight_sentences_with_all_its_losses(net):
    features, frames, units, lengths = corpus(8)
    tokens, said = sentences(8, 5)
    spoken = torch.full((8,), 5)
    weights, latency = JointWeights(), LatencyLoss(average=0.05, after=40)
    optimiser = torch.optim.Adam(net.parameters(), lr=8e-3)
    history = []
    for step in range(90):
        speech, text = net.encode(features, frames), net.encode_text(units, lengths)
        st = net.align(tokens, speech, energies=True)
        mt = net.align_text(tokens, text, energies=True)
        terms = {
            "st": cross_entropy(st.logits, said),
            "mt": cross_entropy(mt.logits, said),
            "kd": distillation(st.logits, mt.logits, said),
            "car": cross_attentive(speech.states, speech.lengths, text.states, text.lengths),
            "dar": decision_attentive(st.energies, mt.energies, st.counts, mt.counts, spoken),
        }
        weight = weights.at(step)
        total = sum(weight[name] * term for name, term in terms.items())
        total = total + latency(st.delays, speech.lengths, spoken, step)
        optimiser.zero_grad()
        (total / said.numel()).backward()
        optimiser.step()
        history.append(st.delays.mean().item())
    net.eval()
    assert (net.decode(tokens, net.encode(features, frames)).argmax(-1) == said).all()
    aligned = net.align_text(tokens, net.encode_text(units, lengths))
    assert (aligned.logits.argmax(-1) == said).all()
    assert history[-1] < history[40]  # latency fell once it counted

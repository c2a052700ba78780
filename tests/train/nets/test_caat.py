"""CAAT: chunk by chunk equals all at once, groups see what they should, and it learns."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.exported.caat_search import (
    Beam,
    Hypothesis,
    common_prefix,
    scored,
    search_group,
)
from dragoman.models.exported.net import BOS, EOS
from dragoman.train.losses.tokens import cross_entropy
from dragoman.train.losses.transducer import arc_scores, transducer
from dragoman.train.nets.block_encoder import BlockEncoder
from dragoman.train.nets.blocks import Context
from dragoman.train.nets.caat import BLANK
from dragoman.train.nets.layers import LayerConfig
from tests.train.nets.tiny_nets import sentences, tiny


@pytest.fixture
def net():
    return tiny("caat")


def heard_by_chunks(net, features, lengths):
    """All states of recordings [B, T, F], listened to chunk by chunk."""
    context, stream, states = net.context, net.begin_stream(len(features)), []
    window = 4 * (context.chunk + context.right) + 3
    for start in range(0, features.shape[1], 4 * context.chunk):
        piece = features[:, start : start + window]
        piece = F.pad(piece, (0, 0, 0, window - piece.shape[1]))
        encoded, stream = net.hear(piece, (lengths - start).clamp(0, window), stream)
        states.append(encoded.states)
    return torch.cat(states, 1)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 90), st.integers(1, 6), st.integers(0, 7), st.integers(0, 9), st.integers(1, 5)
)
def test_chunk_by_chunk_equals_all_at_once(frames, chunk, right, left, reach):
    torch.manual_seed(0)
    config = LayerConfig(16, 2, 32, 0.0, 0.0, 0.0)
    encoder = BlockEncoder(5, 3, 2, config, Context(chunk, right, left), reach).eval()
    features, lengths = torch.randn(2, frames, 5), torch.tensor([frames, (frames + 1) // 2])
    whole = encoder(features, lengths)
    states = heard_by_chunks(encoder, features, lengths)
    for i, count in enumerate(whole.lengths.tolist()):
        torch.testing.assert_close(states[i, :count], whole.states[i, :count], atol=1e-5, rtol=1e-4)


def test_the_future_does_not_change_the_past(net):
    net.eval()
    features = torch.randn(1, 83, 8)
    before = net.encode(features, torch.tensor([83])).states  # chunks of 3, glimpse 2
    features[:, 4 * 8 + 3 :] += 1.0  # from the first frame that state 8 is the first to hear
    after = net.encode(features, torch.tensor([83])).states
    torch.testing.assert_close(before[:, :6], after[:, :6])  # chunks 0, 1 see states 0 to 7
    assert not torch.allclose(before[:, 6:9], after[:, 6:9])


def test_a_group_sees_its_states_and_those_before(net):
    net.eval()
    encoded = net.encode(torch.randn(2, 50, 8), torch.tensor([50, 31]))
    tokens, said = sentences(2, 5)
    tokens = torch.cat([tokens, said[:, -1:]], 1)
    lattice = net.lattice(tokens, encoded)
    assert encoded.lengths.tolist() == [13, 8]
    assert lattice.groups.tolist() == [5, 3]
    memory = net.memory(encoded.states)
    for g in range(5):
        seen = torch.tensor([min(3 * (g + 1), n) for n in (13, 8)])
        step = net.step(tokens, memory, seen, net.begin(2))
        torch.testing.assert_close(
            net.output(lattice.hidden[:, g]), step.logits, atol=1e-5, rtol=1e-4
        )
    whole = net.decode(tokens, encoded)
    torch.testing.assert_close(net.output(lattice.whole), whole, atol=1e-5, rtol=1e-4)


def test_learns_eight_sentences_and_when_to_say_them(net):
    features, lengths = torch.randn(8, 40, 8), torch.full((8,), 40)
    tokens, said = sentences(8, 5)
    path, units = torch.cat([tokens, said[:, -1:]], 1), torch.full((8,), 5)
    optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)
    costs = []
    for _ in range(100):
        encoded = net.encode(features, lengths)
        lattice = net.lattice(path, encoded)
        blank, label = arc_scores(lattice.hidden, net.output, said, BLANK)
        log_p, cost = transducer(blank, label, lattice.groups, units)
        ce = cross_entropy(net.output(lattice.whole[:, :-1]), said)
        optimiser.zero_grad()
        ((cost - log_p).sum() + ce).div(said.numel()).backward()
        optimiser.step()
        costs.append(cost.mean().item())
    assert log_p.mean().exp() > 0.8
    assert costs[-1] < costs[0] / 2  # it learnt to speak early, too
    net.eval()
    assert (net.decode(tokens, net.encode(features, lengths)).argmax(-1) == said).all()
    for i in range(3):
        assert translate(net, features[i : i + 1]) == said[i].tolist()[:-1]


def translate(net, features):
    """What the search writes, group after group, of one recording [1, T, F]."""
    encoded = net.encode(features, torch.tensor([features.shape[1]]))
    memory, total, step = net.memory(encoded.states), int(encoded.lengths), net.config.decision
    survivors = [Hypothesis((BOS,), 0.0, (), net.begin(1))]
    for seen in range(step, total + step, step):

        def score(hypotheses, seen=seen):
            steps = [
                net.step(torch.tensor([[h.tokens[-1]]]), memory, torch.tensor([seen]), h.state)
                for h in hypotheses
            ]
            rows = [one.logits[0, -1].log_softmax(-1).detach().numpy() for one in steps]
            return np.array(rows), [one.cache for one in steps]

        final = seen >= total
        beam = Beam(max_tokens=8)
        search = search_group(survivors, blank=BLANK, end=EOS, final=final, beam=beam)
        survivors = scored(search, score)
    assert survivors[0].ended
    return list(common_prefix(survivors)[1:])

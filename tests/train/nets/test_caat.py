"""CAAT: block by block equals all at once, groups see what they should, and it learns."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_nets import VOCABULARIES, sentences

from dragoman.train.losses.tokens import cross_entropy
from dragoman.train.losses.transducer import arc_scores, transducer
from dragoman.train.nets.block_encoder import BlockEncoder, Blocks
from dragoman.train.nets.caat import BLANK, Caat, CaatConfig
from dragoman.train.nets.layers import LayerConfig

SIZES = {
    "features": 8,
    "conv_channels": 4,
    "size": 32,
    "encoder_layers": 2,
    "predictor_layers": 1,
    "joiner_layers": 2,
    "heads": 2,
    "encoder_ffn": 64,
    "decoder_ffn": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "main": 3,
    "right": 2,
    "reach": 4,
    "decision": 3,
}


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Caat(CaatConfig(**SIZES), VOCABULARIES)


def heard_by_blocks(encoder, features):
    """All states of one recording [1, T, F], listened to block by block."""
    total = (features.shape[1] - 3) // 4
    main, right = encoder.blocks.main, encoder.blocks.right
    keys, values = encoder.begin(1)
    states, at = [], 0
    while at < total:
        count, new = min(main, total - at), min(main + right, total - at)
        frames = features[:, 4 * at : 4 * (at + new) + 3]
        block, all_keys, all_values = encoder.hear(frames, keys, values)
        past = keys.shape[3]
        keys = encoder.keep(all_keys, past, count)
        values = encoder.keep(all_values, past, count)
        states.append(block[:, :count])
        at += count
    return torch.cat(states, 1), keys


@settings(max_examples=25, deadline=None)
@given(
    st.integers(7, 90), st.integers(1, 6), st.integers(0, 7), st.integers(0, 9), st.integers(1, 5)
)
def test_block_by_block_equals_all_at_once(frames, main, right, left, reach):
    torch.manual_seed(0)
    config = LayerConfig(16, 2, 32, 0.0, 0.0, 0.0)
    encoder = BlockEncoder(5, 3, 2, config, Blocks(main, right, left, reach)).eval()
    features = torch.randn(1, frames, 5)
    states, keys = heard_by_blocks(encoder, features)
    whole = encoder(features, torch.tensor([frames])).states
    torch.testing.assert_close(states, whole, atol=1e-5, rtol=1e-4)
    assert not left or keys.shape[3] <= left  # memory does not grow


def test_the_future_does_not_change_the_past(net):
    net.eval()
    features = torch.randn(1, 83, 8)
    before = net.encode(features, torch.tensor([83])).states  # 20 states, blocks of 3, glimpse 2
    features[:, 4 * 8 + 3 :] += 1.0  # from the first frame that state 8 is the first to hear
    after = net.encode(features, torch.tensor([83])).states
    torch.testing.assert_close(before[:, :6], after[:, :6])  # blocks 0, 1 see states 0 to 7
    assert not torch.allclose(before[:, 6:9], after[:, 6:9])


def test_a_group_sees_its_states_and_those_before(net):
    net.eval()
    encoded = net.encode(torch.randn(2, 50, 8), torch.tensor([50, 31]))
    tokens, said = sentences(2, 5)
    tokens = torch.cat([tokens, said[:, -1:]], 1)
    lattice = net.lattice(tokens, encoded)
    assert encoded.lengths.tolist() == [11, 7]
    assert lattice.groups.tolist() == [4, 3]
    memory = net.memory(encoded.states)
    for g in range(4):
        seen = torch.tensor([min(3 * (g + 1), n) for n in (11, 7)])
        step = net.step(tokens, memory, seen, net.begin(2))
        torch.testing.assert_close(
            net.output(lattice.hidden[:, g]), step.logits, atol=1e-5, rtol=1e-4
        )
    whole = net.decode(tokens, encoded)
    torch.testing.assert_close(net.output(lattice.whole), whole, atol=1e-5, rtol=1e-4)


def test_steps_with_a_cache_equal_teacher_forcing(net):
    net.eval()
    encoded = net.encode(torch.randn(2, 50, 8), torch.tensor([50, 31]))
    tokens, _ = sentences(2, 7)
    whole = net.decode(tokens, encoded)
    memory, cache = net.memory(encoded.states), net.begin(2)
    for piece in (slice(0, 3), slice(3, 4), slice(4, 7)):
        step = net.step(tokens[:, piece], memory, encoded.lengths, cache)
        torch.testing.assert_close(step.logits, whole[:, piece], atol=1e-5, rtol=1e-4)
        cache = step.cache


def test_an_item_alone_equals_the_item_padded(net):
    net.eval()
    features = torch.randn(3, 50, 8)
    lengths = torch.tensor([50, 22, 5])
    together = net.encode(features, lengths)
    for i, length in enumerate(lengths.tolist()):
        alone = net.encode(features[i : i + 1, :length], lengths[i : i + 1])
        states = int(alone.lengths[0])
        assert states == together.lengths[i]
        torch.testing.assert_close(
            alone.states[0, :states], together.states[i, :states], atol=1e-5, rtol=1e-4
        )


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
        ce = cross_entropy(net.output(lattice.whole[:, :-1]), said, 0.1)
        optimiser.zero_grad()
        ((cost - log_p).sum() + ce).div(said.numel()).backward()
        optimiser.step()
        costs.append(cost.mean().item())
    assert log_p.mean().exp() > 0.8
    assert costs[-1] < costs[0] / 2  # it learnt to speak early, too
    net.eval()
    assert (net.decode(tokens, net.encode(features, lengths)).argmax(-1) == said).all()

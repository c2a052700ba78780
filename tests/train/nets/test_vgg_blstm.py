"""The recurrent net against torch's packed LSTM and Bahdanau's formula."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.nets.vgg_blstm import AdditiveAttention, Blstm
from tests.train.nets.tiny_nets import noise, sentences, tiny


def test_two_lstms_are_one_packed_bidirectional_lstm():
    torch.manual_seed(0)
    layer, reference = Blstm(3, 4), nn.LSTM(3, 4, bidirectional=True, batch_first=True)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    for name in names:
        getattr(reference, name).data = getattr(layer.forwards, name).data
        getattr(reference, name + "_reverse").data = getattr(layer.backwards, name).data
    x, lengths = torch.randn(3, 6, 3), torch.tensor([6, 2, 4])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(reference(packed)[0], batch_first=True)
    result = layer(x, lengths)
    for i, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(result[i, :length], expected[i, :length])


def test_additive_attention_is_bahdanaus():
    torch.manual_seed(0)
    attention = AdditiveAttention(query_size=5, state_size=4, size=3)
    queries, states = torch.randn(1, 2, 5), torch.randn(1, 6, 4)
    context, weights = attention(queries, attention.key(states), states, torch.zeros(1, 1, 6))
    for u in range(2):
        energies = [
            attention.score @ torch.tanh(attention.query(queries[0, u]) + attention.key(state))
            for state in states[0]
        ]
        expected = torch.softmax(torch.stack(energies), 0)
        torch.testing.assert_close(weights[0, u], expected)
        torch.testing.assert_close(context[0, u], expected @ states[0])


def test_decoder_state_survives_a_growing_source():
    """(k, s, N): encode anew, keep the decoder's state, go on from the last unit."""
    net = tiny("vgg-blstm").eval()
    features, (tokens, _) = noise(net, 1, 60), sentences(1, 4)
    cache = net.begin(1)
    for read, piece in ((30, slice(0, 2)), (60, slice(2, 4))):
        encoded = net.encode(features[:, :read], torch.tensor([read]))
        step = net.step(tokens[:, piece], net.memory(encoded.states), encoded.lengths, cache)
        cache = step.cache
    fresh = net.step(tokens, net.memory(encoded.states), encoded.lengths, net.begin(1))
    assert step.logits.shape == (1, 2, 14)
    assert not torch.allclose(step.logits, fresh.logits[:, 2:])  # it heard less at first
    assert [state.shape for state in cache] == [(1, 32)] * 4


def test_eighty_three_features_with_pitch():
    settings = {"features": 83, "size": 8, "encoder_layers": 1, "attention": 4}
    net = build("vgg-blstm", settings, Vocabularies(target=30, source=30))
    encoded = net.encode(torch.randn(2, 41, 83), torch.tensor([41, 9]))
    assert encoded.states.shape == (2, 11, 8)
    assert encoded.lengths.tolist() == [11, 3]

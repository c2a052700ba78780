"""The distance penalty and the 2-D attention against their formulas."""

import math

import pytest
import torch

from dragoman.train.nets.layers import LayerConfig, SelfAttention
from dragoman.train.nets.s_transformer import Attention2d, PenalisedAttention
from tests.train.nets.tiny_nets import noise, tiny

SHAPE = LayerConfig(size=8, heads=2, attention_dropout=0)


def test_penalties_are_those_of_the_paper():
    log = PenalisedAttention(SHAPE, "log").penalties(9)[0]
    assert log[3, 3] == log[3, 4] == 0  # no log of 0, nothing below 0
    assert log[0, 8].item() == pytest.approx(math.log(8))
    gauss = PenalisedAttention(SHAPE, "gauss")
    with torch.no_grad():
        gauss.deviation.copy_(torch.tensor([1.0, 2.0]))
    assert gauss.penalties(4)[:, 0, 3].tolist() == [4.5, 9 / 8]


def test_no_penalty_is_plain_attention():
    torch.manual_seed(0)
    penalised, plain = PenalisedAttention(SHAPE, "none"), SelfAttention(SHAPE)
    plain.load_state_dict(penalised.state_dict())
    x = torch.randn(2, 6, 8)
    torch.testing.assert_close(penalised(x, torch.zeros(1, 1))[0], plain(x)[0])
    log = PenalisedAttention(SHAPE, "log")
    log.load_state_dict(penalised.state_dict())
    assert not torch.allclose(log(x, torch.zeros(1, 1))[0], plain(x)[0])


@torch.no_grad()
def test_distance_counts_against_a_key_before_the_softmax():
    torch.manual_seed(0)
    attention = PenalisedAttention(SHAPE, "log").eval()
    x = torch.randn(1, 6, 8)
    query, key, value = attention.qkv(x[0]).chunk(3, -1)
    heads = []
    for part in (slice(0, 4), slice(4, 8)):
        scores = query[:, part] @ key[:, part].T / 2
        for i in range(6):
            for j in range(6):
                scores[i, j] -= math.log(max(1, abs(i - j)))
        heads.append(scores.softmax(-1) @ value[:, part])
    expected = attention.out(torch.cat(heads, -1))
    torch.testing.assert_close(attention(x, torch.zeros(1, 1))[0][0], expected)


def test_attention_in_two_dimensions_term_by_term():
    torch.manual_seed(0)
    block = Attention2d(channels=3, maps=2).eval()
    x, lengths = torch.randn(1, 3, 5, 4), torch.tensor([5])
    query, key, value = block.qkv(x, lengths)[0].chunk(3, dim=1)
    maps = []
    for c in range(2):
        maps.append(torch.softmax(query[0, c] @ key[0, c].T, dim=-1) @ value[0, c])
    for c in range(2):
        maps.append((torch.softmax(query[0, c].T @ key[0, c], dim=-1) @ value[0, c].T).T)
    expected = x + block.out(torch.stack(maps).unsqueeze(0), lengths)[0]
    torch.testing.assert_close(block(x, lengths), expected)


def test_the_width_of_a_head_is_learnt():
    net = tiny("s-transformer, gauss, ctc")
    encoded = net.encode(noise(net, 2, 40), torch.tensor([40, 30]))
    (encoded.states**2).sum().backward()
    assert net.layers[0].attention.deviation.grad.abs().min() > 0

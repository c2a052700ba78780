"""The bricks against their formulas."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dragoman.errors import DragomanError
from dragoman.train.nets import layers
from dragoman.train.nets.base import FeatureNorm, Vocabularies
from dragoman.train.nets.ctc import compress
from dragoman.train.nets.layers import (
    HIDDEN,
    DecoderLayer,
    EncoderLayer,
    LayerConfig,
    SelfAttention,
    causal_bias,
    padding_bias,
    seen_bias,
    sinusoids,
)
from dragoman.train.nets.norms import MaskedBatchNorm
from dragoman.train.nets.registry import build
from dragoman.train.nets.relative import RelativeAttention, RotaryAttention, distances, rotations
from dragoman.train.nets.subsampling import ConvSubsampling


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("transformer", "layers"),
        ("conformer", "layers"),
        ("incremental", "layers"),
        ("caat", "encoder.layers"),
        ("s-transformer", "layers"),
        ("joint-mma", "speech_layers"),
    ],
)
def test_layers_hear_more_than_a_whisper(name, layers):
    """What enters the first layer is about as large as what a layer adds. Where it was a tenth,
    layers drowned it in constants of their own, and a deep net never learnt to listen."""
    torch.manual_seed(0)
    net = build(name, {}, Vocabularies(target=20, source=20)).eval()
    entered = []
    net.get_submodule(layers)[0].register_forward_pre_hook(lambda _, x: entered.append(x[0]))
    # As in speech, frames and bands resemble their neighbours.
    features = F.interpolate(torch.randn(2, 1, 30, 10), (240, 80), mode="nearest")[:, 0]
    with torch.no_grad():
        net.encode(features, torch.tensor([240, 240]))
    one, other = entered[0]  # of what they have in common, positions above all, nothing counts
    spread = (one - other).square().mean().div(2).sqrt()
    assert 0.4 < spread < 4, spread


def test_a_wrong_name_or_setting_is_named():
    with pytest.raises(DragomanError, match="no net 'transfomer'"):
        build("transfomer", {}, Vocabularies(9, 9))
    with pytest.raises(DragomanError, match=r"no setting 'net_settings\.layers'; did you mean"):
        build("transformer", {"layers": 3}, Vocabularies(9, 9))
    for name in ("transformer", "conformer", "incremental", "s-transformer"):
        with pytest.raises(DragomanError, match="CTC cannot listen to layer 3 of 2"):
            build(name, {"encoder_layers": 2, "ctc_layer": 3}, Vocabularies(9, 9))


def torchs(ours, kind):
    """torch's own layer with the weights of ours."""
    theirs = kind(16, 4, 32, 0.0, batch_first=True, norm_first=ours.pre_norm).eval()
    attention = {"self_attn.in_proj": "attention.qkv", "self_attn.out_proj": "attention.out"}
    names = attention | {"linear1": "feed_forward.wide", "linear2": "feed_forward.narrow"}
    norms = ["attention_norm", "feed_forward_norm"]
    if kind is nn.TransformerDecoderLayer:
        norms.insert(1, "cross_norm")
        names["multihead_attn.out_proj"] = "cross.out"
    names |= {f"norm{number}": name for number, name in enumerate(norms, start=1)}
    state = ours.state_dict()
    weights = {}
    for part in ("weight", "bias"):
        for name, our in names.items():
            joint = f"{name}_{part}" if name.endswith("in_proj") else f"{name}.{part}"
            weights[joint] = state[f"{our}.{part}"]
        if kind is nn.TransformerDecoderLayer:
            both = [state[f"cross.query.{part}"], state[f"cross.key_value.{part}"]]
            weights[f"multihead_attn.in_proj_{part}"] = torch.cat(both)
    theirs.load_state_dict(weights)
    return theirs


def shaken(layer):
    """With norms and biases that do something."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer.eval()


@pytest.mark.parametrize("pre_norm", [True, False])
def test_layers_are_those_of_torch(pre_norm):
    config = LayerConfig(16, 4, 32, dropout=0.0, pre_norm=pre_norm)
    x, states = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    encoder = shaken(EncoderLayer(config))
    theirs = torchs(encoder, nn.TransformerEncoderLayer)
    torch.testing.assert_close(encoder(x), theirs(x), atol=1e-5, rtol=1e-4)
    decoder = shaken(DecoderLayer(config))
    theirs = torchs(decoder, nn.TransformerDecoderLayer)
    memory, bias = decoder.cross.project(states), causal_bias(5, 5)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    wanted = theirs(x, states, tgt_mask=hidden)
    for explain in (False, True):
        found, _, _ = decoder(x, memory, bias, None, explain=explain)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_a_state_is_made_of_thirteen_frames():
    """Two convolutions over five frames, each of stride two."""
    front, features = ConvSubsampling(4, 6, 8), torch.randn(1, 40, 4)
    before, lengths = front(features, torch.tensor([40]))
    assert lengths.tolist() == [10]
    for frame in range(40):
        changed = features.clone()
        changed[0, frame] += 1
        differs = (front(changed, torch.tensor([40]))[0] != before)[0].any(1)
        reached = [abs(4 * state - frame) <= 6 for state in range(10)]
        assert differs.tolist() == reached


def test_masks():
    assert (padding_bias(torch.tensor([1, 3]), 3)[:, 0, 0] == 0).tolist() == [
        [True, False, False],
        [True, True, True],
    ]
    assert (causal_bias(2, 4) == 0).tolist() == [[True] * 3 + [False], [True] * 4]
    assert (seen_bias(torch.tensor([[0, 2]]), 3)[0, 0] == 0).tolist() == [
        [True, False, False],  # never nothing
        [True, True, False],
    ]
    assert torch.exp(torch.tensor(HIDDEN)) == 0


def test_self_attention_is_the_textbook_one():
    torch.manual_seed(0)
    attention = SelfAttention(LayerConfig(size=8, heads=2, attention_dropout=0))
    reference = nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        reference.in_proj_weight.copy_(attention.qkv.weight)
        reference.in_proj_bias.copy_(attention.qkv.bias)
        reference.out_proj.weight.copy_(attention.out.weight)
        reference.out_proj.bias.copy_(attention.out.bias)
    x = torch.randn(3, 5, 8)
    expected, _ = reference(x, x, x, need_weights=False)
    torch.testing.assert_close(attention(x)[0], expected)


def by_hand(attention: RelativeAttention, x: torch.Tensor) -> torch.Tensor:
    """Transformer-XL's score, term by term."""
    size, heads = x.shape[2], attention.heads
    width = size // heads
    query, key, value = attention.qkv(x).chunk(3, -1)
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for h in range(heads):
            part = slice(h * width, (h + 1) * width)
            u, v = attention.content_bias[part], attention.position_bias[part]
            scores = torch.zeros(x.shape[1], x.shape[1])
            for i in range(x.shape[1]):
                for j in range(x.shape[1]):
                    place = attention.position(sinusoids(torch.tensor(i - j), size))[part]
                    q = query[b, i, part]
                    scores[i, j] = (q + u) @ key[b, j, part] + (q + v) @ place
            out[b, :, part] = torch.softmax(scores / math.sqrt(width), -1) @ value[b, :, part]
    return attention.out(out)


def test_heads_of_odd_width_are_padded_for_fast_kernels(monkeypatch):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 9, 13).unbind(0)
    bias = torch.randn(2, 1, 9, 9)
    expected = layers.attention_weights(query, key, bias) @ value
    widths = []
    plain = F.scaled_dot_product_attention
    monkeypatch.setattr(layers, "fast_kernels", lambda x: True)
    monkeypatch.setattr(
        F,
        "scaled_dot_product_attention",
        lambda *args, **more: (
            widths.append([x.shape[-1] for x in args[:3]]) or plain(*args, **more)
        ),
    )
    torch.testing.assert_close(layers.attend(query, key, value, bias), expected)
    assert widths == [[16, 16, 16]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_fast_kernel_takes_heads_of_odd_width():
    heads = torch.randn(3, 2, 8, 64, 52, device="cuda", dtype=torch.bfloat16).unbind(0)
    bias = torch.zeros(2, 1, 64, 64, device="cuda")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        assert layers.attend(*heads, bias).shape == (2, 8, 64, 52)


@pytest.mark.parametrize("states", [1, 2, 5])
def test_relative_attention_is_its_formula(states):
    torch.manual_seed(0)
    attention = RelativeAttention(LayerConfig(size=8, heads=2, attention_dropout=0))
    nn.init.normal_(attention.content_bias)
    nn.init.normal_(attention.position_bias)
    x = torch.randn(2, states, 8)
    result = attention(x, torch.zeros(1, 1), distances(states, 8))
    torch.testing.assert_close(result, by_hand(attention, x))


def test_rotary_attention_knows_distances_only():
    torch.manual_seed(0)
    attention = RotaryAttention(LayerConfig(size=8, heads=2, attention_dropout=0))
    x = torch.randn(1, 6, 8)
    here = attention(x, torch.zeros(1, 1), rotations(torch.arange(6), 4))
    there = attention(x, torch.zeros(1, 1), rotations(torch.arange(100, 106), 4))
    stretched = attention(x, torch.zeros(1, 1), rotations(torch.arange(0, 12, 2), 4))
    torch.testing.assert_close(here, there, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(here, stretched)


def test_compression_averages_runs_of_equal_labels():
    labels = torch.tensor([[7, 7, 3, 7, 7, 7], [1, 2, 2, 2, 0, 0]])
    states = torch.randn(2, 6, 4, requires_grad=True)
    short, lengths = compress(states, nn.functional.one_hot(labels, 8), torch.tensor([6, 3]))
    assert lengths.tolist() == [3, 2]
    expected = [states[0, :2].mean(0), states[0, 2], states[0, 3:].mean(0)]
    torch.testing.assert_close(short[0], torch.stack(expected))
    torch.testing.assert_close(short[1, :2], torch.stack([states[1, 0], states[1, 1:3].mean(0)]))
    short.sum().backward()
    torch.testing.assert_close(states.grad[0, 0], torch.full((4,), 0.5))
    assert (states.grad[1, 3:] == 0).all()


@pytest.mark.parametrize("training", [True, False])
def test_masked_batch_norm_is_batch_norm_of_the_valid_frames(training):
    torch.manual_seed(0)
    norm, reference = MaskedBatchNorm(4).train(training), nn.BatchNorm1d(4).train(training)
    x = torch.randn(2, 5, 4) * 3 + 1
    mask = torch.ones(2, 5, 1)
    mask[1, 2:] = 0
    kept = mask[..., 0] == 1
    for _ in range(3):
        expected = reference(x[kept])
        torch.testing.assert_close(norm(x, mask)[kept], expected)
    torch.testing.assert_close(norm.running_mean, reference.running_mean)
    torch.testing.assert_close(norm.running_var, reference.running_var)


def test_masked_batch_norm_gradient():
    norm = MaskedBatchNorm(3, axis=1).double()
    x = torch.randn(2, 3, 4, 2, dtype=torch.double, requires_grad=True)
    mask = torch.ones(2, 1, 4, 1)
    mask[0, :, 2:] = 0
    norm.momentum = 0.0  # gradcheck calls it many times
    assert torch.autograd.gradcheck(lambda x: norm(x, mask), (x,), atol=1e-4)


def test_features_are_normalised_inside_the_net():
    norm = FeatureNorm(2)
    norm.mean.copy_(torch.tensor([1.0, 2.0]))
    norm.deviation.copy_(torch.tensor([2.0, 4.0]))
    x = norm(torch.tensor([[[3.0, 2.0], [9.0, 9.0]]]), torch.tensor([1]))
    assert x.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]

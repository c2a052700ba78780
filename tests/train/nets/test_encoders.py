"""Encoder layers and what leads to them, against their formulas."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.train.losses.tokens import ctc
from dragoman.train.nets.conformer import ConformerLayer
from dragoman.train.nets.ctc import CtcHead
from dragoman.train.nets.layers import LayerConfig
from dragoman.train.nets.relative import RelativeAttention, distances
from dragoman.train.nets.subsampling import in_place, in_turn
from tests.train.nets.tiny_nets import noise, tiny


def unsettle(net):
    """Statistics and scales that matter."""
    generator = torch.Generator().manual_seed(7)
    for name, tensor in (*net.named_buffers(), *net.named_parameters()):
        if name.endswith(("running_var", "norm.weight")):
            tensor.data.uniform_(0.5, 2, generator=generator)
        elif name.endswith(("running_mean", "norm.bias")):
            tensor.data.normal_(generator=generator)
    return net.eval()


def normalised(x, norm):
    """Batch normalisation at work of x [B, C, ...]."""
    return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)


def fed_forward(x, norm, block):
    x = F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias)
    x = F.silu(x @ block.wide.weight.T + block.wide.bias)
    return x @ block.narrow.weight.T + block.narrow.bias


def convolved(x, block):
    """Norm, gate, depthwise convolution, batch norm, swish, mix: [B, T, D]"""
    x = F.layer_norm(x, x.shape[-1:], block.norm.weight, block.norm.bias)
    value, gate = (x @ block.gate.weight.T + block.gate.bias).chunk(2, -1)
    x, kernel = value * torch.sigmoid(gate), block.depthwise.weight[:, 0]  # [D, 5]
    padded, out = F.pad(x, (0, 0, 2, 2)), torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, t] = (padded[:, t : t + 5] * kernel.T).sum(1) + block.depthwise.bias
    out = normalised(out.transpose(1, 2), block.batch_norm).transpose(1, 2)
    return F.silu(out) @ block.mix.weight.T + block.mix.bias


@torch.no_grad()
def test_a_conformer_layer_is_gulatis():
    torch.manual_seed(0)
    config = LayerConfig(8, 2, 16, 0.0, 0.0, 0.0)
    layer = unsettle(ConformerLayer(config, 5, RelativeAttention(config)))
    x, bias, table = torch.randn(2, 7, 8), torch.zeros(1, 1), distances(7, 8)
    y = x + 0.5 * fed_forward(x, layer.first_norm, layer.first)
    norm = layer.attention_norm
    y = y + layer.attention(F.layer_norm(y, (8,), norm.weight, norm.bias), bias, table)
    y = y + convolved(y, layer.convolution)
    y = y + 0.5 * fed_forward(y, layer.second_norm, layer.second)
    expected = F.layer_norm(y, (8,), layer.norm.weight, layer.norm.bias)
    found = layer(x, bias, table, torch.ones(2, 7, 1))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_ctc_listens_to_the_layer_it_is_told():
    net = tiny("conformer").eval()  # two layers, CTC on the first
    outputs = []
    for layer in net.layers:
        layer.register_forward_hook(lambda _, __, output: outputs.append(output))
    encoded = net.encode(noise(net, 1, 40), torch.tensor([40]))
    torch.testing.assert_close(encoded.ctc_logits, net.ctc.linear(outputs[0]))
    torch.testing.assert_close(encoded.states, outputs[1])


@torch.no_grad()
@pytest.mark.parametrize("label", ["s-transformer, log", "s-transformer, gauss, ctc"])
def test_the_s_transformer_sees_speech_as_a_picture(label):
    """Two convolutions, ReLU before batch norm; two blocks of 2-D attention; a vector a frame."""
    net = unsettle(tiny(label))
    picture, features = net.subsampling, noise(net, 1, 40)
    x = features.unsqueeze(1)
    for part in (picture.first, picture.second):
        x = F.conv2d(x, part.convolution.weight, part.convolution.bias, stride=2, padding=1)
        x = normalised(F.relu(x), part.norm)
    for block in picture.blocks:  # itself tested term by term
        x = block(x, torch.tensor([10]))
    wide = torch.stack([x[0, :, t].flatten() for t in range(10)])
    expected = F.relu(wide @ picture.flatten.weight.T + picture.flatten.bias)
    found, lengths = picture(features, torch.tensor([40]))
    assert lengths.tolist() == [10]
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=1e-4)


def test_units_that_nobody_hears_change_nothing():
    """A GPU computes a few more than there are: they have no probability and no gradient."""
    torch.manual_seed(0)
    head, states = CtcHead(16, 20), torch.randn(2, 30, 16)
    lengths, counts = torch.tensor([30, 21]), torch.tensor([5, 3])
    targets = torch.randint(1, 20, (2, 5))
    found = []
    for logits in (head(states), head.padded(states, more=3)):
        loss = ctc(logits, lengths, targets, counts, blank=20)
        found.append((loss.detach(), *torch.autograd.grad(loss, list(head.parameters()))))
    assert head.padded(states, more=3).shape[-1] == 24
    for plain, padded in zip(*found, strict=True):
        torch.testing.assert_close(padded, plain)
    assert torch.equal(head(states).argmax(-1), head.padded(states, more=3).argmax(-1))


@pytest.mark.parametrize("frames", [1, 2, 39, 40])
def test_an_image_of_height_one_is_subsampled_as_a_sequence_is(frames):
    """Which of the two is computed depends on the device."""
    torch.manual_seed(3)
    convolution = torch.nn.Conv1d(6, 8, 5, stride=2, padding=2)
    features, found = torch.randn(2, frames, 6), []
    for way in (in_place, in_turn):
        made = way(features, convolution)
        assert made.shape == (2, (frames + 1) // 2, 8)
        found.append(
            (made.detach(), *torch.autograd.grad(made.square().sum(), convolution.parameters()))
        )
    for image, sequence in zip(*found, strict=True):
        torch.testing.assert_close(image, sequence, atol=1e-4, rtol=1e-4)


on_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@on_device
def test_depthwise_kernels_equal_pytorch_on_the_device():
    from dragoman.train.nets import depthwise
    from tests.train.nets.depthwise_kernels import check_all

    check_all(torch.device("cuda"))
    depthwise.trial(torch.device("cuda"), batch=50, time=250, size=256, taps=31)
    assert depthwise._works()


@on_device
def test_residual_kernels_equal_pytorch_on_the_device():
    from dragoman.train.nets import residual
    from tests.train.nets.residual_kernels import check_all

    check_all(torch.device("cuda"))
    residual.trial(torch.device("cuda"), rows=20_000, size=256, kind=torch.bfloat16)
    assert residual._works()


def test_without_a_gpu_a_sum_and_its_norm_are_pytorchs():
    from dragoman.train.nets.residual import add_and_norm

    torch.manual_seed(1)
    x, branch, norm = torch.randn(3, 5, 8), torch.randn(3, 5, 8), torch.nn.LayerNorm(8)
    torch.nn.init.normal_(norm.weight)
    total, normed = add_and_norm(x, branch, norm, 0.5)
    torch.testing.assert_close(total, x + branch / 2)
    centred = total - total.mean(-1, keepdim=True)
    wanted = centred / (total.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    torch.testing.assert_close(normed, wanted * norm.weight + norm.bias)
    dropped, _ = add_and_norm(x, branch, norm, 1.0, drop=0.5)
    kept = (dropped - x) / branch
    assert set(kept.round().flatten().tolist()) == {0.0, 2.0}

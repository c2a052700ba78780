"""MMA: in expectation and for real, against the plain decoder and against its own stops."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS
from dragoman.train.losses.waitk import seen_fixed
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.decoder import TransformerDecoder
from dragoman.train.nets.layers import LayerConfig, padding_bias, seen_bias
from dragoman.train.nets.mma import Mma, MmaConfig, MonotonicDecoder
from dragoman.train.nets.monotonic.attention import MonotonicConfig
from dragoman.train.nets.monotonic.decisions import decide_at, decide_every
from tests.train.nets.tiny_nets import SMALL, TINY, VOCABULARIES, noise, sentences

ENCODER = {**SMALL, "conv_channels": 16, "ctc_layer": 0, "encoder_layers": 1, "decoder_layers": 1}
DROPOUTS = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def tiny(seed=0, **settings):
    torch.manual_seed(seed)
    defaults = {"decoder_layers": 2, "decoder_heads": 4, "decoder_ffn": 64, "ratio": 2}
    ends = {"boundaries": settings.get("decisions") == "learned"}
    config = MmaConfig(encoder_settings=ENCODER | ends, **{**DROPOUTS, **defaults, **settings})
    return Mma(config, VOCABULARIES)


def test_the_decoder_has_the_sizes_of_its_settings():
    layers = tiny(decoder_layers=3, decoder_heads=2, decoder_ffn=48, ratio=5).decoder.layers
    sizes = [(one.cross.heads, one.feed_forward.wide.out_features) for one in layers]
    assert sizes == [(2, 48)] * 3
    assert {one.cross.monotonic.ratio for one in layers} == {5}


def make_sure(net):
    """Energies so large that stopping is certain or impossible: expectation becomes reality."""
    with torch.no_grad():
        for layer in net.decoder.layers:
            layer.cross.stop_query.weight.mul_(1e5)
            layer.cross.stop_query.bias.normal_(std=1e5)
    return net.eval()


def encoded(net, lengths, seed=1):
    states = torch.randn(len(lengths), max(lengths), 32, generator=torch.manual_seed(seed))
    ends = net.source.boundaries(states) if net.learned else None
    return Encoded(states, torch.tensor(lengths), boundary_logits=ends)


KINDS = [{"attention": a, "wait": w} for a in ("infinite", "hard") for w in (0, 2)]
LEARNED = [
    {"attention": a, "wait": 0, "decisions": "learned", "energy_bias": 0.5}
    for a in ("infinite", "hard")
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: f"{k['attention']}-wait-{k['wait']}")
def test_learns_eight_sentences_by_heart(kind):
    net = tiny(**kind)
    features, lengths = torch.randn(8, 40, 8), torch.full((8,), 40)
    heard, said = sentences(8, 5)
    optimiser = torch.optim.Adam(net.parameters(), lr=8e-3)
    for _ in range(70):
        optimiser.zero_grad()
        logits = net.decode(heard, net.encode(features, lengths))
        loss = F.cross_entropy(logits.flatten(0, 1), said.flatten())
        if loss < 0.05:
            break
        loss.backward()
        optimiser.step()
    net.eval()
    assert (net.decode(heard, net.encode(features, lengths)).argmax(-1) == said).all()


@pytest.mark.parametrize("attention", ["infinite", "hard"])
@pytest.mark.parametrize("pooling", ["average", "last"])
@pytest.mark.parametrize("decisions", [{"ratio": 1}, {"ratio": 3}, {"decisions": "learned"}])
def test_sure_heads_do_what_is_expected_of_them(attention, pooling, decisions):
    net = make_sure(tiny(attention=attention, pooling=pooling, **decisions))
    source = encoded(net, [11, 8])
    tokens, _ = sentences(2, 7)
    whole = net.align(tokens, source)
    memory, cache, delays = net.memory(source.states), net.begin(2), []
    for piece in (slice(0, 3), slice(3, 4), slice(4, 7)):
        step = net.step(tokens[:, piece], memory, source.lengths, cache)
        torch.testing.assert_close(step.logits, whole.logits[:, piece], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(step.attention.sum(-1), torch.ones(2, 2, step.logits.shape[1]))
        delays.append(step.delays)
        cache = step.cache
    expected = whole.delays.amax(1)
    torch.testing.assert_close(torch.cat(delays, 1).float(), expected, atol=1e-3, rtol=1e-4)
    assert len(set(whole.delays.round().flatten().tolist())) >= 3  # heads really differ


@pytest.mark.parametrize(("k", "ratio"), [(1, 1), (3, 1), (2, 4)])
def test_wait_k_is_the_plain_decoder_under_a_mask(k, ratio):
    torch.manual_seed(0)
    config = LayerConfig(32, 4, 64, 0.0, 0.0, 0.0)
    monotonic = MonotonicDecoder(14, 2, config, MonotonicConfig(wait=k, ratio=ratio))
    plain = TransformerDecoder(14, 2, config)
    plain.load_state_dict(monotonic.state_dict())
    states, lengths = torch.randn(2, 13, 32), torch.tensor([13, 9])
    tokens, _ = sentences(2, 6)
    ours = monotonic.align(tokens, states, decide_every(ratio, lengths, 13))
    words = torch.arange(6).expand(2, -1)
    seen = seen_fixed(k, ratio, words, lengths)
    mask = seen_bias(seen, 13) + padding_bias(lengths, 13)
    torch.testing.assert_close(ours.logits, plain(tokens, states, mask), atol=1e-5, rtol=1e-4)
    assert (ours.delays == seen.unsqueeze(1)).all()


@pytest.mark.parametrize("kind", KINDS + LEARNED, ids=lambda k: "-".join(map(str, k.values())))
def test_hearing_piece_by_piece_writes_the_same_as_soon_as_it_can(kind):
    """What is written does not depend on how the source arrives, only when does."""
    net = tiny(**kind, seed=3).eval()
    source = encoded(net, [24])
    memory, total = net.memory(source.states), 24
    final = torch.tensor([True])

    offline, cache, token = [], net.begin(1), torch.tensor([[BOS]])
    for _ in range(10):
        step = net.step(token, memory, source.lengths, cache, final)
        token, cache = step.logits.argmax(-1), step.cache
        offline.append((token.item(), step.delays.item()))

    online, cache, token, heard = [], net.begin(1), torch.tensor([[BOS]]), 0
    while len(online) < 10:
        pieces = tuple(kind[:, :, :, : max(1, heard)] for kind in memory)
        ended = torch.tensor([heard >= total])
        step = net.step(token, pieces, torch.tensor([heard]), cache, ended)
        if not step.write:
            heard += 1  # READ: the step is forgotten
            continue
        token, cache = step.logits.argmax(-1), step.cache
        online.append((token.item(), step.delays.item()))
        assert step.delays.item() <= heard
    assert online == offline
    assert offline[0][1] < total  # something was written before the end


def test_a_unit_waits_for_the_slowest_head():
    """Heads that stop at once, and one that never does: nothing is written before the end."""
    net = tiny().eval()
    source = encoded(net, [12])
    with torch.no_grad():
        for layer in net.decoder.layers:
            layer.cross.stop_query.weight.zero_()
            layer.cross.stop_key.weight.zero_()
            layer.cross.stop_query.bias.fill_(1.0)
            layer.cross.stop_key.bias.fill_(1.0)
    arguments = (torch.tensor([[BOS]]), net.memory(source.states), source.lengths, net.begin(1))
    more, over = torch.tensor([False]), torch.tensor([True])
    eager = net.step(*arguments, more)
    assert eager.write.all()
    assert eager.delays.item() == 2  # one decision of two states
    with torch.no_grad():
        net.decoder.layers[1].cross.stop_query.bias[-8:] = -1.0  # the top layer's last head
    assert not net.step(*arguments, more).write.any()
    reluctant = net.step(*arguments, over)
    assert reluctant.write.all()
    assert reluctant.delays.item() == 12
    assert reluctant.cache[2][0].tolist() == [[0, 0, 0, 0], [0, 0, 0, 5]]


def test_a_partial_group_waits_for_more():
    net = tiny(wait=1, ratio=4).eval()
    memory = net.memory(encoded(net, [6]).states)
    arguments = (torch.tensor([[BOS]]), tuple(m[:, :, :, :3] for m in memory))
    more, over = torch.tensor([False]), torch.tensor([True])
    three = torch.tensor([3])
    assert not net.step(*arguments, three, net.begin(1), more).write.any()
    assert net.step(*arguments, three, net.begin(1), over).write.all()


def test_padding_changes_nothing():
    net = tiny(ratio=3).eval()
    source = encoded(net, [14, 7])
    tokens, _ = sentences(2, 5)
    both = net.align(tokens, source)
    alone = net.align(tokens[1:], Encoded(source.states[1:, :7], source.lengths[1:]))
    torch.testing.assert_close(both.logits[1:], alone.logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(both.delays[1:], alone.delays, atol=1e-5, rtol=1e-4)


def test_flexible_decisions_may_stop_at_word_ends_only():
    net = tiny().eval()
    source = encoded(net, [9])
    triggers = torch.zeros(1, 9, dtype=torch.bool)
    triggers[0, [3, 6]] = True
    with torch.no_grad():
        for layer in net.decoder.layers:
            layer.cross.stop_query.bias.normal_(std=1e5)
    tokens, _ = sentences(1, 6)
    delays = net.align(tokens, source, decide_at(triggers, source.lengths)).delays
    assert set(delays.round(decimals=2).flatten().tolist()) <= {4.0, 7.0, 9.0}


@torch.no_grad()
def test_learned_decisions_lie_where_the_encoder_fires():
    """A run of states above one half is one word end, at its beginning."""
    net = make_sure(tiny(decisions="learned"))
    source = encoded(net, [9, 6])
    source.boundary_logits = torch.full((2, 9), -1.0)
    source.boundary_logits[0, [2, 3, 6]] = 1.0
    source.boundary_logits[1, [1, 8]] = 1.0  # the second has ended by then
    decisions = net.decisions(source)
    assert decisions.ends.tolist() == [[3, 7, 9], [2, 6, 6]]
    assert decisions.counts.tolist() == [3, 2]
    tokens, _ = sentences(2, 6)
    delays = net.align(tokens, source).delays.round(decimals=2)
    assert set(delays[0].flatten().tolist()) <= {3.0, 7.0, 9.0}
    memory = (*net.memory(source.states)[:-1], source.boundary_logits[:, None, None, :, None])
    for final, counts in ((True, [3, 2]), (False, [2, 1])):
        read, heard = net.heard(memory, source.lengths, torch.tensor([final] * 2))
        assert heard.counts.tolist() == counts
        assert heard.ends[:, :3].tolist() == decisions.ends.tolist()
        assert len(read) == len(memory) - 1


def test_two_thousand_states_in_half_precision():
    torch.manual_seed(0)
    decoder = MonotonicDecoder(14, 1, LayerConfig(32, 2, 64), MonotonicConfig(ratio=1))
    states = (3 * torch.randn(1, 2000, 32)).requires_grad_()
    tokens, _ = sentences(1, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        aligned = decoder.align(tokens, states, decide_every(1, torch.tensor([2000]), 2000))
    (aligned.logits.float().logsumexp(-1).sum() + aligned.delays.mean()).backward()
    assert aligned.delays.dtype == torch.float32
    assert torch.isfinite(aligned.logits).all()
    for parameter in [states, *decoder.parameters()]:
        assert torch.isfinite(parameter.grad).all()


def test_energies_are_free_of_noise():
    net = tiny(noise=1.0, ratio=3)
    source, (tokens, _) = encoded(net, [9, 6]), sentences(2, 5)
    noisy = net.align(tokens, source, energies=True)
    assert [tuple(e.shape) for e in noisy.energies] == [(2, 4, 5, 3)] * 2
    clean = net.eval().align(tokens, source, energies=True)
    torch.testing.assert_close(noisy.energies[0], clean.energies[0])
    assert not torch.allclose(noisy.delays, clean.delays)
    assert clean.counts.tolist() == [3, 2]


def test_bad_settings_are_named():
    with pytest.raises(DragomanError, match="need an encoder with a head"):
        Mma(MmaConfig(encoder_settings=ENCODER, decisions="learned"), VOCABULARIES)
    net = tiny()
    source = encoded(net, [5])
    with pytest.raises(DragomanError, match="decides for itself"):
        net.decode(sentences(1, 3)[0], source, torch.zeros(1, 1, 3, 5))


@pytest.mark.parametrize("label", ["conformer", "incremental", "s-transformer, log", "vgg-blstm"])
def test_over_any_encoder(label):
    name, settings = TINY[label]
    torch.manual_seed(0)
    net = Mma(
        MmaConfig(encoder=name, encoder_settings=settings, decoder_layers=1, ratio=2), VOCABULARIES
    ).eval()
    features, lengths = noise(net.source, 2, 40), torch.tensor([40, 31])
    tokens, _ = sentences(2, 3)
    source = net.encode(features, lengths)
    assert net.decode(tokens, source).shape == (2, 3, VOCABULARIES.target)
    step = net.step(tokens, net.memory(source.states), source.lengths, net.begin(2))
    assert step.write.all()

"""What must hold for every net: it learns, padding is nothing, a step is a slice of the whole."""

import torch
import torch.nn.functional as F

from dragoman.train.nets.layers import seen_bias
from tests.train.nets.tiny_nets import VOCABULARIES, noise, sentences


def test_learns_eight_sentences_by_heart(net):
    features, lengths = noise(net, 8, 40), torch.full((8,), 40)
    heard, said = sentences(8, 6)
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(300):
        optimiser.zero_grad()
        encoded = net.encode(features, lengths)
        loss = F.cross_entropy(net.decode(heard, encoded).flatten(0, 1), said.flatten())
        if loss < 0.05:
            break
        if encoded.ctc_logits is not None:
            scores = encoded.ctc_logits.log_softmax(-1).transpose(0, 1)
            source = said[:, :4].clamp(max=VOCABULARIES.source - 1)
            loss = loss + 0.3 * F.ctc_loss(
                scores, source, encoded.ctc_lengths, torch.full((8,), 4), net.blank
            )
        loss.backward()
        optimiser.step()
    with torch.no_grad():  # let running statistics catch up with weights learnt so fast
        for _ in range(40):
            net.encode(features, lengths)
    net.eval()
    logits = net.decode(heard, net.encode(features, lengths))
    assert (logits.argmax(-1) == said).all()


def test_an_item_alone_equals_the_item_padded(net):
    net.eval()
    features, lengths = noise(net, 3, 50), torch.tensor([50, 23, 37])
    tokens, _ = sentences(3, 5)
    together = net.encode(features, lengths)
    logits = net.decode(tokens, together)
    for i, length in enumerate(lengths.tolist()):
        alone = net.encode(features[i : i + 1, :length], lengths[i : i + 1])
        states = int(alone.lengths[0])
        assert states == together.lengths[i]
        torch.testing.assert_close(
            alone.states[0, :states], together.states[i, :states], atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(
            net.decode(tokens[i : i + 1], alone)[0], logits[i], atol=1e-5, rtol=1e-4
        )


def test_what_lies_in_the_padding_changes_nothing(net):
    net.train()  # also where batch statistics are taken
    features, lengths = noise(net, 3, 50), torch.tensor([50, 23, 37])
    other = features.clone()
    for i, length in enumerate(lengths.tolist()):
        other[i, length:] = noise(net, 1, 50 - length, seed=3)[0]
    torch.manual_seed(0)
    first = net.encode(features, lengths)
    torch.manual_seed(0)
    second = net.encode(other, lengths)
    for i, states in enumerate(first.lengths.tolist()):
        # rounding: the second run takes its statistics around a mean that has moved
        torch.testing.assert_close(
            first.states[i, :states], second.states[i, :states], atol=5e-5, rtol=1e-4
        )


def test_steps_with_a_cache_equal_teacher_forcing(net):
    net.eval()
    encoded = net.encode(noise(net, 2, 40), torch.tensor([40, 29]))
    tokens, _ = sentences(2, 7)
    whole = net.decode(tokens, encoded)
    memory, cache = net.memory(encoded.states), net.begin(2)
    for piece in (slice(0, 3), slice(3, 4), slice(4, 7)):  # a forced prefix, then unit by unit
        step = net.step(tokens[:, piece], memory, encoded.lengths, cache)
        torch.testing.assert_close(step.logits, whole[:, piece], atol=1e-5, rtol=1e-4)
        total = step.attention.sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total))
        cache = step.cache


def test_memory_can_be_built_piece_by_piece(net):
    net.eval()
    states = net.encode(noise(net, 2, 40), torch.tensor([40, 40])).states
    whole = net.memory(states)
    pieces = [net.memory(piece) for piece in states.split(4, dim=1)]
    for i, tensor in enumerate(whole):
        joined = torch.cat([piece[i] for piece in pieces], dim=net.memory_time)
        torch.testing.assert_close(joined, tensor, atol=1e-6, rtol=1e-5)


def test_a_unit_never_sees_later_units(net):
    net.eval()
    encoded = net.encode(noise(net, 1, 40), torch.tensor([40]))
    tokens, _ = sentences(1, 6)
    other = tokens.clone()
    other[0, 4:] = (tokens[0, 4:] - 4 + 1) % 8 + 4
    before, after = net.decode(tokens, encoded), net.decode(other, encoded)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_wait_k_hides_the_states_that_were_not_read(net):
    net.eval()
    encoded = net.encode(noise(net, 1, 40), torch.tensor([40]))
    tokens, _ = sentences(1, 4)
    size = encoded.states.shape[1]
    seen = torch.tensor([[1, 2, 3, size]]).clamp(max=size)
    logits = net.decode(tokens, encoded, seen_bias(seen, size))
    for unit, states in enumerate(seen[0].tolist()):
        changed = net.encode(noise(net, 1, 40), torch.tensor([40]))
        changed.states = encoded.states.clone()
        changed.states[:, states:] += 1.0
        again = net.decode(tokens, changed, seen_bias(seen, size))
        torch.testing.assert_close(again[:, : unit + 1], logits[:, : unit + 1])
    assert not torch.allclose(net.decode(tokens, encoded)[:, 0], logits[:, 0])


def test_trains_in_bfloat16(net):
    """Forward and backward under autocast: no NaN, and near to single precision."""
    features, lengths = noise(net, 3, 50), torch.tensor([50, 23, 37])
    tokens, said = sentences(3, 5)

    def run(enabled):
        net.zero_grad()
        torch.manual_seed(0)  # the same draws in both
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            encoded = net.encode(features, lengths)
            logits = net.decode(tokens, encoded)
        loss = F.cross_entropy(logits.float().flatten(0, 1), said.flatten())
        if encoded.ctc_logits is not None:
            loss = loss + encoded.ctc_logits[:, :2].float().logsumexp(-1).mean()
        loss.backward()
        return loss.detach()

    single, half = run(False), run(True)
    torch.testing.assert_close(half, single, atol=0.05, rtol=0.05)
    gradients = [p.grad for p in net.parameters() if p.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_no_attention_that_plans_for_every_shape():
    """Whoever has a net, to train it or to translate with it, has that switched off."""
    assert not torch.backends.cuda.cudnn_sdp_enabled()

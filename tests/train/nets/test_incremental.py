"""Chunk by chunk equals all at once; the future does not change the past; the cost is constant."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.train.losses.tokens import boundaries
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.blocks import Blocks, Context
from dragoman.train.nets.boundaries import BoundaryHead, boundary_targets, fires
from dragoman.train.nets.incremental import Incremental
from dragoman.train.nets.registry import build
from tests.train.nets.tiny_nets import TINY, VOCABULARIES, noise, tiny


def net_with(context: Context) -> Incremental:
    torch.manual_seed(0)
    changed = {"chunk": context.chunk, "right": context.right, "left": context.left}
    net = build("incremental", {**TINY["incremental"][1], **changed}, VOCABULARIES)
    for module in net.modules():  # statistics that matter
        if hasattr(module, "running_mean"):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return net.eval()


@torch.no_grad()
def heard(net: Incremental, features: torch.Tensor) -> tuple[Encoded, list[tuple]]:
    """Features [B, T, F] chunk by chunk, and what was kept after every chunk."""
    chunk, right = net.config.chunk, net.config.right
    batch, total = features.shape[:2]
    window, stream, pieces, kept = 4 * (chunk + right) + 3, net.begin_stream(batch), [], []
    for start in range(0, total, 4 * chunk):
        piece = features[:, start : start + window]
        frames = torch.full((batch,), piece.shape[1])
        piece = F.pad(piece, (0, 0, 0, window - piece.shape[1]), value=9.0)  # never looked at
        encoded, stream = net.hear(piece, frames, stream)
        pieces.append(encoded)
        kept.append(stream)
    count = (total + 3) // 4
    parts = ("states", "ctc_logits", "boundary_logits")
    joined = (torch.cat([getattr(p, part) for p in pieces], 1)[:, :count] for part in parts)
    states, logits, ends = joined
    lengths = torch.full((batch,), count)
    return Encoded(states, lengths, logits, lengths, ends), kept


@settings(max_examples=25, deadline=None)
@given(
    chunk=st.integers(1, 6),
    right=st.integers(0, 4),
    left=st.integers(0, 9),
    frames=st.integers(1, 90),
)
def test_chunk_by_chunk_equals_all_at_once(chunk, right, left, frames):
    net = net_with(Context(chunk, right, left))
    features = noise(net, 2, frames)
    whole = net.encode(features, torch.full((2,), frames))
    pieces, _ = heard(net, features)
    for part in ("states", "ctc_logits", "boundary_logits"):
        torch.testing.assert_close(
            getattr(pieces, part), getattr(whole, part), atol=1e-5, rtol=1e-5
        )


def test_the_future_does_not_change_the_past():
    context = Context(chunk=3, right=2, left=5)
    net = net_with(context)
    features = noise(net, 1, 96)
    before = net.encode(features, torch.tensor([96])).states
    for chunks in (1, 4):
        # What the first chunks see: their frames, their look-ahead and the stem's 3 frames more.
        seen = 4 * (3 * chunks + 2) + 3
        other = features.clone()
        other[:, seen:] += 1
        after = net.encode(other, torch.tensor([96])).states
        torch.testing.assert_close(before[:, : 3 * chunks], after[:, : 3 * chunks])
        other[:, seen - 1] += 1
        after = net.encode(other, torch.tensor([96])).states
        assert not torch.allclose(before[:, : 3 * chunks], after[:, : 3 * chunks])


def test_the_past_beyond_the_left_context_is_forgotten():
    """Through two layers a state reaches at most twice the left context and the tails."""
    net = net_with(Context(chunk=2, right=0, left=4))
    features = noise(net, 1, 200)
    other = features.clone()
    other[:, :40] += 1
    states = [net.encode(x, torch.tensor([200])).states for x in (features, other)]
    assert not torch.allclose(states[0][:, 10:12], states[1][:, 10:12])
    torch.testing.assert_close(states[0][:, 30:], states[1][:, 30:])


def test_what_is_kept_never_grows():
    net = net_with(Context(chunk=3, right=1, left=6))
    _, kept = heard(net, noise(net, 1, 400))
    shapes = {tuple(tensor.shape for tensor in stream) for stream in kept}
    assert len(shapes) == 1
    assert kept[-1][3].tolist() == [6]


def test_streams_of_different_age_share_a_batch():
    net = net_with(Context(chunk=3, right=1, left=6))
    window, features = 4 * 4 + 3, noise(net, 1, 100)
    with torch.no_grad():
        old = net.begin_stream(1)
        for start in (0, 12):
            _, old = net.hear(features[:, start : start + window], torch.tensor([window]), old)
        young = net.begin_stream(1)
        both = tuple(torch.cat(pair) for pair in zip(old, young, strict=True))
        third, first = features[:, 24 : 24 + window], features[:, :window]
        lengths = torch.tensor([window, window])
        together, _ = net.hear(torch.cat([third, first]), lengths, both)
        alone, _ = net.hear(third, lengths[:1], old)
        fresh, _ = net.hear(first, lengths[:1], young)
    torch.testing.assert_close(together.states[:1], alone.states)
    torch.testing.assert_close(together.states[1:], fresh.states)


def test_mask_of_blocks_against_its_definition():
    context, states = Context(chunk=2, right=1, left=3), 7
    blocks = Blocks(context, torch.tensor([states]), states)
    assert blocks.places.tolist() == [0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8]
    for i, query in enumerate(blocks.places.tolist()):
        block = i // 3
        for j, key in enumerate(blocks.places.tolist()):
            ahead = j % 3 == 2
            own = j // 3 == block
            past = not ahead and 2 * block - 3 <= key < 2 * block
            expected = (own or past) and key < states
            assert (blocks.bias[0, 0, i, j] == 0) == expected, (query, key)


def test_training_draws_every_context():
    net = tiny("incremental")
    drawn = {net.draw() for _ in range(300)}
    assert drawn == {Context(c, r, left) for c in (2, 4) for r in (0, 2) for left in (4, 8)}


def test_every_batch_of_training_is_heard_in_the_context_drawn_for_it(monkeypatch):
    net = tiny("incremental")
    features, lengths = noise(net, 2, 60), torch.tensor([60, 44])
    contexts = Context(2, 0, 4), Context(4, 2, 8)
    told = [net.encode(features, lengths, context).states for context in contexts]
    assert not torch.allclose(*told)
    for context, expected in zip(contexts, told, strict=True):
        monkeypatch.setattr(net, "draw", lambda context=context: context)
        torch.testing.assert_close(
            net.encode(features, lengths).states, expected, atol=1e-5, rtol=1e-4
        )
    net.eval()  # at work it is the context of its settings
    own = net.encode(features, lengths, net.config.context).states
    torch.testing.assert_close(net.encode(features, lengths).states, own)


def test_it_cannot_compress():
    with pytest.raises(DragomanError, match="cannot compress"):
        replace(tiny("incremental").config, ctc_compression=True)


def test_boundary_targets():
    ends = torch.tensor([[40.0, 41.0, 100.0, 900.0], [10.0, -1.0, -1.0, -1.0]])
    targets = boundary_targets(ends, torch.tensor([5, 3]), size=6, state_ms=40)
    assert targets.tolist() == [[1, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0]]


def test_neighbouring_states_fire_once():
    assert fires(torch.tensor([[1.0, 2.0, -1.0, 3.0, -2.0, 0.0]]))[0].tolist() == [
        *(True, False, False),
        *(True, False, False),
    ]


def test_the_head_learns_where_words_end():
    torch.manual_seed(0)
    states, targets = torch.randn(4, 30, 8), torch.zeros(4, 30)
    targets[:, ::6] = 1
    states[..., 0] += 3 * targets  # a word end looks different
    head, lengths = BoundaryHead(8), torch.full((4,), 30)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(60):
        optimiser.zero_grad()
        boundaries(head(states), targets, lengths, emphasis=6.0).backward()
        optimiser.step()
    found = head(states) > 0
    assert ((found == (targets == 1)).float().mean()) > 0.9

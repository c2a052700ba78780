"""Moonshine's encoder before a text model: padding does not matter, nor what lies further ahead."""

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.grafted import Grafted, GraftedConfig
from dragoman.train.nets.layers import HIDDEN
from dragoman.train.nets.moonshine import states_in

SMALL = {
    "size": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "heads": 4,
    "ffn": 48,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "ears_size": 24,
    "ears_layers": 2,
    "ears_heads": 2,
    "ears_ffn": 32,
    "ears_turning": 8,
}
CHUNKS = {"chunk": 16, "ahead": 8}  # four joined states at a time, and two ahead


def made(**settings: object) -> Grafted:
    torch.manual_seed(1)
    return Grafted(GraftedConfig(**SMALL | settings), Vocabularies(target=30, source=20)).eval()


def sound(seconds: float, seed: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.1 * torch.randn(int(16000 * seconds), generator=generator)


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, CHUNKS])
def test_what_is_heard_does_not_depend_on_padding(settings):
    net = made(**settings)
    short, long = sound(1.3), sound(2.2, seed=3)
    alone = net.encode(short[None], torch.tensor([len(short)]))
    padded = torch.nn.functional.pad(short, (0, len(long) - len(short)), value=0.5)
    beside = net.encode(torch.stack([long, padded]), torch.tensor([len(long), len(short)]))
    count = int(alone.lengths[0])
    assert beside.lengths.tolist() == [
        -(-int(states_in(torch.tensor(len(one)))) // 4) for one in (long, short)
    ]
    for one, other in (
        (beside.states, alone.states),
        (beside.ctc_logits, alone.ctc_logits),
    ):
        torch.testing.assert_close(one[1, :count], other[0, :count], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(one[0, :count], other[0, :count], atol=1e-2)


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 3])
def test_a_chunk_sees_so_far_ahead_and_no_further(layers):
    """Rows come as blocks of a chunk and those ahead of it: a block sees itself and chunks before,
    but not what those saw ahead."""
    net = made(**CHUNKS, encoder_layers=layers, ctc_layer=1)
    rows = torch.randn(1, 4 * 24, 24, generator=torch.Generator().manual_seed(4))
    lengths = torch.tensor([60])
    states = net.listened(rows, lengths).states

    def changed(first: int, count: int) -> list[bool]:
        """For each chunk, whether it notices that rows are others."""
        other = rows.clone()
        other[:, first : first + count] += torch.arange(24.0)  # a norm would undo a constant
        now = net.listened(other, lengths).states
        pairs = zip(states[:, :15].split(4, 1), now[:, :15].split(4, 1), strict=True)
        return [not torch.allclose(a, b, atol=1e-5) for a, b in pairs]

    later = layers > 1  # then they see it in what the second chunk has become
    assert changed(24, 16) == [False, True, True, True]  # the second chunk
    assert changed(40, 8) == [False, True, later, later]  # what it sees ahead
    assert changed(72 + 12, 12) == [False] * 4  # padding: the last of 60 states is row 72 + 11


@torch.no_grad()
def test_one_goes_on_reading_where_one_stopped():
    """Chunk by chunk with kept keys and values, it is what it is at once."""
    net = made(**CHUNKS)
    rows = torch.randn(2, 3 * 24, 24, generator=torch.Generator().manual_seed(5))
    lengths = torch.tensor([48, 48])
    wanted = net.listened(rows, lengths)
    groups = net.groups(net.encoder.norm(rows)).unflatten(1, (3, 6))
    past = (torch.zeros(2, 3, 4, 0, 8),) * 2
    states, labels = [], []
    for block in range(3):
        places = (4 * block + torch.arange(6)).expand(2, 6)
        bias = torch.zeros(2, 1, 1, 4 * block + 6)
        if block == 2:  # nothing follows the last chunk
            bias[..., -2:] = HIDDEN
        encoded, kept = net.read_on(groups[:, block], places, bias, past)
        past = tuple(torch.cat([a, b[:, :, :, :4]], 3) for a, b in zip(past, kept, strict=True))
        states.append(encoded.states[:, :4])
        labels.append(encoded.ctc_logits[:, :4])
    torch.testing.assert_close(torch.cat(states, 1), wanted.states, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.cat(labels, 1), wanted.ctc_logits, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_units_are_heard_by_the_layer_that_is_named():
    first, last = made(ctc_layer=1), made(ctc_layer=3)
    last.load_state_dict(first.state_dict())
    rows, lengths = torch.randn(1, 16, 24), torch.tensor([16])
    heard = first.listened(rows, lengths).ctc_logits
    assert not torch.allclose(heard, last.listened(rows, lengths).ctc_logits, atol=1e-3)
    first.layers[1].feed_forward.wide.weight.add_(1.0)
    torch.testing.assert_close(first.listened(rows, lengths).ctc_logits, heard)
    assert made(ctc_layer=0).listened(rows, lengths).ctc_logits is None


@torch.no_grad()
def test_states_are_hidden_in_training_only():
    net = made(hidden=0.5)
    rows, lengths = torch.randn(1, 160, 24), torch.tensor([160])
    once, again = (net.listened(rows, lengths).states for _ in range(2))
    torch.testing.assert_close(once, again, rtol=0, atol=0)
    net.train()
    once, again = (net.listened(rows, lengths).states for _ in range(2))
    assert not torch.allclose(once, again, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ctc_layer": 4}, "CTC cannot listen to layer 4 of 3"),
        ({"chunk": 18, "ahead": 6}, "4 at a time cannot be joined"),
        ({"chunk": 20, "ahead": 8}, "attention wants a multiple of 8"),
    ],
)
def test_what_cannot_be_is_a_sentence(settings, said):
    with pytest.raises(DragomanError, match=said):
        made(**settings)

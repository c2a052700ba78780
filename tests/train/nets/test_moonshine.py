"""Moonshine's shape in torch: what is heard does not depend on padding, positions turn pairs."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession, SessionOptions

import dragoman.talks
from dragoman.errors import DragomanError
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.blocks import Blocks
from dragoman.train.nets.moonshine import (
    SPAN,
    STEM,
    Moonshine,
    MoonshineConfig,
    angles,
    hide,
    states_in,
    turned,
    turns,
)

SMALL = MoonshineConfig(
    size=32, heads=2, encoder_layers=2, decoder_layers=2, ffn=48, turning=8, dropout=0.0
)


@pytest.fixture
def net() -> Moonshine:
    torch.manual_seed(1)
    return Moonshine(SMALL, Vocabularies(target=30, source=30)).eval()


@pytest.fixture
def sound() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(2).normal(0, 0.1, 16000).astype(np.float32))


@torch.no_grad()
def test_what_is_heard_does_not_depend_on_padding(net, sound):
    alone = net.encode(sound[None, :9000], torch.tensor([9000]))
    beside = net.encode(
        torch.stack([sound, torch.nn.functional.pad(sound[:9000], (0, 7000))]),
        torch.tensor([16000, 9000]),
    )
    count = int(alone.lengths[0])
    assert beside.lengths[1] == count
    torch.testing.assert_close(
        beside.states[1, :count], alone.states[0, :count], rtol=1e-4, atol=1e-5
    )
    assert not torch.allclose(beside.states[0, :count], alone.states[0, :count], atol=1e-2)


def test_so_many_states_are_hidden_in_whole_spans():
    torch.manual_seed(4)
    states = torch.ones(400, 200, 3)
    seen = hide(states, 0.3)
    assert set(seen.unique().tolist()) == {0.0, 1.0}
    assert (seen.amin(2) == seen.amax(2)).all()  # all of a state, or nothing
    share = 1 - float(seen.mean())
    assert abs(share - 0.3) < 0.02
    assert abs(1 - float(seen[:, 0].mean()) - 0.3) < 0.1  # the first one as often as others
    for row in seen[:, :, 0]:
        runs = "".join(str(int(one)) for one in row).strip("0").split("1")
        assert all(len(run) >= SPAN for run in runs if run)


def test_states_are_hidden_in_training_alone(sound):
    torch.manual_seed(5)
    hiding = Moonshine(replace(SMALL, hidden=0.5), Vocabularies(target=30, source=30))
    heard = (sound[None], torch.tensor([16000]))
    with torch.no_grad():
        first, again = (hiding.train().encode(*heard).states for _ in range(2))
        assert not torch.allclose(first, again)
        hiding.eval()
        torch.testing.assert_close(hiding.encode(*heard).states, hiding.encode(*heard).states)
        states, lengths = hiding.listen(*heard)
        torch.testing.assert_close(
            hiding.encode(*heard).states, hiding.encoder.understood(states, lengths)
        )


CHUNKS = replace(SMALL, chunk=11, ahead=5)


@torch.no_grad()
def test_a_chunk_sees_what_is_before_it_itself_and_so_much_ahead():
    """Whatever else changes, its states stay; what it sees, it does see."""
    torch.manual_seed(6)
    encoder = Moonshine(CHUNKS, Vocabularies(target=30, source=30)).double().eval().encoder
    frames, lengths = torch.randn(1, 40, SMALL.size).double(), torch.tensor([40])

    def states(x: torch.Tensor) -> torch.Tensor:
        blocks = Blocks(CHUNKS.context, lengths, 40)
        x = encoder.through(encoder.layers[: encoder.still], blocks.lay(x), lengths, blocks)
        return encoder.understood(x, lengths)[0, :40]

    wanted = states(frames)
    for changed in range(40):
        other = frames.clone()
        other[0, changed] *= -1
        moved = (states(other) - wanted).abs().amax(1) > 1e-12
        first = next(at for at in range(0, 40, 11) if changed < at + 11 + 5)  # chunk that sees it
        assert moved.tolist() == [at >= first for at in range(40)]


@torch.no_grad()
def test_chunks_do_not_depend_on_padding(sound):
    torch.manual_seed(7)
    net = Moonshine(replace(CHUNKS, ctc=True), Vocabularies(target=30, source=30)).eval()
    alone = net.encode(sound[None, :9000], torch.tensor([9000]))
    beside = net.encode(
        torch.stack([sound, torch.nn.functional.pad(sound[:9000], (0, 7000))]),
        torch.tensor([16000, 9000]),
    )
    count = int(alone.lengths[0])
    torch.testing.assert_close(
        beside.states[1, :count], alone.states[0, :count], rtol=1e-4, atol=1e-5
    )
    assert not beside.states.isnan().any()
    assert alone.ctc_logits.shape[1] == alone.states.shape[1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ahead": 8}, "chunk to 1 or more"),
        ({"chunk": 10, "ahead": 5}, "15 states together"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(DragomanError, match=said):
        replace(SMALL, **wrong)


def test_states_are_counted_as_the_convolutions_make_them():
    for samples in (1000, 5000, 5123, 16000):
        length = samples
        for kernel, stride in STEM:
            length = len(range(0, length - kernel + 1, stride))
        assert int(states_in(torch.tensor(samples))) == length


@torch.no_grad()
def test_steps_are_what_teacher_forcing_gives(net, sound):
    encoded = net.encode(sound[None].repeat(2, 1), torch.tensor([16000, 12000]))
    tokens = torch.tensor([[1, 5, 9, 7], [1, 8, 4, 3]])
    whole = net.decode(tokens, encoded)
    memory, cache, parts = net.memory(encoded.states), net.begin(2), []
    for begin, end in ((0, 1), (1, 3), (3, 4)):
        step = net.step(tokens[:, begin:end], memory, encoded.lengths, cache)
        cache = step.cache
        parts.append(step.logits)
        torch.testing.assert_close(step.attention.sum(-1), torch.ones(2, 2, end - begin))
        assert float(step.attention[1, :, :, int(encoded.lengths[1]) :].max()) < 1e-6
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-4)


def test_positions_turn_pairs_as_complex_numbers():
    """Neighbours are a complex number that is multiplied by exp(i position angle)."""
    x = torch.randn(1, 1, 3, 6, generator=torch.Generator().manual_seed(3))
    by, first = angles(4), 5
    found = turned(x, turns(by, torch.arange(first, first + 3)))[0, 0]
    for row in range(3):
        for pair in range(2):
            number = complex(*x[0, 0, row, 2 * pair : 2 * pair + 2].tolist())
            angle = (first + row) * 10000.0 ** (-2 * pair / 4)
            wanted = number * complex(math.cos(angle), math.sin(angle))
            here = complex(*found[row, 2 * pair : 2 * pair + 2].tolist())
            assert abs(here - wanted) < 1e-5
        torch.testing.assert_close(found[row, 4:], x[0, 0, row, 4:])


@pytest.mark.weights
@torch.no_grad()
def test_published_weights_hear_what_the_published_graph_hears():
    from dragoman.audio.source import read_audio
    from dragoman.store import get
    from dragoman.train.foreign import weights_in

    folder = get("moonshine-tiny")
    weights = weights_in(folder)
    size = {"size": 288, "encoder_layers": 6, "decoder_layers": 6, "ffn": 1152}
    net = Moonshine(MoonshineConfig(**size), Vocabularies(32768, 30)).eval()
    net.load_state_dict(weights)
    heard = read_audio(Path(dragoman.talks.__file__).parent / "report.en.ogg", 0, 4)
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(folder / "encoder_model.onnx"), options)
    (wanted,) = session.run(None, {"input_values": heard[None]})
    states = net.encode(torch.from_numpy(heard)[None], torch.tensor([len(heard)])).states
    found = states[0, : wanted.shape[1]].numpy()
    # The graph rounds what it multiplies to eight bits, the net does not.
    assert np.linalg.norm(found - wanted[0]) < 0.15 * np.linalg.norm(wanted[0])

"""MMA and CAAT at work write what the nets would, as soon as they may.

The runtime's decisions are tested on the nets themselves behind the runtime's interface; that an
exported net is the net is the exporter's own check, made here for an MMA.
"""

import numpy as np
import pytest
import torch

from dragoman.models import onnx_caat, onnx_mma
from dragoman.models.caat_search import Beam, Hypothesis, search_group
from dragoman.models.onnx_net import OnnxNet, Stepped
from dragoman.train.export import Surroundings, describe, export
from dragoman.train.nets.base import BOS, EOS
from dragoman.train.nets.mma import Mma, MmaConfig
from tests.train.nets.tiny_nets import TINY, VOCABULARIES, tiny


def as_arrays(tensors):
    return tuple(tensor.detach().numpy() for tensor in tensors)


class Behind(OnnxNet):
    """A net behind the interface of an exported one."""

    def __init__(self, net):
        self.net = net
        self.config = describe(net, Surroundings())

    @torch.no_grad()
    def step(self, tokens, memory, lengths, cache, final=None):
        arrays = (tokens, lengths, *memory, *cache)
        tokens, lengths, *rest = (torch.from_numpy(np.ascontiguousarray(a)) for a in arrays)
        kept = tuple(rest[: len(memory)]), lengths, tuple(rest[len(memory) :])
        decides = () if final is None else (torch.from_numpy(final),)
        step = self.net.step(tokens, *kept, *decides)
        write = None if final is None else step.write.numpy()
        log_probs = step.logits.log_softmax(-1).numpy()
        return Stepped(log_probs, step.attention.numpy(), as_arrays(step.cache), write)


@pytest.fixture(scope="module")
def mma():
    """A net whose heads read a while before they let it write."""
    name, settings = TINY["transformer"]
    torch.manual_seed(3)
    config = MmaConfig(encoder=name, encoder_settings=settings, decoder_layers=1, ratio=2)
    net = Mma(config, VOCABULARIES).eval()
    return net, Behind(net)


@pytest.fixture(scope="module")
def caat():
    net = tiny("caat").eval()
    return net, Behind(net)


@pytest.mark.slow
def test_an_exported_mma_is_the_net(mma, tmp_path):
    net, behind = mma
    export(net, tmp_path / "net", Surroundings())  # compares both, refuses what differs
    exported = OnnxNet(tmp_path / "net", threads=1)
    assert exported.config == behind.config
    memory = as_arrays(net.memory(torch.randn(1, 9, 32, generator=torch.manual_seed(4))))
    for final in (False, True):
        writings = [
            onnx_mma.write(one, memory, 9, onnx_mma.beginning(one), final=final, most=6)
            for one in (exported, behind)
        ]
        assert writings[0].tokens == writings[1].tokens


@torch.no_grad()
def written_offline(net, memory, states, most):
    """Greedy, the whole source known: tokens and how much each had to wait for."""
    cache, token, said = net.begin(1), BOS, []
    while len(said) < most:
        step = net.step(torch.tensor([[token]]), memory, torch.tensor([states]), cache)
        row = step.logits[0, -1].clone()
        row[[0, 1, 3]] = -torch.inf
        token = int(row.argmax())
        if token == EOS:
            break
        said.append((token, int(step.delays)))
        cache = step.cache
    return said


@torch.no_grad()
def test_mma_writes_what_the_net_writes_when_its_heads_let_it(mma):
    net, exported = mma
    states = torch.randn(1, 24, 32, generator=torch.manual_seed(1))
    memory = net.memory(states)
    expected = written_offline(net, memory, 24, 8)
    point, said = onnx_mma.beginning(exported), []
    for heard in range(25):
        final = heard == 24
        piece = exported.cut(as_arrays(memory), slice(max(1, heard)))
        writing = onnx_mma.write(
            exported, piece, heard, point, final=final, most=8 - len(said), avoid_end=False
        )
        point = writing.points[-1]
        said += [(token, heard) for token in writing.tokens]
    assert [token for token, _ in said] == [token for token, _ in expected]
    assert expected
    assert [at for _, at in said] == [needed for _, needed in expected]
    assert said[0][1] < 24  # not all of it at the end


@torch.no_grad()
def test_mma_may_be_kept_from_ending_and_from_writing_too_much(mma):
    net, exported = mma
    memory = as_arrays(net.memory(torch.randn(1, 10, 32, generator=torch.manual_seed(2))))
    begin = onnx_mma.beginning(exported)
    nothing = onnx_mma.write(exported, memory, 0, begin, final=False, most=5)
    assert nothing.tokens == ()
    some = onnx_mma.write(exported, memory, 10, begin, final=False, most=3, avoid_end=True)
    assert len(some.tokens) <= 3
    assert EOS not in some.tokens
    assert len(some.points) == len(some.tokens) + 1
    assert not some.ended


@torch.no_grad()
def test_caat_searches_as_the_net_does(caat):
    net, exported = caat
    encoded = net.encode(torch.randn(1, 60, 8, generator=torch.manual_seed(1)), torch.tensor([60]))
    memory, total, step = net.memory(encoded.states), 15, net.config.decision
    assert int(encoded.lengths) == total
    beam = Beam(within=3, between=2, max_tokens=4)

    survivors = [Hypothesis((BOS,), 0.0, (), net.begin(1))]
    expected = []
    for seen in range(step, total + 1, step):

        def score(hypotheses, seen=seen):
            made = [
                net.step(torch.tensor([[h.tokens[-1]]]), memory, torch.tensor([seen]), h.state)
                for h in hypotheses
            ]
            rows = torch.stack([one.logits[0, -1].log_softmax(-1) for one in made])
            rows[:, [0, 3]] = -torch.inf
            return rows.numpy(), [one.cache for one in made]

        final = seen == total
        survivors = search_group(survivors, score, blank=BOS, end=EOS, final=final, beam=beam)
        expected.append([one.tokens for one in survivors])

    at = onnx_caat.beginning(exported)
    found = []
    for heard in range(1, total + 1):
        piece = exported.cut(as_arrays(memory), slice(heard))
        after = onnx_caat.search(exported, piece, heard, at, final=heard == total, beam=beam)
        if after.groups > at.groups:
            found.append([one.tokens for one in after.survivors])
        at = after
    assert found == expected
    assert at.ended
    np.testing.assert_allclose(
        [one.score for one in at.survivors], [one.score for one in survivors], rtol=1e-4
    )


@torch.no_grad()
def test_a_source_that_ends_with_a_group_still_ends_the_sentence(caat):
    net, exported = caat
    states = torch.randn(1, 6, 32, generator=torch.manual_seed(2))
    memory = as_arrays(net.memory(states))
    at = onnx_caat.search(exported, memory, 6, onnx_caat.beginning(exported), final=False)
    assert at.groups == 2
    assert not at.ended
    end = onnx_caat.search(exported, memory, 6, at, final=True)
    assert end.ended
    assert end.tokens[: len(at.tokens)] == at.tokens
    empty = onnx_caat.search(exported, memory, 0, onnx_caat.beginning(exported), final=True)
    assert empty.ended
    assert empty.tokens == ()

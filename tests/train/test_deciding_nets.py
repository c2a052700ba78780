"""MMA and CAAT at work write what the nets would, as soon as they may.

The runtime's searches are tested on the nets themselves behind the runtime's interface; that an
exported net is the net is shown elsewhere.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman.models.exported.caat_search import Hypothesis, scored, search_group
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.net import BOS, EOS, OnnxNet, Stepped
from dragoman.models.exported.stream import Decoded, Encoded
from dragoman.models.exported.transducer import BEAM, read_groups
from dragoman.models.search import Prompt, search
from dragoman.train.export import describe
from dragoman.train.exporting import Surroundings
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
        decides = self.config.decides == "monotonic"
        step = self.net.step(tokens, *kept, *([torch.from_numpy(final)] if decides else []))
        log_probs = step.logits.log_softmax(-1).numpy()
        write = step.write.numpy() if decides else None
        return Stepped(log_probs, step.attention.numpy(), as_arrays(step.cache), write)


@torch.no_grad()
def written_offline(net, memory, states, most):
    """Greedy, the whole source known: tokens and how much each had to wait for."""
    cache, token, said = net.begin(1), BOS, []
    while len(said) < most:
        step = net.step(torch.tensor([[token]]), memory, torch.tensor([states]), cache)
        row = step.logits[0, -1].clone()
        row[[0, BOS]] = -torch.inf
        token = int(row.argmax())
        if token == EOS:
            break
        said.append((token, int(step.delays)))
        cache = step.cache
    return said


@torch.no_grad()
def test_mma_writes_as_soon_as_its_heads_let_it():
    name, settings = TINY["transformer"]
    torch.manual_seed(3)
    config = MmaConfig(encoder=name, encoder_settings=settings, decoder_layers=1, ratio=2)
    net = Mma(config, VOCABULARIES).eval()
    behind = Behind(net)
    memory = net.memory(torch.randn(1, 24, 32, generator=torch.manual_seed(1)))
    expected = written_offline(net, memory, 24, 8)

    cache, last, said = behind.begin(1), BOS, []
    for heard in range(1, 25):
        piece = behind.cut(as_arrays(memory), slice(heard))
        prompts = [Prompt((last,), 8 - len(said), final=heard == 24)]
        texts = Texts(behind, [piece], [heard], prompts, [cache])
        found = search(texts, prompts, 1)[0]
        said += [(token, heard) for token in found.tokens]
        if found.tokens:
            last, cache = found.tokens[-1], texts.trails[0][len(found.tokens)]
    assert said == expected
    assert 1 < said[0][1] < 24  # neither at once nor at the end


@pytest.fixture(scope="module")
def caat():
    net = tiny("caat").eval()
    return net, Behind(net)


def searched_by_hand(net, memory, total):
    """The best hypothesis after each group of a source of `total` states."""
    survivors, best = [Hypothesis((BOS,), 0.0, (), net.begin(1))], []
    step = net.config.decision
    for seen in range(step, total + step, step):
        lengths = torch.tensor([min(seen, total)])

        def score(hypotheses, lengths=lengths):
            made = [
                net.step(torch.tensor([[h.tokens[-1]]]), memory, lengths, h.state)
                for h in hypotheses
            ]
            rows = torch.stack([one.logits[0, -1].log_softmax(-1) for one in made])
            rows[:, 0] = -torch.inf
            return rows.numpy(), [one.cache for one in made]

        final = seen >= total
        search = search_group(survivors, blank=BOS, end=EOS, final=final, beam=BEAM)
        survivors = scored(search, score)
        best.append(survivors[0].tokens)
    return best


def speaker(encoded: Encoded) -> SimpleNamespace:
    """What a transducer looks at of a stream."""
    return SimpleNamespace(window=SimpleNamespace(said=[]), encoded=encoded, decoded=Decoded())


@torch.no_grad()
@pytest.mark.parametrize("total", [7, 8])  # groups of 3
def test_caat_searches_every_group_once_it_is_heard(caat, total):
    net, behind = caat
    states = torch.randn(1, total, 32, generator=torch.manual_seed(1))
    memory = net.memory(states)
    expected = searched_by_hand(net, memory, total)
    stream, found = speaker(Encoded()), []
    for heard in range(1, total + 1):
        stream.encoded.memory = behind.cut(as_arrays(memory), slice(heard))
        stream.encoded.states = heard
        before = stream.decoded.groups
        new = read_groups(behind, stream, final=heard == total)
        stream.window.said += new.tokens
        assert bool(new.tokens) <= (stream.decoded.groups > before)
        if stream.decoded.groups > before:
            found.append((BOS, *stream.window.said))
    assert found == expected
    assert new.ended


@torch.no_grad()
def test_a_source_that_ends_with_a_group_still_ends_the_sentence(caat):
    """The group was searched before anybody knew that it is the last."""
    net, behind = caat
    memory = as_arrays(net.memory(torch.randn(1, 6, 32, generator=torch.manual_seed(2))))
    stream = speaker(Encoded(memory, 6))
    first = read_groups(behind, stream, final=False)
    assert stream.decoded.groups == 2
    assert not first.ended
    stream.window.said += first.tokens
    assert read_groups(behind, stream, final=True).ended
    assert stream.decoded.groups == 2

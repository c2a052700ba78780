"""A net behind Moonshine's encoder as the folder that `models/grafted` reads: graphs of its layers
and of its decoder; the encoder is the store's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.models.exported.config import ExportedNet, Kept, Languages
from dragoman.models.grafted.encoder import GraftedNet
from dragoman.train.exporting import Surroundings, refuse_difference
from dragoman.train.graphs import DYNAMIC, DecoderGraph, write
from dragoman.train.nets.grafted import Grafted
from dragoman.train.quantise import quantise

Example = tuple[Any, ...]


class GraftGraph(nn.Module):
    """Groups of states that follow others."""

    def __init__(self, net: Grafted):
        super().__init__()
        self.net = net

    def forward(
        self, groups: Tensor, places: Tensor, bias: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, ...]:
        encoded, kept = self.net.read_on(groups, places, bias, (keys, values))
        heard = encoded.ctc_logits
        labels = torch.zeros_like(places) if heard is None else heard.argmax(-1)
        return (labels, *(one + 0 for one in self.net.memory(encoded.states)), *kept)


def write_grafted(net: Grafted, folder: Path, around: Surroundings, *, int8: bool) -> None:
    """Write settings and graphs into a folder that has the units, and compare it with the net."""
    if not around.encoder:
        raise DragomanError(
            "Of a grafted net only what stands behind Moonshine's encoder is exported: begin it "
            "with init: store:moonshine-base, and freeze the encoder."
        )
    described(net, around).write(folder)
    write(GraftGraph(net), *example(net), folder)
    write(DecoderGraph(net), *step_example(net), folder)
    for part, off in compare(net, folder):
        refuse_difference(part, off, int8=False)
    if int8:
        quantise(folder)
        for part, off in compare(net, folder):
            refuse_difference(part, off, int8=True)


def described(net: Grafted, around: Surroundings) -> ExportedNet:
    config = net.config
    width = config.size // config.heads
    return ExportedNet(
        net="grafted",
        settings=asdict(config),
        target_units=net.vocabularies.target,
        source_units=net.vocabularies.source,
        input="states",
        bands=0,
        memory=2,
        memory_time=net.memory_time,
        cache=(Kept("float32", (config.decoder_layers, config.heads, 0, width)),) * 2,
        chunks=None,
        attention_layer=config.decoder_layers - 1,
        ctc=net.ctc is not None,
        boundaries=False,
        suffix=around.suffix,
        source_suffix=around.source_suffix,
        source_plain=around.source_plain,
        languages=Languages(around.source, around.target),
        encoder=around.encoder,
        state_ms=config.state_ms,
    )


def example(net: Grafted, count: int = 5, before: int = 3) -> tuple[Example, Example]:
    """What the first graph takes, and which axes of it are free."""
    config = net.config
    generator = torch.Generator().manual_seed(count)
    groups = torch.randn(2, count, config.joined * config.ears_size, generator=generator)
    places = before + torch.arange(count).expand(2, count)
    past = torch.randn(
        2,
        config.encoder_layers,
        config.heads,
        before,
        config.size // config.heads,
        generator=generator,
    )
    inputs = (groups, places.contiguous(), torch.zeros(2, 1, 1, before + count), past, past.clone())
    both, grown = {0: DYNAMIC, 1: DYNAMIC}, {0: DYNAMIC, 3: DYNAMIC}
    return inputs, (both, both, grown, grown, grown)


@torch.no_grad()
def step_example(net: Grafted) -> tuple[Example, Example]:
    """The same of a step after some tokens, so that the cache is not empty."""
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(2, 9, net.config.size, generator=generator)
    memory, lengths = net.memory(states), torch.tensor([9, 8])
    before, tokens = torch.full((2, 5), 4), torch.full((2, 3), 5)
    cache = net.step(before, memory, lengths, net.begin(2)).cache
    grown = {0: DYNAMIC, 3: DYNAMIC}
    axes = ({0: DYNAMIC, 1: DYNAMIC}, {0: DYNAMIC}, (grown, grown), (grown, grown))
    return (tokens, lengths, memory, cache), axes


@torch.no_grad()
def compare(net: Grafted, folder: Path) -> Iterator[tuple[str, float]]:
    """By how much the graphs in a folder differ from the net on other sizes than they were traced
    with: what they make of states, as a share of its size; what is said next, as a share of
    probability."""
    there = GraftedNet(folder, threads=1)
    inputs, _ = example(net, count=11, before=7)
    _, *wanted = GraftGraph(net)(*inputs)
    _, *found = there.read([one.numpy() for one in inputs])
    for here, made in zip(wanted, found, strict=True):
        yield "encoder", float(np.linalg.norm(made - here.numpy()) / here.norm())
    memory = tuple(wanted[:2])
    tokens, lengths = torch.full((2, 1), 4), torch.tensor([11, 6])
    step = net.step(tokens, memory, lengths, net.begin(2))
    arrays = tuple(one.numpy() for one in memory)
    stepped = there.step(tokens.numpy(), arrays, lengths.numpy(), there.begin(2))
    moved = np.abs(np.exp(stepped.log_probs) - step.logits.softmax(-1).numpy()).sum(-1)
    yield "decoder", float(moved.max()) / 2

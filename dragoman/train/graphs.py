"""The graphs of a net: traced by torch, written as ONNX, free in batch, time and tokens."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from dragoman.train.nets.base import Encoded, HearsChunks, Net
from dragoman.train.nets.recurrent import lstm_in_onnx

DYNAMIC = torch.export.Dim.DYNAMIC


def ears(net: Net) -> Any:
    """The net that listens: itself, or the one an MMA borrows its encoder from."""
    return getattr(net, "source", net)


def bands_of(net: Net) -> int:
    """Mel bands of a speech net, 0 for a text net."""
    return getattr(ears(net).config, "features", 0)


def in_chunks(net: Net) -> HearsChunks | None:
    """The net as one that hears chunks; None: it hears all at once."""
    return cast(HearsChunks, net) if hasattr(ears(net), "begin_stream") else None


class EncoderGraph(nn.Module):
    """All of the source at once."""

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        return readable(self.net, self.net.encode(source, lengths))


class ChunkGraph(nn.Module):
    """One chunk of the source, with what is kept from one to the next."""

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(
        self, source: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        net: Any = self.net  # one that hears chunks
        encoded, stream = net.hear(source, frames, stream)
        return (*readable(self.net, encoded), *stream)


def readable(net: Net, encoded: Encoded) -> tuple[Tensor, ...]:
    """What the runtime wants of an encoding; `+ 0`: an output must not be an input."""
    outputs = [encoded.lengths + 0]
    if encoded.ctc_logits is not None and encoded.ctc_lengths is not None:
        outputs += [encoded.ctc_logits.argmax(-1), encoded.ctc_lengths + 0]
    if encoded.boundary_logits is not None:
        outputs.append(torch.sigmoid(encoded.boundary_logits))
    return (*outputs, *(tensor + 0 for tensor in net.memory(encoded.states)))


class DecoderGraph(nn.Module):
    """U new tokens after those in the cache."""

    def __init__(self, net: Net):
        super().__init__()
        self.net = net

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        memory: tuple[Tensor, ...],
        cache: tuple[Tensor, ...],
        final: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        net: Any = self.net  # with `final`, one that decides for itself
        ends = () if final is None else (final,)
        step = net.step(tokens, memory, lengths, cache, *ends)
        decisions = () if final is None else (step.write,)
        return (step.logits.log_softmax(-1), step.attention, *decisions, *step.cache)


def write_graphs(net: Net, folder: Path) -> None:
    batch = {0: DYNAMIC}
    source, lengths = source_of(net, frames=44)
    if (chunked := in_chunks(net)) is not None:
        stream = chunked.begin_stream(2)
        kept = tuple(batch for _ in stream)
        write(ChunkGraph(net), (source, lengths, stream), (batch, batch, kept), folder)
    else:
        write(EncoderGraph(net), (source, lengths), ({0: DYNAMIC, 1: DYNAMIC}, batch), folder)

    tokens, memory, lengths, cache = step_inputs(net)
    time, grown = {0: DYNAMIC, net.memory_time: DYNAMIC}, growing_axes(net)
    inputs: list[Any] = [tokens, lengths, memory, cache]
    units = batch if net.decides == "monotonic" else {0: DYNAMIC, 1: DYNAMIC}
    axes: list[Any] = [units, batch, tuple(time for _ in memory)]
    axes.append(tuple({0: DYNAMIC} | dict.fromkeys(some, DYNAMIC) for some in grown))
    if net.decides == "monotonic":
        inputs.append(torch.tensor([True, False]))
        axes.append(batch)
    write(DecoderGraph(net), tuple(inputs), tuple(axes), folder)


def write(graph: nn.Module, inputs: tuple[Any, ...], axes: tuple[Any, ...], folder: Path) -> None:
    """One graph, every axis named in `axes` free."""
    import onnx

    path = folder / ("decoder.onnx" if isinstance(graph, DecoderGraph) else "encoder.onnx")
    with quiet(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            inputs,
            dynamo=True,
            dynamic_shapes=axes,
            custom_translation_table={torch.ops.dragoman.lstm.default: lstm_in_onnx},
            verbose=False,
        )
    assert program is not None  # as always with `dynamo`
    model = program.model_proto
    forget_origins(model)
    onnx.save(model, path)


def forget_origins(message: Any) -> None:
    """Drop where in the source each part of a graph, a protobuf message, was made: that names
    folders of this machine."""
    for name in ("metadata_props", "doc_string"):
        if name in message.DESCRIPTOR.fields_by_name:
            message.ClearField(name)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in (value,) if hasattr(value, "DESCRIPTOR") else value:
                forget_origins(part)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what torch's exporter tells its developers."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def growing_axes(net: Net) -> list[list[int]]:
    """Which axes of every cache tensor grow with the tokens said."""
    tokens, memory, lengths, cache = step_inputs(net)
    after = net.step(tokens, memory, lengths, cache).cache
    pairs = zip(cache, after, strict=True)
    return [[i for i in range(a.ndim) if a.shape[i] != b.shape[i]] for a, b in pairs]


# ---------------------------------------------------------------- examples


def source_of(net: Net, frames: int) -> tuple[Tensor, Tensor]:
    """Something to hear: two items, the second shorter."""
    lengths = torch.tensor([frames, frames - 7])
    generator = torch.Generator().manual_seed(frames)
    if not bands_of(net):
        units = net.vocabularies.source
        return torch.randint(4, units, (2, frames), generator=generator), lengths
    if in_chunks(net) is not None:
        context = ears(net).config.context
        frames = 4 * (context.chunk + context.right) + 3
        lengths = torch.tensor([frames, frames - 7])
    return torch.randn(2, frames, bands_of(net), generator=generator), lengths


@torch.no_grad()
def states_of(net: Net) -> Tensor:
    source, lengths = source_of(net, frames=44)
    if (chunked := in_chunks(net)) is not None:
        return chunked.hear(source, lengths, chunked.begin_stream(2))[0].states
    return net.encode(source, lengths).states


@torch.no_grad()
def step_inputs(
    net: Net,
) -> tuple[Tensor, tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
    """A step after some tokens, so that the cache is not empty."""
    states = states_of(net)
    memory, lengths = net.memory(states), torch.tensor([states.shape[1], states.shape[1] - 1])
    units = 1 if net.decides == "monotonic" else 3  # who decides goes unit by unit
    before, tokens = torch.full((2, 5), 4), torch.full((2, units), 5)
    return tokens, memory, lengths, net.step(before, memory, lengths, net.begin(2)).cache

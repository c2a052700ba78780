"""From a trained net to a folder that runs without torch.

    encoder.onnx   features (or units) -> what the decoder reads; or one chunk of it, with caches
    decoder.onnx   new tokens and caches -> log-probabilities, attention, caches
    config.json    what the runtime must know (`models.exported.config`)
    target.model, source.model   the units

The folder appears once all of it is written and has been compared with the net.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.files import whole_folder
from dragoman.models.exported.config import Chunks, ExportedNet, Kept, Languages
from dragoman.models.exported.net import Arrays, Encoding, OnnxNet
from dragoman.train.export_grafted import write_grafted
from dragoman.train.export_moonshine import write_moonshine
from dragoman.train.exporting import Surroundings, refuse_difference
from dragoman.train.graphs import (
    bands_of,
    ears,
    in_chunks,
    source_of,
    states_of,
    step_inputs,
    write_graphs,
)
from dragoman.train.nets.base import Encoded, Net
from dragoman.train.nets.grafted import Grafted
from dragoman.train.nets.moonshine import Moonshine
from dragoman.train.nets.registry import NETS
from dragoman.train.quantise import quantise

TOLERANCE = 1e-4


def export(net: Net, folder: Path, around: Surroundings, *, int8: bool = False) -> None:
    """Write `net` to `folder`, which must not exist yet."""
    if folder.exists():
        raise DragomanError(f"{folder} exists already; remove it or choose another folder.")
    net = net.eval().float().cpu()
    with whole_folder(folder) as made:
        for path, name in ((around.target_units, "target"), (around.source_units, "source")):
            if path is not None:
                shutil.copyfile(path, made / f"{name}.model")
        if isinstance(net, Moonshine):
            write_moonshine(net, made, around, int8=int8)
            return
        if isinstance(net, Grafted):
            write_grafted(net, made, around, int8=int8)
            return
        describe(net, around).write(made)
        write_graphs(net, made)
        check(net, OnnxNet(made, threads=1))
        if int8:
            quantise(made)
            check_quantised(net, OnnxNet(made, threads=1))


# ---------------------------------------------------------------- what the runtime must know


def describe(net: Net, around: Surroundings) -> ExportedNet:
    """The `config.json` of a net."""
    names = {made: name for name, (_, made) in NETS.items()}
    memory, cache = net.memory(states_of(net)), net.begin(1)
    layers = net.step(*step_inputs(net)).attention.shape[1]
    # Compressed states have no time of their own; a transducer's drafts come without attention.
    timeless = getattr(ears(net).config, "ctc_compression", False) or net.decides == "transducer"
    return ExportedNet(
        net=names[type(net)],
        settings=asdict(net.config),
        target_units=net.vocabularies.target,
        source_units=net.vocabularies.source,
        input="speech" if bands_of(net) else "text",
        bands=bands_of(net),
        memory=len(memory),
        memory_time=net.memory_time,
        cache=kept(cache),
        chunks=chunks_of(net),
        attention_layer=-1 if timeless else min(3, layers - 1),
        ctc=getattr(ears(net), "ctc", None) is not None,
        boundaries=getattr(ears(net), "boundaries", None) is not None,
        decides=net.decides,
        decision=getattr(net.config, "decision", 0),
        keeps_past=net.keeps_past,
        suffix=around.suffix,
        source_suffix=around.source_suffix,
        source_plain=around.source_plain,
        languages=Languages(around.source, around.target),
    )


def chunks_of(net: Net) -> Chunks | None:
    if (chunked := in_chunks(net)) is None:
        return None
    context = ears(net).config.context
    return Chunks(context.chunk, context.right, kept(chunked.begin_stream(1)))


def kept(tensors: Sequence[Tensor]) -> tuple[Kept, ...]:
    names: dict[torch.dtype, Literal["float32", "int64"]]
    names = {torch.float32: "float32", torch.int64: "int64"}
    return tuple(Kept(names[tensor.dtype], tuple(tensor.shape[1:])) for tensor in tensors)


# ---------------------------------------------------------------- is it the same?


@torch.no_grad()
def check(net: Net, made: OnnxNet) -> None:
    """Compare the graphs with the net on other sizes than they were traced with."""
    (encoded, stream), (heard, kept_there) = both_hear(net, made)
    compare("encoder", kept_there, stream)
    longest = int(encoded.lengths.max())  # an exported net may pad further
    memory = net.memory(encoded.states[:, :longest])
    there = made.cut(heard.memory, slice(longest))
    compare("encoder", (heard.lengths,), (encoded.lengths,))
    for i, length in enumerate(encoded.lengths.tolist()):  # states past an item's end are noise
        real = real_states(net, i, length)
        compare("encoder", [array[real] for array in there], [tensor[real] for tensor in memory])

    cache, cache_there = net.begin(2), made.begin(2)
    for units in (1, 1, 1) if net.decides == "monotonic" else (4, 1, 2):
        tokens = torch.full((2, units), 4)
        step = net.step(tokens, memory, encoded.lengths, cache)
        stepped = made.step(tokens.numpy(), there, heard.lengths, cache_there)
        cache, cache_there = step.cache, stepped.cache
        compare("decoder", (stepped.log_probs,), (step.logits.log_softmax(-1),))
        compare("decoder", (stepped.attention, *cache_there), (step.attention, *cache))


@torch.no_grad()
def check_quantised(net: Net, made: OnnxNet) -> None:
    """Eight bits hear and say nearly the same: states by their size, the next unit by its odds."""
    (encoded, _), (heard, _) = both_hear(net, made)
    memory = net.memory(encoded.states)
    if heard.lengths.tolist() == encoded.lengths.tolist():  # compressed ones may be others
        there = made.cut(heard.memory, slice(int(encoded.lengths.max())))
        for i, length in enumerate(encoded.lengths.tolist()):
            real = real_states(net, i, length)
            for array, tensor in zip(there, memory, strict=True):
                found, expected = array[real].astype(np.float64), tensor[real].numpy()
                off = np.linalg.norm(found - expected) / max(1e-9, float(np.linalg.norm(expected)))
                refuse_difference("encoder", float(off), int8=True)
    tokens = torch.full((2, 1), 4)
    step = net.step(tokens, memory, encoded.lengths, net.begin(2))
    arrays = tuple(tensor.numpy() for tensor in memory)
    stepped = made.step(tokens.numpy(), arrays, encoded.lengths.numpy(), made.begin(2))
    moved = np.abs(np.exp(stepped.log_probs) - step.logits.softmax(-1).numpy()).sum(-1)
    off = moved.max() / 2  # the share of probability that has gone to other units
    refuse_difference("decoder", float(off), int8=True)


def both_hear(
    net: Net, made: OnnxNet
) -> tuple[tuple[Encoded, tuple[Tensor, ...]], tuple[Encoding, Arrays]]:
    """The same sound through the net and through its graphs: what is heard, and what is kept of it
    for the next chunk, if it is heard in chunks."""
    source, lengths = source_of(net, frames=61)
    sound = source.numpy(), lengths.numpy()
    if (chunked := in_chunks(net)) is None:
        return (net.encode(source, lengths), ()), (made.encode(*sound), ())
    there = made.hear(*sound, made.begin_stream(2))
    return chunked.hear(source, lengths, chunked.begin_stream(2)), there


def real_states(net: Net, item: int, length: int) -> tuple[Any, ...]:
    """Where in a tensor of the memory the states of an item are, without its padding."""
    return (item, *(slice(None),) * (net.memory_time - 1), slice(length))


def compare(graph: str, found: Sequence[np.ndarray], expected: Sequence[Tensor]) -> None:
    """Refuse a graph that is not the net."""
    for array, tensor in zip(found, expected, strict=True):
        here = tensor.numpy()
        if array.shape != here.shape:
            raise DragomanError(
                f"The exported {graph} gives {array.shape} where the net gives {here.shape}."
            )
        same = (array == here) | (np.isnan(array) & np.isnan(here))  # infinities have no difference
        off = np.abs(array[~same].astype(np.float64) - here[~same])
        worst, largest = off.max(initial=0.0), np.abs(here[np.isfinite(here)]).max(initial=1.0)
        if not worst <= TOLERANCE * largest:  # nan is too much
            raise DragomanError(f"The exported {graph} differs from the net by {worst:.2g}.")

"""A net in Moonshine's shape as the folder that `models/moonshine/trained.py` reads: no graphs, but
weights, of which the code that runs Moonshine makes its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.models.exported.config import Languages
from dragoman.models.exported.net import BOS
from dragoman.models.moonshine.encoder import OPEN, Encoded
from dragoman.models.moonshine.trained import WEIGHTS, Settings, engine_of
from dragoman.models.moonshine.weights import Arrays, apart
from dragoman.models.whisper.weights import Weights, write_weights
from dragoman.train.data.vocabulary import Pieces
from dragoman.train.exporting import Surroundings, refuse_difference
from dragoman.train.nets.moonshine import Moonshine
from dragoman.train.quantise import in_eight_bits
from dragoman.train.recipe import Units

ARCHITECTURE = "MoonshineNet"
SECONDS = 3  # of noise that a comparison hears
Named = Iterator[tuple[str, NDArray[Any]]]


def write_moonshine(net: Moonshine, folder: Path, around: Surroundings, *, int8: bool) -> None:
    """Write settings and weights into a folder that has the units, and compare it with the net."""
    settings = settings_of(net, around, int8=int8)
    settings.write(folder)
    arrays = arrays_of(net, settings)
    write_weights(folder / WEIGHTS, ARCHITECTURE, in_bytes(arrays) if int8 else arrays)
    for part, off in compare(net, folder, settings):
        refuse_difference(part, off, int8=int8)


def settings_of(net: Moonshine, around: Surroundings, *, int8: bool) -> Settings:
    tags = {}
    if "," in around.target and around.target_units is not None:
        units = Pieces(around.target_units, Units())
        tags = {code: units.tag(code) for code in around.target.split(",")}
    return Settings(
        target_units=net.vocabularies.target,
        source_units=net.vocabularies.source,
        languages=Languages(around.source, around.target),
        tags=tags,
        encoder=around.encoder,
        suffix=around.suffix,
        source_suffix=around.source_suffix,
        precision="int8" if int8 else "float32",
        chunk=net.config.chunk,
        ahead=net.config.ahead if net.config.chunk else OPEN,
    )


def arrays_of(net: Moonshine, settings: Settings) -> Arrays:
    """The weights under the names of CTranslate2, without an encoder that is the store's."""
    state = {name: tensor.detach().float().numpy() for name, tensor in net.state_dict().items()}
    encoder = () if settings.encoder else of_encoder(net, state)
    return dict(chain(encoder, of_decoder(net, state)))


def of_encoder(net: Moonshine, state: Arrays) -> Named:
    there, here = "encoder", "encoder"
    yield f"{there}/angles", state[f"{here}.angles"]
    for part, name in (("gamma", "scale"), ("beta", "shift")):
        yield f"{there}/group_norm/{part}", state[f"{here}.stem.{name}"][:, None]
    for number in (1, 2, 3):
        for part in ("weight", "bias") if number > 1 else ("weight",):
            yield f"{there}/conv{number}/{part}", state[f"{here}.stem.conv{number}.{part}"]
    yield f"{there}/layer_norm/gamma", state[f"{here}.norm.weight"]
    for number in range(net.config.encoder_layers):
        yield from of_layer(net, state, f"{there}/layer_{number}", f"{here}.layers.{number}")


def of_decoder(net: Moonshine, state: Arrays) -> Named:
    yield "decoder/num_heads", np.array(net.config.heads, np.int16)
    yield "decoder/angles", state["decoder.angles"]
    yield "decoder/projection/weight", state["decoder.embedding.weight"]
    yield "decoder/layer_norm/gamma", state["decoder.norm.weight"]
    for number in range(net.config.decoder_layers):
        there, here = f"decoder/layer_{number}", f"decoder.layers.{number}"
        yield from of_layer(net, state, there, here)
        yield f"{there}/attention/layer_norm/gamma", state[f"{here}.cross_norm.weight"]
        for place, name in enumerate(("cross_query", "cross_memory", "cross_out")):
            yield f"{there}/attention/linear_{place}/weight", state[f"{here}.{name}.weight"]
    if net.ctc is not None:
        for part in ("weight", "bias"):
            yield f"ctc/{part}", state[f"ctc.linear.{part}"]


def of_layer(net: Moonshine, state: Arrays, there: str, here: str) -> Named:
    """What layers of encoder and decoder have in common."""
    config = net.config
    order = apart(config.heads, config.size // config.heads, config.turning)
    query, key, value = np.split(state[f"{here}.qkv.weight"], 3)
    joined = np.concatenate([query[order], key[order], value])
    yield f"{there}/self_attention/linear_0/weight", joined
    yield f"{there}/self_attention/linear_1/weight", state[f"{here}.out.weight"]
    for place, name in enumerate(("wide", "narrow")):
        for part in ("weight", "bias"):
            yield f"{there}/ffn/linear_{place}/{part}", state[f"{here}.{name}.{part}"]
    for part, name in (("self_attention", "attention"), ("ffn", "ffn")):
        yield f"{there}/{part}/layer_norm/gamma", state[f"{here}.{name}_norm.weight"]


def in_bytes(arrays: Arrays) -> Arrays:
    """Matrices in eight bits, each row with a scale of its own; all else as it is."""
    made: Arrays = {}
    for name, array in arrays.items():
        if array.ndim == 2 and name.endswith("/weight"):
            rows, worth = in_eight_bits(array)
            made |= {name: rows, f"{name}_scale": 1 / worth[:, 0]}
        else:
            made[name] = array
    return made


@torch.no_grad()
def compare(net: Moonshine, folder: Path, settings: Settings) -> Iterator[tuple[str, float]]:
    """By how much what is in a folder differs from the net: what the decoder reads of sound, as a
    share of its size; what it says next, as a share of probability."""
    engine = engine_of(folder, settings, Weights(folder / WEIGHTS), threads=1)
    sound = np.random.default_rng(SECONDS).normal(0, 0.1, SECONDS * 16000).astype(np.float32)
    window = engine.encode([Encoded()], [sound])[0]
    encoded = net.encode(torch.from_numpy(sound)[None], torch.tensor([len(sound)]))
    memory = tuple(part[:, :, :, : len(window)] for part in net.memory(encoded.states))
    for layer in range(net.config.decoder_layers):
        for kind, wanted in zip(("keys", "values"), memory, strict=True):
            there = wanted[:, layer].numpy()
            found = window.memory[f"memory_{kind}_{layer}"]
            yield "encoder", float(np.linalg.norm(found - there) / np.linalg.norm(there))
    first = next(iter(settings.tags.values()), BOS)
    step = net.step(torch.tensor([[first]]), memory, torch.tensor([len(window)]), net.begin(1))
    next_here = torch.from_numpy(engine.first(window, first)).softmax(-1)
    yield "decoder", float((next_here - step.logits[0, 0].softmax(-1)).abs().sum()) / 2

"""The network of an exported text net behind a small interface: on the CPU its graphs, on a GPU its
weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.net import OnnxNet
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt, search


class Engine(Protocol):
    """Loaded once, immutable."""

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""

    def speak(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Prompt], beams: int
    ) -> list[Found]:
        """Continue every prompt, given the source units that it is about."""


class OnnxEngine:
    """One text after the other: the cache of a net has no room for gaps."""

    device = "cpu"

    def __init__(self, net: OnnxNet) -> None:
        self._net = net

    def speak(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Prompt], beams: int
    ) -> list[Found]:
        pairs = zip(sources, prompts, strict=True)
        return [self._speak(units, prompt, beams) for units, prompt in pairs]

    def _speak(self, units: Sequence[int], prompt: Prompt, beams: int) -> Found:
        encoded = self._net.encode(np.array([units], np.int64), np.array([len(units)], np.int64))
        texts = Texts(self._net, [encoded.memory], [len(units)], [prompt])
        return search(texts, [prompt], beams)[0]


def load_engine(folder: Path, config: ExportedNet, options: Options) -> Engine:
    """The engine for the device that is wanted, or that is there and can run the net."""
    bound = bound_to_cpu(config)
    options = options.placed() if bound is None else options.on_cpu(bound)
    if options.device == "cpu":
        return OnnxEngine(OnnxNet(folder, threads=options.threads))
    from dragoman.models.cascade.gpu.engine import TorchEngine

    return TorchEngine.load(folder, config, options)


def bound_to_cpu(config: ExportedNet) -> str | None:
    """What a net is called that has no engine for GPUs; None: it has one."""
    if config.net != "text-transformer" or config.decides != "no":
        return f"A net '{config.net}'"
    if not config.settings.get("pre_norm", True):
        return "A text net with its norms behind the layers"
    return None

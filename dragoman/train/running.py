"""A run at work without being exported: its net in torch, on any device, in place of the graphs.

It hears and says what the exported net does; on a GPU many clips can be interpreted together, which
makes it quick to try a net under many policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.errors import DragomanError
from dragoman.models.base import Model
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.model import ExportedModel
from dragoman.models.exported.net import Array, Arrays, OnnxNet
from dragoman.models.grafted.encoder import GraftedNet
from dragoman.models.grafted.model import GraftedModel
from dragoman.models.moonshine.trained import TrainedMoonshine
from dragoman.models.options import Options
from dragoman.models.whisper.weights import Weights
from dragoman.train.export import describe
from dragoman.train.export_grafted import GraftGraph, described
from dragoman.train.export_moonshine import arrays_of, settings_of
from dragoman.train.exporting import Surroundings
from dragoman.train.graphs import ChunkGraph, DecoderGraph, EncoderGraph, in_chunks
from dragoman.train.nets.base import Net
from dragoman.train.nets.grafted import Grafted
from dragoman.train.nets.moonshine import Moonshine
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.start import STORE, starts_of
from dragoman.train.trained import Trained, open_run


class TorchNet(OnnxNet):
    """The calls of an exported net, answered by the net itself."""

    def __init__(self, net: Net, config: ExportedNet, device: torch.device) -> None:
        self.config, self._device = config, device
        net = net.eval().to(device)
        self._encoder = ChunkGraph(net) if in_chunks(net) is not None else EncoderGraph(net)
        self._decoder = DecoderGraph(net)

    @torch.no_grad()
    def _run(self, session: Any, inputs: Sequence[Array]) -> Arrays:
        tensors = [torch.from_numpy(np.ascontiguousarray(a)).to(self._device) for a in inputs]
        first, second, *rest = tensors
        if isinstance(session, EncoderGraph | GraftGraph):
            outputs = session(*tensors)
        elif isinstance(session, ChunkGraph):
            outputs = session(first, second, tuple(rest))
        else:
            cache = self.config.memory  # where it begins,
            final = cache + len(self.config.cache)  # and where it ends
            memory, past = tuple(rest[:cache]), tuple(rest[cache:final])
            outputs = session(first, second, memory, past, *rest[final:])
        return tuple(tensor.cpu().numpy() for tensor in outputs)


class TorchGrafted(TorchNet, GraftedNet):
    """The same of a net behind Moonshine's encoder."""

    def __init__(self, net: Grafted, config: ExportedNet) -> None:
        super().__init__(net, config, torch.device("cpu"))
        self._encoder = GraftGraph(net)


def load_run(folder: Path, name: str, options: Options) -> Model:
    """The model of a run folder, by the net that it trains."""
    if RunFolder(folder).recipe().net not in ("moonshine", "grafted"):
        return RunModel.load(folder, name, options)
    trained = open_run(folder)
    net = trained.task.net
    if isinstance(net, Grafted):
        made = TorchGrafted(net.eval(), described(net, surroundings(folder, trained)))
        return GraftedModel.behind(made, folder, name, options.on_cpu("A training run"))
    assert isinstance(net, Moonshine)
    settings = settings_of(net, surroundings(folder, trained), int8=False)
    weights = Weights(folder, arrays_of(net, settings))
    return TrainedMoonshine.of(folder, name, settings, weights, options.on_cpu("A training run"))


class RunModel(ExportedModel):
    """The model of a run folder."""

    @classmethod
    def open_net(cls, folder: Path, options: Options) -> OnnxNet:
        trained = open_run(folder)
        config = describe(trained.task.net.eval(), surroundings(folder, trained))
        device = device_of(options)
        if options.threads and device.type == "cpu":
            torch.set_num_threads(options.threads)
        return TorchNet(trained.task.net, config, device)


def surroundings(folder: Path, trained: Trained) -> Surroundings:
    """What the run of a net knows about it."""
    data, units = trained.recipe.data, trained.recipe.vocabulary
    return Surroundings(
        source=data.source,
        target=",".join(data.targets),
        target_units=folder / "target.model",
        source_units=folder / "source.model",
        suffix=units.target.suffix,
        source_suffix=units.source.suffix,
        source_plain=units.source.plain,
        encoder=kept_encoder(trained.recipe),
    )


def kept_encoder(recipe: Recipe) -> str:
    """The model of the store whose encoder a run has started from and left as it was."""
    if recipe.net not in ("moonshine", "grafted") or "encoder" not in recipe.freeze:
        return ""
    runs = [one.run for one in starts_of(recipe) if not one.parts or "encoder" in one.parts]
    last = runs[-1] if runs else ""
    if last.startswith(STORE):
        return last.removeprefix(STORE)
    before = Path(last) if Path(last).is_dir() else Path(last).parent
    # A run that goes on from another has the encoder that the other one left as it was.
    there = last and (before / "recipe.yaml").exists()
    return kept_encoder(RunFolder(before).recipe()) if there else ""


def device_of(options: Options) -> torch.device:
    there = torch.cuda.is_available()
    if options.device == "cuda" and not there:
        raise DragomanError("There is no GPU that torch can use here; leave --device cuda out.")
    return torch.device("cuda" if there and options.device != "cpu" else "cpu")

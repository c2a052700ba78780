"""COMET: how good a translation is, by a net that has learned from people's judgements.

XLM-RoBERTa reads the source, what was said and the reference, each alone; a small net compares
what it saw of the three (Rei et al. 2020). The weights are those that COMET's own tool uses, such
as `Unbabel/wmt22-comet-da`, and so are the numbers, times 100; only the computing is ours, since
that tool wants other versions of half of what is installed here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.errors import DragomanError
from dragoman.files import digest_of_ends
from dragoman.metrics.ragged import Floats
from dragoman.metrics.score import Report, Score
from dragoman.metrics.significance import mean_measure
from dragoman.metrics.xlmr import PIECES, Pieces, XlmRoberta
from dragoman.yaml_text import read_yaml

SETTINGS, WEIGHTS = "hparams.yaml", "checkpoints/model.ckpt"
BATCH = 2048  # tokens and padding that are read at once
OnText = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a folder says of its net, as far as it matters here; the defaults are COMET's."""

    class_identifier: str = "regression_metric"
    encoder_model: str = "XLM-RoBERTa"
    pool: str = "avg"
    layer: str | int = "mix"
    layer_transformation: str = "softmax"
    layer_norm: bool = True
    activations: str = "Tanh"
    final_activation: str | None = None

    @classmethod
    def of(cls, told: dict[str, Any]) -> Settings:
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in told.items() if name in names})

    def unknown(self) -> str | None:
        """What in it is not known here, if anything is."""
        known = {
            "class_identifier": ("regression_metric",),
            "encoder_model": ("XLM-RoBERTa",),
            "pool": ("avg", "cls", "max"),
            "layer_transformation": ("softmax", "sparsemax"),
            "final_activation": (None, *ACTIVATIONS),
            "activations": tuple(ACTIVATIONS),
        }
        for name, values in known.items():
            if (value := getattr(self, name)) not in values:
                return f"{name} {value}"
        return None


ACTIVATIONS = {"Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "Relu": torch.relu}


class Comet:
    """One of COMET's nets that compare with a reference."""

    def __init__(self, folder: Path, pieces: Path | None = None, name: str = "") -> None:
        """`pieces` is XLM-RoBERTa's `sentencepiece.bpe.model`, if it is not in the folder; `name`
        is what signatures call the net, if not as the folder."""
        told = _read_settings(folder / SETTINGS)
        weights, hyper = _read_weights(folder / WEIGHTS)
        settings = Settings.of(told | hyper)
        if told.get("layer_transformation") == "sparsemax_patch":
            # So a folder says that its net learned with softmax, whatever its weights say.
            settings = replace(settings, layer_transformation="softmax")
        if what := settings.unknown():
            raise DragomanError(
                f"{folder} holds a COMET of another kind ({what}); those that compare one "
                "translation with one reference are known here, such as Unbabel/wmt22-comet-da."
            )
        self._pieces = Pieces(pieces or folder / PIECES)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._weights = {name: value.to(self._device) for name, value in weights.items()}
        self._encoder = XlmRoberta(self._weights, "encoder.model.")
        self._settings = settings
        self._seen: dict[str, Tensor] = {}  # two systems share sources and references
        name = name or folder.resolve().name
        stamp = digest_of_ends(folder / WEIGHTS)[:8]
        self.signature = f"COMET|model:{name}|weights:{stamp}|scale:100"

    @torch.inference_mode()
    def scores(
        self,
        sources: Sequence[str],
        said: Sequence[str],
        references: Sequence[str],
        on_text: OnText = lambda done, total: None,
    ) -> Floats:
        """The score of every sentence; COMET's own times 100. `on_text` is told how many texts have
        been read, and of how many."""
        if not said:
            return np.empty(0)
        self._look_at([*sources, *said, *references], on_text)
        source, mine, reference = (
            torch.stack([self._seen[text] for text in texts])
            for texts in (sources, said, references)
        )
        compared = [mine, reference, mine * reference, (mine - reference).abs()]
        compared += [mine * source, (mine - source).abs()]
        scores = self._judge(torch.cat(compared, dim=1))
        return np.asarray(100.0 * scores.double().cpu().numpy(), dtype=np.float64)

    def _judge(self, x: Tensor) -> Tensor:
        """The small net: layers one after the other, under the numbers of a sequence of modules."""
        names = sorted(
            (name for name in self._weights if name.startswith("estimator.ff.")),
            key=lambda name: int(name.split(".")[2]),
        )
        layers = [name for name in names if name.endswith(".weight")]
        for number, name in enumerate(layers, start=1):
            bias = name.removesuffix("weight") + "bias"
            x = functional.linear(x, self._weights[name], self._weights[bias])
            last = number == len(layers)
            activation = self._settings.final_activation if last else self._settings.activations
            x = ACTIVATIONS[activation](x) if activation else x
        return x[:, 0]

    def _look_at(self, texts: Sequence[str], on_text: OnText) -> None:
        """What the encoder sees in texts that it has not read yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self._seen]
        before = len(self._seen)
        tokens = self._pieces.encode(new, self._encoder.longest)
        for rows in _batches([len(row) for row in tokens]):
            ids, mask = _padded([tokens[row] for row in rows])
            seen = self._pooled(ids.to(self._device), mask.to(self._device))
            for row, one in zip(rows, seen, strict=True):
                self._seen[new[row]] = one
            on_text(len(self._seen) - before, len(new))

    def _pooled(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One vector for a text: of all layers, or of one, over all of its tokens."""
        mixed = self._mixed(self._encoder.states(ids, mask), mask)
        if self._settings.pool == "cls":
            return mixed[:, 0]
        outside = ~mask[:, :, None]
        if self._settings.pool == "max":
            return mixed.masked_fill(outside, -torch.inf).amax(dim=1)
        return mixed.masked_fill(outside, 0.0).sum(dim=1) / mask.sum(dim=1, keepdim=True)

    def _mixed(self, states: Iterator[Tensor], mask: Tensor) -> Tensor:
        """The states of the layers, weighed as the net has learned to."""
        layer = self._settings.layer
        if layer != "mix":
            return list(states)[int(layer)]
        weights = [
            self._weights[f"layerwise_attention.scalar_parameters.{number}"]
            for number in range(self._encoder.layers + 1)
        ]
        sparse = self._settings.layer_transformation == "sparsemax"
        shares = (sparsemax if sparse else functional.softmax)(torch.cat(weights), dim=0)
        total = torch.zeros(())
        for share, state in zip(shares, states, strict=True):
            if self._settings.layer_norm:
                state = _normed(state, mask)
            total = total.to(state) + share * state
        return self._weights["layerwise_attention.gamma"] * total


def with_comet(
    report: Report,
    comet: Comet,
    sources: Sequence[str],
    how: str = "",
    on_text: OnText = lambda done, total: None,
) -> Report:
    """A report with COMET, too: `sources` are what was spoken, a line for each of its sentences.

    `how` is what else belongs into the signature, such as how talks were cut.
    """
    instances = report.instances
    if len(sources) != len(instances):
        raise DragomanError(
            f"COMET compares with what was spoken: there are {len(sources)} lines of it for "
            f"{len(instances)} sentences."
        )
    rows = [r for r, i in enumerate(instances) if i.reference is not None and not i.says_speech]
    values = np.full(len(instances), np.nan)
    values[rows] = comet.scores(
        [sources[row] for row in rows],
        [instances[row].prediction for row in rows],
        [instances[row].reference or "" for row in rows],
        on_text,
    )
    measure = mean_measure("COMET", values)
    score = Score(measure, measure.value, values, comet.signature + how)
    return replace(report, scores={"COMET": score, **report.scores})


def sparsemax(x: Tensor, dim: int = 0) -> Tensor:
    """The nearest point whose numbers are shares of one: small ones become 0 (Martins 2016)."""
    falling = x.sort(dim=dim, descending=True).values
    count = torch.arange(1, x.shape[dim] + 1, device=x.device)
    excess = falling.cumsum(dim) - 1
    kept = int((count * falling > excess).sum())
    return (x - excess[kept - 1] / kept).clamp(min=0)


def _normed(state: Tensor, mask: Tensor) -> Tensor:
    """A text's numbers, all together, with mean 0 and variance 1."""
    inside = mask[:, :, None].to(state)
    count = inside.sum(dim=(1, 2), keepdim=True) * state.shape[2]
    mean = (state * inside).sum(dim=(1, 2), keepdim=True) / count
    variance = (((state - mean) * inside) ** 2).sum(dim=(1, 2), keepdim=True) / count
    return (state - mean) / (variance + 1e-12).sqrt()


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of about the same length, as many as fit into a batch with their padding."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if batch and (len(batch) + 1) * lengths[row] > BATCH:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Tokens of texts, `[texts, longest]`, and where they are tokens and not padding."""
    ids = torch.full((len(rows), max(map(len, rows))), Pieces.PADDING)
    for place, row in zip(ids, rows, strict=True):
        place[: len(row)] = torch.tensor(row)
    return ids, ids != Pieces.PADDING


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        told = read_yaml(path)
    except OSError as error:
        raise DragomanError(
            f"{path.parent} holds no net of COMET's: {path.name} cannot be read "
            f"({error.strerror}). It is the folder that holds {SETTINGS} and {WEIGHTS}."
        ) from error
    return told if isinstance(told, dict) else {}


def _read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a checkpoint, and what it says of its net; nothing in it is run."""
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return stored["state_dict"], dict(stored.get("hyper_parameters") or {})
    except OSError as error:
        raise DragomanError(f"Cannot read the weights in {path}: {error.strerror}.") from error
    except (RuntimeError, pickle.UnpicklingError, KeyError, TypeError, EOFError) as error:
        raise DragomanError(f"{path} is damaged, or no checkpoint of COMET's: {error}") from error

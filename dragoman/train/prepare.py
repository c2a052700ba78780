"""Everything between a recipe and its first batch: packs, vocabularies, unit ids, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.files import whole_file, write_whole
from dragoman.store.home import sha256_of
from dragoman.train.data.corpus import TrainingSet, hold_out, open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.data.sources import Told, pack_of
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Augment, Batch, Recipe, Units, Vocabulary
from dragoman.train.run import RunFolder

_ITEMS_FOR_STATISTICS = 2000


@dataclass(frozen=True)
class Prepared:
    """The data of a run, ready to be batched."""

    train: TrainingSet
    dev: TrainingSet
    source: Pieces
    target: Pieces
    faults: Faults
    text: TrainingSet | None = None  # beside the speech

    @property
    def parts(self) -> dict[str, TrainingSet]:
        parts = {"train": self.train, "dev": self.dev, "text": self.text}
        return {name: part for name, part in parts.items() if part is not None}


def prepare(
    recipe: Recipe, run: RunFolder, processes: int, tell: Told = lambda text: None
) -> Prepared:
    """Open (or make) packs and vocabularies; a second call finds what the first one made."""
    data = recipe.data
    faults = Faults(data.fault_limit)
    train_packs, dev_packs, text_packs = (
        [pack_of(name, recipe, processes, tell) for name in names]
        for names in (data.train, data.dev, data.text)
    )
    tell("reading packs")
    train = open_set(train_packs, data, faults)
    if data.dev:
        dev = open_set(dev_packs, data, faults)
    else:
        train, dev = hold_out(train, data.dev_items, recipe.seed)
    tell("learning vocabularies")
    source, target = _vocabularies(run, recipe.vocabulary, train)
    train, dev = (part.with_units(source, target, faults) for part in (train, dev))
    if not len(train) or not len(dev):
        raise DragomanError(
            f"Nothing is left to train on or to validate on: {faults.summary()}. "
            f"See data.max_units ({data.max_units}) and the vocabularies."
        )
    read = None
    if text_packs:
        read = _read(open_set(text_packs, data, faults), source, target, faults)
    return Prepared(train, dev, source, target, faults, read)


def _read(texts: TrainingSet, source: Pieces, target: Pieces, faults: Faults) -> TrainingSet:
    """What is read beside the speech: texts of any pack, whatever it sounds like."""
    texts.silent = True
    read = texts.with_units(source, target, faults)
    if not len(read):
        raise DragomanError(f"Nothing is left of data.text: {faults.summary()}.")
    return read


def _vocabularies(run: RunFolder, units: Vocabulary, train: TrainingSet) -> tuple[Pieces, Pieces]:
    """Source and target units of what the training texts say."""
    said, wanted = train.texts(train.data.source), train.target_texts()
    tagged = train.data.targets if len(train.data.targets) > 1 else ()
    both = [*said, *wanted] if units.joint else wanted
    written = units.joint or not train.silent  # else the tag is read
    target = _pieces(run, "target", units.target, both, tagged if written else ())
    if not units.joint:
        return _pieces(run, "source", units.source, said, () if written else tagged), target
    same = replace(units.source, model=str(run.folder / "target.model"))
    return _pieces(run, "source", same, []), target


def _pieces(
    run: RunFolder, side: str, units: Units, texts: list[str], tagged: Sequence[str] = ()
) -> Pieces:
    """The vocabulary of one side, which is then part of the run."""
    path = run.folder / f"{side}.model"
    if not path.exists():
        if units.model:
            Pieces(Path(units.model), units)  # refuses what is none
            with whole_file(path, "wb") as stream:
                stream.write(Path(units.model).read_bytes())
        else:
            train_pieces(texts, units, path, tagged)
    return Pieces(path, units)


def describe(prepared: Prepared, run: RunFolder) -> dict[str, object]:
    """What data.json says."""
    return {
        name: {
            "items": len(part),
            "hours": 0.0 if part.silent else round(float(part.samples.sum()) / RATE / 3600, 3),
            "packs": [str(pack.folder) for pack in part.packs],
            "fingerprint": part.fingerprint(),
        }
        for name, part in prepared.parts.items()
    } | {"faults": prepared.faults.summary(), "units": units_of(run)}


def units_of(run: RunFolder) -> dict[str, str]:
    """Fingerprints of a run's vocabularies."""
    return {side: sha256_of(run.folder / f"{side}.model") for side in ("source", "target")}


def feature_statistics(
    run: RunFolder, data: TrainingSet, features: int, seed: int, device: torch.device
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the features over a sample of the corpus; kept in the run."""
    path = run.folder / "features.npz"
    if not path.exists():
        chosen = np.random.default_rng(seed).permutation(len(data))[:_ITEMS_FOR_STATISTICS]
        sample = data.subset(sorted(chosen))
        front = FrontEnd(features, Augment(spec="none"), seed).to(device)
        sums = torch.zeros(2, features, dtype=torch.float64, device=device)
        frames = 0
        for batch in Loader(sample).batches(enumerate(Plan(sample, Batch(), seed).once())):
            heard, lengths = front(batch.to(device))
            inside = torch.arange(heard.shape[1], device=device) < lengths.unsqueeze(1)
            kept = heard[inside].double()
            sums += torch.stack([kept.sum(0), kept.square().sum(0)])
            frames += len(kept)
        mean = sums[0] / frames
        deviation = (sums[1] / frames - mean.square()).clamp(min=1e-8).sqrt()
        mean, deviation = mean.float().cpu(), deviation.float().cpu()
        write_whole(path, partial(np.savez, mean=mean.numpy(), deviation=deviation.numpy()))
    with np.load(path) as kept:
        return kept["mean"], kept["deviation"]

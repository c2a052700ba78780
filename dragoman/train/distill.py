"""Sequence-level knowledge distillation: a text teacher translates a corpus' transcripts.

The result is a pack with the same sound and the teacher's translations (Kim and Rush 2016); papers
001 and CAAT train on it together with the original: `data.train=[gold, distilled]`. It is made
shard by shard, as the gold pack is: an interrupted one goes on after the last finished shard.

A text model learns from text alone: what it finds itself with many beams, too, in order to find it
with one. Some of the texts may be cut off, with as much of what the teacher says (`begun`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import torch

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.store.home import sha256_of
from dragoman.train.begun import Pair, cut_some
from dragoman.train.data.corpus import Part, Ragged, TrainingSet
from dragoman.train.data.faults import FAULTS, Fault, Faults, write_faults
from dragoman.train.data.pack import (
    Header,
    Item,
    Pack,
    ShardReport,
    finished_shard,
    read_header,
    shard_path,
    write_header,
)
from dragoman.train.data.packing import MadeFrom, begun, is_finished
from dragoman.train.data.sources import pack_of
from dragoman.train.foreign import is_exported
from dragoman.train.recipe import Batch, Data
from dragoman.train.trained import Trained, open_run, translations

# Texts of one length are translated together, and few shards hold few of each; what an interruption
# loses is as much. A shard of text alone holds far more than one with sound.
ITEMS_AT_ONCE = 30_000
# Units in a batch: on a CPU; on a GPU, which wants many texts at once.
TOGETHER = (6_000, 60_000)
UNIT = 0.1  # seconds that a unit of text counts for in a batch


@dataclass(frozen=True)
class Way:
    """How texts are translated."""

    languages: tuple[str, str]
    beam: int
    cut: float  # share of the texts that are cut off
    batch: Batch


def distill(
    run: Path,
    data: str | Path,
    out: Path,
    *,
    target: str | None = None,
    beam: int = 5,
    cut: float = 0.0,
    device: str = "auto",
    together: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Header:
    """Translate the transcripts of a pack with a text run; `out` shares the pack's sound.

    `data` is what a recipe may name: a pack, or what one is made of first. `target` chooses among
    the languages of a teacher that has several; about so many units are translated `together`. Of
    texts alone a share is `cut` off.
    """
    teacher = open_run(run)
    if teacher.task.front is not None:
        raise DragomanError(f"{run} hears speech; a teacher is a text run (task: mt).")
    source, targets = teacher.recipe.data.source, teacher.recipe.data.targets
    transcripts = replace(teacher.recipe, data=_transcripts(teacher))
    gold = Pack(pack_of(str(data), transcripts, os.cpu_count() or 1))
    if source not in gold.header.languages:
        raise DragomanError(f"{data} has no '{source}' transcripts for the teacher to read.")
    if cut and not gold.silent:
        raise DragomanError(
            f"{data} has sound, which is not cut off with its text; leave --cut out."
        )
    target = chosen_target(target, targets, run)
    made_from: MadeFrom = {
        "target": target,
        "teacher": run.resolve().name,
        "weights": sha256_of(run / ("decoder.onnx" if is_exported(run) else "final.pt")),
        "pack": gold.header.fingerprint,
        "beam": beam,
        **({"cut": cut} if cut else {}),
    }
    with begun(out, made_from) as fingerprint:
        if is_finished(out):
            return read_header(out)
        place_on(teacher, device)
        units = together or TOGETHER[teacher.task.device.type == "cuda"]
        way = Way((source, target), beam, cut, Batch(units * UNIT, buckets=10))
        reports: list[ShardReport] = []
        for some in _shards(teacher, gold, out, way):
            reports += some
            progress(sum(one.items + len(one.faults) for one in reports), len(gold))
        return _close(out, gold, reports, way.languages, fingerprint, made_from)


def _shards(teacher: Trained, gold: Pack, out: Path, way: Way) -> Iterator[list[ShardReport]]:
    """The shards of a pack, translated, so many at a time; what is there already is kept."""
    readable = _readable(teacher, gold, way.languages[1])
    place = {part.item: number for number, part in enumerate(readable.parts)}
    shards = _by_shard(gold)
    for group in _groups([len(numbers) for numbers in shards]):
        done = {shard: finished_shard(out, shard) for shard in group}
        todo = [number for shard in group if done[shard] is None for number in shards[shard]]
        some = readable.subset(place[number] for number in todo if number in place)
        pairs = _translate(teacher, some, way) if todo else {}
        yield [
            report or _write(shard_path(out, shard), gold, shards[shard], pairs, way.languages)
            for shard, report in done.items()
        ]


def _groups(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Shards that are translated together: as many as hold `ITEMS_AT_ONCE`, or one."""
    group: list[int] = []
    items = 0
    for shard, size in enumerate(sizes):
        if group and items + size > ITEMS_AT_ONCE:
            yield group
            group, items = [], 0
        group.append(shard)
        items += size
    yield group


def _close(
    out: Path,
    gold: Pack,
    reports: list[ShardReport],
    languages: tuple[str, str],
    fingerprint: str,
    made_from: MadeFrom,
) -> Header:
    """Write what a finished pack has besides its shards."""
    if not any(report.items for report in reports):
        raise DragomanError(f"The teacher has nothing to say about any item of {gold.folder}.")
    write_faults(out / FAULTS, [fault for report in reports for fault in report.faults])
    header = Header(
        codec=gold.header.codec,
        languages=list(languages),
        spoken=gold.header.spoken,
        shards=len(reports),
        items=sum(report.items for report in reports),
        hours=sum(report.samples for report in reports) / RATE / 3600,
        fingerprint=fingerprint,
        made_from=made_from,
        sound_of=os.path.relpath(gold.sounds.resolve(), out.resolve()),
    )
    write_header(out, header)
    return header


def place_on(teacher: Trained, device: str) -> None:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        teacher.task.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
        why = str(error).splitlines()[0]
        raise DragomanError(f"This machine cannot compute on '{device}': {why}") from error


def _by_shard(gold: Pack) -> list[list[int]]:
    """The items' numbers in every shard."""
    numbers: list[list[int]] = [[] for _ in range(gold.header.shards)]
    for number, shard in enumerate(gold.shard_of):
        numbers[shard].append(number)
    return numbers


def _write(
    path: Path, gold: Pack, numbers: list[int], pairs: dict[int, Pair], languages: tuple[str, str]
) -> ShardReport:
    """One index file; sound stays where it is, so that offsets stay true. Nothing is kept of other
    languages: a net with several targets learns one of them from each item."""
    kept: list[Item] = []
    faults: list[Fault] = []
    for number in numbers:
        item = gold.items[number]
        if pair := pairs.get(number):
            text = dict(zip(languages, pair, strict=True))
            kept.append(msgspec.structs.replace(item, text=text))
        else:
            faults.append(Fault("no translation", f"item {item.id}", "the teacher says nothing"))
    report = ShardReport(len(kept), sum(item.samples for item in kept), faults)
    with whole_file(path, "wb") as stream:
        for row in (*kept, report):
            stream.write(msgspec.json.encode(row) + b"\n")
    return report


def chosen_target(asked: str | None, known: tuple[str, ...], run: Path) -> str:
    """The language to translate into."""
    if (asked is None and len(known) > 1) or (asked is not None and asked not in known):
        raise DragomanError(f"{run} translates into {', '.join(known)}: say which with --to.")
    return asked or known[0]


def _transcripts(teacher: Trained) -> Data:
    """A teacher needs no reference: its own source text stands in for the target."""
    return replace(teacher.recipe.data, target=teacher.recipe.data.source)


def _readable(teacher: Trained, gold: Pack, target: str) -> TrainingSet:
    """The items whose transcripts the teacher can read, as its units."""
    parts = [Part(0, number) for number in range(len(gold))]
    texts = TrainingSet([gold], parts, _transcripts(teacher))
    texts.silent = True
    fit = texts.with_units(teacher.source, teacher.source, Faults())
    if len(teacher.recipe.data.targets) > 1:
        tag = teacher.source.tag(target)
        fit.source = Ragged.of([[tag, *fit.source[number]] for number in range(len(fit))])
    return fit


def _translate(teacher: Trained, texts: TrainingSet, way: Way) -> dict[int, Pair]:
    """Item numbers of the pack, their texts and what the teacher says of them."""
    if not len(texts):
        return {}
    device = teacher.task.device
    # On a GPU half of the precision is enough to translate, and takes half of the time.
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        found = translations(teacher.task, texts, teacher.target, device, way.beam, way.batch)
        said = {texts.parts[number].item: text for number, text in found if text}
        pairs = {
            part.item: (text, said[part.item])
            for part, text in zip(texts.parts, texts.texts(way.languages[0]), strict=True)
            if part.item in said
        }
        return pairs | cut_some(teacher, texts, said, way.languages, way.cut, way.batch)

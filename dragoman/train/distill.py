"""Sequence-level knowledge distillation: a text teacher translates a corpus' transcripts.

The result is a pack with the same sound and the teacher's translations (Kim and Rush 2016); papers
001 and CAAT train on it together with the original: `data.train=[gold, distilled]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import torch

from dragoman.errors import DragomanError
from dragoman.train.data.corpus import Part, TrainingSet
from dragoman.train.data.faults import Faults
from dragoman.train.data.pack import Header, Item, Pack, ShardReport, read_header, write_header
from dragoman.train.data.packing import begin
from dragoman.train.files import whole_file
from dragoman.train.recipe import Batch
from dragoman.train.trained import Trained, open_run, translations


def distill(
    run: Path,
    pack: Path,
    out: Path,
    *,
    beam: int = 5,
    device: str = "cpu",
    batch_seconds: float = 600.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Header:
    """Translate the transcripts of `pack` with a text run; `out` shares the pack's sound."""
    teacher = open_run(run)
    if teacher.task.front is not None:
        raise DragomanError(f"{run} hears speech; a teacher is a text run (task: mt).")
    gold = Pack(pack)
    data = teacher.recipe.data
    if data.source not in gold.header.languages:
        raise DragomanError(f"{pack} has no '{data.source}' transcripts for the teacher to read.")
    made_from = {"teacher": str(run), "pack": gold.header.fingerprint, "beam": beam}
    fingerprint = begin(out, made_from)
    if (out / "pack.json").exists():
        return read_header(out)
    texts = _translate(teacher, gold, beam, device, Batch(batch_seconds, buckets=10), progress)
    shards = _write(gold, texts, data.target, out)
    header = Header(
        codec=gold.header.codec,
        languages=[data.source, data.target],
        spoken=gold.header.spoken,
        shards=shards,
        items=len(texts),
        hours=sum(gold.items[n].samples for n in texts) / 16000 / 3600,
        fingerprint=fingerprint,
        made_from=made_from,
        sound_of=str(gold.sounds.resolve()),
    )
    write_header(out, header)
    return header


def _translate(
    teacher: Trained,
    gold: Pack,
    beam: int,
    device: str,
    batch: Batch,
    progress: Callable[[int, int], None],
) -> dict[int, str]:
    """Item numbers and what the teacher says; items it cannot read are left out."""
    parts = [Part(0, number) for number in range(len(gold))]
    # The teacher needs no reference: its own source text stands in for the target.
    data = replace(teacher.recipe.data, target=teacher.recipe.data.source)
    texts = TrainingSet([gold], parts, data)
    texts.silent = True
    readable = texts.with_units(teacher.source, teacher.source, Faults())
    task, found = teacher.task.to(device), {}
    said = translations(task, readable, teacher.target, torch.device(device), beam, batch)
    for number, text in said:
        if text:
            found[readable.parts[number].item] = text
        progress(len(found), len(gold))
    return found


def _write(gold: Pack, texts: dict[int, str], target: str, out: Path) -> int:
    """Index files only, shard by shard as in the gold pack, so that offsets stay true."""
    source = gold.header.spoken
    for shard in range(gold.header.shards):
        kept: list[Item] = []
        for number, item in enumerate(gold.items):
            if gold.shard_of[number] == shard and number in texts:
                both = {source: item.text[source], target: texts[number]}
                kept.append(msgspec.structs.replace(item, text=both))
        report = ShardReport(len(kept), sum(item.samples for item in kept), [])
        with whole_file(out / f"shard-{shard:05d}.jsonl", "wb") as stream:
            for row in (*kept, report):
                stream.write(msgspec.json.encode(row) + b"\n")
    return gold.header.shards

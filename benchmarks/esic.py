"""Whole speeches of the European Parliament as they stream, beside the human interpreter.

    python -m benchmarks esic

English into German and Spanish (DRAGOMAN_BENCH_TARGETS), by the default model and policy and by the
same model offline, against Europarl's edited translations; into German also the interpreter who
was in the booth. DRAGOMAN_BENCH_SPEECHES names the corpus, a JSONL file with `audio`, `ref_de`,
`ref_es`, `ref_en` and `interp_de`; `benchmarks/speech.py` says which other choices there are.

Quality is that of whole speeches. StreamLAAL is, as it is defined, a mean over sentences, which
`benchmarks/sentences.py` finds in the sound. Of a whole speech taken for one sentence it says
little: in a speech of 90 s whose reference has 200 words, every word fewer than those adds 225 ms
to the mean. It is printed too, to be compared with figures that were made so.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sentences import EARS, Spoken, segments_of, spoken
from benchmarks.speech import DATA, cost, interpret_all, offline, setup_for, some, told
from dragoman.corpora import Clip
from dragoman.metrics.instance import Instance
from dragoman.metrics.longform import score_longform
from dragoman.metrics.score import Score, score_corpus
from dragoman.metrics.segments import Segment
from dragoman.metrics.tokenize import tokenizer_for
from dragoman.setup import System
from dragoman.trace import Trace

QUALITY, LAGS = ("BLEU", "chrF"), ("StreamLAAL", "StreamLAAL_CA")
METRICS = (*QUALITY, *LAGS)
OVER_HUMAN, OF_OFFLINE, LAG, LAG_WITH_WORK, COST = 1.4, 0.9, 2000.0, 2500.0, 0.3


def run() -> dict[str, float]:
    """Print the scores with their signatures, and which bars are met."""
    path = Path(os.environ.get("DRAGOMAN_BENCH_SPEECHES", DATA / "esic.en-x.jsonl"))
    if not path.is_file():
        print("No speeches: name a JSONL file of them in DRAGOMAN_BENCH_SPEECHES.")
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = some([{"index": index, **json.loads(line)} for index, line in enumerate(lines)])
    found: dict[str, float] = {}
    heard = hear_all(rows, path.parent)
    for target in os.environ.get("DRAGOMAN_BENCH_TARGETS", "de es").split():
        found |= compare(rows, path.parent, target, heard)
    return found


def hear_all(rows: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, list[Spoken]]:
    """The words of every speech and when they were spoken; kept where the traces are."""
    kept = os.environ.get("DRAGOMAN_BENCH_RUNS")
    path = Path(kept) / "esic-words.json" if kept else None
    known = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
    ears = System(EARS)
    for row in rows:
        if row["audio"] not in known:
            words = spoken(ears, folder / row["audio"])
            known[row["audio"]] = [(word.text, word.ms) for word in words]
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known), encoding="utf-8")
    return {audio: [Spoken(*word) for word in words] for audio, words in known.items()}


def compare(
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    target: str,
    heard: Mapping[str, Sequence[Spoken]],
) -> dict[str, float]:
    """One target language: live, offline, human."""
    system = System(setup_for(target))
    references = [" ".join(row[f"ref_{target}"]) for row in rows]
    clips = [
        Clip(row["index"], folder / row["audio"], {target: reference})
        for row, reference in zip(rows, references, strict=True)
    ]
    setup = system.setup
    print(f"{len(clips)} speeches into '{target}' by {setup.model}, {setup.policy}, "
          f"{setup.step_ms:g} ms steps")  # fmt: skip
    live = interpret_all(system, clips, "esic")
    unhurried = interpret_all(offline(system), clips, "esic")
    whole = scored(live, speeches(live), target)
    by_sentence = scored(live, sentences(rows, heard, target), target)
    scores = [*(whole[name] for name in QUALITY), *(by_sentence[name] for name in LAGS)]
    for score in scores:
        print(f"  live {score.measure.name} {score.value:.2f}  {score.signature}")
    print("  (a speech for one sentence: " + _listed(whole, LAGS) + "; BLEU of sentences "
          f"{by_sentence['BLEU'].value:.2f})")  # fmt: skip
    alone = scored(unhurried, speeches(unhurried), target)
    print("  offline " + _listed(alone, QUALITY))
    bleu, chrf, lag, lag_with_work = (score.value for score in scores)
    if f"interp_{target}" in rows[0]:
        human = _human([row[f"interp_{target}"] for row in rows], references, target)
        print(f"  the human interpreter: BLEU {human['BLEU']:.2f}, chrF {human['chrF']:.2f}")
        told("BLEU of the human's", bleu / human["BLEU"], OVER_HUMAN, most=False)
        told("chrF of the human's", chrf / human["chrF"], 1.0, most=False)
    share = bleu / alone["BLEU"].value
    told("BLEU of the offline one", share, OF_OFFLINE, most=False)
    told("StreamLAAL, ms", lag, LAG, most=True, form=".0f")
    told("StreamLAAL with work, ms", lag_with_work, LAG_WITH_WORK, most=True, form=".0f")
    told("processor seconds per second", cost(live), COST, most=True)
    return {f"{target} BLEU": bleu, f"{target} share": share, f"{target} cost": cost(live)}


def scored(
    traces: Sequence[Trace], segments: Sequence[Segment], target: str
) -> Mapping[str, Score]:
    instances = [trace.instance() for trace in traces]
    tokenizer = tokenizer_for(target)
    return score_longform(instances, segments, metrics=METRICS, tokenizer=tokenizer).scores


def speeches(traces: Sequence[Trace]) -> list[Segment]:
    """Every speech as one segment."""
    return [
        Segment(index, trace.source, 0.0, trace.source_length / 1000, trace.reference or "")
        for index, trace in enumerate(traces)
    ]


def sentences(
    rows: Sequence[Mapping[str, Any]], heard: Mapping[str, Sequence[Spoken]], target: str
) -> list[Segment]:
    """The sentences of all speeches."""
    found: list[Segment] = []
    for row in rows:
        paragraphs = list(zip(row["ref_en"], row[f"ref_{target}"], strict=True))
        name = Path(row["audio"]).name
        found += segments_of(len(found), name, paragraphs, heard[row["audio"]])
    return found


def _listed(scores: Mapping[str, Score], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {scores[name].value:.2f}" for name in names)


def _human(texts: Sequence[str], references: Sequence[str], target: str) -> dict[str, float]:
    """Quality of what somebody said, of whom no times are known."""
    instances = [
        Instance(index=index, prediction=text, delays=(), source_length=0.0, reference=reference)
        for index, (text, reference) in enumerate(zip(texts, references, strict=True))
    ]
    report = score_corpus(instances, None, QUALITY, tokenizer_for(target))
    return {name: score.value for name, score in report.scores.items()}


if __name__ == "__main__":
    run()

"""Whole speeches of the European Parliament as they stream, beside the human interpreter.

    python -m benchmarks esic

English into German and Spanish (DRAGOMAN_BENCH_TARGETS), by the default model and policy and by the
same model offline, against Europarl's edited translations; into German also the interpreter who
was in the booth. DRAGOMAN_BENCH_SPEECHES names the corpus, a JSONL file with `audio`, `ref_de`,
`ref_es`, `interp_de` and `seconds`; `benchmarks/speech.py` says which other choices there are.

StreamLAAL takes a speech as one segment, since nothing tells where its sentences begin.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speech import DATA, cost, interpret_all, setup_for, some, told
from dragoman.corpora import Clip
from dragoman.metrics.instance import Instance
from dragoman.metrics.longform import score_longform
from dragoman.metrics.score import Score, score_corpus
from dragoman.metrics.segments import Segment
from dragoman.metrics.tokenize import tokenizer_for
from dragoman.setup import System
from dragoman.trace import Trace

METRICS = ("BLEU", "chrF", "StreamLAAL", "StreamLAAL_CA")
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
    for target in os.environ.get("DRAGOMAN_BENCH_TARGETS", "de es").split():
        found |= compare(rows, path.parent, target)
    return found


def compare(rows: Sequence[Mapping[str, Any]], folder: Path, target: str) -> dict[str, float]:
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
    offline = interpret_all(system.changed(policy="offline"), clips, "esic")
    scores = {"live": scored(live, target), "offline": scored(offline, target)}
    for name, score in scores["live"].items():
        print(f"  live {name} {score.value:.2f}  {score.signature}")
    print("  offline " + ", ".join(f"{n} {scores['offline'][n].value:.2f}" for n in METRICS[:2]))
    bleu, chrf, lag, lag_with_work = (scores["live"][name].value for name in METRICS)
    if f"interp_{target}" in rows[0]:
        human = _human([row[f"interp_{target}"] for row in rows], references, target)
        print(f"  the human interpreter: BLEU {human['BLEU']:.2f}, chrF {human['chrF']:.2f}")
        told("BLEU of the human's", bleu / human["BLEU"], OVER_HUMAN, most=False)
        told("chrF of the human's", chrf / human["chrF"], 1.0, most=False)
    share = bleu / scores["offline"]["BLEU"].value
    told("BLEU of the offline one", share, OF_OFFLINE, most=False)
    told("StreamLAAL, ms", lag, LAG, most=True, form=".0f")
    told("StreamLAAL with work, ms", lag_with_work, LAG_WITH_WORK, most=True, form=".0f")
    told("processor seconds per second", cost(live), COST, most=True)
    return {f"{target} BLEU": bleu, f"{target} share": share, f"{target} cost": cost(live)}


def scored(traces: Sequence[Trace], target: str) -> Mapping[str, Score]:
    segments = [
        Segment(index, trace.source, 0.0, trace.source_length / 1000, trace.reference or "")
        for index, trace in enumerate(traces)
    ]
    instances = [trace.instance() for trace in traces]
    tokenizer = tokenizer_for(target)
    return score_longform(instances, segments, metrics=METRICS, tokenizer=tokenizer).scores


def _human(texts: Sequence[str], references: Sequence[str], target: str) -> dict[str, float]:
    """Quality of what somebody said, of whom no times are known."""
    instances = [
        Instance(index=index, prediction=text, delays=(), source_length=0.0, reference=reference)
        for index, (text, reference) in enumerate(zip(texts, references, strict=True))
    ]
    report = score_corpus(instances, None, METRICS[:2], tokenizer_for(target))
    return {name: score.value for name, score in report.scores.items()}


if __name__ == "__main__":
    run()

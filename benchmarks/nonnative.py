"""Sentences of non-native English speech into German: live against offline.

    python -m benchmarks nonnative

The default model and policy, the same model offline; DRAGOMAN_BENCH_CORPUS names the corpus, a TSV
with the columns audio, start, end, en and de; `benchmarks/speech.py` says which other choices there
are. More models side by side: DRAGOMAN_BENCH_MODELS="moonshine-base+mt-en whisper-base+mt-en".
"""

import os
from pathlib import Path

from benchmarks.speech import DATA, cost, interpret_all, offline, setup_for, some, told
from dragoman.corpora import Clip, read_corpus
from dragoman.evaluate.result import Scorer
from dragoman.setup import Setup, System

TARGET = "de"
OF_OFFLINE, LAG, COST = 0.9, 2000.0, 0.3


def run() -> dict[str, float]:
    """Print the scores with their signatures, and which bars are met."""
    path = Path(os.environ.get("DRAGOMAN_BENCH_CORPUS", DATA / "nonnative-sentences.en-de.tsv"))
    if not path.is_file():
        print("No corpus: name a TSV with audio, start, end, en and de in DRAGOMAN_BENCH_CORPUS.")
        return {}
    clips = some(read_corpus(path, "en", TARGET))
    default = setup_for(TARGET)
    models = os.environ.get("DRAGOMAN_BENCH_MODELS", default.model).split()
    return {model: compare(clips, default.with_changes(model=model)) for model in models}


def compare(clips: list[Clip], setup: Setup) -> float:
    """Live against offline; returns the share of BLEU that is kept."""
    print(f"{len(clips)} sentences by {setup.model}, {setup.policy}, {setup.step_ms:g} ms steps")
    system, scorer = System(setup), Scorer.of(TARGET)
    live = interpret_all(system, clips, "nonnative")
    unhurried = scorer.report(interpret_all(offline(system), clips, "nonnative")).scores
    scores = scorer.report(live).scores
    for name in ("BLEU", "chrF", "LAAL", "LAAL_CA"):
        print(f"  live {name} {scores[name].value:.2f}  {scores[name].signature}")
    print(f"  offline BLEU {unhurried['BLEU'].value:.2f}, chrF {unhurried['chrF'].value:.2f}")
    share = scores["BLEU"].value / unhurried["BLEU"].value
    told("BLEU of the offline one", share, OF_OFFLINE, most=False)
    print(f"  chrF of the offline one: {scores['chrF'].value / unhurried['chrF'].value:.2f}")
    told("LAAL, ms", scores["LAAL"].value, LAG, most=True, form=".0f")
    told("processor seconds per second", cost(live), COST, most=True)
    return share


if __name__ == "__main__":
    run()

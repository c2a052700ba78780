"""How well a translator translates text, and what a sentence costs.

DRAGOMAN_BENCH_TEXT names parallel files, `en-de:europarl.en-de.tsv.xz`, with spaces between them;
DRAGOMAN_BENCH_TRANSLATOR the translator (mt-en) and DRAGOMAN_BENCH_LINES how many of the first
lines are translated (100).
"""

import os
import time
from itertools import islice
from pathlib import Path

import sacrebleu

from dragoman.metrics.tokenize import tokenizer_for
from dragoman.models.cascade.translator import Sentence
from dragoman.models.load import load_translator
from dragoman.models.options import Options


def run() -> dict[str, float]:
    """Print quality with its signatures, and seconds of processor time for a source word."""
    from dragoman.train.voicing.text import read_rows

    named = os.environ.get("DRAGOMAN_BENCH_TEXT", "").split()
    if not named:
        print("Name parallel text in DRAGOMAN_BENCH_TEXT: en-de:europarl.en-de.tsv.xz")
        return {}
    name = os.environ.get("DRAGOMAN_BENCH_TRANSLATOR", "mt-en")
    lines = int(os.environ.get("DRAGOMAN_BENCH_LINES", "100"))
    translator, found = load_translator(name, Options(threads=1)), {}
    for entry in named:
        languages, _, path = entry.partition(":")
        source, target = languages.split("-")
        pair = translator.between(source, target)
        rows = list(islice(read_rows(Path(path), [source, target], header=False), lines))
        begun, said = time.process_time(), []
        for row in rows:
            words = tuple(f" {word}" for word in row.text[source].split())
            (made,) = translator.translate([Sentence(words, pair)])
            said.append("".join(translator.words(made.tokens, ended=True, pair=pair).words).strip())
        spent = time.process_time() - begun
        wanted = [[row.text[target] for row in rows]]
        for metric in (sacrebleu.BLEU(tokenize=tokenizer_for(target)), sacrebleu.CHRF()):
            score = metric.corpus_score(said, wanted)
            print(f"{name} {languages}: {score} {metric.get_signature()}")
            found[f"{languages} {score.name}"] = score.score
        words = sum(len(row.text[source].split()) for row in rows)
        print(f"{name} {languages}: {1000 * spent / words:.1f} ms of one core for a source word")
    return found


if __name__ == "__main__":
    run()

"""German speech into Spanish by way of English: live against offline.

    DRAGOMAN_BENCH_CLIPS=20 python -m benchmarks through

There is no Spanish for these recordings: what is said is laid beside pseudo-references, which the
same translator has made of the English ones. They flatter it, and blame it for what Whisper puts
into other words; they serve to compare settings. DRAGOMAN_BENCH_CORPUS names the corpus, a TSV with
the columns audio, de and en; `benchmarks/speech.py` says which other choices there are.
"""

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from benchmarks.speech import DATA, cost, interpret_all, offline, some
from dragoman.corpora import Clip, read_corpus
from dragoman.evaluate.result import Scorer
from dragoman.models.cascade.translator import Sentence, Translator
from dragoman.models.load import load_translator
from dragoman.models.options import Options
from dragoman.setup import Setup, System
from dragoman.text.sentences import split_sentences

TARGET = "es"


def run() -> dict[str, float]:
    """Print the scores of both with their signatures."""
    path = Path(os.environ.get("DRAGOMAN_BENCH_CORPUS", DATA / "autodub.de-en.tsv"))
    if not path.is_file():
        print("No corpus: name a TSV with audio, de and en in DRAGOMAN_BENCH_CORPUS.")
        return {}
    translator = load_translator("mt-en", Options(threads=1))
    clips = [_with_reference(clip, translator) for clip in some(read_corpus(path, "de", "en"))]
    setup = Setup(source="de", target=TARGET, threads=1).settled().tuned(2000.0)
    setup = setup.with_changes(policy=os.environ.get("DRAGOMAN_BENCH_POLICY"))
    system, scorer, found = System(setup), Scorer.of(TARGET), {}
    for name, one in (("live", system), ("offline", offline(system))):
        print(f"{name}: {len(clips)} clips by {setup.model}, {one.setup.policy}")
        traces = interpret_all(one, clips, "through")
        for metric, score in scorer.report(traces).scores.items():
            if metric in ("BLEU", "chrF", "LAAL", "LAAL_CA"):
                print(f"  {metric} {score.value:.1f}  {score.signature}")
                found[f"{name} {metric}"] = score.value
        print(f"  processor seconds per second: {cost(traces):.2f}")
    return found


def _with_reference(clip: Clip, translator: Translator) -> Clip:
    """The English text sentence by sentence, as the cascade's translator puts it."""
    words = [f" {word}" for word in clip.texts["en"].split()]
    pair = translator.between("en", TARGET)
    ends = pairwise((0, *split_sentences(words)))
    made = translator.translate([Sentence(tuple(words[begin:end]), pair) for begin, end in ends])
    texts = ["".join(translator.words(one.tokens, ended=True, pair=pair).words) for one in made]
    return replace(clip, texts=clip.texts | {TARGET: "".join(texts).strip()})


if __name__ == "__main__":
    run()

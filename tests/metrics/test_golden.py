"""Values that SimulEval and OmniSTEval computed themselves, where their folder lies beside ours."""

import json
import math
from pathlib import Path

import pytest

from dragoman.metrics.instance import Instance
from dragoman.metrics.latency import LATENCY
from dragoman.metrics.score import METRICS, score_corpus
from dragoman.metrics.timings import Rules

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden"
if not GOLDEN.is_dir():
    pytest.skip(f"there are no golden values at {GOLDEN}", allow_module_level=True)

CASES = [json.loads(line) for line in (GOLDEN / "instances.jsonl").open(encoding="utf-8")]
SIMULEVAL = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["cases"]
OMNISTEVAL = json.loads(
    (GOLDEN / "expected_omnisteval_shortform.json").read_text(encoding="utf-8")
)["cases"]


def instance_of(case):
    names = ("index", "prediction", "delays", "elapsed", "source_length", "reference")
    return Instance(**{name: case[name] for name in names}, durations=case.get("durations"))


def assert_equal(value: float, wanted) -> None:
    """Equal to 1e-6, and undefined where the other tool gave no number."""
    if wanted is None or isinstance(wanted, dict) or math.isnan(wanted):
        assert math.isnan(value)
    else:
        assert value == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
@pytest.mark.parametrize("kind", ["log", "log_ca", "log_no_ref_len", "log_ca_no_ref_len"])
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
    for name, wanted in SIMULEVAL[case["id"]].get(kind, {}).items():
        if name + suffix in METRICS:
            assert_equal(scores[name + suffix].value, wanted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_simuleval_while_running(case):
    """Where SimulEval's live values differ from those of its log, ours are the live ones."""
    rules = Rules(unit=case["latency_unit"], source=case["source_type"])
    scores = score_corpus([instance_of(case)], rules).scores
    for name, wanted in SIMULEVAL[case["id"]]["live"].items():
        if name in LATENCY and name != "RTF":  # ours is compute over audio
            assert_equal(scores[name].value, wanted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_omnisteval(case):
    rules = Rules(unit=case["latency_unit"], compat="omnisteval", computation="cumulative")
    scores = score_corpus([instance_of(case)], rules).scores
    for name, wanted in OMNISTEVAL.get(case["id"], {}).items():
        if name in METRICS:
            assert_equal(scores[name].value, wanted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_quality(case):
    wanted = SIMULEVAL[case["id"]]
    if "chrf" not in wanted:
        pytest.skip("speech output has no text")
    rules = Rules(compat="simuleval")
    scores = score_corpus([instance_of(case)], rules, ["BLEU", "chrF", "WER"]).scores
    assert_equal(scores["BLEU"].value, wanted["bleu_corpus_of_one"]["13a"])
    assert_equal(scores["chrF"].value, wanted["chrf"])
    assert_equal(scores["WER"].value, wanted["wer"])


@pytest.mark.parametrize("log", sorted((GOLDEN / "live_runs").glob("*.log")), ids=lambda p: p.stem)
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

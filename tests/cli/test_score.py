"""`dragoman score` as a user calls it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from dragoman.cli.score import command
from dragoman.errors import DragomanError
from dragoman.metrics.comet import Comet
from dragoman.metrics.score import METRICS
from dragoman.trace import Hearing, Saying, Showing, Trace, TraceWriter
from tests import warm
from tests.golden import GOLDEN, golden_json
from tests.golden.comet.toy import make

ROOT = Path(__file__).parents[2]
NAMES = ["AL", "LAAL", "DAL", "AP", "ATD", "YAAL", "StartOffset", "EndOffset", "NumChunks"]
LINE = {
    "index": 0,
    "prediction": "the small house by the sea",
    "delays": [1000.0, 1000.0, 2000.0, 2000.0, 3000.0, 3000.0],
    "elapsed": [1300.0, 1300.0, 2500.0, 2500.0, 3900.0, 3900.0],
    "reference": "the small house at the sea",
    "source": ["a.wav"],
    "source_length": 3000.0,
}


@pytest.fixture
def log(tmp_path):
    lines = [
        LINE,
        LINE | {"index": 1, "elapsed": []},
        LINE | {"index": 2, "prediction": "", "delays": [], "elapsed": []},
        LINE | {"index": 5, "prediction": "yes", "delays": [3000.0], "elapsed": [3100.0]},
    ]
    path = tmp_path / "instances.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def score(*arguments):
    """Run the command in this process."""
    result = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def score_json(*arguments):
    return json.loads(score(*arguments, "--json").stdout)


def run(*arguments):
    """Run the program as a process of its own."""
    return subprocess.run(
        warm.command("-m", "dragoman", "score", *map(str, arguments)),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_json_has_every_name_for_the_corpus_and_each_sentence(log):
    content = score_json(log)
    wanted = {*NAMES, *(f"{name}_CA" for name in NAMES), "BLEU", "chrF", "WER"}
    assert wanted <= content["scores"].keys()
    assert content["scores"].keys() == content["signature"].keys()
    assert [row["index"] for row in content["sentences"]] == [0, 1, 2, 5]
    for row in content["sentences"]:
        assert row.keys() == {"index", *content["scores"]}


def test_what_is_undefined_is_null_and_counted(log):
    content = score_json(log)
    first, without_clock, silent, late = content["sentences"]
    assert first["AL"] == pytest.approx((1000 + 500 + 1000 + 500 + 1000) / 5)
    assert first["AL_CA"] == pytest.approx((1300 + 800 + 1200 + 700 + 1400) / 5)
    assert without_clock["AL"] == first["AL"]
    assert without_clock["AL_CA"] is None
    assert silent["AL"] is None
    assert silent["BLEU"] == 0
    assert late["YAAL"] is None
    assert content["scores"]["AL"] == pytest.approx((2 * first["AL"] + 3000) / 3)
    assert content["problems"] == {
        "nothing said": [2],
        "no computation times that fit the delays": [1],
    }


def test_warnings_go_to_stderr(log):
    result = score(log, "--json")
    assert "Sentences with nothing said, 1 of 4: 2" in result.stderr
    assert "nothing said:" not in result.stdout.split('"problems"')[0]


def test_clocks_and_compat_show_in_the_signature(log):
    default, simuleval = score_json(log), score_json(log, "--compat", "simuleval")
    assert "ca:honest|compat:no" in default["signature"]["AL_CA"]
    assert "ca:cumulative|compat:simuleval" in simuleval["signature"]["AL_CA"]
    # Listening and computing never overlap in SimulEval's eyes.
    assert simuleval["sentences"][0]["AL_CA"] > default["sentences"][0]["AL_CA"]
    assert simuleval["sentences"][0]["EndOffset_CA"] == 900
    assert default["sentences"][0]["EndOffset_CA"] == 400
    alone = score_json(log, "--ca", "chunk")
    assert "ca:chunk" in alone["signature"]["AL_CA"]


def test_metrics_can_be_chosen(log):
    content = score_json(log, "-m", "LAAL", "-m", "chrF")
    assert list(content["scores"]) == ["LAAL", "chrF"]
    with pytest.raises(DragomanError, match="no metric BLUE; there are BLEU, chrF"):
        score(log, "-m", "BLUE")


def test_the_table_shows_scores_and_signatures(log):
    output = score(log).stdout
    for name in METRICS:
        if name != "Erasure":
            assert name.removesuffix("_CA") in output
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp" in output
    assert "ca:honest" in output
    assert "1,533" in output.split("AL")[1].split("LAAL")[0]


def test_characters(tmp_path):
    line = LINE | {"prediction": "大家好", "reference": "大家早", "delays": [1, 2, 3]}
    (tmp_path / "instances.log").write_text(json.dumps(line | {"elapsed": []}))
    content = score_json(tmp_path, "--unit", "char", "--tokenizer", "zh")
    assert content["scores"]["NumChunks"] == 3
    assert "unit:char" in content["signature"]["AL"]
    assert "tok:zh" in content["signature"]["BLEU"]


def test_references_from_a_file(log, tmp_path):
    references = tmp_path / "references.txt"
    references.write_text("the small house by the sea\n" * 2 + "\nyes\n")
    assert score_json(log, "--references", references)["scores"]["WER"] == 0
    references.write_text("one line\n")
    with pytest.raises(DragomanError, match=r"has 1 references but .* has 4 sentences"):
        score(log, "--references", references)


def test_references_of_a_log_in_another_order(tmp_path):
    texts = ["the small house by the sea", "a dog ran in the park", "my house is very big now"]
    lines = [LINE | {"index": place, "prediction": texts[place]} for place in (2, 0, 1)]
    log, references = tmp_path / "instances.log", tmp_path / "references.txt"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    references.write_text("\n".join(texts))
    assert score_json(log, "--references", references)["scores"]["WER"] == 0


def test_references_of_a_log_from_which_sentences_are_left_out(tmp_path):
    texts = ["the small house by the sea", "a dog ran", "my house is very big now"]
    lines = [LINE | {"index": place, "prediction": text} for place, text in enumerate(texts)]
    log, references = tmp_path / "instances.log", tmp_path / "references.txt"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    references.write_text("\n".join(texts))
    told = score_json(log, "--skip-broken", "--references", references)["sentences"]
    assert [(row["index"], row["WER"]) for row in told] == [(0, 0), (2, 0)]
    references.write_text("\n".join(texts) + "\none more")
    with pytest.raises(DragomanError, match="has 4 references but"):
        score(log, "--skip-broken", "--references", references)


def test_references_of_a_log_that_lacks_a_sentence(tmp_path):
    """And has one too many, perhaps: then nobody knows whether the lines are those of the log."""
    log, references = tmp_path / "instances.log", tmp_path / "references.txt"
    references.write_text("the small house at the sea\n" * 3)
    log.write_text("".join(json.dumps(LINE | {"index": index}) + "\n" for index in (0, 2)))
    with pytest.raises(DragomanError, match=r"3 references but .* has 2 sentences, without 1\.$"):
        score(log, "--references", references)
    log.write_text("".join(json.dumps(LINE | {"index": index}) + "\n" for index in (0, 2, 10**15)))
    told = score(log, "--references", references).stderr
    assert "has no sentence 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, …: the lines of" in told
    log.write_text("".join(json.dumps(LINE | {"index": index}) + "\n" for index in (6, 5, 7)))
    assert score(log, "--references", references).stderr == ""


def test_references_written_on_windows(log, tmp_path):
    lines = b"the small house by the sea\r\n" * 2 + b"\r\nyes\r\n"
    references = tmp_path / "references.txt"
    references.write_bytes(b"\xef\xbb\xbf" + lines)
    assert score_json(log, "--references", references)["scores"]["WER"] == 0


def test_plain_text_has_quality_alone(tmp_path):
    text, references = tmp_path / "output.de", tmp_path / "references.txt"
    text.write_bytes(b"\xef\xbb\xbfthe small house\r\n\r\nyes\r\n")
    references.write_text("the small house\nno\nyes\n")
    done = score(text, "--references", references, "--json")
    content = json.loads(done.stdout)
    assert list(content["scores"]) == ["BLEU", "chrF", "WER", "LengthDiff"]
    assert [row["WER"] for row in content["sentences"]] == [0, 100, 0]
    assert content["problems"] == {"nothing said": [1]}
    with pytest.raises(DragomanError, match=r"is plain text, .* it has no LAAL"):
        score(text, "--references", references, "-m", "LAAL")
    with pytest.raises(DragomanError, match=r"To score plain text, .* \(--references\)"):
        score(text)


def test_a_log_that_has_lost_its_beginning_is_no_plain_text(tmp_path):
    """Its JSON would be scored as what was said."""
    path, references = tmp_path / "instances.log", tmp_path / "refs.txt"
    path.write_text('house", "source_length": 1}\n' + json.dumps(LINE) + "\n")
    references.write_text("the small house\nthe small house at the sea\n")
    with pytest.raises(DragomanError, match="line 1: this is not valid JSON, so it is no log"):
        score(path, "--references", references)


def test_plain_text_may_have_braces(tmp_path):
    path, references = tmp_path / "said.txt", tmp_path / "refs.txt"
    path.write_text("the house\n{laughs} the sea\n")
    references.write_text("the house\nthe sea\n")
    assert len(score_json(path, "--references", references)["sentences"]) == 2


@pytest.mark.parametrize("unit", ["word", "char"])
def test_plain_text_of_whole_talks(tmp_path, unit):
    text, references = tmp_path / "output.txt", tmp_path / "references.txt"
    segments = tmp_path / "segments.yaml"
    text.write_text("a b c d e f\n\n")
    references.write_text("a b c\nd e f\ng h\n")
    places = (("a.wav", 0.0), ("a.wav", 2.0), ("b.wav", 0.0))
    segments.write_text("".join(f"- {{wav: {w}, offset: {o}, duration: 2.0}}\n" for w, o in places))
    options = ("--segments", segments, "--references", references, "--unit", unit)
    content = score_json(text, *options)
    assert list(content["scores"]) == ["BLEU", "chrF", "WER", "LengthDiff"]
    assert [row["WER"] for row in content["sentences"]] == [0, 0, 100]


def test_references_that_are_not_there(log, tmp_path):
    for path, words in (
        (tmp_path / "no.txt", "No such file or directory."),
        (tmp_path, "Is a dir"),
    ):
        done = run("--references", path, log)
        assert done.returncode == 2
        assert f"Cannot read the references in {path}: {words}" in done.stderr
        assert "Errno" not in done.stderr


def test_a_trace_of_our_own(tmp_path):
    trace = Trace(index=4, source="a.wav", reference="old man")
    trace.heard(Hearing(1000, 1000, 1000, 1500))
    trace.shown(Showing("cold", 0))
    trace.heard(Hearing(2000, 2000, 2000, 2600))
    trace.shown(Showing("", 1))
    trace.said(Saying("old man", 1))
    path = tmp_path / "trace.jsonl"
    with TraceWriter.open(path) as writer:
        writer.write(trace)
    content = score_json(path)
    assert content["scores"]["StartOffset"] == 2000
    assert content["scores"]["StartOffset_CA"] == 2600
    assert content["scores"]["RTF"] == pytest.approx(1100 / 2000)
    assert content["scores"]["Erasure"] == 0.5
    assert content["scores"]["WER"] == 0


def traced(index, source="a.wav", chunks=(0, 1)):
    """The lines of a trace in which a word is said after each of two chunks."""
    head = {"dragoman_trace": 1, "index": index, "source": source, "reference": "old man"}
    heard = [{"heard": [1000 * n, 1000 * n, 1000 * n, 1000 * n + 500]} for n in (1, 2)]
    said = [{"said": f" w{chunk}", "chunk": chunk} for chunk in chunks]
    return [json.dumps(row) for row in (head, *heard, *said, {"end": True})]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (traced(4), "sentence 4 comes twice"),
        (traced(5, chunks=(1, 0)), "sentence 5 has unsorted delays"),
        ([*traced(5)[:2], '{"heard": [1', *traced(5)[2:]], "Line 9 of .* is not a line"),
        ([json.dumps({"dragoman_trace": 1, "index": "5"})], "Line 7 of .*Expected `int`"),
    ],
)
def test_broken_traces_are_refused_or_left_out(tmp_path, second, words):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([*traced(4), *second, *traced(6)]) + "\n\n")
    with pytest.raises(DragomanError, match=words):
        score(path)
    content = score_json(path, "--skip-broken")
    assert [row["index"] for row in content["sentences"]] == [4, 6]
    assert len(content["left_out"]) == 1


def test_lines_of_references_need_sentences_with_numbers_of_their_own(tmp_path):
    """The traces of two talks, one after the other: both are number 0."""
    path, references = tmp_path / "trace.jsonl", tmp_path / "refs.txt"
    path.write_text("\n".join([*traced(0, "a.wav"), *traced(0, "b.wav")]) + "\n")
    references.write_text("old\nman\n")
    assert len(score_json(path)["sentences"]) == 2
    with pytest.raises(DragomanError, match="Several sentences have the number 0"):
        score(path, "--references", references)


def test_whole_talks(tmp_path):
    log = tmp_path / "instances.log"
    talk = LINE | {"prediction": "a b c d e f", "source_length": 6000.0}
    log.write_text(json.dumps(talk | {"delays": [1e3, 2e3, 3e3, 4e3, 5e3, 6e3], "elapsed": []}))
    segments, references = tmp_path / "segments.yaml", tmp_path / "references.txt"
    segments.write_text(
        "- {wav: a.wav, offset: 0.0, duration: 3.0}\n- {wav: a.wav, offset: 3.0, duration: 3.0}\n"
    )
    references.write_text("a b c\nd e f\n")
    content = score_json(log, "--segments", segments, "--references", references)
    assert content["scores"]["StreamLAAL"] == pytest.approx(1000)
    assert content["scores"]["LongLAAL"] == pytest.approx(1000)
    assert content["scores"]["BLEU"] == pytest.approx(0)  # three words have no 4-gram
    assert len(content["sentences"]) == 2
    with pytest.raises(DragomanError, match="--segments needs --references"):
        score(log, "--segments", segments)


@pytest.fixture
def comet(log, tmp_path):
    """A toy net, what was spoken, and the options that name them."""
    spoken = tmp_path / "spoken.txt"
    spoken.write_text("Das Haus\nDas Haus\nDas Meer\nJa\n")
    return "--comet", make(tmp_path / "net", "usual"), "--sources", spoken


def test_comet_of_a_log_in_another_order(log, comet):
    spoken = Path(comet[-1])
    spoken.write_text("eins\nzwei\ndrei\nvier\n")
    before = score_json(log, *comet)["scores"]["COMET"]
    log.write_text("".join(reversed(log.read_text().splitlines(keepends=True))))
    assert score_json(log, *comet)["scores"]["COMET"] == pytest.approx(before, abs=1e-4)


def test_comet(log, comet):
    content = score_json(log, *comet)
    each = [sentence["COMET"] for sentence in content["sentences"]]
    wanted = Comet(comet[1]).scores(
        ["Das Haus", "Das Haus", "Das Meer", "Ja"],
        [LINE["prediction"], LINE["prediction"], "", "yes"],
        [LINE["reference"]] * 4,
    )
    assert each == pytest.approx(list(wanted))
    assert content["scores"]["COMET"] == pytest.approx(sum(wanted) / 4)
    assert "LAAL" in content["scores"]
    with pytest.raises(DragomanError, match=r"Cannot read the sources in nowhere\.txt"):
        score(log, *comet[:2], "--sources", "nowhere.txt")
    alone = score_json(log, *comet, "-m", "COMET")
    assert list(alone["scores"]) == ["COMET"]


def test_comet_of_whole_talks(tmp_path, log, comet):
    segments, references = tmp_path / "segments.yaml", tmp_path / "references.txt"
    segments.write_text(
        "- {wav: a.wav, offset: 0.0, duration: 1.0}\n- {wav: a.wav, offset: 1.0, duration: 2.0}\n"
    )
    references.write_text("the small house\nat the sea\n")
    (tmp_path / "one.log").write_text(json.dumps(LINE))
    (tmp_path / "spoken.txt").write_text("Das Haus\nam Meer\n")
    talks = (tmp_path / "one.log", "--segments", segments, "--references", references)
    content = score_json(*talks, *comet, "--aligner", "mwer")
    wanted = Comet(comet[1]).scores(
        ["Das Haus", "am Meer"],
        ["the small house", "by the sea"],
        ["the small house", "at the sea"],
    )
    assert [row["COMET"] for row in content["sentences"]] == pytest.approx(list(wanted))
    assert content["signature"]["COMET"].endswith("|scale:100|align:mwer")


def test_comet_that_the_hub_s_client_has_fetched(log, comet, tmp_path, monkeypatch):
    """By its name; the pieces of words are XLM-RoBERTa's own."""
    hub = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    snapshot = hub / "models--some--net" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    comet[1].rename(snapshot)
    pieces = hub / "models--FacebookAI--xlm-roberta-large" / "snapshots" / ("1" * 40)
    pieces.mkdir(parents=True)
    (snapshot / "sentencepiece.bpe.model").rename(pieces / "sentencepiece.bpe.model")
    content = score_json(log, "--comet", "some/net", *comet[2:], "-m", "COMET")
    assert content["signature"]["COMET"].startswith("COMET|model:some/net|weights:")
    with pytest.raises(DragomanError, match="hf download Unbabel/wmt22-comet-da"):
        score(log, "--comet", "some/other", *comet[2:])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--comet", "net"], "name a file that has it"),
        (["--sources", "spoken.txt"], "--sources is for --comet"),
        (["-m", "COMET"], "COMET needs a net"),
    ],
)
def test_comet_wants_both(log, options, words):
    with pytest.raises(DragomanError, match=words):
        score(log, *options)


GOOD = json.dumps(LINE)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "".join(json.dumps(LINE | {"index": i}) + "\n" for i in range(6)) + '{"index": 6, "pr',
            "line 7: this is not valid JSON",
        ),
        (json.dumps(LINE | {"elapsed": [1.0]}), "has 6 delays but 1 elapsed"),
        (json.dumps(LINE | {"prediction": "two words"}), "has 2 words in its prediction but 6"),
        (json.dumps(LINE | {"delays": [-1.0] * 6}), "has a negative delay"),
        (json.dumps(LINE | {"delays": [6, 5, 4, 3, 2, 1]}), "has unsorted delays"),
        ("\0\0\0", "binary"),
        ("", "is empty"),
        ("hello", "line 1: this is not valid JSON"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_status_2(tmp_path, content, words):
    path = tmp_path / "instances.log"
    path.write_text(content)
    result = run(path, "--json")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("dragoman: ")
    assert words in result.stderr
    assert str(path) in result.stderr
    assert "Traceback" not in result.stderr


def test_no_log_at_all(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.log"):
        result = run(path)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert "There is no" in result.stderr


def test_broken_sentences_can_be_left_out(tmp_path):
    path = tmp_path / "instances.log"
    path.write_text(GOOD + "\n" + json.dumps(LINE | {"index": 1, "delays": [1.0]}) + "\n{\n")
    result = score(path, "--json", "--skip-broken")
    content = json.loads(result.stdout)
    assert [row["index"] for row in content["sentences"]] == [0]
    assert len(content["left_out"]) == 2
    assert result.stderr.count("left out: ") == 2


def test_the_target_chooses_unit_and_tokenizer(tmp_path):
    text = "今天我们讨论。"
    line = LINE | {"prediction": text, "reference": text, "delays": [1000.0] * 7}
    path = tmp_path / "instances.log"
    path.write_text(json.dumps(line | {"elapsed": [1100.0] * 7}) + "\n")
    scored = score_json(path, "--to", "Chinese")
    assert scored["scores"]["BLEU"] == pytest.approx(100)
    assert "|tok:zh|" in scored["signature"]["BLEU"]
    assert "|unit:char|" in scored["signature"]["LAAL"]
    told = score_json(path, "--to", "zh", "--tokenizer", "char")
    assert "|tok:char|" in told["signature"]["BLEU"]
    assert "|tok:13a|" in score_json(path, "--unit", "char")["signature"]["BLEU"]
    with pytest.raises(DragomanError, match="not a language"):
        score(path, "--to", "klingon")


# --- what OmniSTEval writes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "own"), [("word_de", ()), ("char_zh", ("--unit", "char", "--tokenizer", "zh"))]
)
def test_the_pieces_of_talks_are_written_as_omnisteval_writes_them(case, own, tmp_path):
    expected = golden_json("longform/expected_longform.json")[case]["omnisteval_0.1.10"]
    folder, out = GOLDEN / "longform" / case, tmp_path / "instances.resegmented.jsonl"
    talks = ["--segments", folder / "segments.yaml", "--references", folder / "refs.txt"]
    for flags, wanted in expected.items():
        flag = dict(pair.split("=") for pair in flags.split())
        if flag["lang"] != "None":
            continue
        ca = "chunk" if flag["fix_ca"] == "True" else "cumulative"
        more = ["--from-first-segment"] if flag["offset_delays"] == "True" else []
        rules = ["--compat", "omnisteval", "--ca", ca, *more, *own, "--resegmented", out]
        score(folder / "instances.log", *talks, *rules)
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        assert rows == wanted["resegmented"]
        assert [list(row) for row in rows] == [list(row) for row in wanted["resegmented"]]


def test_pieces_of_text_have_no_times_and_of_a_log_without_computation_no_such(tmp_path):
    folder, out = GOLDEN / "longform" / "word_de", tmp_path / "pieces.jsonl"
    talks = ["--segments", folder / "segments.yaml", "--references", folder / "refs.txt"]
    logged = [json.loads(line) for line in (folder / "instances.log").read_text().splitlines()]
    text = tmp_path / "text.txt"
    text.write_text("".join(line["prediction"] + "\n" for line in logged))
    score(text, *talks, "--resegmented", out)
    named = ["index", "docid", "segid", "prediction", "reference", "source_length"]
    assert [list(json.loads(line)) for line in out.read_text().splitlines()] == [named] * 7
    bare = tmp_path / "bare.log"
    bare.write_text("".join(json.dumps(line | {"elapsed": []}) + "\n" for line in logged))
    score(bare, *talks, "--resegmented", out)
    times = ["emission_cu", "time_to_recording_end"]
    assert list(json.loads(out.read_text().splitlines()[0])) == named + times


def test_pieces_are_no_log(tmp_path):
    """They look like SimulEval's sentences whose times were lost."""
    folder, out = GOLDEN / "longform" / "word_de", tmp_path / "pieces.jsonl"
    talks = ["--segments", folder / "segments.yaml", "--references", folder / "refs.txt"]
    score(folder / "instances.log", *talks, "--resegmented", out)
    for options in ([], talks):
        with pytest.raises(DragomanError, match="Score the log they were cut from"):
            score(out, *options)


def test_pieces_are_of_talks_and_are_never_written_over_what_is_read(tmp_path):
    folder = GOLDEN / "longform" / "word_de"
    talks = ["--segments", folder / "segments.yaml", "--references", tmp_path / "refs.txt"]
    shutil.copy(folder / "refs.txt", tmp_path)
    shutil.copy(folder / "instances.log", tmp_path)
    with pytest.raises(DragomanError, match=r"name them \(--segments\)"):
        score(tmp_path, "--resegmented", tmp_path / "out.jsonl")
    for read in ("instances.log", "refs.txt"):
        with pytest.raises(DragomanError, match="is read by this command"):
            score(tmp_path, *talks, "--resegmented", tmp_path / read)


# --- several references ---------------------------------------------------------------------------


def test_several_references_are_sacrebleus_and_latency_is_by_the_first(log, tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    lines = ["the small house at the sea", "a house", "nothing", "yes indeed"]
    more = ["a small house by the sea", "", "not a word", "yes"]
    first.write_text("".join(line + "\n" for line in lines))
    second.write_text("".join(line + "\n" for line in more))
    found = score_json(log, "--references", first, "--references", second)
    said = [LINE["prediction"]] * 2 + ["", "yes"]
    documents = [lines, [line or None for line in more]]
    for name, metric in (("BLEU", BLEU()), ("chrF", CHRF())):
        assert found["scores"][name] == pytest.approx(metric.corpus_score(said, documents).score)
        assert found["signature"][name] == f"{name}|{metric.get_signature()}"
    assert found["signature"]["WER"].startswith("WER|nrefs:var|")
    # 1 of (6 + 6) / 2 words, 5 of 2, 1 of (1 + 3) / 2, 0 of (2 + 1) / 2
    assert found["scores"]["WER"] == pytest.approx(100 * (1 + 5 + 1 + 0) / (6 + 2 + 2 + 1.5))
    alone = score_json(log, "--references", first)
    for name in ("AL", "LAAL", "AP", "LengthDiff"):
        assert found["scores"][name] == alone["scores"][name]
        assert found["signature"][name] == alone["signature"][name]
    reverse = score_json(log, "--references", second, "--references", first)
    assert reverse["scores"]["BLEU"] == found["scores"]["BLEU"]
    assert reverse["scores"]["AP"] != found["scores"]["AP"]


def test_talks_are_cut_by_one_reference(tmp_path):
    folder = GOLDEN / "longform" / "word_de"
    twice = ["--references", folder / "refs.txt"] * 2
    with pytest.raises(DragomanError, match="with --segments name one file of --references"):
        score(folder / "instances.log", "--segments", folder / "segments.yaml", *twice)

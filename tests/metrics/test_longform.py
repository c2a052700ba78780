"""Talks cut by reference segments: golden values, values by hand, and what must always hold."""

import json
import math
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance
from dragoman.metrics.logs import read_log
from dragoman.metrics.longform import LONG_METRICS, score_longform
from dragoman.metrics.pieces import LongRules, units_of
from dragoman.metrics.score import score_corpus
from dragoman.metrics.segments import Segment, _read_plain_lines, match_talks, read_segments
from dragoman.metrics.timings import Rules
from tests.golden import GOLDEN, golden_json

OMNISTEVAL = Rules(compat="omnisteval", computation="cumulative")

# --- golden ---------------------------------------------------------------------------------------

CASES = [("word_de", "word", "13a"), ("char_zh", "char", "zh")]


def golden(case):
    expected = golden_json("longform/expected_longform.json")[case]
    folder = GOLDEN / "longform" / case
    return folder, read_segments(folder / "segments.yaml", folder / "refs.txt"), expected


def assert_scores(report, expected):
    for title, wanted in expected.items():
        name = title.replace(" (CU)", "").replace(" (CA)", "_CA")
        name = name.replace(" (NFKC-normalized)", "_NFKC")
        # The golden values were printed with four digits.
        assert report.scores[name].value == pytest.approx(float(wanted), abs=5.1e-5), name
        assert report.scores[name].name == name  # under which it is compared with another's


@pytest.mark.parametrize(("case", "unit", "tokenizer"), CASES)
def test_omnisteval_in_every_combination_of_flags(case, unit, tokenizer):
    folder, segments, expected = golden(case)
    talks = read_log(folder / "instances.log", unit).instances
    for flags, wanted in expected["omnisteval_0.1.10"].items():
        options = dict(flag.split("=") for flag in flags.split())
        language = None if options["lang"] == "None" else options["lang"]
        if language:
            pytest.importorskip("sacremoses")
        rules = replace(
            OMNISTEVAL,
            unit=unit,
            computation="chunk" if options["fix_ca"] == "True" else "cumulative",
        )
        long_rules = LongRules(
            language=language, from_first_segment=options["offset_delays"] == "True"
        )
        report = score_longform(talks, segments, rules, long_rules, tokenizer=tokenizer)
        assert_scores(report, wanted["scores_tsv"])
        for sentence, row in zip(report.instances, wanted["resegmented"], strict=True):
            assert sentence.prediction == row["prediction"]
            assert sentence.source_length == row["source_length"]
            assert list(sentence.delays) == row["emission_cu"]
            assert list(sentence.elapsed) == row["emission_ca"]


@pytest.mark.parametrize(("case", "unit", "tokenizer"), CASES)
def test_omnisteval_and_simulstream_on_a_simulstream_log(case, unit, tokenizer):
    folder, segments, expected = golden(case)
    talks = read_log(folder / "simulstream.jsonl", unit).instances
    rules = Rules(unit=unit, compat="omnisteval", computation="chunk")
    report = score_longform(talks, segments, rules, tokenizer=tokenizer)
    assert_scores(report, expected["omnisteval_0.1.10_from_simulstream_log"])
    printed = expected["simulstream_1.0.0_score_latency_stdout"].rstrip(")").split("=")
    assert report.scores["StreamLAAL"].value == pytest.approx(
        1000 * float(printed[1].split(",")[0]), rel=1e-9
    )
    assert report.scores["StreamLAAL_CA"].value == pytest.approx(1000 * float(printed[2]), rel=1e-9)


@pytest.mark.parametrize(("case", "unit", "tokenizer"), CASES)
def test_the_script_of_fbk(case, unit, tokenizer):
    folder, segments, expected = golden(case)
    talks = read_log(folder / "instances.log", unit).instances
    rules = Rules(unit=unit, computation="chunk")
    long_rules = LongRules(aligner="mwer", stream="fbk")
    report = score_longform(talks, segments, rules, long_rules, tokenizer=tokenizer)
    (line,) = expected["fbk_stream_laal_py_v2.0_with_mweralign_standin"]
    names = ("BLEU", "StreamLAAL", "StreamLAAL_CA")
    for name, wanted in zip(names, line.split("\t"), strict=True):
        assert report.scores[name].value == pytest.approx(float(wanted), rel=1e-9)


# --- by hand --------------------------------------------------------------------------------------


def talk(prediction, delays, elapsed=None, source="a.wav", **more):
    return Instance(
        index=0,
        prediction=prediction,
        delays=delays,
        elapsed=elapsed,
        source_length=10_000,
        source=source,
        **more,
    )


# Two sentences of 2 s and 4 words each, at 1 s and 4 s; "w5" comes before its sentence begins.
SEGMENTS = [
    Segment(0, "a.wav", 1.0, 2.0, "w1 w2 w3 w4"),
    Segment(1, "a.wav", 4.0, 2.0, "w5 w6 w7 w8"),
]
TALK = talk(
    "w1 w2 w3 w4 w5 w6 w7 w8",
    [2000, 2000, 3000, 3500, 3500, 5000, 6000, 7000],
    [2100, 2100, 3300, 3900, 3900, 5500, 6700, 7800],
)


def values(name, rules=OMNISTEVAL, long_rules=None, talks=(TALK,), segments=SEGMENTS):
    return score_longform(list(talks), segments, rules, long_rules).scores[name].sentences.tolist()


def test_lagging_by_hand():
    # First sentence, times 1000 1000 2000 2500 at a pace of 500 ms: the third ends the source.
    first = (1000 + (1000 - 500) + (2000 - 1000)) / 3
    # Second, times -500 1000 2000 3000: the early word counts as it is.
    second = (-500 + (1000 - 500) + (2000 - 1000)) / 3
    assert values("LongAL") == pytest.approx([first, second])
    assert values("LongLAAL") == pytest.approx([first, second])
    assert values("StreamLAAL") == pytest.approx([first, second])


def test_long_yaal_counts_all_words_before_the_recording_ends():
    # The recording ends at 6 s: 5 s after the first sentence begins, 2 s after the second.
    first = (1000 + 500 + 1000 + (2500 - 1500)) / 4
    second = (-500 + (1000 - 500)) / 2
    assert values("LongYAAL") == pytest.approx([first, second])


def test_proportion_and_dal_by_hand():
    assert values("LongAP") == pytest.approx([6500 / (2000 * 4), 5500 / (2000 * 4)])
    # DAL: at least 500 ms between words: 1000 1500 2000 2500; -500 1000 2000 3000.
    first = (1000 + 1000 + 1000 + 1000) / 4
    second = (-500 + 500 + 1000 + 1500) / 4
    assert values("LongDAL") == pytest.approx([first, second])


def test_fbk_says_nothing_before_its_sentence():
    rules = Rules(computation="chunk")
    fbk = LongRules(stream="fbk")
    second = (0 + (1000 - 500) + (2000 - 1000)) / 3
    assert values("StreamLAAL", rules, fbk)[1] == pytest.approx(second)
    # With computation, from the talk's beginning: 2100; 2000 + 100 (it appeared together with the
    # word before); 3300 - 2100 + 2000 = 3200; 3900 - 3300 + 3000 = 3600. The second sentence:
    # 3600 is before it begins, 0; 5500 - 3900 + 3500 = 5100; 6200 ends the source.
    first = (1100 + (1100 - 500) + (2200 - 1000)) / 3
    second = (0 + (1100 - 500) + (2200 - 1000)) / 3
    assert values("StreamLAAL_CA", rules, fbk) == pytest.approx([first, second])


def test_fbk_takes_the_honest_clock_from_the_beginning_of_each_sentence():
    """Work ends at 2100 (of two words), 3200 and 3600 (of two: one is before its sentence, 0), then
    at 5100 and 6200, when the second sentence is over, and at 7100."""
    fbk = LongRules(stream="fbk")
    first = (1100 + (1100 - 500) + (2200 - 1000)) / 3
    second = (0 + (1100 - 500) + (2200 - 1000)) / 3
    found = values("StreamLAAL_CA", Rules(computation="honest"), fbk)
    assert found == pytest.approx([first, second])


def test_late_work_delays_the_next_sentence():
    """The honest clock runs through the talk: work of the first sentence holds up the second."""
    busy = talk("w1 w5", [1000, 4100], ends=[4500, 4600], elapsed=[4500, 7700])
    rules = Rules(computation="honest")
    segments = [replace(SEGMENTS[0], reference="w1"), replace(SEGMENTS[1], reference="w5")]
    assert values("LongYAAL_CA", rules, talks=[busy], segments=segments) == [3500, 600]
    derived = replace(busy, ends=None, elapsed=[4500, 7700])
    # From elapsed: 3500 ms of work until the first word, 100 ms more until the second.
    assert values("LongYAAL_CA", rules, talks=[derived], segments=segments) == [3500, 600]


def test_times_from_the_first_segment():
    shifted = replace(TALK, delays=[time - 1000 for time in TALK.delays], elapsed=None)
    from_first = LongRules(from_first_segment=True)
    for name in ("LongAL", "LongYAAL", "StreamLAAL"):
        assert values(name, long_rules=from_first, talks=[shifted]) == values(name)


def test_without_computation_times_the_aware_metrics_are_undefined():
    report = score_longform([replace(TALK, elapsed=None)], SEGMENTS)
    assert math.isnan(report.scores["LongYAAL_CA"].value)
    assert math.isnan(report.scores["StreamLAAL_CA"].value)
    assert report.to_dict()["scores"]["LongAL"] == pytest.approx((2500 + 1000) / 6)


def test_a_sentence_without_words_is_counted_and_left_out():
    report = score_longform([talk("w5 w6", [5000, 6000])], SEGMENTS)
    assert report.problems["nothing said"] == [0]
    assert report.scores["LongAL"].scored == 1
    assert math.isnan(report.scores["LongAL"].sentences[0])


def doubted(changes=None, segments=SEGMENTS, long_rules=None, metrics=LONG_METRICS):
    one = replace(TALK, **(changes or {}))
    report = score_longform([one], segments, OMNISTEVAL, long_rules, metrics)
    return {what.partition(" (")[0]: rows for what, rows in report.problems.items()}


def test_times_of_talks_that_can_hardly_be_right_are_told():
    """Segments in milliseconds, or logs in seconds, were scored without a word: -16 s of lag."""
    heard = {"source_length": 6000.0}  # the last word comes with a chunk that is not full
    assert doubted(heard) == {}
    assert doubted({"source_length": 5900.0}) == {"delays beyond the end of their source": [0, 1]}
    seconds = {"delays": [delay / 1000 for delay in TALK.delays]}
    told = {"all delays in a 500th of their source": [0, 1]}
    assert doubted(heard | seconds) == told
    far = [SEGMENTS[0], replace(SEGMENTS[1], offset=5.1)]
    assert doubted(heard, far) == {"an end beyond that of their recording": [1]}
    assert doubted(heard, far, metrics=["BLEU"]) == {}  # which has nothing to do with times
    assert doubted(heard, [SEGMENTS[0], replace(SEGMENTS[1], offset=5.0)]) == {}
    turned = doubted(heard, SEGMENTS[::-1])
    assert turned["a beginning before that of the segment above them"] == [0]
    assert doubted({"source_length": 0.0}, far).keys() <= {"a source of no length"}  # nobody knows


def test_a_segment_of_no_length_is_told():
    """Its lag is undefined, and so the mean is that of the others."""
    segments = [SEGMENTS[0], replace(SEGMENTS[1], duration=0.0)]
    report = score_longform([TALK], segments, metrics=["LongLAAL"])
    assert report.problems["a source of no length"] == [1]
    assert report.scores["LongLAAL"].scored == 1


def test_segments_of_a_log_that_begins_with_the_first_one_end_within_it():
    later = [replace(segment, offset=segment.offset + 60) for segment in SEGMENTS]
    heard = {"source_length": 6000.0}
    assert doubted(heard, later, LongRules(from_first_segment=True)) == {}
    assert doubted(heard, later) == {"an end beyond that of their recording": [0, 1]}


def test_a_score_prints_how_it_was_measured():
    scores = score_longform([TALK], SEGMENTS).scores
    assert "align:soft" in scores["LongYAAL_CA"].signature
    assert "ca:honest" in scores["LongYAAL_CA"].signature
    assert "align:mwer" in scores["StreamLAAL"].signature
    interval = scores["LongAL"].interval()
    low, high = interval.low, interval.high
    assert low <= scores["LongAL"].value <= high


def test_spaces_may_have_times_or_not():
    timed = talk("a bc", [1, 2, 3, 4])
    untimed = talk("a bc", [1, 3, 4])
    assert units_of(timed, "char") == ["a", " ", "b", "c"]
    assert units_of(untimed, "char") == ["a ", "b", "c"]
    assert units_of(talk("a\u00a0b c", [1, 2]), "word") == ["a\u00a0b", "c"]


# --- what always holds ----------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "ab", "haus", "häuser", "."])


@st.composite
def talks_and_segments(draw):
    """One to three talks with sentences one after the other, and an output for each."""
    talks, segments = [], []
    for number in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, 2000))
        for _ in range(draw(st.integers(1, 3))):
            length = draw(st.integers(1, 4000))
            reference = " ".join(draw(st.lists(words, min_size=1, max_size=4)))
            segments.append(
                Segment(len(segments), f"{number}.wav", begin / 1000, length / 1000, reference)
            )
            begin += length
        said = draw(st.lists(words, max_size=10))
        delays = sorted(
            draw(st.lists(st.integers(0, begin), min_size=len(said), max_size=len(said)))
        )
        elapsed = [delay + 50 * (i + 1) for i, delay in enumerate(delays)]
        talks.append(talk(" ".join(said), delays, elapsed, f"{number}.wav"))
    return talks, segments


def corpus_values(report):
    return [score.value for score in report.scores.values()]


@given(talks_and_segments())
def test_the_order_of_talks_does_not_matter(case):
    talks, segments = case
    report = score_longform(talks, segments)
    assert corpus_values(score_longform(talks[::-1], segments)) == pytest.approx(
        corpus_values(report), nan_ok=True
    )
    by_talk = sorted(segments, key=lambda segment: segment.wav, reverse=True)
    again = [replace(segment, index=index) for index, segment in enumerate(by_talk)]
    assert corpus_values(score_longform(talks, again)) == pytest.approx(
        corpus_values(report), nan_ok=True
    )


@given(talks_and_segments(), st.integers(1, 5))
def test_a_later_recording_has_the_same_latency(case, seconds):
    """Silence before everything shifts all times alike."""
    talks, segments = case
    later = [replace(segment, offset=segment.offset + seconds) for segment in segments]
    delayed = [
        replace(
            one,
            delays=[time + 1000 * seconds for time in one.delays],
            elapsed=[time + 1000 * seconds for time in one.elapsed],
        )
        for one in talks
    ]
    for name in ("LongAP", "LongDAL", "LongDAL_CA"):  # no threshold that rounding could cross
        before = score_longform(talks, segments, metrics=[name])
        after = score_longform(delayed, later, metrics=[name])
        assert corpus_values(after) == pytest.approx(corpus_values(before), nan_ok=True, abs=1e-6)


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, max_size=6), st.data())
def test_a_talk_of_one_sentence_is_scored_as_that_sentence(reference, said, data):
    delays = sorted(data.draw(st.integers(0, 5000)) for _ in said)
    one = replace(talk(" ".join(said), delays), source_length=4000, reference=" ".join(reference))
    segment = Segment(0, "a.wav", 0.0, 4.0, " ".join(reference))
    long = score_longform([one], [segment]).scores
    short = score_corpus([one]).scores
    pairs = {"LongAL": "AL", "LongLAAL": "LAAL", "LongDAL": "DAL", "LongAP": "AP", "BLEU": "BLEU"}
    pairs |= {"StreamLAAL": "LAAL", "LongYAAL": "YAAL"}
    for name, plain in pairs.items():
        assert long[name].value == pytest.approx(short[plain].value, nan_ok=True), name


# --- bad input ------------------------------------------------------------------------------------


def write(tmp_path, segments, references="x\n"):
    path, lines = tmp_path / "segments.yaml", tmp_path / "refs.txt"
    path.write_text(segments, encoding="utf-8")
    lines.write_text(references, encoding="utf-8")
    return path, lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- {wav: a, offset: 0}", "segment 1: a segment needs"),
        ("- {wav: a, offset: zero, duration: 1}", "segment 1: a segment needs"),
        ("- {wav: a, offset: -1, duration: 1}", "segment 1: offset -1.0 .* are not times"),
        ("- {wav: a, offset: .nan, duration: 1}", "are not times"),
        ("- just a word", "segment 1: a segment needs"),
        ("", "holds no list"),
        ("{a: 1}", "holds no list"),
        ("- [unclosed", r"is not YAML: did not find expected ',' or '\]' \(line 2"),
        ("- {wav: a, offset: 0, duration: 1}\n" * 2, "2 segments but"),
    ],
)
def test_broken_segments_are_named(tmp_path, content, message):
    with pytest.raises(DragomanError, match=message):
        read_segments(*write(tmp_path, content))


@pytest.mark.parametrize("second", ["{wav: a}", "{wav: a, offset: 1, duration: -1}"])
def test_a_broken_segment_is_told_by_its_number(tmp_path, second):
    first = "- {wav: a, offset: 0, duration: 1}"
    with pytest.raises(DragomanError, match="segment 2: "):
        read_segments(*write(tmp_path, f"{first}\n- {second}", "x\ny\n"))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.wav", "x/b-1.flac", "no", "1.5", "'q.wav'", "yes.wav", "a.1"]),
            st.sampled_from(["0.0", "12.50", "3", "1e3", "1.5e1", "007.0"]),
            st.sampled_from(["wav: {}, offset: {}, duration: 1.25", "offset: {1}, wav: {0}"]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_plain_lines_are_read_as_yaml_reads_them(rows):
    text = "".join(f"- {{{shape.format(wav, offset)}}}\n" for wav, offset, shape in rows)
    plain = _read_plain_lines(text)
    if plain is not None:
        typed = [{k: v if k == "wav" else float(v) for k, v in entry.items()} for entry in plain]
        assert typed == yaml.safe_load(text)
        assert all(isinstance(entry["wav"], str) for entry in yaml.safe_load(text))


def test_usual_lines_are_plain():
    line = "- {duration: 3.5, offset: 16.08, speaker_id: spk.1096, wav: ted_1096.wav}"
    assert _read_plain_lines(line)[0]["wav"] == "ted_1096.wav"
    assert _read_plain_lines(line + " # a remark") is None


def test_segments_may_be_json(tmp_path):
    rows = [{"wav": "a.wav", "offset": 0.5, "duration": 1, "speaker": "x"}]
    path, lines = write(tmp_path, json.dumps(rows), " hello  \n")
    assert read_segments(path, lines) == [Segment(0, "a.wav", 0.5, 1.0, "hello")]


def test_missing_and_binary_files_are_named(tmp_path):
    path, lines = write(tmp_path, "- {wav: a, offset: 0, duration: 1}")
    with pytest.raises(DragomanError, match="Cannot read the segments"):
        read_segments(tmp_path / "none.yaml", lines)
    with pytest.raises(DragomanError, match="Cannot read the references"):
        read_segments(path, tmp_path)
    lines.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DragomanError, match="not UTF-8"):
        read_segments(path, lines)


def test_recordings_are_matched_by_ever_looser_names():
    segments = [Segment(0, "x/a.wav", 0, 1, "a"), Segment(1, "x/b.wav", 0, 1, "b")]
    for a, b in (("x/a.wav", "x/b.wav"), ("y/a.wav", "y/b.wav"), ("a", "b"), ("", "")):
        talks = match_talks([talk("", [], source=a), talk("", [], source=b)], segments)
        assert [(one.instance.source, one.segments[0].reference) for one in talks] == [
            (a, "a"),
            (b, "b"),
        ]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["a.wav"], "no output for 'b'\\.$"),
        (["a.wav", "c.wav"], "no segments for 'c'"),
        (["a.wav", "a.wav", "b.wav"], "several outputs for 'a'\\.$"),
        (list("abcd"), "no segments for 'c', 'd'\\.$"),
        (list("abcdef"), "no segments for 'c', 'd', 'e' and 1 more\\.$"),
    ],
)
def test_recordings_that_do_not_pair_off_are_named(sources, message):
    segments = [Segment(0, "a.wav", 0, 1, "a"), Segment(1, "b.wav", 0, 1, "b")]
    with pytest.raises(DragomanError, match=message):
        match_talks([talk("", [], source=source) for source in sources], segments)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(
        DragomanError, match=r"for a\.wav has 3 words in its prediction but 1 delays"
    ):
        score_longform([talk("a b c", [1])], SEGMENTS)
    with pytest.raises(DragomanError, match="speech"):
        score_longform([talk("a.wav", [1], durations=[1])], SEGMENTS)
    with pytest.raises(DragomanError, match="no long-form metric AL"):
        score_longform([TALK], SEGMENTS, metrics=["AL"])
    with pytest.raises(DragomanError, match="SimulEval has no long form"):
        score_longform([TALK], SEGMENTS, Rules(compat="simuleval"))


def test_every_metric_has_a_value():
    assert {*score_longform([TALK], SEGMENTS).scores} == {*LONG_METRICS}


def test_a_signature_says_how_talks_were_cut():
    """Punctuation is split off for soft alignment alone."""
    zero = LongRules(from_first_segment=True)
    for long_rules, told in ((LongRules(), False), (zero, True)):
        scores = score_longform([TALK], SEGMENTS, long_rules=long_rules).scores
        for name in ("LongYAAL", "StreamLAAL_CA"):
            assert ("|zero:first-segment|" in scores[name].signature) == told
    assert LongRules(language="de").alignment("soft") == "align:soft|lang:de"
    assert LongRules(language="de").alignment("mwer") == "align:mwer"
    assert LongRules(aligner="mwer").alignment("soft") == "align:mwer"

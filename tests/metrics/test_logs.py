"""Logs of SimulEval and simulstream: read, written, and refused with a sentence."""

import json
from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.metrics import simuleval_log
from dragoman.metrics.instance import Instance
from dragoman.metrics.logs import read_log

LINE = {
    "index": 0,
    "prediction": "ein Haus",
    "delays": [1000.0, 2000.0],
    "elapsed": [1100.0, 2300.0],
    "prediction_length": 2,
    "reference": "ein Haus",
    "source": ["a.wav", "samplerate: 16000 Hz"],
    "source_length": 2000.0,
}


def write_log(folder, *lines, name="instances.log"):
    """Write lines, given as objects or as they are to stand in the file."""
    path = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def test_a_simuleval_log(tmp_path):
    write_log(tmp_path, LINE, LINE | {"index": 1, "elapsed": []}, "")
    log = read_log(tmp_path)
    assert log.kind == "SimulEval"
    assert log.source == "speech"
    assert [instance.index for instance in log.instances] == [0, 1]
    first, second = log.instances
    assert first.source == "a.wav"
    assert first.delays == array("d", [1000, 2000])
    assert first.elapsed == array("d", [1100, 2300])
    assert second.elapsed is None


def test_a_byte_order_mark_and_missing_fields_do_no_harm(tmp_path):
    small = {"prediction": "ein Haus", "delays": [1, 2], "source_length": 2}
    path = tmp_path / "instances.log"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(small).encode())
    (instance,) = read_log(path).instances
    assert instance.index == 0
    assert instance.reference is None


@pytest.mark.parametrize(
    ("config", "source", "medium"),
    [
        ("source_type: text\ntarget_type: text\n", ["a.wav"], "text"),
        ("source_type: speech\ntarget_type: text\n", "zwei Wörter", "speech"),
        (None, "zwei Wörter", "text"),  # as long as the source length says
        (None, "drei kleine Wörter", "speech"),
        (None, ["a.wav"], "speech"),
    ],
)
def test_what_the_source_was(tmp_path, config, source, medium):
    write_log(tmp_path, LINE | {"source": source, "source_length": 2, "delays": [1, 2]})
    if config:
        (tmp_path / "config.yaml").write_text(config)
    assert read_log(tmp_path).source == medium


numbers = st.floats(0, 1e6, allow_nan=False)


@st.composite
def instances(draw):
    size = draw(st.integers(0, 5))
    delays = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    speech = draw(st.booleans())
    lists = st.lists(numbers, min_size=size, max_size=size)
    return Instance(
        index=draw(st.integers(0, 1000)),
        prediction=" ".join(draw(st.lists(st.sampled_from("aé日"), min_size=size, max_size=size))),
        reference=draw(st.none() | st.text()),
        delays=array("d", delays),
        elapsed=array("d", draw(lists)) if size and draw(st.booleans()) else None,
        source_length=draw(numbers),
        source=draw(st.sampled_from(["a.wav", "", "ü b.flac"])),
        durations=draw(lists) if speech else None,
        prediction_offset=draw(numbers) if speech else None,
        intervals=[[1.0, 2.0]] * size if speech else None,
    )


@given(st.lists(instances(), min_size=1, max_size=4, unique_by=lambda instance: instance.index))
def test_what_is_written_is_read_again(tmp_path_factory, corpus):
    folder = tmp_path_factory.mktemp("log")
    simuleval_log.write(folder, corpus)
    assert read_log(folder).instances == corpus
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", "instances.log"]


NAN = '{"index": 0, "prediction": "a", "delays": [NaN], "source_length": 1}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"index": 0, "predic', "line 2: this is not valid JSON"),
        (NAN, "line 2: this is not valid JSON .* It has NaN for a number"),
        (NAN.replace("NaN", "-Infinity"), "It has -Infinity for a number"),
        ("{", "line 2: this is not valid JSON .* A sentence must stand on one line"),
        ("[1, 2]", "line 2: Expected `object`"),
        (LINE | {"delays": [1.0, None]}, r"line 2: Expected `float`, got `null` - at `\$.delays"),
        (LINE | {"delays": "soon"}, "line 2: Expected"),
        (LINE | {"elapsed": [1.0]}, "line 2: sentence 0 has 2 delays but 1 elapsed"),
        (LINE | {"delays": [1.0]}, "line 2: sentence 0 has 1 delays but 2 elapsed"),
        (LINE | {"durations": [1.0]}, "line 2: sentence 0 has 2 delays but 1 durations"),
        (LINE | {"delays": [2000, 1000]}, "unsorted delays: 1000 follows 2000 at unit 2"),
        (LINE | {"delays": [-5, 1000]}, "has a negative delay"),
        (
            LINE | {"prediction": "ein großes Haus"},
            "has 3 words in its prediction but 2 delays; .*char\\)\\.$",
        ),
        (LINE | {"source_length": -1.0}, "has a source length of -1"),
        ({"index": 0, "prediction": "a", "delays": [1]}, "missing required field `source_length`"),
    ],
)
def test_bad_lines_are_refused_with_what_and_where(tmp_path, line, words):
    path = write_log(tmp_path, LINE | {"index": 7}, line)
    with pytest.raises(DragomanError, match=words) as error:
        read_log(path)
    assert str(path) in str(error.value)


def test_a_log_in_another_encoding_is_told_where(tmp_path):
    path = write_log(tmp_path, LINE)
    path.write_bytes(path.read_bytes() + '{"index": 1, "prediction": "für"}'.encode("latin-1"))
    with pytest.raises(DragomanError, match="line 2: this is not UTF-8 text"):
        read_log(path)


def test_an_index_twice_is_refused(tmp_path):
    with pytest.raises(DragomanError, match="line 2: sentence 0 comes twice"):
        read_log(write_log(tmp_path, LINE, LINE))


def test_broken_sentences_can_be_left_out(tmp_path):
    path = write_log(
        tmp_path, LINE, LINE | {"index": 1, "delays": [2, 1]}, "{", LINE | {"index": 2}
    )
    log = read_log(path, skip=True)
    assert [instance.index for instance in log.instances] == [0, 2]
    assert len(log.left_out) == 2
    assert "line 2" in log.left_out[0]
    assert "line 3" in log.left_out[1]


def test_sentences_without_an_index_are_numbered_by_their_lines(tmp_path):
    """Else those behind a broken line would be given each other's references."""
    nameless = {name: value for name, value in LINE.items() if name != "index"}
    path = write_log(tmp_path, nameless, "", '{"predic', nameless)
    assert [i.index for i in read_log(path, skip=True).instances] == [0, 2]


def test_the_first_sentence_may_be_the_broken_one(tmp_path):
    path = write_log(tmp_path, '{"index": 0, "predic', LINE | {"index": 1})
    log = read_log(path, skip=True)
    assert [instance.index for instance in log.instances] == [1]
    (told,) = log.left_out
    assert "line 1: this is not valid JSON" in told
    with pytest.raises(DragomanError, match="line 1: this is not valid JSON"):
        read_log(path)


def test_a_log_of_nothing_but_broken_lines_says_so_of_the_first(tmp_path):
    with pytest.raises(DragomanError, match="line 1: this is not valid JSON"):
        read_log(write_log(tmp_path, '{"index": 0, "predic', "{"), skip=True)


def test_compat_reads_what_simuleval_would_score(tmp_path):
    """Unsorted delays, lengths that differ from the text's, and of one index the last."""
    odd = LINE | {"prediction": "x", "delays": [2000.0, 1000.0]}
    del odd["reference"]
    log = read_log(write_log(tmp_path, LINE, odd), strict=False)
    assert [list(instance.delays) for instance in log.instances] == [[2000, 1000]]
    assert log.instances[0].reference == ""  # what SimulEval takes a missing one for


@pytest.mark.parametrize("told", [{"docid": 0, "segid": 0}, {"emission_cu": [1000.0]}])
def test_what_was_cut_into_segments_already_is_no_log_of_talks(tmp_path, told):
    """Of text nobody knows when it was said; and tools differ in what else they write down."""
    with pytest.raises(DragomanError, match="cut into segments already"):
        read_log(write_log(tmp_path, LINE | told))
    assert read_log(write_log(tmp_path, LINE | {"docid": 0})).instances


def test_all_references_of_a_sentence_begin_with_the_first():
    one = Instance(index=0, prediction="a", delays=[], source_length=1.0)
    assert one.references == ()
    assert replace(one, reference="b").references == ("b",)
    assert replace(one, reference="b", more_references=("c", "d")).references == ("b", "c", "d")


def test_characters_may_be_counted_with_their_spaces_or_without(tmp_path):
    with_spaces = LINE | {"prediction": "a b", "delays": [1, 2, 3], "elapsed": []}
    without = LINE | {"index": 1, "prediction": "a b", "delays": [1, 2], "elapsed": []}
    log = read_log(write_log(tmp_path, with_spaces, without), "char")
    assert len(log.instances) == 2
    with pytest.raises(DragomanError, match="another unit"):
        read_log(write_log(tmp_path, LINE), "char")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\x00\x01\x02RIFF", "binary"),
        (b"\xff\xfe\xfa\n", "line 1: this is not valid JSON"),
        (b"hello\n", "line 1: this is not valid JSON"),
        (b'{"hello": 1}\n', "is not a log that can be scored"),
        (b'{"delays": [1], "source_length": 2}\n', "is not a log that can be scored"),
        (b"[1]\n", "line 1: Expected `object`"),
    ],
)
def test_files_that_are_no_logs(tmp_path, content, words):
    path = tmp_path / "instances.log"
    path.write_bytes(content)
    with pytest.raises(DragomanError, match=words):
        read_log(path)


def test_places_without_a_log(tmp_path):
    with pytest.raises(DragomanError, match=r"no instances\.log in the folder"):
        read_log(tmp_path)
    with pytest.raises(DragomanError, match="There is no log at"):
        read_log(tmp_path / "nowhere.log")
    write_log(tmp_path, LINE)
    (tmp_path / "config.yaml").write_text("source_type: [")
    with pytest.raises(DragomanError, match=r"config\.yaml is not YAML"):
        read_log(tmp_path)


# --- simulstream ----------------------------------------------------------------------------------


def chunk(audio, work, added, deleted=(), name=1):
    return {
        "id": name,
        "total_audio_processed": audio,
        "computation_time": work,
        "generated_tokens": list(added),
        "deleted_tokens": list(deleted),
    }


START = [{"model_loading_time": 2.5}, {"id": 1, "metadata": {"wav_name": "talks/one.wav"}}]


def read_talks(tmp_path, *lines, unit="word"):
    return read_log(write_log(tmp_path, *START, *lines, name="s.jsonl"), unit).instances


def test_a_simulstream_log(tmp_path):
    (talk,) = read_talks(
        tmp_path,
        chunk(1.0, 1.5, ["▁Guten"]),
        chunk(2.0, 0.25, []),
        chunk(3.0, 0.5, ["▁Mor", "gen", "▁allen"]),
    )
    assert talk.prediction == "Guten Morgen allen"
    assert talk.source == "talks/one.wav"
    assert talk.source_length == 3000
    assert talk.delays.tolist() == [1000, 3000, 3000]
    assert talk.works.tolist() == [1500, 500, 500]
    assert talk.ends.tolist() == [2500, 3500, 3500]  # chunk 2 ended at 2750, before 3 arrived
    assert talk.elapsed.tolist() == [2500, 5250, 5250]
    assert talk.compute == 2250
    assert talk.erased == 0
    assert talk.reference is None


def test_a_talk_of_impossible_times_is_left_out_where_broken_ones_are(tmp_path):
    """The other talks were not scored either."""
    good = [START[1] | {"id": 2}, chunk(1.0, 0.5, ["▁Guten"], name=2)]
    path = write_log(tmp_path, *START, chunk(-1.0, 0.5, ["▁Guten"]), *good, name="s.jsonl")
    log = read_log(path, skip=True)
    assert [talk.index for talk in log.instances] == [1]
    assert ["source length of -1000" in told for told in log.left_out] == [True]
    with pytest.raises(DragomanError, match="source length of -1000"):
        read_log(path)


def test_words_that_change_are_said_when_they_last_changed(tmp_path):
    (talk,) = read_talks(
        tmp_path,
        chunk(1.0, 0, ["▁a", "▁hou"]),
        chunk(2.0, 0, ["se"]),
        chunk(3.0, 0, ["▁in"]),
        chunk(4.0, 0, ["▁of"], ["▁in"]),
        chunk(5.0, 0, [], ["se", "▁of"]),
        chunk(6.0, 0, ["▁on"]),
    )
    assert talk.prediction == "a hou on"
    assert talk.delays.tolist() == [1000, 5000, 6000]
    assert talk.erased == 1 + 2  # "in", then the end of "house" and "of"


def test_tokens_without_marks_are_words_or_characters(tmp_path):
    lines = [chunk(1.0, 0, ["一", "二"]), chunk(2.0, 0, ["三"], ["二"])]
    (words,) = read_talks(tmp_path, *lines)
    assert words.prediction == "一 三"
    assert words.delays.tolist() == [1000, 2000]
    (characters,) = read_talks(tmp_path, *lines, unit="char")
    assert characters.prediction == "一三"
    assert characters.delays.tolist() == [1000, 2000]
    assert (words.erased, characters.erased) == (1, 1)


def test_of_characters_each_that_is_taken_back_counts(tmp_path):
    lines = [chunk(1.0, 0, ["▁ab", "▁cde"]), chunk(2.0, 0, ["▁f"], ["▁cde"])]
    counted = {unit: read_talks(tmp_path, *lines, unit=unit)[0].erased for unit in ("word", "char")}
    assert counted == {"word": 1, "char": 3}


def test_the_space_before_a_word_is_seen_with_the_word(tmp_path):
    lines = [chunk(1.0, 0, ["▁ab", "▁"]), chunk(2.0, 0, ["c"])]
    (talk,) = read_talks(tmp_path, *lines, unit="char")
    assert talk.prediction == "ab c"
    assert talk.delays.tolist() == [1000, 1000, 2000, 2000]
    (talk,) = read_talks(tmp_path, chunk(1.0, 0, ["▁", "▁ab"]), chunk(2.0, 0, ["▁"]), unit="char")
    assert (talk.prediction, talk.delays.tolist()) == ("ab", [1000, 1000])  # none around the text


def replay(lines):
    """The slow way: after every line look at the words, and give a changed word its time."""

    def text_of(tokens):
        return "".join(tokens).replace("▁", " ").split()

    tokens, known = [], []
    for line in lines:
        now = line["total_audio_processed"] * 1000
        kept = tokens[: len(tokens) - len(line["deleted_tokens"])]
        for stage in (kept, kept + line["generated_tokens"]):
            before, after = text_of(tokens), text_of(stage)
            known = [
                known[i] if i < len(before) and before[i] == word else now
                for i, word in enumerate(after)
            ]
            tokens = stage
    return text_of(tokens), known


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(["▁a", "b", "▁c", "d"]), max_size=3), st.integers(0, 3)),
        min_size=1,
        max_size=8,
    )
)
def test_simulstream_against_a_replay(tmp_path_factory, steps):
    lines, tokens = [], ["▁x"]
    lines.append(chunk(1.0, 0, tokens))
    for number, (added, deleted) in enumerate(steps, start=2):
        cut = min(deleted, len(tokens) - 1)
        lines.append(chunk(float(number), 0, added, tokens[len(tokens) - cut :]))
        tokens = tokens[: len(tokens) - cut] + added
    (talk,) = read_talks(tmp_path_factory.mktemp("log"), *lines)
    words, times = replay(lines)
    assert talk.prediction.split() == words
    assert talk.delays.tolist() == times


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (chunk(1.0, 0, ["a"], name=9), "line 3: 9 is not known"),
        (chunk(1.0, 0, ["a"], ["b"]), "line 3: tokens are taken back that were not the last"),
        ({"id": 2, "metadata": {}}, "line 3: 'wav_name' is not known"),
        ({"id": 1, "total_audio_processed": "long"}, "line 3: Expected `float`"),
    ],
)
def test_bad_simulstream_lines(tmp_path, line, words):
    with pytest.raises(DragomanError, match=words):
        read_talks(tmp_path, line)


@pytest.mark.parametrize("added", [["▁b"], []])
def test_audio_that_shrinks_is_refused(tmp_path, added):
    """Also where nothing was said with it: work would begin before its sound was there."""
    with pytest.raises(DragomanError, match=r"line 4: after 2 s of audio only 1 s were processed"):
        read_talks(tmp_path, chunk(2.0, 0, ["▁a"]), chunk(1.0, 0, added), chunk(3.0, 0, ["▁c"]))


def test_no_computation_takes_less_than_no_time(tmp_path):
    with pytest.raises(DragomanError, match=r"line 3: the computation took -0.5 s"):
        read_talks(tmp_path, chunk(1.0, -0.5, ["▁a"]))


def test_a_recording_that_begins_twice_is_refused(tmp_path):
    """As in a file that two runs were written to: the first one would be forgotten."""
    lines = [chunk(1.0, 0, ["▁a"]), START[1], chunk(1.0, 0, ["▁b"])]
    with pytest.raises(DragomanError, match="line 4: recording 1 comes twice"):
        read_talks(tmp_path, *lines)
    (talk,) = read_log(write_log(tmp_path, *START, *lines), strict=False).instances
    assert talk.prediction == "b"


def test_broken_talks_can_be_left_out(tmp_path):
    lines = [
        *(START[1], chunk(1.0, 0, ["▁a"])),
        *({"id": 2, "metadata": {"wav_name": "two.wav"}}, chunk(1.0, 0, ["▁b"], name=2)),
        *('{"id": 2, "total', chunk(2.0, 0, ["▁c"], ["▁no"], name=2)),
        *({"id": 3, "metadata": {"wav_name": "three.wav"}}, chunk(1.0, 0, ["▁d"], name=3)),
    ]
    log = read_log(write_log(tmp_path, *lines), skip=True)
    assert [(i.index, i.source, i.prediction) for i in log.instances] == [
        (0, "talks/one.wav", "a"),
        (2, "three.wav", "d"),
    ]
    (told,) = log.left_out
    assert "line 5: this is not valid JSON" in told

"""Every layout, on corpora that the tests make."""

import json

import numpy as np
import pytest
import soundfile

from dragoman.corpora import read_corpus
from dragoman.errors import DragomanError


@pytest.fixture
def wav(tmp_path):
    def make(name: str):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.zeros(1600, np.float32), 16000)
        return path

    return make


def test_tsv_with_a_column_per_language(tmp_path, wav):
    wav("sound/a.wav")
    corpus = tmp_path / "c.tsv"
    corpus.write_text('audio\tstart\tend\tde\ten\nsound/a.wav\t0.5\t2\tSag "ja\tSay "yes\n')
    (clip,) = read_corpus(corpus, "de", "en")
    assert (clip.start, clip.end) == (0.5, 2.0)
    assert clip.texts == {"de": 'Sag "ja', "en": 'Say "yes'}
    assert clip.audio == tmp_path / "sound/a.wav"


def test_jsonl_with_paragraph_lists(tmp_path, wav):
    wav("a.wav")
    corpus = tmp_path / "c.jsonl"
    row = {"audio": "a.wav", "en_verbatim": "eh yes", "ref_de": ["Eins.", "Zwei."], "speaker": "X"}
    corpus.write_text(json.dumps(row) + "\n\n" + json.dumps(row) + "\n")
    clip, again = read_corpus(corpus, "en", "de")
    assert clip.texts == {"en": "eh yes", "de": "Eins. Zwei."}
    assert (clip.index, again.index) == (0, 2)  # as the lines are numbered


def test_text_of_several_lines_is_on_one(tmp_path, wav):
    """Words of a reference end at spaces: as SimulEval counts, "two\\nthree" is one."""
    wav("a.wav")
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"audio": "a.wav", "en": "one two\nthree \r\n\n four", "de": "1"}) + "\n"
    )
    (clip,) = read_corpus(tmp_path / "c.jsonl", "de", "en")
    assert clip.texts["en"] == "one two three four"


def test_a_paragraph_may_be_a_number(tmp_path, wav):
    wav("a.wav")
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"audio": "a.wav", "en": ["Chapter", 3]}\n')
    assert read_corpus(corpus, "de", "en")[0].texts == {"en": "Chapter 3"}


def test_must_c(tmp_path, wav):
    wav("dev/wav/ted_1.wav")
    txt = tmp_path / "dev/txt"
    txt.mkdir()
    (txt / "dev.yaml").write_text(
        "- {duration: 3.5, offset: 16.08, speaker_id: spk.1, wav: ted_1.wav}\n"
        "- {duration: 1.0, offset: 20.0, speaker_id: spk.1, wav: ted_1.wav}\n"
    )
    (txt / "dev.en").write_text("one\ntwo\n")
    (txt / "dev.de").write_text("eins\nzwei\n")
    for path in (tmp_path / "dev", txt / "dev.yaml"):
        clips = read_corpus(path, "en", "de")
        assert [clip.texts["de"] for clip in clips] == ["eins", "zwei"]
        assert clips[0].start == 16.08
        assert clips[0].end == pytest.approx(19.58)


def test_must_c_with_its_recordings_beside_the_list(tmp_path, wav):
    """As one lays out a few of one's own: no folder `wav` is needed."""
    recording = wav("dev/talk.wav")
    (tmp_path / "dev/dev.yaml").write_text("- {duration: 1.0, offset: 0.5, wav: talk.wav}\n")
    (tmp_path / "dev/dev.de").write_text("eins\n")
    (clip,) = read_corpus(tmp_path / "dev", "en", "de")
    assert clip.audio == recording


def test_europarl_st(tmp_path, wav):
    wav("en/audios/en.2009.1.wav")
    split = tmp_path / "en/de/dev"
    split.mkdir(parents=True)
    (split / "segments.lst").write_text("en.2009.1 0.0 4.5\nen.2009.1 4.5 6\n")
    (split / "segments.en").write_text("a\nb\n")
    (split / "segments.de").write_text("c\nd\n")
    clips = read_corpus(split, "en", "de")
    assert [(clip.start, clip.end, clip.texts["de"]) for clip in clips] == [
        (0.0, 4.5, "c"),
        (4.5, 6.0, "d"),
    ]


def test_covost(tmp_path, wav):
    wav("clips/x.mp3.wav")
    corpus = tmp_path / "covost_v2.de_en.dev.tsv"
    corpus.write_text(
        "path\tsentence\ttranslation\tclient_id\nx.mp3.wav\tGuten Tag\tGood day\tabc\n"
    )
    (clip,) = read_corpus(corpus, "de", "en")
    assert clip.texts == {"de": "Guten Tag", "en": "Good day"}


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (r"\"Good-bye,\" said the boy.", '"Good-bye," said the boy.'),  # as CoVoST 2 writes
        ('"""Good-bye,"" said the boy."', '"Good-bye," said the boy.'),  # as Common Voice 5 does
        ('"では、危険ですか？"と言った。', '"では、危険ですか？"と言った。'),  # and 11
        ('"Hello."', '"Hello."'),
        ('"unmatched', '"unmatched'),
        ("plain", "plain"),
    ],
)
def test_quotes_in_common_voice(tmp_path, wav, cell, text):
    wav("clips/x.wav")
    corpus = tmp_path / "validated.tsv"
    corpus.write_text(f"client_id\tpath\tsentence\tup_votes\r\nabc\tx.wav\t{cell}\t2\r\n")
    (clip,) = read_corpus(corpus, "en", "en")
    assert clip.texts == {"en": text}


def test_simuleval_lists(tmp_path, wav):
    wav("a.wav")
    (tmp_path / "source.txt").write_text("a.wav\n")
    (tmp_path / "target.txt").write_text("hello\n")
    (clip,) = read_corpus(tmp_path / "source.txt", "de", "en", [tmp_path / "target.txt"])
    assert clip.texts == {"en": "hello"}
    (tmp_path / "target.2.txt").write_text("hi\n")
    lists = [tmp_path / "target.txt", tmp_path / "target.2.txt"]
    (clip,) = read_corpus(tmp_path / "source.txt", "de", "en", lists)
    assert (clip.texts, clip.more_references) == ({"en": "hello"}, ("hi",))
    lists[1].write_text("hi\nthere\n")
    with pytest.raises(DragomanError, match=r"target.2.txt has 2 lines for 1 clips"):
        read_corpus(tmp_path / "source.txt", "de", "en", lists)


def test_further_references_are_in_columns_with_numbers(tmp_path, wav):
    wav("a.wav"), wav("b.wav")
    corpus = tmp_path / "c.tsv"
    head = "audio\tde\tde.10\tde.2\ten\ten.2\tde.x\n"
    corpus.write_text(head + "a.wav\tja\tdoch\tjawohl\tyes\taye\t-\nb.wav\tnein\t \tnö\tno\t\t-\n")
    clips = read_corpus(corpus, "en", "de")
    assert [clip.more_references for clip in clips] == [("jawohl", "doch"), ("nö",)]
    assert clips[0].texts == {"de": "ja", "en": "yes"}
    rows = '{"audio": "a.wav", "ref_de": "ja", "ref_de.2": "doch", "de.3": ["ja", "ja"]}\n'
    (tmp_path / "c.jsonl").write_text(rows)
    (clip,) = read_corpus(tmp_path / "c.jsonl", "en", "de")
    assert (clip.texts, clip.more_references) == ({"de": "ja"}, ("doch", "ja ja"))


@pytest.mark.parametrize("layout", ["table", "lists"])
def test_where_the_first_reference_is_empty_the_next_is_the_first(tmp_path, wav, layout):
    """WER was by the mean of two lengths, of which one was 0; BLEU saw nothing that was too short;
    and the pace of AL was that of one word."""
    wav("a.wav")
    if layout == "table":
        (tmp_path / "c").write_text("audio\ten\ten.2\ten.3\na.wav\t \tgood day\thello\n")
        (clip,) = read_corpus(tmp_path / "c", "de", "en")
    else:
        for name, line in (("c", "a.wav"), ("1", ""), ("2", "good day"), ("3", "hello")):
            (tmp_path / name).write_text(line + "\n")
        (clip,) = read_corpus(tmp_path / "c", "de", "en", [tmp_path / name for name in "123"])
    assert (clip.texts, clip.more_references) == ({"en": "good day"}, ("hello",))


def test_further_references_lie_beside_the_first_in_must_c(tmp_path, wav):
    wav("wav/talk.wav")
    (tmp_path / "txt").mkdir()
    (tmp_path / "txt/tst.yaml").write_text("- {offset: 0, duration: 1, wav: talk.wav}\n" * 2)
    for name, text in (("de", "eins\nzwei"), ("de.2", "ein\n"), ("de.4", "nie\nnie")):
        (tmp_path / f"txt/tst.{name}").write_text(text + "\n")
    clips = read_corpus(tmp_path, "en", "de")
    assert [clip.more_references for clip in clips] == [("ein",), ()]
    (tmp_path / "txt/tst.de.2").write_text("ein\n")
    with pytest.raises(DragomanError, match=r"tst.de.2 has 1 lines for 2 clips"):
        read_corpus(tmp_path, "en", "de")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("c.tsv", "a\tb\n1\t2\n", "has no header Dragoman knows"),
        ("c.tsv", "path\ten\na.wav\tx\n", "has no header Dragoman knows"),
        ("c.tsv", "file\tsentence\na.wav\tx\n", "has no header Dragoman knows"),
        ("c.tsv", "audio\tde\na.wav\tx\n", "has no text in 'en'; its languages are: de."),
        ("c.tsv", "audio\tde\tf0\tend\tid_1\na.wav\tx\t1\t1\t1\n", "languages are: de.$"),
        ("c.tsv", "audio\tref_de\tfr\na.wav\tx\ty\n", r"its languages are: de, fr.$"),
        ("c.tsv", "audio\tf0\na.wav\tx\n", "has no text in 'en'; its languages are: none.$"),
        (
            "c.jsonl",
            '{"audio": "a.wav", "en": "x"}\n{"audio": "a.wav", "de": "x"}\n',
            r"^Line 2 of .*c.jsonl has no text in 'en'; its languages are: de.$",
        ),
        ("c.tsv", "audio\tstart\ten\na.wav\tsoon\tx\n", "Line 2 of .* has 'soon' as its start"),
        ("c.tsv", "audio\ten\na.wav\tx\ttoo many\n", "Line 2 .* columns of its header"),
        ("c.tsv", "audio\ten\na.wav\tx\na.wav\n", "Line 3 .* has no text in 'en'"),
        ("c.tsv", "audio\ten\n\na.wav\tx\n\na.wav\n", "Line 5 .* has no text in 'en'"),
        ("c.jsonl", '{"audio": "a.wav", "en": null}\n', "Line 1 .* has no text in 'en'"),
        ("c.tsv", "audio\ten\n", "is empty"),
        ("c.tsv", "", "is empty"),
        ("c.tsv", "audio,en\na.wav,x\n", r"and 'translation'; a tab stands between two columns\.$"),
        ("c.tsv", "sound\ten\na.wav\tx\n", r"and 'translation'\.$"),
        ("c.tsv", "audio\ten\nno.wav\tx\nno2.wav\ty\n", "not there: .*no.wav and 1 more"),
        ("c.jsonl", '{"audio": "a.wav", "en": "x"}\n{', "Line 2 of .* is not JSON"),
        ("c.jsonl", '["a.wav", "x"]\n', "Line 1 of .* is not JSON .*`object`, got `array`"),
        ("c.jsonl", '{"en": "x"}\n', "Line 1 of .* names no 'audio'"),
        ("c.jsonl", '{"audio": 5, "en": "x"}\n', "Line 1 of .* names no 'audio'"),
        ("c.tsv", "path\tsentence\n\n\tHello\n", "Line 3 .* columns of its header"),
        ("c.yaml", "- {offset: 1}\n", "no references in 'en'"),
        ("c.yaml", "only words\n", "is not a list of segments"),
        ("c.yaml", "- {offset: 2026-13-45}\n", "c.yaml is not YAML: month must be in 1..12"),
    ],
)
def test_faults_are_named(tmp_path, wav, name, content, sentence):
    wav("a.wav")
    (tmp_path / name).write_text(content)
    with pytest.raises(DragomanError, match=sentence):
        read_corpus(tmp_path / name, "de", "en")


def test_two_columns_of_one_name_are_refused(tmp_path, wav):
    """The last was taken, in silence, for the only reference."""
    (tmp_path / "c.tsv").write_text(f"audio\ten\ten\n{wav}\thello\thi\n")
    with pytest.raises(DragomanError, match=r"has 2 columns 'en'; .* 'en\.2', 'en\.3'\)\.$"):
        read_corpus(tmp_path / "c.tsv", "de", "en")


def test_an_object_is_no_text(tmp_path, wav):
    (tmp_path / "c.jsonl").write_text(json.dumps({"audio": str(wav), "en": {"text": "hello"}}))
    with pytest.raises(DragomanError, match=r"Line 1 of .*c\.jsonl has no text in 'en'"):
        read_corpus(tmp_path / "c.jsonl", "de", "en")


def test_the_text_of_a_whole_talk_may_stand_in_a_cell(tmp_path, wav):
    wav("a.wav")
    text = " ".join(["word"] * 50_000)
    (tmp_path / "c.tsv").write_text(f"audio\ten\na.wav\t{text}\n")
    (clip,) = read_corpus(tmp_path / "c.tsv", "de", "en")
    assert clip.texts["en"] == text


def test_recordings_beyond_the_first_clips_may_be_missing(tmp_path, wav):
    """As of a corpus that is still being fetched."""
    wav("a.wav")
    (tmp_path / "c.tsv").write_text("audio\ten\na.wav\tx\na.wav\ty\nb.wav\tz\n")
    assert [c.index for c in read_corpus(tmp_path / "c.tsv", "de", "en", limit=2)] == [0, 1]
    with pytest.raises(DragomanError, match="not there"):
        read_corpus(tmp_path / "c.tsv", "de", "en", limit=3)


def test_a_binary_file_is_not_a_corpus(tmp_path, wav):
    with pytest.raises(DragomanError, match="not UTF-8"):
        read_corpus(wav("a.tsv.wav").rename(tmp_path / "a.tsv"), "de", "en")
    with pytest.raises(DragomanError, match="no corpus at"):
        read_corpus(tmp_path / "nothing.tsv", "de", "en")
    with pytest.raises(DragomanError, match="no layout known"):
        read_corpus(tmp_path, "de", "en")

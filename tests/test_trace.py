"""When a word counts as said, and how a record is written and read."""

import io
import itertools

import pytest

from dragoman.clock import SimulatedClock
from dragoman.errors import DragomanError
from dragoman.policies import Greedy, LocalAgreement
from dragoman.trace import Hearing, Saying, Showing, Trace, TraceWriter, is_trace, read_traces
from tests.scripted import SCRIPT, ScriptedModel, interpret


@pytest.mark.parametrize(
    ("sayings", "delays"),
    [
        ([(" Good", 0), (" day", 1)], [500, 1000]),
        ([(" inter", 0), ("preter", 2)], [1500]),  # whole with its last letter
        ([(" home", 0), (".", 2), (" But", 2)], [500, 1500]),  # the stop comes later
        ([(" home", 0), ("!", 1), ('"', 2)], [500]),
        ([(" don", 0), ("'", 1), ("t", 2)], [1500]),
        ([(" -", 1), (" yes", 2)], [1000, 1500]),  # a word without letters has a time too
        ([(" पान", 0), ("ी", 2)], [1500]),  # a vowel that is a sign at a letter
    ],
)
def test_a_word_is_whole_with_its_last_letter(sayings, delays):
    trace = Trace()
    for chunk in range(3):
        end = 500.0 * (chunk + 1)
        trace.heard(Hearing(end, end, end, end))
    for text, chunk in sayings:
        trace.said(Saying(text, chunk))
    instance = trace.instance()
    assert list(instance.delays) == delays
    assert len(instance.delays) == len(instance.prediction.split())


def test_spaces_around_the_text_are_no_characters_of_it():
    trace = Trace()
    for chunk in range(4):
        trace.heard(Hearing(100.0 * (chunk + 1), 0, 0, 0))
    for text, chunk in ((" ", 0), (" a", 1), ("b c", 2), (" ", 3), (" ", 3)):
        trace.said(Saying(text, chunk))
    assert trace.prediction == "ab c"
    assert trace.instance("char").delays == (200, 300, 300, 300)
    assert trace.instance().delays == (300, 300)


def test_a_trace_of_nothing_and_of_spaces():
    assert Trace().source_length == 0.0
    assert Trace().instance().delays == ()
    heard = [Hearing(ms, 0, 0, 10) for ms in (100.0, 200.0, 250.0)]
    trace = Trace(hearings=heard, sayings=[Saying("  ", 0)])
    assert trace.source_length == trace.instance().source_length == 250.0
    assert trace.instance("char").delays == ()
    assert trace.instance("word").prediction == ""


def test_what_is_shown_stays_until_something_else_is():
    trace = Trace()
    for chunk in range(4):
        trace.heard(Hearing(chunk, 0, 0, 0))
    trace.shown(Showing("x", 1))
    trace.said(Saying(" a", 2))
    trace.said(Saying(" b", 2))
    trace.shown(Showing("", 3))
    assert trace.updates() == [("", ""), ("", "x"), (" a b", "x"), ("", "")]


WRITTEN = """\
{"dragoman_trace":1,"index":3,"source":"a.wav","reference":"A."}
{"heard":[500.0,500.0,510.0,530.0]}
{"heard":[700.0,720.0,800.0,810.0]}
{"said":" a","chunk":0}
{"said":" b","chunk":1}
{"shown":" b","chunk":0}
{"shown":"","chunk":1}
{"end":true}
"""


def test_a_record_is_written_line_by_line_and_read_again(tmp_path):
    trace = Trace(3, "a.wav", "A.")
    trace.heard(Hearing(500.0, 500.0, 510.0, 530.0))
    trace.heard(Hearing(700.0, 720.0, 800.0, 810.0))
    for saying in (Saying(" a", 0), Saying(" b", 1)):
        trace.said(saying)
    for showing in (Showing(" b", 0), Showing("", 1)):
        trace.shown(showing)
    instance = trace.instance()
    assert (instance.index, instance.source, instance.reference) == (3, "a.wav", "A.")
    assert instance.works == (20.0, 10.0)
    assert instance.elapsed == (520.0, 730.0)  # the sound, and all work so far
    assert instance.ends == (530.0, 810.0)
    assert instance.compute == 30.0
    path = tmp_path / "trace.jsonl"
    path.write_text("what was there before\n")
    with TraceWriter.begun(path) as writer:
        writer.write(trace)
    assert path.read_text() == WRITTEN
    with TraceWriter.open(path) as writer:  # another one behind it, cut short
        writer.begin(4, "b.wav")
        writer.heard(Hearing(1.0, 2.0, 3.0, 4.0))
        assert path.read_text().endswith('{"heard":[1.0,2.0,3.0,4.0]}\n')  # at once
    cut = Trace(4, "b.wav", None, [Hearing(1.0, 2.0, 3.0, 4.0)])
    assert is_trace(path)
    assert list(read_traces(path)) == [trace, cut]
    assert list(read_traces(path, unfinished=False)) == [trace]
    with TraceWriter.open(path) as writer:  # and one behind that
        writer.write(trace)
    assert list(read_traces(path)) == [trace, cut, trace]
    assert list(read_traces(path, unfinished=False)) == [trace, trace]


@pytest.mark.parametrize("line", ['{"said":"x","chunk":1}', '{"shown":"x","chunk":-1}'])
def test_what_is_said_of_a_chunk_that_was_not_heard_is_refused(tmp_path, line):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(WRITTEN.splitlines(keepends=True)[:2]) + line)
    with pytest.raises(DragomanError, match=r"Line 3 of .*chunk -?1 was not heard"):
        list(read_traces(path))


def test_a_record_that_nobody_began_is_refused(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"end":true}')
    with pytest.raises(DragomanError, match=r"Line 1 .*no record was begun"):
        list(read_traces(path))


def test_empty_lines_are_passed_over(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(WRITTEN)
    (trace,) = read_traces(path)
    path.write_text("\n" + WRITTEN.replace("\n", "\n \n"))
    assert list(read_traces(path)) == [trace]


def test_a_broken_trace_is_left_out_where_faults_are_told(tmp_path):
    """One fault for each, however many of its lines are broken, and the others count."""
    path = tmp_path / "trace.jsonl"
    path.write_text(WRITTEN)
    (trace,) = read_traces(path)
    lines = WRITTEN.splitlines(keepends=True)
    broken = "".join([*lines[:2], "{\n", lines[3], "{\n", *lines[5:]])
    path.write_text(broken + WRITTEN + broken)
    faults: list[str] = []
    assert list(read_traces(path, faults=faults)) == [trace]
    assert [fault.split(" of ")[0] for fault in faults] == ["Line 3", f"Line {2 * len(lines) + 3}"]


def test_what_comes_before_the_first_trace_is_a_fault(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"said": "a", "chunk": 0}\n{\n' + WRITTEN)
    faults: list[str] = []
    assert len(list(read_traces(path, faults=faults))) == 1
    (fault,) = faults
    assert fault.startswith(f"Line 1 of {path} is not a line of a Dragoman trace")
    with pytest.raises(DragomanError, match=r"^Line 1 of "):
        list(read_traces(path))


def test_all_references_are_kept(tmp_path):
    path = tmp_path / "trace.jsonl"
    trace = Trace(0, "a.wav", "A.", more_references=("One.", "An A."))
    with TraceWriter.begun(path) as writer:
        writer.write(trace)
    assert list(read_traces(path)) == [trace]
    assert trace.instance().more_references == ("One.", "An A.")


def test_a_place_where_no_trace_can_be_is_told(tmp_path):
    nowhere = tmp_path / "missing" / "trace.jsonl"
    with pytest.raises(DragomanError, match=r"Cannot write the trace to .*missing"):
        TraceWriter.open(nowhere)
    with pytest.raises(DragomanError, match=r"Cannot read the trace .*missing"):
        list(read_traces(nowhere))


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_is_told_with_the_name_of_the_file(tmp_path):
    with pytest.raises(DragomanError, match=r"mine\.jsonl"):
        TraceWriter(Full(), tmp_path / "mine.jsonl").begin(0, "")
    with pytest.raises(DragomanError, match="the trace"):
        TraceWriter(Full()).begin(0, "")


def test_whoever_leaves_closes_the_file():
    file = io.StringIO()
    with TraceWriter(file):
        assert not file.closed
    assert file.closed


def test_a_trace_survives_its_file(tmp_path):
    trace, _, _ = interpret(ScriptedModel(SCRIPT), LocalAgreement())
    trace.reference, trace.source, trace.index = "der Mann", "a.wav", 7
    path = tmp_path / "trace.jsonl"
    with TraceWriter.open(path) as writer:
        writer.write(trace)
    assert is_trace(path)
    assert list(read_traces(path)) == [trace]


def test_a_trace_that_was_cut_short_keeps_what_was_said(tmp_path):
    trace, _, _ = interpret(ScriptedModel(SCRIPT), Greedy())
    path = tmp_path / "trace.jsonl"
    with TraceWriter.open(path) as writer:
        writer.write(trace)
        writer.write(trace)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]))
    whole, cut = read_traces(path)
    assert whole == trace
    assert trace.prediction.startswith(cut.prediction)
    assert list(read_traces(path, unfinished=False)) == [trace]


def test_a_trace_whose_last_line_is_torn_keeps_what_was_said(tmp_path):
    """A disk that becomes full takes half a line, which may end within a letter."""
    trace = Trace(hearings=[Hearing(200, 200, 200, 300)], sayings=[Saying(" schön", 0)])
    path = tmp_path / "trace.jsonl"
    with TraceWriter.open(path) as writer:
        writer.write(trace)
        writer.write(trace)
    content = path.read_bytes()
    for torn in (content.rindex(b"{") + 3, content.rindex("ö".encode()) + 1):
        path.write_bytes(content[:torn])
        whole, cut = read_traces(path)
        assert whole == trace
        assert trace.prediction.startswith(cut.prediction)
        assert cut.hearings == trace.hearings
    path.write_bytes(content[: content.rindex(b'{"dragoman_trace"') + 9])  # of the next one's first
    assert list(read_traces(path)) == [trace]
    path.write_bytes(content[: content.index(b'{"heard"') + 9])  # of the very first: it was begun
    assert list(read_traces(path)) == [Trace()]


def test_a_file_of_which_the_first_line_is_torn_is_no_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"dragoman_trace":1,"ind')
    with pytest.raises(DragomanError, match="Line 1 of"):
        list(read_traces(path))


def test_what_is_no_text_is_no_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"dragoman_trace":1,"index":0,"source":"\xff","reference":null}\n')
    with pytest.raises(DragomanError, match=r"Line 1 of .* is not a line of a Dragoman trace"):
        list(read_traces(path))


@pytest.mark.parametrize(
    "line",
    [
        *("{", '{"said": "x", "chunk": 99}', '{"heard": [1]}', "[]", "7"),
        '{"heard": [9, 9, 9, "nan"]}',
        '{"heard": [9, 9, 9, 8]}',  # the work ends before it begins
        '{"heard": [9, 9, 9, 9]}\n{"said": "x", "chunk": 0.5}',
    ],
)
def test_a_bad_line_of_a_trace_is_named(tmp_path, line):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"dragoman_trace":1,"index":0,"source":"","reference":null}\n' + line + "\n")
    bad = 2 + line.count("\n")
    with pytest.raises(DragomanError, match=rf"Line {bad} of .* is not a line of a Dragoman trace"):
        list(read_traces(path))


def test_the_three_clocks_of_a_trace():
    # Each of the seven pieces of work on a chunk takes 50 ms; audio comes every 200.
    ticks = itertools.count(0.0, 0.05)
    trace, _, _ = interpret(
        ScriptedModel(SCRIPT), Greedy(), clock=SimulatedClock(lambda: next(ticks))
    )
    instance = trace.instance()
    assert instance.delays[0] == 400
    assert instance.elapsed[0] == pytest.approx(400 + 2 * 350)  # audio plus all work so far
    assert instance.works[0] == pytest.approx(350)
    assert instance.ends[0] == pytest.approx(200 + 2 * 350)  # the second chunk had to queue
    assert instance.compute == pytest.approx(15 * 350)

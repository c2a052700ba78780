"""What the summary counts, and how a talk ends before its listeners."""

import os
import signal

import numpy as np
import pytest

from dragoman import listeners
from dragoman.audio.chunk import Chunk
from dragoman.audio.write import _Disk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, Update
from dragoman.lag import Lag, lived_ms
from dragoman.listeners import Endable, _Narrated, interpret, traced
from dragoman.policies import make_policy
from dragoman.trace import Hearing, Saying, Showing, TraceWriter, read_traces
from tests.scripted import chunks_of, steady
from tests.voices.fakes import ToneVoice


def taken(*updates: tuple[tuple[str, ...], float | None]) -> Lag:
    lag = Lag()
    for second, (said, ms) in enumerate(updates, start=1):
        now = 1000.0 * second
        lag.take(Update(said, "", Hearing(now, now, now, now + 100), ms))
    return lag


def test_a_stop_that_comes_late_is_no_word():
    assert taken(((" Good",), 900.0), ((" day",), 900.0), ((".", " And"), 900.0)).words == 3


def test_where_words_are_not_set_apart_every_letter_counts():
    rest = ((("。",), 900.0), ((" Zoom",), 600.0))
    lag = taken((("今", "天"), 600.0), (("很好", "。"), 1500.0), *rest)
    assert lag.words == 6
    assert lag.plain_ms == (2 * 600 + 3 * 1500 + 600) / 6
    assert taken((("สวัส", "ดี"), 600.0), (("ครับ",), 600.0)).words == 7  # letters with their marks


def test_the_lag_is_the_mean_over_words():
    lag = taken(((" one", " two"), 600.0), ((), None), ((" three",), 1500.0))
    assert lag.plain_ms == 900.0
    assert lag.aware_ms == 1000.0
    assert round(lag.load, 6) == 0.1


def test_a_model_that_does_not_tell_where_it_looks_has_no_lag():
    assert taken(((" one",), None)).plain_ms is None


def test_the_lag_is_what_a_listener_lived_through():
    """Sound 600 ms old when the chunk came, which waited 2 s and was worked on for 0.4 s."""
    update = Update((" one",), "", Hearing(5000, 5000, 7000, 7400), 600.0)
    assert lived_ms(update) == 3000
    lag = Lag()
    lag.take(update)
    assert lag.aware_ms == 3000
    assert lag.wait_ms == 2400
    assert lag.load == 400 / 5000


class Narrator:
    def __init__(self):
        self.heard, self.said = 0, []

    def hear(self, samples, original):
        self.heard += len(samples)

    def say(self, text, at_ms, end_ms):
        self.said.append((text, at_ms, end_ms))


def test_the_dub_stands_where_the_speaker_said_it():
    """Around 1.5 s, 13 letters at 12 a second, after three seconds of sound and much work."""
    narrator = Narrator()
    chunk = Chunk(np.zeros(800, np.float32), last=False)
    update = Update((" Good", " morning"), "", Hearing(3000, 3000, 9000, 9900), 1500.0)
    _Narrated(narrator).take(chunk, update)
    assert narrator.heard == 800
    assert narrator.said == [
        (" Good", pytest.approx(958.3, abs=0.1), pytest.approx(1375, abs=0.1)),
        (" morning", pytest.approx(1375, abs=0.1), pytest.approx(2041.7, abs=0.1)),
    ]


class Listening:
    """Keeps the words; `fault` is raised at the third chunk."""

    def __init__(self, fault=None):
        self.fault, self.chunks, self.words = fault, 0, []

    def take(self, chunk, update):
        self.chunks += 1
        if self.fault is not None and self.chunks == 3:
            raise self.fault
        self.words += update.said
        self.last = chunk.last


TOLD = []


def interpreted(*audience):
    TOLD.clear()
    interpreter = Interpreter(steady(), make_policy("greedy"))
    interpret(interpreter, iter(chunks_of(5000, 500)), audience, TOLD.append)


def test_a_listener_that_fails_is_left_out_and_told_at_once_and_at_the_end():
    broken, whole = Listening(DragomanError("the disk is full")), Listening()
    with pytest.raises(DragomanError, match="the disk is full"):
        interpreted(broken, whole)
    assert broken.chunks == 3
    assert len(whole.words) == 12
    assert TOLD == ["the disk is full"]


def test_a_reader_who_went_away_ends_the_talk_with_every_file_whole():
    gone, other = Listening(BrokenPipeError()), Listening()
    interpreted(gone, other)
    assert TOLD == []
    assert gone.chunks == 3
    assert other.chunks == 4  # the next chunk is the last
    assert other.last
    assert len(other.words) == 12  # and the rest is said


def test_a_talk_is_ended_by_its_source_where_that_knows_how():
    stopped = []
    talk = Endable(iter(chunks_of(2000, 500)), lambda: stopped.append(True))
    taken = iter(talk)
    next(taken)
    talk.end()
    assert stopped == [True]
    assert [chunk.last for chunk in taken] == [False, False, True]  # all that it still gives


def test_who_told_us_not_to_mind_a_terminal_that_is_gone_is_obeyed():
    """`nohup dragoman …`: the talk goes on."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Endable(iter([])).ended_by_interrupt():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_trace_has_what_was_heard_said_and_shown_and_that_it_is_whole(tmp_path):
    path = tmp_path / "talk.jsonl"
    events = (Hearing(500.0, 500.0, 510.0, 530.0), Saying(" a", 0), Showing(" b", 0))
    with traced(path, "talk.wav", TOLD.append) as record:
        record.heard(events[0])
        record.said(events[1])
        record.shown(events[2])
    (trace,) = read_traces(path, unfinished=False)
    assert (trace.source, trace.index) == ("talk.wav", 0)
    assert (*trace.hearings, *trace.sayings, *trace.showings) == events


def test_a_trace_that_cannot_be_written_is_told_once_and_at_the_end(tmp_path, monkeypatch):
    """The talk goes on; a command that made half a trace has failed."""

    def full(writer, event):
        raise DragomanError("the disk is full")

    told = []
    monkeypatch.setattr(TraceWriter, "said", full)
    recorder = traced(tmp_path / "talk.jsonl", "talk.wav", told.append)
    record = recorder.__enter__()
    for chunk in range(3):
        record.heard(Hearing(*(500.0 * chunk,) * 4))
        record.said(Saying(" a", chunk))
        assert told == ["the disk is full"]
    with pytest.raises(DragomanError, match="the disk is full"):
        recorder.__exit__(None, None, None)
    (trace,) = read_traces(tmp_path / "talk.jsonl")
    assert len(trace.hearings) == 1  # nothing stands behind a gap


def test_a_long_mix_is_made_where_nobody_wants_to_be_told(tmp_path, monkeypatch):
    monkeypatch.setattr(listeners, "LONG_MIX", 1.0)
    chunk = Chunk(np.zeros(2 * 16000, np.float32), last=True)
    with listeners.narration(None, tmp_path / "mix.wav", ToneVoice(), 12.0) as dub:
        dub.take(chunk, Update((" One", " word."), "", Hearing(*(2000.0,) * 4)))
    assert os.listdir(tmp_path) == ["mix.wav"]


def test_ctrl_c_while_a_mix_is_written_leaves_it_out_and_keeps_the_rest(tmp_path, monkeypatch):
    """It may come within a call of libsndfile, where an exception is printed and forgotten."""
    speech, mix = tmp_path / "speech.wav", tmp_path / "mix.wav"
    written = _Disk.write

    def interrupted(disk, data):
        if mixing:
            mixing.clear()
            signal.raise_signal(signal.SIGINT)
        return written(disk, data)

    mixing = []
    monkeypatch.setattr(_Disk, "write", interrupted)
    monkeypatch.setattr(listeners, "LONG_MIX", 1.0)
    narration = listeners.narration(speech, mix, ToneVoice(), 12.0, mixing.append)
    now = Hearing(*(40_000.0,) * 4)
    chunk = Chunk(np.zeros(40 * 16000, np.float32), last=True)
    with pytest.raises(KeyboardInterrupt), narration as dub:
        dub.take(chunk, Update((" One", " more", " word."), "", now))
    assert os.listdir(tmp_path) == ["speech.wav"]
    assert not mixing

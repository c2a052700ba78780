"""Several speakers in one step: a batch, in which each has errors and work of its own."""

import numpy as np
import pytest

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Ear, Voice
from dragoman.clock import SimulatedClock
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, step
from dragoman.models import BatchError
from dragoman.policies import Greedy, make_policy
from dragoman.trace import Trace
from tests.models.toy_net import speech, spelled, toy_model
from tests.models.toy_whisper import ToyVad
from tests.scripted import DiaryModel, ScriptedModel, chunks_of

SCRIPT = [(f"w{i}", 300.0 * (i + 1)) for i in range(6)]


def test_nobody_is_a_batch_too():
    assert step([], []) == []


class Fragile(ScriptedModel):
    """Fails for the stream that was opened as 'bad' once it has heard enough."""

    def __init__(self, where: str) -> None:
        super().__init__(SCRIPT)
        self._where = where

    def _fail(self, where, streams) -> None:
        if where == self._where and any(
            stream.language == "bad" and stream.heard_ms >= 600 for stream in streams
        ):
            raise RuntimeError(f"broken while it should {where}")

    def draft(self, streams, asks):
        self._fail("draft", streams)
        return super().draft(streams, asks)

    def commit(self, stream, draft, tokens, closed=False):
        self._fail("commit", [stream])
        super().commit(stream, draft, tokens, closed)


@pytest.mark.parametrize("where", ["draft", "commit"])
def test_a_stream_that_fails_ends_alone(where):
    alone = Trace()
    list(Interpreter(ScriptedModel(SCRIPT), Greedy(), record=alone).run(chunks_of(2400, 200)))
    model, traces = Fragile(where), [Trace() for _ in range(3)]
    speakers = [
        Interpreter(model, Greedy(), source=source, record=trace)
        for source, trace in zip(["good", "bad", "fine"], traces, strict=True)
    ]
    going, failed = list(speakers), []
    for chunk in chunks_of(2400, 200):
        updates = step(going, [chunk] * len(going))
        failed += [update.error for update in updates if update.error is not None]
        going = [one for one, u in zip(going, updates, strict=True) if u.error is None]
    assert [str(error) for error in failed] == [f"broken while it should {where}"]
    assert going == [speakers[0], speakers[2]]
    assert speakers[1].finished
    assert traces[0].prediction == traces[2].prediction == alone.prediction
    assert traces[1].prediction == "w0"  # what it had said before stays said
    assert [heard.audio_ms for heard in traces[1].hearings] == [200.0, 400.0]
    with pytest.raises(DragomanError, match="has ended"):
        speakers[1].hear(Chunk(np.zeros(10, np.float32), last=False))


def test_one_speaker_alone_raises_the_error():
    interpreter = Interpreter(Fragile("draft"), Greedy(), source="bad")
    with pytest.raises(RuntimeError, match="broken"):
        list(interpreter.run(chunks_of(2400, 200)))
    assert interpreter.finished


def test_sound_that_cannot_be_taken_in_ends_one_stream_alone(monkeypatch):
    model = toy_model("whole", monkeypatch)
    traces = [Trace() for _ in range(3)]
    speakers = [Interpreter(model, Greedy(), target="de", record=trace) for trace in traces]
    words = [1, 2, 3]
    sound = speech(words)
    for second in range(3):
        good = Chunk(sound[second * RATE : (second + 1) * RATE], last=second == 2)
        bad = Chunk(good.samples[:, None] if second == 1 else good.samples, last=second == 2)
        updates = step(speakers, [good, bad, good] if len(speakers) == 3 else [good, good])
        assert [u.error is not None for u in updates] == [False, second == 1, False][: len(updates)]
        speakers = [one for one, u in zip(speakers, updates, strict=True) if u.error is None]
    assert traces[0].prediction == traces[2].prediction == spelled(words).strip()
    assert traces[1].prediction == "w1"


def test_each_trace_is_charged_its_own_share():
    """A clock that ticks a second each time it is read: work for all is shared, the rest is not."""
    reads = iter(range(10**6))
    clock = lambda: SimulatedClock(lambda: float(next(reads)))  # noqa: E731
    traces = [Trace() for _ in range(4)]
    model = ScriptedModel(SCRIPT)
    policies = [Greedy(), Greedy(), make_policy("offline"), make_policy("offline")]
    speakers = [
        Interpreter(model, policy, record=trace, clock=clock())
        for policy, trace in zip(policies, traces, strict=True)
    ]
    step(speakers, [chunks_of(2400, 200)[0]] * 4)
    works = [trace.hearings[0].compute_ms for trace in traces]
    # One's own: to begin, to listen, to ask, to take. Shared: a quarter of the ears' work and of
    # the hearing, half of the drafting.
    assert works == [5000.0, 5000.0, 4500.0, 4500.0]
    assert traces[0].hearings[0].start_ms == 200.0


def test_every_piece_of_a_long_chunk_is_charged():
    reads, trace = iter(range(10**6)), Trace()
    clock = SimulatedClock(lambda: float(next(reads)))
    interpreter = Interpreter(ScriptedModel(SCRIPT), Greedy(), record=trace, clock=clock)
    interpreter.hear(Chunk(np.zeros(11 * RATE, np.float32), last=False))
    # To begin, the ear, to listen, three pieces, to ask, to draft, to take.
    assert trace.hearings[0].compute_ms == 9000.0


def test_a_stream_that_fails_in_the_midst_of_a_chunk_ends_alone():
    class Failing(ScriptedModel):
        def hear(self, streams, sounds):
            super().hear(streams, sounds)
            bad = [at for at, one in enumerate(streams) if one.language == "bad"]
            if bad and streams[bad[0]].heard_ms > 5000:
                raise BatchError({bad[0]: RuntimeError("broken")})

    model, traces = Failing(SCRIPT), [Trace() for _ in range(3)]
    speakers = [
        Interpreter(model, Greedy(), source=source, record=trace)
        for source, trace in zip(["good", "bad", "fine"], traces, strict=True)
    ]
    updates = step(speakers, [Chunk(np.zeros(11 * RATE, np.float32), last=False)] * 3)
    assert [update.error is not None for update in updates] == [False, True, False]
    assert [len(update.said) for update in updates] == [6, 0, 6]
    assert [len(trace.hearings) for trace in traces] == [1, 0, 1]


def test_encoding_is_paid_only_where_something_may_be_said(monkeypatch):
    model = toy_model("whole", monkeypatch)
    interpreter = Interpreter(model, make_policy("offline"), target="de")
    for second in range(5):
        interpreter.hear(Chunk(speech([second]), last=second == 4))
    assert model._net.encoded == [125]
    model = toy_model("whole", monkeypatch)
    interpreter = Interpreter(model, Greedy(), target="de")
    for second in range(5):
        interpreter.hear(Chunk(speech([second]), last=second == 4))
    assert len(model._net.encoded) == 5


@pytest.mark.parametrize("kind", ["whole", "chunks", "monotonic", "transducer"])
def test_a_pause_ends_the_utterance_of_an_exported_net(kind, monkeypatch):
    """Two seconds of silence between two words and one: all of the first is said in the pause."""
    model, trace = toy_model(kind, monkeypatch), Trace()
    interpreter = Interpreter(
        model,
        make_policy("offline"),
        target="de",
        ear=Ear(ToyVad().stream()),
        record=trace,
        utterance_pause_ms=1000,
    )
    seconds = [11, 12, -1, -1, 3, 5]
    for number, word in enumerate(seconds):
        interpreter.hear(Chunk(speech([word]), last=number == 5))
    assert [(said.text, said.chunk) for said in trace.sayings] == [
        (" w11", 2),
        (" w12", 2),
        (" w3", 5),
        (" w5", 5),
    ]


def test_without_force_finish_the_next_utterance_is_spoken_again(monkeypatch):
    """The model ends with every draft; that silences the rest of the utterance, no more."""
    model, trace = toy_model("whole", monkeypatch), Trace()
    interpreter = Interpreter(
        model,
        make_policy("wait-k:k=1,force_finish=false"),
        target="de",
        ear=Ear(ToyVad().stream()),
        record=trace,
        utterance_pause_ms=1000,
    )
    seconds = [11, 12, 13, -1, -1, 3, 5, 6]
    for number, word in enumerate(seconds):
        interpreter.hear(Chunk(speech([word]), last=number == 7))
    assert [(said.text, said.chunk) for said in trace.sayings] == [
        (" w11", 0),
        (" w12", 3),
        (" w13", 3),
        (" w3", 5),
        (" w5", 7),
        (" w6", 7),
    ]


def test_a_long_chunk_is_heard_in_pieces():
    pieces = []

    class Counting(DiaryModel):
        def hear(self, streams, sounds):
            pieces.append([(len(sound.samples), sound.last, sound.look) for sound in sounds])
            super().hear(streams, sounds)

    model = Counting(lambda stream, ask: ScriptedModel([])._continue(stream, ask))
    Interpreter(model, Greedy()).hear(Chunk(np.zeros(11 * RATE, np.float32), last=True))
    five = 5 * RATE
    assert pieces == [[(five, False, False)], [(five, False, False)], [(RATE, True, True)]]


def test_chunks_of_different_lengths_are_heard_by_the_ears_and_the_model_side_by_side():
    """Eleven seconds are three pieces, one second is one: each ear hears its own."""
    told = {"long": [], "short": []}

    class Noting:
        def __init__(self, name):
            self.name = name

        def hear(self, samples):
            told[self.name].append(len(samples) // RATE)
            return Voice(True, True, 100.0 * len(told[self.name]))

    model = DiaryModel(lambda stream, ask: ScriptedModel([])._continue(stream, ask))
    speakers = [Interpreter(model, Greedy(), ear=Noting(name)) for name in told]
    chunks = [Chunk(np.zeros(seconds * RATE, np.float32), last=False) for seconds in (11, 1)]
    for order in (1, -1):
        updates = step(speakers[::order], chunks[::order])
        assert [update.error for update in updates] == [None, None]
    assert told == {"long": [5, 5, 1, 5, 5, 1], "short": [1, 1]}
    assert [speaker.stream.heard_ms for speaker in speakers] == [22_000, 2_000]
    assert [update.silence_ms for update in updates] == [200.0, 600.0]


@pytest.mark.parametrize(("silences", "closed"), [((0, 0, 600), True), ((600, 0, 599), False)])
def test_the_pause_is_the_one_at_the_end_of_a_long_chunk(silences, closed):
    class Counting:
        def __init__(self):
            self._silences = iter(silences)

        def hear(self, samples):
            return Voice(True, False, float(next(self._silences)))

    interpreter = Interpreter(
        ScriptedModel(SCRIPT), make_policy("offline"), ear=Counting(), utterance_pause_ms=600
    )
    update = interpreter.hear(Chunk(np.zeros(11 * RATE, np.float32), last=False))
    assert (update.closed, len(update.said)) == (closed, 6 if closed else 0)


def test_a_stream_that_has_ended_fails_alone_and_knows_of_no_silence():
    model = ScriptedModel(SCRIPT)
    over, going = Interpreter(model, Greedy()), Interpreter(model, Greedy())
    over.hear(Chunk(np.zeros(RATE, np.float32), last=True))
    updates = step([over, going], [chunks_of(2400, 400)[0]] * 2)
    assert isinstance(updates[0].error, DragomanError)
    assert updates[0].silence_ms == updates[0].hearing.arrival_ms == 0.0
    assert (updates[1].error, updates[1].said) == (None, (" w0",))


def test_every_interpreter_has_a_chunk_and_every_ask_a_draft():
    model = ScriptedModel(SCRIPT)
    with pytest.raises(ValueError, match="zip"):
        step([Interpreter(model, Greedy())], chunks_of(2400, 400)[:2])
    model.draft = lambda streams, asks: []
    (update,) = step([Interpreter(model, Greedy())], chunks_of(2400, 400)[:1])
    assert isinstance(update.error, ValueError)

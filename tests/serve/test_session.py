"""One talk by itself: sound that waits, words that are numbered, and what a client may forget.

Its clock stands still unless it is told otherwise, and nobody interprets: values are worked out by
hand.
"""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.audio.chunk import RATE, Chunk
from dragoman.clock import RealClock
from dragoman.interpreter import Update
from dragoman.serve import intake as module
from dragoman.serve.past import Past
from dragoman.serve.protocol import Audio, Code, Fault, Heard, Said, Summary, Transcript
from dragoman.serve.restart import restart
from dragoman.serve.session import Session
from dragoman.serve.settings import Settings
from dragoman.setup import Setup
from dragoman.trace import Hearing


class Timer:
    now = 1000.0

    def __call__(self):
        return self.now


class Resting:
    """In place of an interpreter: knows from where on somebody else would have to hear."""

    def __init__(self):
        self.open, self.recalled = (0.0, 0), None

    def recall(self, words):
        self.recalled = words


def talk(past=None, step_ms=400.0, rate=None, **limits) -> tuple[Session, Timer]:
    timer = Timer()
    setup = Setup(model="x", policy="greedy", step_ms=step_ms)
    clock, audio = RealClock(timer), Audio(rate=rate)
    return Session(Resting(), setup, clock, audio, Settings(**limits), past), timer


def sound(seconds: float) -> np.ndarray:
    return np.arange(round(seconds * RATE), dtype=np.float32)


def heard(session: Session) -> list[tuple[float, bool, bool]]:
    """The chunks that wait, one by one: how long each is, whether it is the last, and closes."""
    chunks = [chunk for _, chunk in session._intake._waiting]
    session._intake._waiting.clear()
    return [(chunk.seconds, chunk.last, chunk.closes) for chunk in chunks]


# Sound on the way in.


def test_sound_waits_in_steps_and_is_due_when_it_was_spoken():
    session, timer = talk()
    assert session.due is None
    session.hear(0, sound(0.3))
    assert (session.due, session.sample) == (None, 4800)
    timer.now = 1000.2  # all comes sooner than it can be spoken
    session.hear(4800, sound(0.5))
    assert session.due == pytest.approx(1000.4)
    assert session._intake.waiting_seconds == pytest.approx(0.8)
    timer.now = 1007.0  # and this, long after
    session.hear(12_800, sound(0.4))
    spoken, chunks = zip(*session._intake._waiting, strict=True)
    assert spoken == pytest.approx((1000.4, 1000.8, 1007.0))
    assert [chunk.arrival for chunk in chunks] == pytest.approx([0.2, 0.2, 7.0])
    chunk = session.next_chunk()
    assert (chunk.seconds, chunk.arrival) == (pytest.approx(1.2), pytest.approx(7.0))
    assert session.due is None


def test_what_has_arrived_is_not_heard_again_and_nothing_may_be_missing():
    session, _ = talk(step_ms=100.0)
    session.hear(0, sound(0.2))
    session.hear(0, sound(0.2))
    session.hear(1600, sound(0.2))  # half of it is new
    chunk = session.next_chunk()
    assert session.sample == 4800
    assert chunk.samples.tolist() == [*range(3200), *range(1600, 3200)]
    with pytest.raises(Fault, match="sample 4800 comes next, not 4801"):
        session.hear(4801, sound(0.1))
    assert session.sample == 4800


def test_sound_of_another_rate_is_counted_as_it_comes():
    session, _ = talk(rate=32_000, step_ms=100.0, past=Past(sample=32_000, until=32_000))
    session.hear(32_000, sound(4.0))  # two seconds of it
    session.stop()
    assert (session.sample, session._intake.seconds) == (96_000, 2.0)
    assert session._intake.waiting_seconds == pytest.approx(2.0, abs=0.01)
    assert session._before_ms == 1000.0


def test_a_talk_has_an_end():
    session, _ = talk(longest=1.0)
    session.hear(0, sound(1.0))
    assert not session.stopped
    with pytest.raises(Fault, match="at most 1 s"):
        session.hear(RATE, sound(0.1))
    assert session.stopped
    assert heard(session) == [(0.4, False, False)] * 2 + [(pytest.approx(0.3), True, False)]
    session.hear(session.sample, sound(1.0))  # and then nothing is heard
    session.flush()
    session.stop()
    assert (session.sample, heard(session)) == (17_600, [])


def test_what_is_held_is_let_go_when_that_is_wanted():
    session, _ = talk()
    session.hear(0, sound(0.3))
    session.flush()
    assert heard(session) == [(pytest.approx(0.3), False, True)]
    session.hear(4800, sound(0.35))
    changed = Setup(model="x", policy="greedy", step_ms=100.0)
    session.change(changed)
    assert session.setup is changed
    assert heard(session) == [(0.1, False, False)] * 3
    session.hear(session.sample, sound(0.05))
    assert heard(session) == [(0.1, False, False)]  # with what was held before
    session.stop()
    assert heard(session) == [(0.0, True, False)]
    session.change(Setup(model="x", policy="greedy", step_ms=200.0))
    assert heard(session) == []
    assert session.setup.step_ms == 200.0


def test_who_is_behind_hears_up_to_five_seconds_at_once():
    session, _ = talk(step_ms=500.0)
    session.hear(0, sound(7.2))
    session.stop()
    first, last = session.next_chunk(), session.next_chunk()
    assert (first.seconds, first.last) == (5.0, False)
    assert (last.seconds, last.last) == (pytest.approx(2.2), True)


def test_five_seconds_are_counted_in_chunks_of_any_length():
    session, _ = talk(step_ms=1000.0)
    session.hear(0, sound(1.5))
    session.flush()
    session.hear(session.sample, sound(4.0))
    assert session.next_chunk().seconds == 4.5  # with one more it would be too long
    assert session.next_chunk().seconds == 1.0


def test_there_is_room_for_half_a_minute_that_waits():
    session, _ = talk(step_ms=1000.0)
    session.hear(0, sound(29.0))
    assert session._intake._space.is_set()
    session.hear(session.sample, sound(6.0))
    assert not session._intake._space.is_set()
    session.next_chunk()
    assert session._intake.waiting_seconds == 30.0
    assert not session._intake._space.is_set()
    session.next_chunk()
    assert session._intake._space.is_set()


@pytest.mark.parametrize(
    ("seconds", "now", "stopped", "waits"),
    [
        (60.0, 0.0, False, None),
        (68.0, 0.0, False, 1.0),  # 8 s more than a minute, which is allowed at eight times the pace
        (68.0, 0.75, False, 0.25),
        (68.0, 1.0, False, None),
        (68.0, 0.0, True, None),
    ],
)
def test_who_sends_faster_than_is_allowed_waits(monkeypatch, seconds, now, stopped, waits):
    session, timer = talk(Past(sample=RATE, until=RATE), fastest=8.0)
    session._intake.sample += round(seconds * RATE)
    session._intake.ended, timer.now = stopped, timer.now + now
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    asyncio.run(session.have_space())
    assert slept == ([] if waits is None else [pytest.approx(waits)])


# Words on the way out.


def update(audio_ms, said=(), transcript=(), *, lag_ms=None, **more) -> Update:
    """The work on a chunk begins 100 ms after it has arrived, and takes 200 ms and a little."""
    hearing = Hearing(audio_ms, audio_ms, audio_ms + 100, audio_ms + 300.26)
    sure = tuple(0.9123 - place / 4 for place in range(len(said)))
    more = {"interim": "", "language": "de", "probabilities": sure} | more
    return Update(said, hearing=hearing, lag_ms=lag_ms, transcript=transcript, **more)


STEP = Chunk(sound(0.4), False)
LAST = Chunk(sound(0.4), True)


def test_words_are_numbered_and_stamped():
    """Four letters at twelve a second last a third of one, around what they look at, 500 ms ago;
    what was written down lies in the middle of the sound since the last of it."""
    session, _ = talk()
    session.take(STEP, update(2000.0, (" a", " b"), (" x", " y"), lag_ms=500.0, interim=" c"))
    assert session.words == [
        Said(1, " a", 1333.3, 2300.3, 800.3, 0.912),
        Said(2, " b", 1500.0, 2300.3, 800.3, 0.662),
    ]
    assert session.transcripts == [
        Transcript(1, " x", 833.3, "de"),
        Transcript(2, " y", 1000.0, "de"),
    ]
    assert session.interim == " c"
    session.take(STEP, update(3000.0))
    session.take(STEP, update(4000.0, (" c",), (" z",)))
    assert session.words[2:] == [Said(3, " c", 4000.0, 4300.3, None, 0.912)]  # nobody knows its lag
    assert session.transcripts[2:] == [Transcript(3, " z", 2916.7, "de")]
    session.take(STEP, update(5000.0, (), (" w",), transcript_lag_ms=200.0))  # it is known
    assert session.transcripts[3:] == [Transcript(4, " w", 4716.7, "de")]
    assert (session.interim, session.summary) == ("", None)


def test_the_last_chunk_leads_to_a_summary():
    session, _ = talk()
    session.take(STEP, update(2000.0, (" a", " b"), lag_ms=500.0, closed=True))
    session.take(Chunk(sound(0.4), False, closes=True), update(3000.0))
    assert (session.closings, session.flushes, session.finished) == (1, 1, False)
    session.take(LAST, update(4000.06, (" c",), lag_ms=200.0, closed=True))
    # The lags are 800, 800 and 500 ms; 600 ms of work for 4 s of sound; and a little.
    assert session.summary == Summary(3, 4000.1, 700.3, 0.1502, "de")
    assert (session.closings, session.flushes, session.finished) == (2, 1, True)
    silent, _ = talk()
    silent.take(LAST, update(1000.0))
    assert silent.summary == Summary(0, 1000.0, None, 0.2003, "de")


PAST = Past(
    sample=RATE,
    until=2 * RATE,
    elapsed_ms=5000.0,
    word=3,
    transcript=2,
    said=(Said(3, " three", 0.0, 900.0, None), Said(4, " four", 1100.0, 2000.0, None)),
    transcripts=(Transcript(3, " drei", 1100.0, "de"),),
)


def test_a_talk_goes_on_with_the_numbers_and_times_that_it_had():
    session, timer = talk(PAST)
    assert session.interpreter.recalled == [" four"]
    assert (session.last_word, session.last_transcript) == (4, 3)
    assert session.heard == Heard(RATE, RATE, 3, 2)
    timer.now += 0.5
    assert session.now_ms == 5500.0
    session.take(LAST, update(2000.0, (" five",), (" drei", " vier"), lag_ms=0.0))
    assert session.words[2:] == [Said(5, " five", 3000.0, 7300.3, 300.3, 0.912)]
    # Of what was written down again, the client has the first; ten letters around 1500 ms.
    assert session.transcripts[1:] == [Transcript(4, " vier", 1500.0, "de")]
    assert session.summary == Summary(5, 3000.0, 300.3, 0.1001, "de")


def test_a_talk_that_begins_has_no_past():
    session, _ = talk()
    assert (session.last_word, session.last_transcript) == (0, 0)
    assert session.interpreter.recalled is None
    assert session.heard == Heard(0, 0, 0, 0)
    assert (session.interim, session.state, session.stopped) == ("", "listening", False)
    assert (session.audience, session.partings) == (0, 0)
    assert (session.closings, session.flushes) == (0, 0)


def test_sound_of_which_words_were_said_elsewhere_is_heard_as_one():
    session, _ = talk(PAST)
    session.hear(RATE, sound(0.9))
    assert session.due is None
    session.hear(session.sample, sound(0.1))
    assert heard(session) == [(1.0, False, False)]
    session.hear(session.sample, sound(0.8))  # from now on in steps
    assert heard(session) == [(0.4, False, False)] * 2


@pytest.mark.parametrize(
    ("let_go", "chunks"),
    [
        (Session.stop, [(0.5, False, False), (0.0, True, False)]),
        (Session.flush, [(0.5, False, False), (0.0, False, True)]),
    ],
)
def test_less_of_it_is_heard_when_no_more_comes(let_go, chunks):
    session, _ = talk(PAST)
    session.hear(RATE, sound(0.5))
    let_go(session)
    assert heard(session) == chunks


@pytest.mark.parametrize(
    ("number", "words", "transcripts"),
    [(0, [3, 4], [3, 4]), (2, [3, 4], [3, 4]), (3, [4], [4]), (4, [], []), (9, [], [])],
)
def test_who_reads_on_gets_what_is_known_here(number, words, transcripts):
    session, _ = talk(PAST)
    session.transcripts.append(Transcript(4, " vier", 1500.0, "de"))
    assert [said.word for said in session.words_after(number)] == words
    assert [one.number for one in session.transcripts_after(number)] == transcripts


def test_a_client_keeps_the_sound_that_is_open_and_the_words_said_of_it():
    session, _ = talk(PAST)
    session.hear(RATE, sound(3.0))
    # From 1.5 s on; " ef" and " d" have three letters, and " bc" one of the two that are left.
    session.interpreter.open = (1500.0, 4)
    session.take(STEP, update(2000.0, (" bc", " d", " ef"), (" drei", " vier", " x")))
    assert session.heard == Heard(4 * RATE, RATE + 24_000, 4, 5)
    session.interpreter.open = (1500.0, 2)
    session.take(STEP, update(2400.0, (), (" y",)))
    # The sound has not moved, so the transcript of it has not, either.
    assert session.heard == Heard(4 * RATE, RATE + 24_000, 6, 5)
    session.interpreter.open = (9000.0, 0)  # no later than what has arrived
    session.take(STEP, update(3000.0))
    assert session.heard == Heard(4 * RATE, 4 * RATE, 7, 6)


def spoken(*sentences, lag_ms=0.0):
    """Words of sentences, a second each."""
    words = [f" {word}" for sentence in sentences for word in sentence.split()]
    return [Said(n + 1, word, 1000.0 * n, 0.0, lag_ms) for n, word in enumerate(words)]


@pytest.mark.parametrize(
    ("words", "now_ms", "first"),
    [
        (spoken("a " * 12 + "b.", "C " * 30), 40_000, 14),  # where a sentence begins
        (spoken("a b.", "C " * 40), 40_000, 26),  # that one is long ago
        (spoken("a b.", "C " * 40, lag_ms=None), 40_000, None),  # nobody knows when they were said
        (spoken("a b. C d."), 40_000, None),
        (spoken("a b. C d."), 10_000, None),
        ([], 40_000, None),
    ],
)
def test_from_which_word_on_another_process_could_go_on(words, now_ms, first):
    found = restart(words, now_ms)
    assert (found.word if found else None) == first


def test_who_makes_no_pause_is_kept_for_half_a_minute():
    session, _ = talk()
    session.hear(0, sound(60.0))
    session.transcripts += [Transcript(n, " x", 1000.0 * n, "de") for n in range(1, 61)]
    session.words += spoken("a " * 12 + "b.", "C " * 30)
    session.interpreter.open = (0.0, 44)
    session.take(STEP, update(30_000.0))  # half a minute is what a model may want
    assert session.heard == Heard(60 * RATE, 0, 0, 0)
    session.take(STEP, update(40_000.0))
    assert session.heard == Heard(60 * RATE, 12 * RATE, 13, 11)
    session.interpreter.open = (5000.0, 38)  # a client has forgotten that
    session.take(STEP, update(34_000.0))
    assert session.heard == Heard(60 * RATE, 12 * RATE, 13, 11)
    session.interpreter.open = (39_000.0, 0)
    session.take(STEP, update(41_000.0))
    assert session.heard == Heard(60 * RATE, 39 * RATE, 43, 60)
    session.interpreter.open = (0.0, 44)  # of which one would begin with the word of second 30
    session.take(STEP, update(45_000.0))
    assert session.heard == Heard(60 * RATE, 39 * RATE, 43, 60)


def test_half_a_minute_is_counted_from_where_hearing_began_here():
    session, _ = talk(Past(sample=40 * RATE, until=40 * RATE, word=40))
    session.words += spoken("a " * 60)
    session.hear(40 * RATE, sound(20.0))
    session.interpreter.open = (5000.0, 15)  # 45 of the 60 s are dealt with
    session.take(STEP, update(20_000.0))
    assert session.heard == Heard(60 * RATE, 45 * RATE, 45, 0)


# How it is.


def test_what_state_a_talk_is_in():
    session, _ = talk()
    rung = []
    session.news.follow(lambda: rung.append(session.state))
    session.degrade(False)
    assert (session.state, rung) == ("listening", [])
    session.degrade(True)
    session.degrade(True)
    assert rung == ["degraded"]
    session.draining = True
    assert session.state == "draining"
    session.draining = False
    session.degrade(False)
    assert rung == ["degraded", "listening"]


@pytest.mark.parametrize(
    ("fault", "code", "given_up"),
    [
        (None, Code.FAILED, True),
        (Fault(Code.OVERLOADED, "too much"), Code.OVERLOADED, True),
        (Fault(Code.SOUND, "no sound"), Code.SOUND, False),
    ],
)
def test_a_talk_that_fails_waits_for_nothing(fault, code, given_up):
    session, _ = talk(step_ms=1000.0)
    session.hear(0, sound(31.0))
    assert not session.given_up
    session.news.clear()
    session.fail(fault)
    assert (session.fault.code, session.given_up, session.finished) == (code, given_up, True)
    assert session._intake._space.is_set()
    assert session.news.is_set()
    assert (session.due, session._intake.waiting_seconds) == (None, 0)
    session.hear(session.sample, sound(2.0))
    assert session.sample == 31 * RATE


def test_the_connection_before_is_told_that_it_was_replaced():
    class Connection:
        left = 0

        def replaced(self):
            self.left += 1

    session, _ = talk()
    first, second = Connection(), Connection()
    session.attach(first)
    session.attach(second)
    assert (first.left, second.left, session.client) == (1, 0, second)


def test_news_ring_for_sound_words_and_the_end():
    session, _ = talk()
    for happens in (
        lambda: session.hear(0, sound(0.4)),
        lambda: session.take(STEP, update(400.0)),
        session.stop,
    ):
        session.news.clear()
        happens()
        assert session.news.is_set()


def test_a_talk_is_opened_by_its_own_token():
    session, _ = talk()
    session.resume_token = "ä key"
    assert session.opened_by("ä key")
    assert not session.opened_by("a key")


def test_who_asks_for_it_again_and_again_has_asked_once():
    """Each time would else be looked through all that waits, on the event loop."""
    session, _ = talk()
    session.hear(0, sound(0.3))
    for _ in range(1000):
        session.flush()
    assert heard(session) == [(pytest.approx(0.3), False, True)]
    session.flush()
    session.hear(4800, sound(0.5))
    session.flush()
    session.flush()
    closing = [(0.0, False, True), (0.4, False, False), (pytest.approx(0.1), False, True)]
    assert heard(session) == closing


def test_a_transcript_is_in_the_language_that_it_is_in():
    session, _ = talk()
    session.take(STEP, update(2000.0, (), (), through="en"))
    assert session.through is None  # nothing was written
    session.take(STEP, update(2000.0, (), (" Good",), through="en"))
    session.take(STEP, update(2000.0, (), (" day",)))
    assert [one.language for one in session.transcripts] == ["en", "de"]
    assert session.through == "en"

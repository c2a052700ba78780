"""Speech into files on a thread of its own: the same files, nobody waits, nothing is lost."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from dragoman.audio.chunk import RATE
from dragoman.cli.app import dragoman
from dragoman.errors import DragomanError
from dragoman.listeners import narration
from dragoman.voices import Narration
from dragoman.voices.apart import Apart
from tests.stuck import failing_after
from tests.voices.fakes import ToneVoice

SENTENCES = ["It was said.", "And it was said again.", "Then nothing more was said."]


@pytest.fixture(autouse=True)
def never_stuck():
    """Who waits for what was spoken waits for good where that is broken."""
    with failing_after(30):
        yield


class SlowVoice(ToneVoice):
    """Speaks only when the gate is open; notes on which thread, and whether it was waited for."""

    def __init__(self, *, at_once=0, **how):
        super().__init__(**how)
        self.gate, self.begun, self.waited_out = threading.Event(), threading.Event(), False
        self._at_once = at_once  # phrases for which it needs no time
        self.threads = set()

    def speak(self, text, speed=1.0):
        self.threads.add(threading.current_thread().name)
        self.begun.set()
        if len(self.spoken) >= self._at_once and not self.gate.wait(10):
            self.waited_out = True
        return super().speak(text, speed)


def talk(narration):
    for number, text in enumerate(SENTENCES):
        narration.hear(np.full(3 * RATE, 0.1, np.float32))
        narration.say(text, at_ms=3000 * number)


def hear_on(narration, waiting=0):
    """Until no more phrases wait for the voice than these."""
    until = time.monotonic() + 10
    while narration.waiting > waiting:
        assert time.monotonic() < until, "what was spoken is not taken"
        narration.hear(np.zeros(0, np.float32))


def test_the_files_are_the_same(tmp_path):
    for name, apart in (("here", False), ("apart", True)):
        files = tmp_path / f"{name}.wav", tmp_path / f"{name}.mix.wav"
        with Narration(ToneVoice(), *files, apart=apart) as narration:
            talk(narration)
        assert [phrase.text for phrase in narration.phrases] == SENTENCES
    for suffix in (".wav", ".mix.wav"):
        here, apart = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("here", "apart"))
        assert here == apart


def test_a_slow_voice_holds_nobody_up_and_all_is_spoken_in_order(tmp_path):
    voice = SlowVoice()
    with Narration(voice, tmp_path / "speech.wav", apart=True) as narration:
        talk(narration)  # two of three sentences are known to be whole
        assert voice.begun.wait(10)
        assert voice.spoken == []
        assert narration.waiting == 2
        voice.gate.set()
    assert not voice.waited_out
    assert [text for text, _ in voice.spoken] == SENTENCES
    assert voice.threads == {"narration"}


def test_what_is_spoken_is_written_while_the_talk_goes_on(tmp_path):
    """Sound that waited for the end would take memory, and a killed process would lose it."""
    voice = SlowVoice(at_once=1)
    with Narration(voice, tmp_path / "speech.wav", apart=True) as narration:
        talk(narration)
        voice.gate.set()
        hear_on(narration)
        assert len(voice.spoken) == 2


def test_a_voice_that_fails_at_once_is_one_sentence_and_leaves_no_file(tmp_path):
    voice = ToneVoice(fails_from=0)
    ended = pytest.raises(DragomanError, match=r"^The tone voice has no breath\.$")
    with ended, Narration(voice, tmp_path / "speech.wav", apart=True) as narration:
        talk(narration)
    assert list(tmp_path.iterdir()) == []


def test_it_is_told_while_the_talk_goes_on(tmp_path):
    voice = SlowVoice(fails_from=0)
    narration = Narration(voice, tmp_path / "speech.wav", apart=True)
    talk(narration)
    voice.gate.set()
    with pytest.raises(DragomanError, match="no breath"):
        hear_on(narration)
    with pytest.raises(DragomanError, match="no breath"):
        narration.close()
    assert list(tmp_path.iterdir()) == []


def test_a_voice_that_fails_later_keeps_what_was_spoken(tmp_path):
    ended = pytest.raises(DragomanError, match=r"From 0:03 on nothing is spoken: .*no breath")
    voice = ToneVoice(fails_from=1)
    with ended, Narration(voice, tmp_path / "speech.wav", apart=True) as narration:
        talk(narration)
    samples, rate = soundfile.read(tmp_path / "speech.wav")
    assert len(samples) == 9 * rate
    assert np.abs(samples[: 3 * rate]).max() > 0.1
    assert np.abs(samples[3 * rate :]).max() == 0


def test_who_gives_up_waits_for_nothing_and_has_what_was_spoken(tmp_path):
    voice = SlowVoice(at_once=1)
    ended = pytest.raises(KeyboardInterrupt)
    with ended, Narration(voice, tmp_path / "speech.wav", apart=True) as narration:
        talk(narration)
        hear_on(narration, waiting=1)
        raise KeyboardInterrupt
    assert not voice.waited_out
    samples, _ = soundfile.read(tmp_path / "speech.wav")
    assert np.abs(samples).max() > 0.1
    assert len(voice.spoken) == 1
    voice.gate.set()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_so_does_who_is_told_that_it_takes_longer_than_the_talk(tmp_path, kind, monkeypatch):
    waited_for = threading.Event()

    class Interrupted(SlowVoice):
        def speak(self, text, speed=1.0):
            if len(self.spoken) == 1 and waited_for.wait(10):
                os.kill(os.getpid(), kind)
            return super().speak(text, speed)

    finish = Narration.finish
    monkeypatch.setattr(Narration, "finish", lambda self: (waited_for.set(), finish(self))[1])
    voice = Interrupted(at_once=1)
    before = signal.signal(kind, lambda *_: None)  # should it come at another time
    dub = narration(tmp_path / "a.wav", None, voice, 12, live=True)
    try:
        with pytest.raises(KeyboardInterrupt), dub as listener:
            talk(listener._narrator)
    finally:
        signal.signal(kind, before)
    voice.gate.set()
    assert not voice.waited_out
    assert soundfile.info(tmp_path / "a.wav").frames > 0


def test_that_it_takes_longer_is_told(tmp_path):
    voice, told = SlowVoice(), []

    def tell(text):
        told.append(text)
        voice.gate.set()

    with narration(tmp_path / "a.wav", None, voice, 12, tell, live=True) as listener:
        talk(listener._narrator)
    assert not voice.waited_out
    assert told == ["The voice has 2 phrases left to speak; Ctrl-C leaves them out."]


@pytest.mark.parametrize(
    ("longest", "quiet", "sentences"), [(3.0, False, 1), (3.0, True, 0), (60.0, False, 0)]
)
def test_that_a_long_mix_is_made_is_told(tmp_path, monkeypatch, longest, quiet, sentences):
    monkeypatch.setattr("dragoman.listeners.LONG_MIX", longest)
    voice, told = SlowVoice(), []
    voice.gate.set()
    mix = tmp_path / "both.wav"
    with narration(None, mix, voice, 12, told.append, quiet=quiet) as listener:
        talk(listener._narrator)
        assert 3.0 < listener._narrator.heard < 60.0
    assert told == ["Mixing both.wav: 0 minutes of sound; Ctrl-C leaves it out."] * sentences


@pytest.mark.parametrize(("options", "thread"), [([], "MainThread"), (["--realtime"], "narration")])
def test_only_live_text_needs_it(tmp_path, monkeypatch, options, thread):
    """The work on a recording is measured: a voice beside it would count."""
    voice = SlowVoice()
    voice.gate.set()
    monkeypatch.setattr("dragoman.voices.open_voice", lambda *_: voice)
    soundfile.write(tmp_path / "talk.wav", np.zeros(RATE, np.float32), RATE)
    system = ("--model", "tests.scripted:steady", "--from", "de", "--policy", "greedy")
    speak = ("--speak", str(tmp_path / "out.wav"))
    args = ["translate", str(tmp_path / "talk.wav"), *system, *speak, *options]
    done = CliRunner().invoke(dragoman, args)
    assert done.exception is None
    assert voice.threads == {thread}


def test_outcomes_come_in_order_and_errors_in_their_turn():
    apart, gate = Apart("test"), threading.Event()
    apart.do(lambda: gate.wait(10))
    for number in (1, 0, 2):
        apart.do(lambda number=number: 1 / number)
    assert list(apart.taken()) == []
    assert apart.left == 4
    gate.set()
    outcomes = apart.taken(wait=True)
    assert [next(outcomes), next(outcomes)] == [True, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(outcomes)
    assert list(apart.taken(wait=True)) == [0.5]
    assert apart.left == 0
    apart.end()


def test_what_has_not_begun_when_it_ends_is_not_done():
    apart, begun, gate, done = Apart("ending"), threading.Event(), threading.Event(), []
    apart.do(lambda: (begun.set(), gate.wait(10)))
    apart.do(lambda: done.append("after the end"))
    assert begun.wait(10)
    (thread,) = (one for one in threading.enumerate() if one.name == "ending")
    apart.end()
    for _ in range(2):
        waiting = threading.Thread(target=lambda: done.extend(apart.taken(wait=True)), daemon=True)
        waiting.start()
        waiting.join(10)
        assert not waiting.is_alive()
    gate.set()
    thread.join(10)
    assert not thread.is_alive()
    assert done == []
    apart.do(lambda: done.append("nor now"))
    assert apart.left == 2


def test_what_was_done_before_it_ends_is_taken_and_the_thread_is_let_go():
    apart, begun = Apart("idle"), threading.Event()
    apart.do(lambda: "before")
    apart.do(begun.set)
    assert begun.wait(10)
    (thread,) = (one for one in threading.enumerate() if one.name == "idle")
    apart.end()
    assert next(apart.taken(wait=True)) == "before"
    thread.join(10)
    assert not thread.is_alive()

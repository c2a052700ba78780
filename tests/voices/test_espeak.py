"""eSpeak NG through its worker process."""

import multiprocessing
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.voices import open_voice
from dragoman.voices.espeak import EspeakVoice, EspeakWorker, languages, phonemes, worker

pytestmark = pytest.mark.skipif(not languages(), reason="eSpeak NG is not installed")


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "Good morning."), ("de", "Guten Morgen."), ("zh", "早上好。"), ("no", "God morgen.")],
)
def test_it_speaks_many_languages(language, text):
    voice = open_voice("espeak", language)
    assert voice.languages == (language,)
    assert 0.4 < len(voice.speak(text)) / voice.rate < 2.0


def test_faster_speech_is_shorter_by_as_much():
    voice = EspeakVoice("de")
    text = "Meine Damen und Herren, wir kommen nun zur Abstimmung über den Antrag."
    normal, fast = (len(voice.speak(text, speed)) for speed in (1.0, 1.4))
    assert normal / fast == pytest.approx(1.4, abs=0.1)


def test_accent_and_speaker_can_be_chosen():
    plain, other, british = (
        open_voice(name, "en").speak("Water and butter.")
        for name in ("espeak", "espeak:+f3", "espeak:en-gb-x-rp+m2")
    )
    assert not np.array_equal(plain[:4000], other[:4000])
    assert not np.array_equal(plain[:4000], british[:4000])


def test_an_unknown_speaker_is_told():
    with pytest.raises(DragomanError, match="no voice 'en-us\\+nobody'"):
        open_voice("espeak:+nobody", "en").speak("Hello.")


def test_nothing_to_pronounce_is_no_sound():
    assert len(EspeakVoice("en").speak(" … — ")) == 0


def test_the_library_is_not_loaded_into_this_process():
    """Its licence does not reach us: only the worker holds it."""
    code = """
from dragoman.voices import open_voice
assert len(open_voice("espeak", "fr").speak("Bonjour."))
assert "espeak" not in open("/proc/self/maps").read().replace("espeakng_loader/__", "")
"""
    if sys.platform != "linux":
        pytest.skip("the list of loaded libraries is read from /proc")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dead_worker_is_replaced():
    before = EspeakVoice("en").speak("Still here.")
    process = worker().process
    process.kill()
    process.wait()
    after = EspeakVoice("en").speak("Still here.")
    assert len(after) == pytest.approx(len(before), rel=0.05)
    assert worker().process.pid != process.pid


def test_a_worker_that_cannot_live_is_told(monkeypatch):
    monkeypatch.setattr(
        "dragoman.voices.espeak._start",
        lambda: subprocess.Popen(
            [sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ),
    )
    with pytest.raises(DragomanError, match="twice in a row"):
        EspeakWorker().ask(do="list")


class InterruptedOnce:
    """The answers of a worker; when the first is awaited, somebody presses Ctrl-C."""

    def __init__(self, pipe):
        self.pipe, self.pressed = pipe, False

    def readline(self):
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt
        return self.pipe.readline()

    def __getattr__(self, name):
        return getattr(self.pipe, name)


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next(monkeypatch):
    code = """
import json, sys
for line in sys.stdin:
    print(json.dumps(json.loads(line) | {"bytes": 0}), flush=True)
"""
    monkeypatch.setattr(
        "dragoman.voices.espeak._start",
        lambda: subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ),
    )
    asked = EspeakWorker()
    asked.ask(number=1)
    asked.process.stdout = InterruptedOnce(asked.process.stdout)
    with pytest.raises(KeyboardInterrupt):
        asked.ask(number=2)
    assert asked.ask(number=3)[0]["number"] == 3
    asked.close()


def test_what_the_library_prints_does_not_get_among_the_answers():
    code = """
import os
from dragoman.voices import espeak_worker
espeak_worker.EspeakLibrary = lambda: os.write(1, b"noise")
espeak_worker.answer = lambda library, request: ({"given": request}, b"sound")
espeak_worker.main()
"""
    done = subprocess.run([sys.executable, "-c", code], input=b"1\n2\n", capture_output=True)
    answers = b'{"given": 1, "bytes": 5}\nsound{"given": 2, "bytes": 5}\nsound'
    assert (done.stdout, done.stderr) == (answers, b"noise")


def test_a_worker_ends_with_its_owner():
    """Its input ends when the owner dies, however that comes about."""
    asked = EspeakWorker()
    asked.ask(do="list")
    process = asked.process
    with suppress(BrokenPipeError):
        process.stdin.close()
    assert process.wait(10) == 0
    process.stdout.close()


def test_a_forked_process_has_a_worker_of_its_own():
    """Both speak at once; were they to share a pipe, answers would get mixed up."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    parent = worker()
    parent.ask(do="list")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        clauses = [[f"number {number}"] for number in range(40)]
        read = pool.starmap_async(phonemes, [(clause, "en-us") for clause in clauses])
        ours = [phonemes(clause, "en-us") for clause in clauses]
        assert read.get() == ours
    assert worker() is parent


def test_phonemes_are_ipa_without_language_marks():
    hello, name = phonemes(["Hello world", "das Team"], "de")
    assert "ʊ" in hello or "oː" in hello
    assert "(" not in hello + name
    assert phonemes(["Hello world"], "en-us") == ["həlˈo͡ʊ wˈɜːld"]

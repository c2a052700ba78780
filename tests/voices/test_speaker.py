"""Speech aloud, without a loudspeaker and, where time matters, without waiting for it."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.playback import Player
from dragoman.voices import Pace, Speaker
from dragoman.voices.speaker import Effort
from tests.audio.fake_sounddevice import FakeSounddevice
from tests.voices.fakes import ToneVoice


class SimulatedTime:
    """Time that passes only while somebody waits or plays; what happens in it is scripted."""

    def __init__(self, script):
        self.seconds = 0.0
        self.script = list(script)  # [(moment, what happens)]

    def now(self):
        return self.seconds

    def pass_until(self, moment):
        while self.script and self.script[0][0] <= moment:
            self.seconds, happens = self.script.pop(0)
            happens()
        self.seconds = max(self.seconds, moment)

    def wait(self, change, seconds):
        if self.script:
            later = self.script[0][0]
            self.pass_until(later if seconds is None else min(later, self.seconds + seconds))
        elif seconds is None:
            change.wait()
        else:
            self.seconds += seconds


class SimulatedPlayer:
    """Plays in simulated time. Sound that comes before the end of the last is heard over it, unless
    it comes in the time before that end that its speaker asked for to prepare it."""

    def __init__(self, time, rate):
        self.time, self.rate = time, rate
        self.free, self.ahead = 0.0, 0.0
        self.played = []

    def play(self, samples, ahead):
        now = self.time.now()
        start = self.free if now >= self.free - self.ahead - 1e-6 else now
        start = max(start, now)
        self.played.append((start, start + len(samples) / self.rate))
        self.free, self.ahead = self.played[-1][1], ahead
        self.time.pass_until(self.free - ahead)
        return True

    def drain(self):
        self.time.pass_until(self.free)

    def stop(self):
        pass


class StoppingPlayer(SimulatedPlayer):
    """Falls silent when it is told to."""

    def play(self, samples, ahead):
        begun = self.time.now()
        self.free = begun + len(samples) / self.rate
        while self.time.now() < self.free - ahead:
            happens = self.time.script[0][0] if self.time.script else self.free
            self.time.pass_until(min(happens, self.free - ahead))
        self.played.append((begun, self.free))
        return True

    def stop(self):
        self.free = min(self.free, self.time.now())


def perform(talk, voice=None, player=SimulatedPlayer):
    """Say texts at their moments, None stops; the voice, the player and what was reported."""
    voice = voice or ToneVoice(rate=1000)
    time = voice.time = SimulatedTime([])

    def happens(text):
        return lambda: speaker.stop() if text is None else speaker.say(text)

    time.script = [(at, happens(text)) for at, text in talk]
    player, reports, started = player(time, voice.rate), [], threading.Event()
    time.script.insert(0, (0.0, started.wait))  # the thread runs before `speaker` has its name
    speaker = Speaker(voice, player, reports.append, time=time)
    started.set()
    with speaker._change:
        while time.script:
            speaker._change.wait(0.01)
    speaker.finish()
    speaker.close()
    return voice, player, reports


def test_all_is_spoken_in_order_and_without_overlap():
    talk = [(0.5 * n, f"word {n},") for n in range(50)]
    voice, player, reports = perform(talk)
    assert (
        " ".join(text for text, _ in voice.spoken).split()
        == " ".join(text for _, text in talk).split()
    )
    ends = [0.0, *(end for _, end in player.played)]
    assert all(start >= end for (start, _), end in zip(player.played, ends, strict=False))
    assert reports == []


@pytest.mark.parametrize(("language", "phrases"), [("de", 1), ("en", 2)])
def test_a_date_waits_for_its_month(language, phrases):
    voice = ToneVoice(rate=1000)
    voice.languages = (language,)
    voice, _, _ = perform([(0.0, "Es war am 8."), (0.5, " September soweit.")], voice)
    assert len(voice.spoken) == phrases


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.text("abc .,", max_size=30)), max_size=15))
def test_nothing_is_lost_whatever_comes_when(steps):
    at, talk = 0.0, []
    for wait, text in steps:
        at += wait
        talk.append((at, text))
    voice, player, _ = perform(talk)
    said = "".join(c for _, text in talk for c in text if c.isalnum())
    assert "".join(c for text, _ in voice.spoken for c in text if c.isalnum()) == said
    assert all(a[1] <= b[0] + 1e-9 for a, b in zip(player.played, player.played[1:], strict=False))


def test_it_hurries_when_late_and_slows_down_again():
    burst = [(0.0, "a sentence of many words indeed.") for _ in range(12)]
    slow = [(60.0 + 10 * n, "a short one.") for n in range(5)]
    voice, _, _ = perform(burst + slow)
    speeds = [speed for _, speed in voice.spoken]
    assert speeds[0] == 1.0
    assert max(speeds) == pytest.approx(Pace().fastest)
    assert speeds[-5:] == [1.0] * 5


def test_the_speed_is_that_of_the_moment_at_which_a_phrase_is_heard():
    """Each phrase waits for the one before it: it is late by as much as that takes."""
    talk = [
        (0.0, "One sentence that takes three seconds to say, in all this is."),
        (0.1, "It is late, and so is what comes after it, as you can hear now."),
        (3.0, "And this one too."),
    ]
    voice, player, _ = perform(talk)
    starts, ends = zip(*player.played, strict=True)
    assert starts[1:] == pytest.approx(ends[:2])
    wanted = [Pace().speed(start - at) for start, (at, _) in zip(starts, talk, strict=True)]
    assert [speed for _, speed in voice.spoken] == pytest.approx(wanted, abs=1e-6)
    assert voice.spoken[1][1] > 1.0


class Working(ToneVoice):
    """A voice that takes its time, too."""

    def __init__(self, seconds):
        super().__init__(rate=1000)
        self.seconds, self.time = seconds, None

    def speak(self, text, speed=1.0):
        self.time.pass_until(self.time.now() + self.seconds)
        return super().speak(text, speed)


@pytest.mark.parametrize("work", [0.0, 0.3, 1.0])
def test_phrases_follow_each_other_without_a_gap_and_without_overlap(work):
    talk = [(0.0, f"This is one sentence, of many, number {n}.") for n in range(12)]
    voice = Working(work)
    _, player, _ = perform(talk, voice)
    gaps = [b[0] - a[1] for a, b in zip(player.played, player.played[1:], strict=False)]
    assert len(gaps) >= 3
    assert min(gaps) >= -1e-6
    assert max(gaps[1:]) <= 1e-6  # after the first phrase it knows how long the work takes


def test_an_error_is_told_once_and_the_next_phrase_is_spoken():
    class Hoarse(ToneVoice):
        def speak(self, text, speed=1.0):
            if "hoarse" in text:
                raise ValueError("cannot say that")
            return super().speak(text, speed)

    talk = [(0, "hoarse."), (2, "fine."), (5, "hoarse."), (10, "fine again.")]
    voice, _, reports = perform(talk, Hoarse(rate=1000))
    assert reports == ["The voice 'tone' failed: cannot say that."]
    assert [text for text, _ in voice.spoken] == ["fine.", "fine again."]


def test_a_driver_that_fails_does_not_end_the_thread():
    class Broken(SimulatedPlayer):
        def play(self, samples, ahead):
            raise RuntimeError("cable")

    reports, time = [], SimulatedTime([])
    with Speaker(ToneVoice(), Broken(time, 24000), reports.append, time=time) as speaker:
        speaker.say("One.")
        speaker.finish()
        speaker.say("Two.")
    assert reports == ["Speech failed: cable."]


class HeldPlayer:
    """Plays until it is stopped or let go, in real time; notes what it was given."""

    def __init__(self):
        self.playing, self.over = threading.Event(), threading.Event()
        self.given, self.stopped = 0, 0

    def play(self, samples, ahead):
        self.given += 1
        self.playing.set()
        self.over.wait()
        return False

    def drain(self):
        pass

    def stop(self):
        self.stopped += 1
        self.over.set()


def test_say_returns_at_once_while_the_voice_is_busy():
    player = HeldPlayer()
    speaker = Speaker(ToneVoice(), player, print)
    speaker.say("This is being spoken.")
    player.playing.wait()
    for _ in range(10_000):
        speaker.say("much more")  # nobody takes it: were it to block, this test would hang
    speaker.close()
    assert player.given == 1


def test_stop_silences_at_once_and_forgets_what_waits():
    voice, player = ToneVoice(), HeldPlayer()
    speaker = Speaker(voice, player, print)
    speaker.say("First.")
    player.playing.wait()
    speaker.say("Second.")
    speaker.stop()
    assert player.stopped >= 1
    speaker.finish()
    assert [text for text, _ in voice.spoken] == ["First."]
    speaker.say("It can go on.")
    speaker.finish()
    assert voice.spoken[-1][0] == "It can go on."
    speaker.close()


def test_what_is_said_to_a_speaker_that_is_closed_is_not_kept():
    voice = ToneVoice(rate=1000)
    time = voice.time = SimulatedTime([])
    speaker = Speaker(voice, SimulatedPlayer(time, voice.rate), [].append, time=time)
    speaker.close()
    speaker.say("Nobody hears this.")
    assert speaker._schedule.is_empty
    speaker.finish()  # and nobody waits for it
    assert voice.spoken == []


def test_what_was_stopped_makes_nothing_late():
    """Twenty seconds of speech end after two; what is said then is on time."""
    voice = ToneVoice(rate=1000, seconds_per_character=1.0)
    talk = [(0.0, "one two three four,"), (2.0, None), (3.0, "five six seven,")]
    voice, player, _ = perform(talk, voice, StoppingPlayer)
    assert voice.spoken == [("one two three four,", 1.0), ("five six seven,", 1.0)]
    assert player.played[0] == (0.0, 2.0)


def test_the_effort_that_is_expected_is_forgotten_slowly():
    effort = Effort()
    for seconds, ahead in ((2.0, 2.5), (0.1, 2.0), (0.1, 1.6), (4.0, 3.0), (0.0, 2.4)):
        effort.note(seconds)
        assert effort.ahead == pytest.approx(ahead)


def test_the_voice_is_loaded_before_anything_is_said():
    voice = ToneVoice()
    with Speaker(voice, HeldPlayer(), print) as speaker:
        pass
    assert voice.loaded
    assert voice.spoken == []
    speaker.say("Nobody is there any more.")
    speaker.finish()
    assert voice.spoken == []


def test_what_is_being_prepared_when_stop_comes_is_never_played():
    preparing, go_on = threading.Event(), threading.Event()

    class Slow(ToneVoice):
        def speak(self, text, speed=1.0):
            preparing.set()
            go_on.wait()
            return super().speak(text, speed)

    player = HeldPlayer()
    speaker = Speaker(Slow(), player, print)
    speaker.say("Too late.")
    preparing.wait()
    speaker.stop()
    go_on.set()
    speaker.finish()
    speaker.close()
    assert player.given == 0


def test_leaving_the_block_finishes_and_an_error_stops():
    time = SimulatedTime([])
    voice, player = ToneVoice(rate=1000), None
    player = SimulatedPlayer(time, 1000)
    with Speaker(voice, player, print, time=time) as speaker:
        speaker.say("All of this, and of that.")
    assert len(player.played) >= 1
    assert time.now() == pytest.approx(player.free)

    def fail(speaker):
        with speaker:
            raise KeyboardInterrupt

    speaker = Speaker(voice, HeldPlayer(), print)
    with pytest.raises(KeyboardInterrupt):
        fail(speaker)
    assert not speaker._thread.is_alive()


def test_work_on_the_next_phrase_begins_in_time():
    effort = Effort()
    assert effort.ahead == Effort.LEAST
    effort.note(1.0)
    assert effort.ahead == pytest.approx(1.25)
    for _ in range(30):
        effort.note(0.01)
    assert effort.ahead == Effort.LEAST
    effort.note(100.0)
    assert effort.ahead == Effort.MOST


def test_with_the_real_player_on_a_driver_without_devices(monkeypatch):
    driver = FakeSounddevice([("Desk", 0, 2, (24000,))])
    monkeypatch.setitem(sys.modules, "sounddevice", driver)
    voice = ToneVoice(seconds_per_character=0.02)
    with Player(voice.rate) as player, Speaker(voice, player, pytest.fail) as speaker:
        speaker.say("One, two,")
        speaker.say("three.")
    said = sum(round(len(text) * 0.02 / speed * voice.rate) for text, speed in voice.spoken)
    played = np.concatenate(driver.played)
    assert np.count_nonzero(np.abs(played) > 0.01) == pytest.approx(said, rel=0.1)
    assert driver.streams[0].closed


def test_a_loudspeaker_that_is_pulled_out_is_told_once(monkeypatch):
    driver = FakeSounddevice([("Desk", 0, 2, (24000,))])
    monkeypatch.setitem(sys.modules, "sounddevice", driver)
    reports = []
    player = Player(24000, patience=0.05)
    driver.dead.set()
    with Speaker(ToneVoice(), player, reports.append) as speaker:
        for _ in range(3):
            speaker.say("Is anybody there?")
            speaker.finish()
    assert reports == ["The loudspeaker 'Desk' is gone."]

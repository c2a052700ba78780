import sys

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.audio.microphone import Microphone
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp
from tests.audio.fake_sounddevice import FakeSounddevice


@pytest.fixture
def fake(monkeypatch):
    fake = FakeSounddevice([("Desk", 1, 0, (48000, 16000)), ("Old", 1, 0, (44100,))])
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def listen(microphone):
    """All chunks, and the error that came after them."""
    chunks = []
    try:
        chunks.extend(microphone.chunks())
    except DragomanError as error:
        return chunks, str(error)
    return chunks, None


def collect(microphone, seconds):
    """All chunks of a microphone that is stopped after some seconds of sound."""
    chunks, heard = [], 0.0
    for chunk in microphone.chunks():
        chunks.append(chunk)
        heard += chunk.seconds
        if heard >= seconds:
            microphone.stop()
    return chunks


def joined(chunks):
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    return np.concatenate([c.samples for c in chunks])


def test_what_is_said_comes_and_stop_ends_it(fake):
    fake.script = [chirp(1.0), None]
    microphone = Microphone(step_ms=250)
    chunks = collect(microphone, 1.0)
    assert np.array_equal(joined(chunks), chirp(1.0))
    assert microphone.trouble is None
    assert fake.streams[0].closed


def busy(fake, microphone, sound, seconds):
    """All chunks for a listener who works on each for some seconds, in which the speaker talks on.

    The first piece of sound is there at once; the microphone is stopped after the last.
    """
    size = round(seconds * RATE)
    pieces = [sound[at : at + size] for at in range(0, len(sound), size)]
    fake.script = [None]
    source, chunks = microphone.chunks(), []
    fake.streams[0].bring(pieces.pop(0))
    for chunk in source:
        chunks.append(chunk)
        if pieces:
            fake.streams[0].bring(pieces.pop(0))
        else:
            microphone.stop()
    return chunks


def test_a_listener_who_keeps_up_gets_equal_steps(fake):
    chunks = busy(fake, Microphone(step_ms=240), chirp(2.4), seconds=0.24)
    assert np.array_equal(joined(chunks), chirp(2.4))
    assert [len(c.samples) for c in chunks] == [3840] * 10 + [0]


@pytest.mark.parametrize("seconds", [0.3, 0.7, 2.0, 4.7])
def test_a_slow_listener_gets_what_waits_as_one_chunk_and_is_never_far_behind(fake, seconds):
    sound = chirp(60.0)
    microphone = Microphone(step_ms=240, backlog=2 * seconds)
    chunks = busy(fake, microphone, sound, seconds)
    assert np.array_equal(joined(chunks), sound)
    assert microphone.lost == 0
    # When the n-th chunk is given, n pieces were spoken; of them less than a step is not in it.
    heard = np.cumsum([len(c.samples) for c in chunks[:-1]]) / RATE
    spoken = np.minimum(np.arange(1, len(chunks)) * round(seconds * RATE) / RATE, 60.0)
    assert (spoken - heard).max() < 0.24 + 0.02


def test_a_long_wait_is_caught_up_with_in_chunks_of_some_seconds(fake):
    fake.script = [chirp(23.0), None]
    microphone = Microphone(step_ms=500)
    chunks = microphone.chunks()
    fake.streams[0].thread.join()
    microphone.stop()
    chunks = list(chunks)
    assert np.array_equal(joined(chunks), chirp(23.0))
    assert [c.seconds for c in chunks] == [5, 5, 5, 5, 3]


def test_a_joined_chunk_was_there_when_its_last_sample_was(fake):
    ticks = iter(range(1000))
    fake.script = [chirp(1.0), None]
    microphone = Microphone(step_ms=200, clock=lambda: float(next(ticks)))
    chunks = microphone.chunks()
    fake.streams[0].thread.join()
    first = next(chunks)
    # The clock is asked once at the start and then once per block of 20 ms.
    assert first.seconds == 1.0
    assert first.arrival == 50.0


def test_a_microphone_of_another_rate(fake):
    fake.script = [chirp(2.0, 44100), None]
    chunks = collect(Microphone("Old", step_ms=100), 1.8)
    samples = joined(chunks)
    assert fake.streams[0].how["samplerate"] == 44100
    assert len(samples) == 2 * RATE
    assert np.corrcoef(samples, chirp(2.0))[0, 1] > 0.999


def test_chunks_are_stamped_with_the_moment_they_were_complete(fake):
    ticks = iter(np.arange(10.0, 1000.0, 0.5))
    fake.script = [chirp(0.1), 0.2, None]
    microphone = Microphone(step_ms=20, clock=lambda: float(next(ticks)))
    arrivals = [chunk.arrival for chunk in collect(microphone, 0.1)]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] > 0


def test_pulled_out_everything_comes_then_the_last_chunk_then_the_sentence(fake):
    fake.script = [chirp(0.7)]
    microphone = Microphone(step_ms=500)
    chunks, error = listen(microphone)
    assert np.array_equal(joined(chunks), chirp(0.7))
    assert error == "The microphone 'Desk' is gone."
    assert microphone.trouble == error


def test_a_driver_that_only_falls_silent_counts_as_pulled_out(fake):
    fake.script = [chirp(0.3), None]
    chunks, error = listen(Microphone(step_ms=500, patience=0.15))
    assert np.array_equal(joined(chunks), chirp(0.3))
    assert "is gone" in error


def test_a_driver_may_take_longer_to_begin_than_to_go_on(fake):
    """The clock says 0.9 s later whenever it is asked."""
    now = [0.0]

    def clock():
        now[0] += 0.9
        return now[0]

    fake.script = [None]
    chunks, error = listen(Microphone(patience=1.0, clock=clock))
    assert "is gone" in error
    assert len(joined(chunks)) == 0
    assert 3.0 < now[0] - 1.8 < 4.0  # since it was first asked


def test_what_is_no_sound_is_silence(fake):
    """A driver may bring memory that nobody has written to."""
    block = chirp(0.1)
    block[10:14] = np.nan, np.inf, -np.inf, 1e30
    fake.script = [block, None]
    samples = joined(collect(Microphone(step_ms=100), 0.1))
    wanted = chirp(0.1)
    wanted[10:14] = 0, 0, 0, 1
    assert np.array_equal(samples, wanted)


def test_what_the_system_has_lost_is_told_alone(fake, caplog):
    fake.script = [None]
    microphone = Microphone()
    chunks = microphone.chunks()
    microphone.overflows = 3
    microphone.stop()
    list(chunks)
    assert caplog.messages == [
        "Of what the microphone heard, the system lost some 3 times: the machine is too slow."
    ]


def test_a_busy_microphone(fake):
    fake.busy = True
    with pytest.raises(DragomanError, match=r"'Desk' cannot be opened \(Device unavailable\)"):
        Microphone().chunks()


def test_a_microphone_that_does_not_start_is_given_back(fake):
    fake.stuck = True
    with pytest.raises(DragomanError, match=r"'Desk' cannot be opened \(Unanticipated"):
        Microphone().chunks()
    assert fake.streams[0].closed


def test_what_finds_no_room_is_counted_and_reported(fake, caplog):
    fake.script = [chirp(5.0), None]
    microphone = Microphone(step_ms=500, backlog=1.0)
    chunks = microphone.chunks()
    fake.streams[0].thread.join()
    microphone.stop()
    (only,) = chunks
    assert only.last
    assert len(only.samples) == RATE
    assert microphone.lost == 4.0
    assert "4.0 s found no room" in caplog.text


def test_leaving_early_gives_the_microphone_back(fake):
    fake.script = [chirp(1.0), None]
    chunks = Microphone(step_ms=100).chunks()
    next(chunks)
    chunks.close()
    assert fake.streams[0].closed


def test_stopped_before_anything_came(fake):
    fake.script = [None]
    microphone = Microphone()
    chunks = microphone.chunks()
    microphone.stop()
    (only,) = chunks
    assert only.last
    assert len(only.samples) == 0

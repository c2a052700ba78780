"""Speaker and interpreter in one file: who is where, how loud, and how softly it changes."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import files
from dragoman.audio import mix as module
from dragoman.audio.chunk import RATE
from dragoman.audio.level import LEVEL, loudness
from dragoman.audio.mix import Mix, duck_curve, pad_until, sweep_parts
from dragoman.audio.write import SoundWriter
from dragoman.errors import DragomanError

STEP = 1 / 2**15


def tone(seconds, level, frequency=300.0):
    time = np.arange(round(seconds * RATE)) / RATE
    return (level * np.sqrt(2) * np.sin(2 * np.pi * frequency * time)).astype(np.float32)


def mixed(path, source, pieces, recorded=RATE, **how):
    with Mix(path, **how) as mix:
        for block in np.array_split(source, 7):
            mix.hear(block, recorded)
        for at, speech in pieces:
            mix.say(at, speech)
    samples, rate = soundfile.read(path, dtype="float32")
    assert rate == recorded
    return samples


def at_rate(rate, seconds, level, frequency):
    time = np.arange(round(seconds * rate)) / rate
    return (level * np.sqrt(2) * np.sin(2 * np.pi * frequency * time)).astype(np.float32)


def loud_at(samples, rate, frequency):
    """How much of a sound is a tone."""
    time = np.arange(len(samples)) / rate
    return abs(np.mean(samples * np.exp(-2j * np.pi * frequency * time))) * np.sqrt(2)


@pytest.mark.parametrize("rate", [44100, 48000])
def test_a_recording_keeps_its_rate_and_its_channels_and_the_voice_its_quality(tmp_path, rate):
    """15 kHz on the left, 300 Hz on the right; the voice at 24 kHz has tones up to 11 kHz."""
    sides = [at_rate(rate, 6, 0.1, 15000), at_rate(rate, 6, 0.1, 300)]
    voice = at_rate(24000, 2, 0.05, 11000)
    samples = mixed(
        tmp_path / "a.wav", np.stack(sides, axis=1), [(2.0, voice)], rate, rate=24000, duck_db=6
    )
    assert samples.shape == (6 * rate, 2)
    under, alone = samples[int(2.5 * rate) : int(3.5 * rate)], samples[5 * rate :]
    low = 10 ** (-6 / 20)
    for side, own in enumerate((15000, 300)):
        assert loud_at(alone[:, side], rate, own) == pytest.approx(0.1, rel=0.02)
        assert loud_at(under[:, side], rate, own) == pytest.approx(0.1 * low, rel=0.02)
        assert loud_at(under[:, side], rate, 11000) == pytest.approx(0.05, rel=0.02)
        assert loud_at(under[:, side], rate, 13000) < 1e-4  # nothing is mirrored
        assert loud_at(alone[:, side], rate, 11000) < 1e-4


def test_as_it_is_a_recording_stays_what_it_was_to_the_sample(tmp_path):
    source = np.random.default_rng(0).integers(-(2**15), 2**15, (48000, 6)) / 2**15
    source = source.astype(np.float32)
    samples = mixed(tmp_path / "a.wav", source, [], 48000, duck_db=0)
    assert np.array_equal(samples, source)


def test_the_interpreter_is_in_front(tmp_path):
    samples = mixed(tmp_path / "a.flac", np.zeros((48000, 6), np.float32),
                    [(0.0, tone(1, 0.1))], 48000)  # fmt: skip
    assert [loudness(side, 48000) > 0.05 for side in samples.T] == [True] * 2 + [False] * 4


class SoundOfFilm:
    """Keeps what would be put into a film."""

    def make(self, sound, path, given_up):
        assert not given_up()
        path.write_bytes(sound.read_bytes())


def test_in_a_film_a_single_channel_has_both(tmp_path):
    pieces = [(1.0, tone(1, 0.1, 2000))]
    samples = mixed(tmp_path / "a.mkv", tone(2, 0.1), pieces, film=SoundOfFilm())
    assert os.listdir(tmp_path) == ["a.mkv"]
    assert samples.ndim == 1
    assert loud_at(samples[int(1.2 * RATE) :], RATE, 2000) == pytest.approx(0.1, rel=0.02)
    assert loud_at(samples[: int(0.6 * RATE)], RATE, 300) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("duck_db", [0, 3, 12])
def test_both_together_are_not_clipped_and_only_softer_where_they_are_too_loud(tmp_path, duck_db):
    """Clipped, a sum would have tones that neither has."""
    source = np.repeat(tone(4, 0.65)[:, None], 2, axis=1)
    pieces = [(1.0, tone(1.0, 0.6, 310))]
    samples = mixed(tmp_path / "a.wav", source, pieces, duck_db=duck_db)
    assert np.abs(samples).max() <= 0.951
    part = samples[int(1.2 * RATE) : int(1.8 * RATE), 0] * np.hanning(round(0.6 * RATE))
    spectrum = np.abs(np.fft.rfft(part))
    beyond = spectrum[round(800 * 0.6) :]
    assert 20 * np.log10(beyond.max() / spectrum.max()) < -50
    if duck_db == 0:
        assert np.allclose(samples[: int(0.9 * RATE)], source[: int(0.9 * RATE)], atol=2 * STEP)


def test_what_a_decoder_brings_above_full_scale_becomes_softer(tmp_path):
    source = np.repeat(tone(2, 0.9)[:, None], 2, axis=1)  # up to 1.27
    for duck_db, most in ((0, 1.0), (12, 0.951)):
        samples = mixed(tmp_path / "a.wav", source, [], duck_db=duck_db)
        assert np.abs(samples).max() <= most
        spectrum = np.abs(np.fft.rfft(samples[RATE // 2 : RATE, 0] * np.hanning(RATE // 2)))
        assert spectrum[500:].max() < 0.003 * spectrum.max()


def test_a_recording_may_change_its_channels_on_the_way(tmp_path):
    with Mix(tmp_path / "a.wav", duck_db=0) as mix:
        mix.hear(np.full((100, 2), 0.5, np.float32))
        mix.hear(np.full((100, 1), 0.25, np.float32))
    samples, _ = soundfile.read(tmp_path / "a.wav")
    assert samples.tolist() == [[0.5, 0.5]] * 100 + [[0.25, 0.25]] * 100


def test_too_many_channels_are_told_when_they_are_heard(tmp_path):
    with pytest.raises(DragomanError, match=r"mp3 takes 2 channels at most, and .* has 6"):  # noqa: SIM117
        with Mix(tmp_path / "a.mp3") as mix:
            mix.hear(np.zeros((100, 6), np.float32))
    assert os.listdir(tmp_path) == []


def test_a_format_that_does_not_know_the_rate_gets_its_highest(tmp_path):
    with Mix(tmp_path / "a.mp3") as mix:
        mix.hear(np.zeros((96000, 2), np.float32), 96000)
    found = soundfile.info(tmp_path / "a.mp3")
    assert (found.samplerate, found.channels) == (48000, 2)
    assert found.duration == pytest.approx(1.0, abs=0.1)


def test_nobody_heard_is_an_empty_mix(tmp_path):
    with Mix(tmp_path / "a.wav") as mix:
        mix.say(0.0, tone(1, 0.1))
    assert soundfile.info(tmp_path / "a.wav").duration == 1.0


@settings(max_examples=30)
@given(
    st.integers(1, 20000),
    st.lists(st.tuples(st.integers(0, 8000), st.integers(1, 5000)), max_size=5),
)
def test_as_they_are_the_speaker_is_left_and_each_piece_at_its_moment_right(length, pieces):
    """The whole is computed at once: pieces lie at their moments, or after the one before."""
    source = np.random.default_rng(0).uniform(-0.5, 0.5, length).astype(np.float32)
    right, said, end = np.zeros(length + 100_000, np.float32), [], 0
    for at, size in pieces:
        said.append((at / RATE, np.full(size, 0.1, np.float32)))
        begin = max(at, end)
        right[begin : begin + size] = 0.1
        end = begin + size
    with tempfile.TemporaryDirectory() as folder:
        samples = mixed(Path(folder) / "a.wav", source, said, duck_db=0)
    assert len(samples) == max(length, end)
    assert np.allclose(samples[:length, 0], source, atol=2 * STEP)
    assert not samples[length:, 0].any()
    assert np.allclose(samples[:, 1], right[: len(samples)], atol=2 * STEP)


def test_a_moment_that_has_passed_is_still_there(tmp_path):
    samples = mixed(tmp_path / "a.wav", np.zeros(RATE, np.float32), [(0.25, tone(0.1, 0.1))])
    assert np.flatnonzero(samples[:, 1])[0] == pytest.approx(RATE / 4, abs=2)


def test_the_speaker_is_lowered_while_the_interpreter_speaks(tmp_path):
    samples = mixed(tmp_path / "a.wav", tone(10, LEVEL), [(3.0, tone(2, LEVEL))], duck_db=12.0)
    level = [loudness(samples[int(a * RATE) : int(b * RATE), 0], RATE) for a, b in
             ((0.5, 2.5), (3.0, 5.0), (5.5, 9.5))]  # fmt: skip
    assert level == pytest.approx([LEVEL, LEVEL * 10 ** (-12 / 20), LEVEL], rel=0.02)


def test_levels_change_softly_and_do_not_pump():
    moments, gains = duck_curve([(2.0, 3.0), (3.9, 5.0), (8.0, 9.0)], 20.0)
    curve = np.interp(np.arange(0, 12, 0.01), moments, gains)
    assert np.abs(np.diff(curve)).max() <= 0.9 / (module.RAMP / 0.01) + 1e-9
    assert np.allclose(curve[200:501], 0.1)  # a short pause of the interpreter changes nothing
    assert np.allclose(curve[540:760], 1.0)
    assert curve[0] == curve[-1] == 1.0


def test_a_pause_is_counted_from_the_phrase_before_it():
    moments, gains = duck_curve([(2.0, 3.0), (6.0, 7.0), (7.9, 9.0), (10.0, 11.0)], 20.0)
    assert np.interp([4.5, 7.4, 9.5], moments, gains) == pytest.approx([1.0, 0.1, 1.0])


def test_an_interpreter_who_begins_at_once():
    moments, gains = duck_curve([(0.0, 1.0)], 20.0)
    assert np.interp(0.0, moments, gains) == pytest.approx(0.1)


@pytest.mark.parametrize(("level", "wanted"), [(0.04, LEVEL), (0.3, LEVEL), (0.001, 0.004)])
def test_the_speaker_is_as_loud_as_the_interpreter_but_noise_is_not(tmp_path, level, wanted):
    samples = mixed(tmp_path / "a.wav", tone(3, level), [])
    assert loudness(samples[:, 0], RATE) == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("size", [RATE * 3, 5000, 333])
def test_loud_is_what_is_loud_however_long_the_silence_beside_it(size):
    """On either side: a speaker on the left alone is half as strong as one on both."""
    sound = np.concatenate([tone(1, 0.05), np.zeros(2 * RATE, np.float32)])
    both, left = module._Level(), module._Level()
    for begin in range(0, len(sound), size):
        piece = sound[begin : begin + size, None]
        both.hear(np.repeat(piece, 2, axis=1), RATE)
        left.hear(np.concatenate([piece, 0 * piece], axis=1), RATE)
    assert both.gain() == pytest.approx(LEVEL / loudness(tone(1, 0.05), RATE), rel=0.02)
    assert left.gain() == pytest.approx(both.gain() * 2**0.5, rel=0.02)


def test_nothing_is_clipped(tmp_path):
    source = tone(3, 0.02)
    source[RATE] = 0.9  # a knock at the microphone
    assert np.abs(mixed(tmp_path / "a.wav", source, [])).max() <= 0.951


def test_minutes_are_mixed_in_flat_memory(tmp_path):
    import tracemalloc

    tracemalloc.start()
    with Mix(tmp_path / "a.wav") as mix:
        for second in range(200):
            mix.hear(np.zeros((48000, 2), np.float32), 48000)
            if second % 5 == 0:
                mix.say(second, tone(2, 0.1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e7  # the mix alone is 77 MB as floats
    assert soundfile.info(tmp_path / "a.wav").duration == 200


def test_a_long_silence_is_written_in_flat_memory(tmp_path):
    import tracemalloc

    with SoundWriter(tmp_path / "a.wav") as writer:
        tracemalloc.start()
        pad_until(writer, 300.0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2e6  # all of it is 19 MB
    assert writer.frames == 300 * RATE


def test_only_the_mix_is_left(tmp_path):
    mixed(tmp_path / "a.mp3", tone(1, 0.1), [(0.0, tone(1, 0.1))])
    assert os.listdir(tmp_path) == ["a.mp3"]
    assert soundfile.info(tmp_path / "a.mp3").format == "MP3"


def test_an_error_leaves_nothing(tmp_path):
    def fail():
        with Mix(tmp_path / "a.wav") as mix:
            mix.hear(tone(1, 0.1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_mix_that_is_given_up_leaves_nothing(tmp_path):
    mix = Mix(tmp_path / "mix.wav")
    mix.hear(tone(2.0, 0.1))
    mix.give_up()
    with pytest.raises(KeyboardInterrupt):
        mix.close()
    assert os.listdir(tmp_path) == []


def test_a_format_that_nobody_knows_is_told_at_once(tmp_path):
    with pytest.raises(DragomanError, match="Sound is written to"):
        Mix(tmp_path / "a.txt")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("place", ["gone/a.wav", "file/a.wav"])
def test_a_place_where_nothing_can_be_written_is_told_at_once(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match=r"/a\.wav cannot be written"):
        Mix(tmp_path / place)


@pytest.mark.parametrize("name", [f"{'a' * 251}.wav", f"{'ü' * 125}.wav"])
def test_a_name_may_be_as_long_as_the_disk_takes(tmp_path, name):
    with Mix(tmp_path / name) as mix:
        mix.hear(tone(1.0, 0.1))
        mix.say(0.0, tone(1.0, 0.1))
    assert os.listdir(tmp_path) == [name]


def test_a_name_that_is_too_long_leaves_nothing(tmp_path):
    with pytest.raises(DragomanError, match="name is too long"):
        Mix(tmp_path / f"{'a' * 252}.wav")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_when_both_are_made_one_leaves_nothing(tmp_path, monkeypatch):
    mix = Mix(tmp_path / "mix.wav")
    mix.hear(tone(2.0, 0.1))
    mix.say(0.5, tone(0.5, 0.1))

    def full(*_):
        raise DragomanError("The disk is full.")

    monkeypatch.setattr(SoundWriter, "write", full)
    with pytest.raises(DragomanError, match="full"):
        mix.close()
    assert os.listdir(tmp_path) == []


def test_parts_of_another_machine_are_swept_only_once_they_are_old(tmp_path, monkeypatch):
    """Its processes have numbers that mean nothing here."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    files._here.cache_clear()
    with monkeypatch.context() as there:
        there.setattr(platform, "node", lambda: "another machine")
        there.setattr(os, "getpid", lambda: dead.pid)
        mix = Mix(tmp_path / "mix.wav")
        mix.hear(tone(0.1, 0.1))
    files._here.cache_clear()
    parts = set(tmp_path.iterdir())
    sweep_parts(tmp_path / "mix.wav")
    assert set(tmp_path.iterdir()) == parts
    for part in parts:
        os.utime(part, (0, 0))
    sweep_parts(tmp_path / "mix.wav")
    assert os.listdir(tmp_path) == []


def test_a_name_need_not_be_text(tmp_path):
    name = os.fsdecode(b"caf\xe9.mp3")
    with Mix(tmp_path / name) as mix:
        mix.hear(tone(1.0, 0.1))
        mix.say(0.0, tone(1.0, 0.1))
    assert os.listdir(tmp_path) == [name]

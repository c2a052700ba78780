"""Speech into files: where it is placed, what is kept, what is said when it cannot be written."""

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.voices import Narration
from tests.voices.fakes import ToneVoice


def hear_silence(narration, seconds):
    for _ in range(round(seconds)):
        narration.hear(np.zeros(RATE, np.float32))


def loud_spans(samples, rate):
    """Where there is sound, in seconds; gaps shorter than 10 ms do not count."""
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    cuts = np.flatnonzero(np.diff(loud) > 0.01 * rate)
    starts, ends = loud[np.r_[0, cuts + 1]], loud[np.r_[cuts, len(loud) - 1]]
    return [(start / rate, end / rate) for start, end in zip(starts, ends, strict=True)]


def test_phrases_lie_at_their_moments_in_both_files(tmp_path):
    voice = ToneVoice(seconds_per_character=0.1)
    with Narration(voice, tmp_path / "speech.wav", tmp_path / "mix.wav") as narration:
        hear_silence(narration, 1)
        narration.say("abcdefghi.", at_ms=1000)  # one second
        hear_silence(narration, 1)
        narration.say("abcdefghi.", at_ms=2500)
        hear_silence(narration, 3)
    speech, rate = soundfile.read(tmp_path / "speech.wav")
    mix, mix_rate = soundfile.read(tmp_path / "mix.wav")
    assert (rate, mix_rate) == (voice.rate, RATE)
    assert len(speech) / rate == len(mix) / mix_rate == 5.0
    for spans in (loud_spans(speech, rate), loud_spans(mix[:, 1], mix_rate)):
        assert np.allclose(spans, [(1.0, 2.0), (2.5, 3.5)], atol=0.01)
    assert not mix[:, 0].any()


def test_the_speaker_is_on_the_left_bit_for_bit(tmp_path):
    source = (np.arange(2 * RATE) % 100 / 200).astype(np.float32)
    with Narration(ToneVoice(), mix=tmp_path / "mix.wav") as narration:
        for start in range(0, len(source), 3000):
            narration.hear(source[start : start + 3000])
            narration.say("so", at_ms=1000 * (start + 3000) / RATE)
    mix, _ = soundfile.read(tmp_path / "mix.wav", dtype="float32")
    assert np.allclose(mix[: len(source), 0], source, atol=1 / 32000)
    assert not mix[len(source) :, 0].any()


def test_late_speech_is_faster_and_never_overlaps(tmp_path):
    voice = ToneVoice(seconds_per_character=0.2)
    with Narration(voice, tmp_path / "speech.wav") as narration:
        for second in range(20):
            narration.say("abcdefghi.", at_ms=1000 * second)
    speeds = [speed for _, speed in voice.spoken]
    assert speeds[0] == 1.0
    assert max(speeds) == pytest.approx(1.4)
    spoken = sum(len(text) * 0.2 / speed for text, speed in voice.spoken)
    speech, rate = soundfile.read(tmp_path / "speech.wav")
    assert len(speech) / rate == pytest.approx(spoken, abs=0.01)
    assert "".join(text for text, _ in voice.spoken).count("i.") == 20


def test_the_same_talk_gives_the_same_bytes_however_it_is_cut(tmp_path):
    def perform(name, step):
        with Narration(ToneVoice(), tmp_path / name, tmp_path / f"mix-{name}") as narration:
            heard = 0
            while heard < 3 * RATE:
                narration.hear(np.zeros(step, np.float32))
                heard += step
                if heard in (RATE, 2 * RATE, 3 * RATE):
                    narration.say("some words", at_ms=1000 * heard / RATE)
        return (tmp_path / name).read_bytes() + (tmp_path / f"mix-{name}").read_bytes()

    assert perform("a.wav", 1600) == perform("b.wav", 16000)


def test_ten_minutes_are_written_in_flat_memory(tmp_path):
    """What waits to be written never grows."""
    import tracemalloc

    voice = ToneVoice(rate=8000)
    silence = np.zeros(5 * RATE, np.float32)
    with Narration(voice, tmp_path / "speech.wav", tmp_path / "mix.wav") as narration:
        tracemalloc.start()
        for step in range(120):
            narration.hear(silence)
            narration.say("five more seconds.", at_ms=5000.0 * (step + 1))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 6e6  # the mix alone is 38 MB
    assert soundfile.info(tmp_path / "mix.wav").duration >= 600


def talk_that_ends_with(error, narration):
    with narration:
        narration.say("said.", at_ms=0)
        narration.say("and said.", at_ms=3000)
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, DragomanError])
def test_what_was_said_is_kept_when_the_talk_ends_early(tmp_path, error):
    with pytest.raises(error):
        talk_that_ends_with(error, Narration(ToneVoice(), tmp_path / "speech.wav"))
    samples, rate = soundfile.read(tmp_path / "speech.wav")
    assert len(loud_spans(samples, rate)) == 2


def test_a_bug_leaves_no_files(tmp_path):
    narration = Narration(ToneVoice(), tmp_path / "speech.wav", tmp_path / "mix.wav")
    with pytest.raises(ZeroDivisionError):
        talk_that_ends_with(ZeroDivisionError, narration)
    assert list(tmp_path.iterdir()) == []


def test_a_voice_that_fails_at_once_ends_the_talk(tmp_path):
    narration = Narration(ToneVoice(fails_from=0), tmp_path / "speech.wav")
    with pytest.raises(DragomanError, match="no breath"):
        talk_that_ends_with(AssertionError("it went on"), narration)
    assert list(tmp_path.iterdir()) == []


def test_whatever_a_voice_raises_is_a_sentence(tmp_path):
    class Broken(ToneVoice):
        def speak(self, text, speed=1.0):
            raise RuntimeError("bad tensor")

    with pytest.raises(DragomanError, match=r"The voice 'tone' failed: bad tensor\."):
        talk_that_ends_with(None, Narration(Broken(), tmp_path / "speech.wav"))


def test_a_voice_that_fails_later_spoils_neither_text_nor_file(tmp_path):
    voice = ToneVoice(fails_from=1)
    narration = Narration(voice, tmp_path / "speech.wav")
    for second in range(100):
        narration.say("word.", at_ms=1000 * second)
    with pytest.raises(DragomanError, match=r"From 0:01 on nothing is spoken: .*no breath"):
        narration.close()
    samples, rate = soundfile.read(tmp_path / "speech.wav")
    assert len(loud_spans(samples, rate)) == 1


@pytest.mark.parametrize("which", ["speak", "mix"])
def test_an_unwritable_output_is_a_sentence(tmp_path, which):
    with pytest.raises(DragomanError, match=r"gone.x\.wav cannot be written: No such file"):
        Narration(ToneVoice(), **{"speak": tmp_path / "ok.wav", "mix": tmp_path / "ok2.wav",
                                  which: tmp_path / "gone" / "x.wav"})  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_both_into_one_file_is_refused(tmp_path):
    with pytest.raises(DragomanError, match="cannot both be written"):
        Narration(ToneVoice(), tmp_path / "x.wav", tmp_path / "x.wav")

"""Speech into files: where it is placed, what is kept, what is said when it cannot be written."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.voices import Narration, Pace
from dragoman.voices import narration as narration_module
from dragoman.voices.narration import BEHIND, LONG_SILENCE, SILENCE, SMOOTH
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


def narrate(talk, seconds=0.0, voice=None, pace=None):
    """Phrases spoken for words that come as (moment, end, text), in a talk of some seconds."""
    narration = Narration(voice or ToneVoice(seconds_per_character=0.05), pace=pace)
    narration.hear(np.zeros(round(seconds * RATE), np.float32))
    for at, end, text in talk:
        narration.say(text, 1000 * at, 1000 * end)
    narration.close()
    return narration.phrases


def told(talk, seconds=0.0, **how):
    return [phrase.text for phrase in narrate(talk, seconds, **how)]


def in_turn(text, start=0.0, pace=0.3):
    return [
        (start + pace * n, start + pace * (n + 1), f" {word}")
        for n, word in enumerate(text.split())
    ]


def test_a_date_is_spoken_in_one_breath():
    """A voice reads the 8. as an ordinal only if it sees what follows."""
    voice = ToneVoice()
    voice.languages = ("de",)
    text = "Es war am 8. September soweit."
    assert told(in_turn(text), voice=voice) == [text]
    voice.languages = ()  # somebody's own
    assert told(in_turn(text), voice=voice) == ["Es war am 8.", "September soweit."]


@pytest.mark.parametrize(
    "text",
    [
        "Das kostet z. B. Herrn Meier viel Geld.",
        "Das kostet ca. 5 Mio. Euro im Jahr.",
        "So will es der Art. 5 der Verordnung.",
        "Wir suchten bei Yahoo! und fanden nichts.",
    ],
)
def test_what_is_shortened_is_spoken_with_what_follows(text):
    voice = ToneVoice()
    voice.languages = ("de",)
    assert told(in_turn(text), voice=voice) == [text]


def test_phrases_lie_at_their_moments_in_both_files(tmp_path):
    voice = ToneVoice(seconds_per_character=0.1)
    with Narration(voice, tmp_path / "speech.wav", tmp_path / "mix.wav") as narration:
        hear_silence(narration, 5)
        narration.say("a b fghi.", at_ms=1000)  # 0.9 seconds
        narration.say("a b fghi.", at_ms=2500)
    speech, rate = soundfile.read(tmp_path / "speech.wav")
    mix, mix_rate = soundfile.read(tmp_path / "mix.wav")
    assert (rate, mix_rate) == (voice.rate, RATE)
    assert len(speech) / rate == len(mix) / mix_rate == 5.0
    for spans in (loud_spans(speech, rate), loud_spans(mix[:, 1], mix_rate)):
        assert np.allclose(spans, [(1.5, 2.4), (3.0, 3.9)], atol=0.01)
    assert not mix[:, 0].any()


def test_the_speaker_is_on_the_left_and_lowered_only_if_wanted(tmp_path):
    source = (0.1 * np.sin(np.arange(4 * RATE) / 10)).astype(np.float32)
    for name, how in (("as-is.wav", {"duck_db": 0}), ("lowered.wav", {})):
        with Narration(ToneVoice(), mix=tmp_path / name, **how) as narration:
            narration.hear(source)
            narration.say("These words take about one second.", at_ms=500)
    as_is, _ = soundfile.read(tmp_path / "as-is.wav", dtype="float32")
    lowered, _ = soundfile.read(tmp_path / "lowered.wav", dtype="float32")
    assert np.allclose(as_is[:, 0], source, atol=1 / 32000)
    during, after = slice(RATE, 2 * RATE), slice(3 * RATE, 4 * RATE)
    assert lowered[during, 0].std() == pytest.approx(lowered[after, 0].std() / 4, rel=0.02)


def test_the_machine_and_the_steps_change_nothing(tmp_path):
    """The same talk in any steps is the same bytes: nothing depends on when work was done."""

    def perform(name, step):
        with Narration(ToneVoice(), tmp_path / name, tmp_path / f"mix-{name}") as narration:
            for _ in range(3 * RATE // step):
                narration.hear(np.zeros(step, np.float32))
            for number in range(9):
                narration.say(" some words", at_ms=300 * number)
        return [(tmp_path / n).read_bytes() for n in (name, f"mix-{name}")]

    assert perform("a.wav", 1000) == perform("b.wav", 16000)


def test_sentences_are_spoken_not_words():
    talk = in_turn("There was absolutely no reason to tell. They are in the water.")
    assert told(talk) == ["There was absolutely no reason to tell.", "They are in the water."]


def test_a_phrase_begins_just_after_the_speaker_began_it():
    talk = [*in_turn("There was no reason to tell.", 2.0), *in_turn("They are here.", 8.0)]
    assert [phrase.start for phrase in narrate(talk, 12.0)] == [2.5, 8.5]


def test_a_stop_that_comes_late_ends_its_sentence_and_is_no_phrase():
    talk = [*in_turn("They were all found"), (1.2, 5.0, "."), *in_turn("They are here.", 5.0)]
    assert told(talk) == ["They were all found.", "They are here."]


def test_a_very_short_sentence_is_spoken_with_the_next_unless_it_is_far():
    assert told(in_turn("Yes. I think it is so.")) == ["Yes. I think it is so."]
    far = [(0.0, 0.3, "Yes."), *in_turn("I think it is so.", 0.3 + LONG_SILENCE)]
    assert told(far) == ["Yes.", "I think it is so."]


def test_a_silence_ends_a_phrase_and_is_measured_from_the_end_of_a_word():
    paused = [*in_turn("one two three"), *in_turn("and five six", 0.9 + SILENCE)]
    assert told(paused) == ["one two three", "and five six"]
    drawn_out = [
        (0.0, 0.3, "one"),
        (0.3, 0.6, " two"),
        (0.6, 3.0, " threeeee"),
        (3.1, 3.4, " four"),
    ]
    assert told(drawn_out) == ["one two threeeee four"]
    long_next = [*in_turn("one two three"), (1.0, 4.0, " foooour")]
    assert told(long_next) == ["one two three foooour"]


@pytest.mark.parametrize("text", ["I spoke against| the report", "All is| well"])
def test_a_silence_tears_nothing_apart_unless_it_is_long(text):
    """Where a model looks is known roughly: such a silence need not be one of the speaker's."""
    first, second = text.split("|")
    begin = 0.3 * len(first.split())
    for silence, phrases in ((2.0, 1), (LONG_SILENCE, 2)):
        talk = [*in_turn(first), *in_turn(second, begin + silence)]
        assert len(told(talk, pace=Pace(few=2))) == phrases


def test_a_long_clause_ends_a_phrase():
    clause = "When all of the members had finally taken their seats again,"
    assert told(in_turn(f"{clause} the session began.")) == [clause, "the session began."]
    assert told(in_turn("When they sat, the session began.")) == [
        "When they sat, the session began."
    ]


def test_a_sentence_without_end_is_cut_at_a_late_comma_or_the_best_place(monkeypatch):
    monkeypatch.setattr(narration_module, "LONGEST", 50)
    talk = in_turn("one two three, four five six, seven eight nine ten eleven twelve")
    assert told(talk) == ["one two three, four five six,", "seven eight nine ten eleven twelve"]
    talk = in_turn("one two three, four five six seven eight, nine ten eleven")
    # What follows is a phrase, too.
    assert told(talk) == ["one two three,", "four five six seven eight, nine ten eleven"]
    talk = in_turn("one two three four of the five six seven eight nine ten")
    assert told(talk) == ["one two three four", "of the five six seven eight nine ten"]


def test_a_part_of_a_sentence_has_room_until_the_next_part_begins(monkeypatch):
    monkeypatch.setattr(narration_module, "LONGEST", 50)
    rest = "four five six seven eight, nine ten eleven"
    talk = [*in_turn("one two three,"), *in_turn(rest, 1.6)]
    phrases = narrate(talk, 9.0, ToneVoice(seconds_per_character=0.12))
    assert [phrase.text for phrase in phrases] == ["one two three,", rest]
    assert phrases[0].speed == 1.0  # 1.7 s of speech before 1.6 s, half a second later and late


def test_the_longest_phrase_is_not_cut(monkeypatch):
    text = "one two three four of the five six seven eight"
    monkeypatch.setattr(narration_module, "LONGEST", len(text))
    assert told(in_turn(text)) == [text]
    monkeypatch.setattr(narration_module, "LONGEST", len(text) - 1)
    assert len(told(in_turn(text))) == 2


@pytest.mark.parametrize("before", ["", "one ", "one two "])
def test_a_word_longer_than_a_phrase_is_spoken(before):
    word = "a" * (narration_module.LONGEST + 1)
    assert " ".join(told(in_turn(f"{before}{word} three four"))) == f"{before}{word} three four"


def test_speech_longer_than_the_speakers_is_faster_but_never_overlaps_nor_gets_lost():
    voice = ToneVoice(seconds_per_character=0.12)
    talk = [w for n in range(20) for w in in_turn("These are just so many.", 1.5 * n)]
    phrases = narrate(talk, 30.0, voice)
    ends = [p.start + len(p.text) * 0.12 / p.speed for p in phrases]
    for end, after in zip(ends, phrases[1:], strict=False):
        assert after.start >= end - 1e-3
    assert max(p.speed for p in phrases) == Pace().fastest
    assert " ".join(p.text for p in phrases).count("many.") == 20


def test_a_phrase_has_to_end_before_the_next_begins_not_before_its_first_word_ends():
    voice = ToneVoice(seconds_per_character=0.12)
    talk = [*in_turn("These are just so many."), (1.5, 9.0, " Weeeell"), (9.0, 9.3, " yes it is.")]
    assert narrate(talk, 12.0, voice)[0].speed > 1.1


def test_speech_that_has_room_is_not_hurried():
    talk = [w for n in range(5) for w in in_turn("These are just so many.", 4.0 * n)]
    assert {phrase.speed for phrase in narrate(talk, 20.0)} == {1.0}
    assert narrate(in_turn("These are just so many."))[0].speed == 1.0  # nobody heard the speaker


def test_the_speed_changes_smoothly_and_comes_back():
    voice = ToneVoice(seconds_per_character=0.12)
    dense = [w for n in range(6) for w in in_turn("These are just so many.", 1.5 * n)]
    sparse = [w for n in range(6) for w in in_turn("These are just so many.", 20 + 9.0 * n)]
    speeds = [phrase.speed for phrase in narrate(dense + sparse, 80.0, voice)]
    assert all(abs(a - b) <= SMOOTH + 1e-9 for a, b in pairwise(speeds))
    assert speeds[0] > 1.0
    assert speeds[-1] == 1.0


@pytest.mark.parametrize("length", [0.05, 0.065])
def test_the_dub_ends_with_the_talk_where_the_language_allows(length):
    """Sixty sentences of a speaker who never pauses, in a language that is somewhat longer."""
    sentence = "We have to decide today whether it is built."
    talk = [w for n in range(60) for w in in_turn(sentence, 2.7 * n)]
    phrases = narrate(talk, 60 * 2.7, ToneVoice(seconds_per_character=length))
    end = phrases[-1].start + len(phrases[-1].text) * length / phrases[-1].speed
    assert end - 60 * 2.7 < 1.05
    assert max(phrase.start - phrase.at for phrase in phrases) < 1.5


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.floats(0, 1), st.text("abc .,?", min_size=1, max_size=12)),
        max_size=30,
    )
)
def test_nothing_is_lost_overlaps_or_comes_before_its_time(steps):
    now, talk = 0.0, []
    for wait, length, text in steps:
        now += wait
        talk.append((now, now + length, text))
    phrases = narrate(talk, now)
    said = [(at, letter) for at, _, text in talk for letter in text if letter.isalnum()]
    spoken = [(p.start, letter) for p in phrases for letter in p.text if letter.isalnum()]
    assert [letter for _, letter in spoken] == [letter for _, letter in said]
    for (at, _), phrase in zip(said[:1], phrases[:1], strict=False):
        assert phrase.start == pytest.approx(at + BEHIND)
    free = 0.0
    for phrase in phrases:
        assert phrase.start >= max(free, phrase.at + BEHIND) - 1e-3
        assert 1.0 <= phrase.speed <= Pace().fastest
        free = phrase.start + len(phrase.text) * 0.05 / phrase.speed


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
        narration.say("It was said.", at_ms=0)
        narration.say("and it was said.", at_ms=3000)
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
        narration.say("one more word.", at_ms=1000 * second)
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


KILLED = """
import os, signal, sys
import numpy as np
from dragoman.voices import Narration
from tests.voices.fakes import ToneVoice

narration = Narration(ToneVoice(), sys.argv[2], sys.argv[3])
narration.hear(np.zeros(16000, np.float32))
if sys.argv[1] == "mixing":
    narration._mix._speaker.close()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["speaking", "mixing"])
@pytest.mark.parametrize("mix", ["mix.wav", f"{'ü' * 125}.wav"])
def test_what_a_killed_process_left_is_removed_when_the_files_are_written_again(
    tmp_path, moment, mix
):
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    killed = [sys.executable, "-c", KILLED, moment, "speech.wav", mix]
    subprocess.run(killed, cwd=tmp_path, env=environment)
    assert len(list(tmp_path.iterdir())) == 3
    others = [tmp_path / name for name in (".other.wav.0.1.tmp", f".mix.wav.0.{os.getpid()}.tmp")]
    for other in others:  # of another file, and of a process that lives
        other.touch()
    with Narration(ToneVoice(), tmp_path / "speech.wav", tmp_path / mix) as narration:
        narration.hear(np.zeros(RATE, np.float32))
    wanted = {"speech.wav", mix, *(other.name for other in others)}
    assert {path.name for path in tmp_path.iterdir()} == wanted

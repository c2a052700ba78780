"""What a crash leaves of captions is gone on with where no word is lost, fast as one may speak."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.caption_files import CaptionFile, read_captions
from dragoman.text.captions import Cue, TimedWord
from dragoman.text.going_on import in_time, last_sentence


def talk(paces):
    """Sentences of seven words, each at its own pace in characters a second, and when all of their
    words are spoken."""
    now, words = 0.0, []
    for number, pace in enumerate(paces):
        for text in (f"S{number}", "is", "a", "sentence", "of", "many", f"words{number}."):
            seconds = (len(text) + 1) / pace
            words.append(TimedWord(text, now, now + seconds))
            now += seconds
    return words


def broken_off(path, words, **how):
    """The cues of a file that nobody has closed."""
    file = CaptionFile(path, **how)
    for word in words:
        file.say(word)
    return read_captions(path)


def texts(cues):
    return [word for cue in cues for line in cue.lines for word in line.split()]


@settings(max_examples=50)
@given(st.lists(st.sampled_from([8.0, 14.0, 20.0, 26.0]), min_size=3, max_size=20))
def test_all_that_was_spoken_before_the_place_is_kept_and_nothing_after_it(paces):
    words = talk(paces)
    with tempfile.TemporaryDirectory() as folder:
        kept = broken_off(Path(folder) / "a.srt", words)
    place = last_sentence(kept.cues, "en")
    begin = place.moment + 0.3 if place.moment else 0.0
    before = [word.text for word in words if word.end <= begin + 0.001]
    assert texts(kept.before(place.moment).cues) == before
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "a.srt"
        again.write_text(kept.before(place.moment).text)
        assert read_captions(again) == kept.before(place.moment)  # whole cues, and no more
    assert place.words == tuple(before[-1:])


def test_it_is_the_last_sentence_of_a_speaker_who_takes_his_time(tmp_path):
    words = talk([12.0] * 9)
    kept = broken_off(tmp_path / "a.srt", words)
    assert last_sentence(kept.cues, "en").moment == pytest.approx(words[-14].start - 0.3, abs=0.01)


def test_a_moment_at_which_cues_are_late_is_put_off_to_an_earlier_one(tmp_path):
    words = talk([12.0] * 4 + [30.0] * 6)
    kept = broken_off(tmp_path / "a.srt", words)
    late = kept.cues[-2]
    assert in_time(kept.cues, late.start - 0.3) == pytest.approx(words[28].start - 0.3, abs=0.01)
    assert in_time(kept.cues, words[14].start) == words[14].start
    assert in_time(kept.cues, 1000.0) == 1000.0


def test_of_two_languages_the_longer_line_tells_how_long_a_cue_has_to_stay():
    first = Cue(0.0, 3.0, ("a" * 39 + ".", "b" * 39 + "."))
    cues = [first, Cue(3.0, 5.0, ("More.", "Mehr."))]
    assert last_sentence(cues, "en", both=True).moment == 2.7
    assert last_sentence(cues, "en").moment == 0.0  # two lines of one language take four seconds


def test_a_number_that_goes_on_ends_no_sentence():
    cues = [Cue(0.0, 4.0, ("Es war am 8.",)), Cue(4.0, 6.0, ("September.",))]
    assert last_sentence(cues, "de").moment == 0.0
    assert last_sentence(cues, "en").moment == 3.7


def test_without_cues_one_begins_anew():
    assert last_sentence([], "en").moment == 0.0
    assert in_time([], 3.0) == 3.0


def test_the_word_before_the_place_is_one_that_was_spoken():
    cues = (Cue(0.0, 2.0, ("C’est vraiment vrai !",)), Cue(5.0, 6.0, ("Oui.",)))
    assert last_sentence(cues, "fr").words == ("vrai",)
    cues = (Cue(0.0, 2.0, ("今天很好。",)), Cue(5.0, 6.0, ("是。",)))
    assert last_sentence(cues, "zh").words == ("好",)

"""Words that wait: how texts are joined, and where they may be cut."""

from dragoman.voices.phrases import Words, best_stop, text_of


def joined(*texts):
    words = Words()
    for moment, text in enumerate(texts):
        words.append(words.add(text, float(moment)))
    return text_of(words.waiting)


def test_a_space_stands_between_texts_unless_both_scripts_have_none():
    assert joined("会议", "开始") == "会议开始"
    assert joined("会议", "Zoom") == "会议 Zoom"
    assert joined("Zoom", "会议") == "Zoom 会议"
    assert joined("Zoom 会议", "开始") == "Zoom 会议开始"
    assert joined("会议 Zoom", "call") == "会议 Zoom call"
    assert joined("Yes", ", of course") == "Yes, of course"


def stop_of(text, few, following="", language=""):
    words = Words(language)
    return best_stop(words.add(text, 0.0), few, following)


def test_the_best_place_to_stop_leaves_no_fragment():
    """After a comma it would be best, but that is a fragment; then before the preposition."""
    assert stop_of("Yes, they all met in the old house", few=1) == 1
    assert stop_of("Yes, they all met in the old house", few=3) == 4


def test_words_that_are_fewer_than_a_phrase_are_spoken_together():
    assert stop_of("Yes, sir", few=3) == 2


def test_nobody_stops_between_an_ordinal_and_its_noun():
    assert stop_of("Er kam am 8. September", few=3, language="en") == 4
    assert stop_of("Er kam am 8. September", few=3, language="de") == 5


def test_the_word_that_follows_counts():
    assert stop_of("They all met in", few=3, following="the") == 3
    assert stop_of("They all met there", few=3, following="in") == 4

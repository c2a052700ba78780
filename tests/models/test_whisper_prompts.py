"""What Whisper's search is told, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.audio.ear import Voice
from dragoman.errors import DragomanError
from dragoman.models import Ask, Draft, Sound
from dragoman.models.search import Found
from dragoman.models.whisper import engine
from dragoman.models.whisper import model as module
from dragoman.models.whisper.model import WhisperModel
from dragoman.models.whisper.tokens import ENGLISH_ONLY_END

from .toy_whisper import ToyEngine, tones, vocabulary

SPEAKING = Voice(spoken=True, speaking=True, silence_ms=0.0)
TEN, TWENTY = 10 + 7 * 2, 10 + 20 * 2  # of two seconds: seven tokens each in English, else twenty


def heard(words=(1, 2), source="de", target="en", words_of=None, **more):
    """A model, its diary and a stream that has heard some words, a second each."""
    model = WhisperModel("toy", ToyEngine(), words_of or vocabulary(), **more)
    stream = model.open(source, target)
    model.hear([stream], [Sound(tones(words), SPEAKING)])
    return model, model._engine.prompts, stream


@pytest.mark.parametrize(
    ("target", "ask", "most"),
    [
        ("en", Ask(), TEN),
        ("de", Ask(), TWENTY),
        ("en", Ask(max_tokens=3), 3),
        ("en", Ask(max_tokens=500), TEN),
        ("en", Ask(max_tokens=0), 0),
    ],
)
def test_as_many_tokens_as_fit_and_as_are_wanted(target, ask, most):
    model, prompts, stream = heard(target=target)
    model.draft([stream], [ask])
    assert prompts[-1][0].most == most


def test_what_was_said_and_settled_counts():
    model, prompts, stream = heard()
    stream.window.said, stream.window.looks = [1], [500.0]
    stream.window.settled = Draft((7, 8), log_probs=(-0.1, -0.1))
    model.draft([stream], [Ask()])
    assert (prompts[-1][0].most, prompts[-1][0].said) == (TEN - 1, (1,))
    model.draft([stream], [Ask(final=True, max_tokens=5)])
    assert prompts[-1][0].most == 3
    assert prompts[-1][0].context == ()
    stream.window.before = [4, 5]
    model.draft([stream], [Ask(final=True)])
    assert prompts[-1][0].context == (vocabulary().previous, 4, 5)


class Parrot(ToyEngine):
    """Says again what was said before, if that is a sentence about many things."""

    def _speak(self, states, prompt):
        known = prompt.context[1:]
        if len(known) < 10:
            return super()._speak(states, prompt)
        looks = tuple(np.eye(len(states), dtype=np.float32)[:1]) * len(known)
        return Found(known, (-0.1,) * len(known), looks, ended=True)


def test_what_leads_astray_is_forgotten():
    """Of the others nothing is searched again, and they keep what they know."""
    model = WhisperModel("toy", Parrot(), vocabulary())
    streams = [model.open("de", "en") for _ in range(3)]
    model.hear(streams, [Sound(tones([1, 2]), SPEAKING)] * 3)
    long, short = [*range(4, 16)], [4, 5]
    for stream, before in zip(streams, (short, long, []), strict=True):
        stream.window.before = [*before]
    drafts = model.draft(streams, [Ask(), Ask(hasty=True), Ask()])
    assert [draft.text for draft in drafts] == [" w1 w2"] * 3
    contexts = [(prompt.context[1:], beams) for prompt, beams in model._engine.prompts]
    assert sorted(contexts[:3]) == [((), 5), ((4, 5), 5), (tuple(long), 1)]
    assert contexts[3:] == [((), 1)]
    assert [stream.window.before for stream in streams] == [short, [], []]


def test_what_leads_astray_is_forgotten_where_a_part_is_drafted_for_good():
    model = WhisperModel("toy", Parrot(), vocabulary())
    stream = model.open("de", "en")
    stream.window.before = [*range(4, 16)]
    model.hear([stream], [Sound(tones([*range(20), *range(8)]), SPEAKING)])  # longer than a window
    assert stream.window.settled.tokens[:5] == (0, 1, 2, 3, 4)
    assert [len(prompt.context) for prompt, _ in model._engine.prompts[:2]] == [13, 0]


@pytest.mark.parametrize(
    ("beams", "ask", "guess"),
    [
        (1, Ask(), (3, 4, 5)),
        (1, Ask(max_tokens=5), (3, 4)),  # two have settled; the last token is the search's own
        (1, Ask(max_tokens=3), ()),
        (1, Ask(max_tokens=1), ()),
        (5, Ask(), ()),  # several texts follow no guess
        (5, Ask(hasty=True), (3, 4, 5)),
    ],
)
def test_one_text_follows_what_was_drafted_before(beams, ask, guess):
    model, prompts, stream = heard(beams=beams)
    stream.window.settled = Draft((1, 2), log_probs=(-0.1, -0.1))
    stream.window.rest = Draft((1, 2, 3, 4, 5))
    model.draft([stream], [ask])
    assert prompts[-1][0].guess == guess


def test_drafts_of_many_and_of_few_beams_are_each_their_own():
    model = WhisperModel("toy", ToyEngine(), vocabulary(), beams=2, final_beams=4)
    streams = [model.open("de", "en") for _ in range(4)]
    model.hear(streams, [Sound(tones([word]), SPEAKING) for word in range(4)])
    asks = [Ask(), Ask(final=True), Ask(hasty=True), Ask(final=True, hasty=True)]
    drafts = model.draft(streams, asks)
    assert [draft.text.strip(" .") for draft in drafts] == ["w0", "w1", "w2", "w3"]
    assert sorted(beams for _, beams in model._engine.prompts) == [1, 1, 2, 4]


@pytest.mark.parametrize(
    ("ask", "least"),
    [(Ask(), 3), (Ask(max_tokens=2), 2), (Ask(max_tokens=0), 0), (Ask(final=True), 0)],
)
def test_in_a_stall_a_text_may_not_end_at_once(ask, least):
    model, prompts, stream = heard()
    model.draft([stream], [ask])
    assert prompts[-1][0].least == 0
    stream.mute_from, stream.fresh = 0.0, True  # for two seconds nothing was said
    model.draft([stream], [ask])
    assert prompts[-1][0].least == least


def test_a_model_of_english_is_told_no_language():
    english = replace(vocabulary(), end=ENGLISH_ONLY_END)
    model, prompts, stream = heard(source="en", words_of=english)
    model.draft([stream], [Ask()])
    assert prompts[-1][0].start == (english.start, english.no_times)


@pytest.mark.parametrize(("source", "most"), [("de", TWENTY), ("en", TEN)])
def test_the_source_is_written_down_in_its_own_language(source, most):
    model = WhisperModel("toy", ToyEngine(), vocabulary())
    stream = model.open(source, "en", transcript=True)
    model.hear([stream], [Sound(tones([1, 2]), SPEAKING)])
    v, ((prompt, beams),) = vocabulary(), model._engine.prompts
    assert (prompt.start, beams) == ((v.start, v.languages[source], v.transcribe, v.no_times), 1)
    assert (prompt.most, prompt.guess) == (most, ())
    assert stream.words_heard == 2
    written = stream.writes.tokens
    model.hear([stream], [Sound(tones([3]), SPEAKING)])
    assert model._engine.prompts[-1][0].guess == written
    assert stream.words_heard == 3


def test_where_nothing_is_new_nothing_is_encoded():
    model, _, stream = heard()
    assert model._engine.batches == [1]
    model.encode([stream], [False])
    assert model._engine.batches == [1]


def test_a_model_that_only_writes_down_knows_its_one_language():
    english = replace(vocabulary(), languages={"en": 23})
    model = WhisperModel("toy", ToyEngine(), english, translates=False)
    stream = model.open(None, "en")
    assert (stream.language, stream.detects) == ("en", False)
    several = WhisperModel("toy", ToyEngine(), vocabulary(), translates=False)
    assert several.open("de", "de").target == "de"
    with pytest.raises(DragomanError, match="was not trained to translate"):
        several.open(None, "en")
    with pytest.raises(DragomanError, match="from 'de' into 'ja'"):
        heard(target="ja")
    with pytest.raises(DragomanError, match="from a language to be detected into 'ja'"):
        heard(source=None, target="ja")


def test_where_no_transcript_is_wanted_nobody_writes_one_down(monkeypatch):
    model = WhisperModel("toy", ToyEngine(), vocabulary())
    monkeypatch.setattr(model._engine, "speak", None)
    stream = model.open("de", "en")
    model.hear([stream], [Sound(tones([1, 2]), SPEAKING)])
    assert (stream.words_heard, stream.writes) == (0, None)


def test_what_is_written_down_does_not_loop():
    class Looping(ToyEngine):
        def speak(self, states, prompts, beams):
            (found,) = super().speak(states, prompts, beams)
            return [replace(found, tokens=(3,) * 6, looks=found.looks[:1] * 6)]

    model = WhisperModel("toy", Looping(), vocabulary())
    stream = model.open("de", "en", transcript=True)
    model.hear([stream], [Sound(tones([3, 4]), SPEAKING)])
    assert (stream.words_heard, stream.writes.tokens) == (1, (3,))


def test_a_guess_leaves_a_token_to_the_search():
    model, prompts, stream = heard(beams=1)
    stream.window.rest = Draft(tuple(range(99)))
    model.draft([stream], [Ask()])
    assert prompts[-1][0].guess == tuple(range(TEN - 1))
    stream = model.open("en", "en", transcript=True)
    stream.writes.tokens = tuple(range(99))
    model.hear([stream], [Sound(tones([1, 2]), SPEAKING)])
    assert prompts[-1][0].guess == tuple(range(TEN - 1))


def test_nobody_is_asked_for_less_than_nothing():
    model, prompts, stream = heard()
    stream.window.settled = Draft((7, 8), log_probs=(-0.1, -0.1))
    model.draft([stream], [Ask(max_tokens=1)])
    assert prompts[-1][0].most == 0


@pytest.mark.parametrize("avoid_end", [True, False])
def test_the_end_is_avoided_where_that_is_wanted(avoid_end):
    model, prompts, stream = heard()
    model.draft([stream], [Ask(avoid_end=avoid_end)])
    assert prompts[-1][0].avoid_end is avoid_end


def test_five_texts_are_followed_unless_that_is_told():
    model, prompts, stream = heard()
    model.draft([stream], [Ask()])
    model.draft([stream], [Ask(final=True)])
    assert [beams for _, beams in prompts] == [5, 5]


def test_the_first_part_of_a_full_window_is_searched_with_care():
    model = WhisperModel("toy", ToyEngine(), vocabulary(), beams=1, final_beams=4)
    stream = model.open(None, "en", transcript=True)
    model.hear([stream], [Sound(tones([*range(20), *range(7)]), SPEAKING, look=False)])
    v, (transcript, part) = vocabulary(), model._engine.prompts
    assert (transcript[1], part[1]) == (1, 4)
    assert part[0].start == (v.start, v.languages["de"], v.translate, v.no_times)  # detected
    assert 13_500 <= stream.start_ms < 27_000
    assert stream.words_heard == len(stream.transcript) > 12
    assert stream.transcript[:3] == (" w0", " w1", " w2")


class Polyglot(ToyEngine):
    """Takes a window for Japanese if it begins with w1, else for German."""

    def languages(self, states):
        first = [state[10].argmax() for state in states]
        low = self.encode_word(1)
        return [{"de": 0.4, "ja": 0.6 if band == low else 0.1} for band in first]

    def encode_word(self, word):
        mel = self.new_mel()
        mel.hear(tones([word]))
        return mel.window(0)[:, 20].argmax()


def test_languages_are_found_out_of_each_until_something_was_said():
    model = WhisperModel("toy", Polyglot(), vocabulary())
    streams = [model.open(source, "en") for source in ("en", None, None)]
    model.hear(streams, [Sound(tones([word]), SPEAKING) for word in (1, 1, 5)])
    assert [stream.language for stream in streams] == ["en", "ja", "de"]
    for stream in streams[1:]:
        stream.forget(stream.heard_ms)
    streams[1].window.said, streams[1].window.looks = [1], [500.0]
    model.hear(streams[1:], [Sound(tones([word]), SPEAKING) for word in (5, 1)])
    assert [stream.language for stream in streams] == ["en", "ja", "ja"]  # the first was believed


def hears(whisper, stream, likely: float, seconds: int) -> str:
    """What is drafted of more words, a second each, in sound that is so likely English."""
    whisper._engine.languages = lambda states: [{"en": likely, "de": 1 - likely}] * len(states)
    first = round(stream.heard_ms / 1000)
    words = list(range(first, first + seconds))
    whisper.hear([stream], [Sound(tones(words), SPEAKING)])
    (draft,) = whisper.draft([stream], [Ask()])
    whisper.commit(stream, draft, 0)
    return draft.text


def test_what_is_in_another_language_than_was_told_is_not_written_down():
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    stream = whisper.open("en", "en")
    assert hears(whisper, stream, 0.01, 2).count("w") == 2  # too little to tell
    assert hears(whisper, stream, 0.01, 2) == ""
    assert stream.language is None
    asked = len(whisper._engine.prompts)
    assert hears(whisper, stream, 0.02, 1) == ""
    assert len(whisper._engine.prompts) == asked  # no search is paid
    assert hears(whisper, stream, 0.06, 1).count("w") == 6  # nothing that was heard is lost
    assert stream.language == "en"
    assert hears(whisper, stream, 0.0, 1).count("w") == 7  # a window is judged once
    stream.forget(4000.0)
    assert hears(whisper, stream, 0.0, 1) == ""  # and the next one again


def test_who_spoke_another_language_is_judged_by_little():
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    stream = whisper.open("en", "en")
    assert hears(whisper, stream, 0.0, 4) == ""
    stream.forget(stream.heard_ms)
    assert hears(whisper, stream, 0.9, 1).count("w") == 1


def test_whose_language_is_known_may_have_an_accent():
    """The same likelihood is too little of a speaker of whom nothing else is known."""
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    stream, newcomer = whisper.open("en", "en"), whisper.open("en", "en")
    assert hears(whisper, newcomer, 0.04, 3) == ""
    assert hears(whisper, stream, 0.9, 3).count("w") == 3
    for likely, words in ((0.004, 3), (0.002, 0), (0.04, 0), (0.9, 3), (0.04, 3)):
        stream.forget(stream.heard_ms)
        assert hears(whisper, stream, likely, 3).count("w") == words


@pytest.mark.parametrize(
    ("source", "target", "likely"), [("de", "en", 0.0), (None, "en", 0.9), ("de", "de", 1.0)]
)
def test_a_translation_is_of_whatever_is_spoken(source, target, likely):
    """And of languages that are not told apart for sure, what is written down."""
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    stream = whisper.open(source, target)
    assert hears(whisper, stream, likely, 4).count("w") == 4


def test_a_full_window_of_another_language_is_not_written_down_either():
    whisper = WhisperModel("toy", ToyEngine(), vocabulary())
    stream = whisper.open("en", "en")
    for _ in range(10):
        assert "w" not in hears(whisper, stream, 0.0, 4)
    assert stream.window.settled.tokens == ()
    assert stream.heard_ms - stream.start_ms <= 26_000


def test_memory_is_released_when_a_window_was_cut(monkeypatch):
    """Behind a sentence, when it is longer than twelve seconds."""
    released = []
    monkeypatch.setattr(module, "release_memory", lambda: released.append(1))
    words = (1, 2, 4, 6, 7, 8, 1, 2, 3, 1, 2, 3, 5)
    model, _, stream = heard(words=words[:12])
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 4)
    assert (released, stream.start_ms) == ([], 0.0)
    model, _, stream = heard(words=words)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 2)
    assert released == []
    model.commit(stream, draft.after(2), 2)  # w4 ends a sentence
    assert released == [1]


def test_memory_is_released_at_most_once_a_second(monkeypatch):
    released, now = [], [500.0]
    library = SimpleNamespace(malloc_trim=released.append)
    monkeypatch.setattr(engine, "ctypes", SimpleNamespace(CDLL=lambda name: library))
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(engine, "sys", SimpleNamespace(platform="linux"))
    monkeypatch.setattr(engine, "_released", 0.0)
    for moment, count in [(500.0, 1), (500.9, 1), (501.0, 1), (501.1, 2), (502.0, 2), (502.2, 3)]:
        now[0] = moment
        engine.release_memory()
        assert released == [0] * count
    monkeypatch.setattr(engine, "sys", SimpleNamespace(platform="darwin"))
    now[0] = 600.0
    engine.release_memory()
    library = SimpleNamespace()  # a C library that knows no such thing
    monkeypatch.setattr(engine, "sys", SimpleNamespace(platform="linux"))
    engine.release_memory()
    assert len(released) == 3


def test_a_word_that_is_written_down_does_not_look_at_the_last_of_the_sound():
    """Whatever is spoken, the last state collects attention: a word was heard where else it looks
    most. Two seconds are a hundred states, and silence is behind them."""

    class Collecting(ToyEngine):
        def speak(self, states, prompts, beams):
            (found,) = super().speak(states, prompts, beams)
            look = np.zeros(300, np.float32)
            look[[98, 99, 100, 250]] = 0.1, 0.3, 0.2, 0.2
            return [replace(found, looks=(look,) * len(found.tokens))]

    model = WhisperModel("toy", Collecting(), vocabulary())
    stream = model.open("de", "en", transcript=True)
    model.hear([stream], [Sound(tones([3, 4]), SPEAKING)])
    assert stream.writes.looks == [98 * 20.0] * 2


@pytest.mark.parametrize(("source", "words"), [("ja", ("日1", "日2.")), ("de", ("日1日2.",))])
def test_what_is_written_down_has_the_words_of_its_language(source, words):
    """Of letters without spaces Japanese makes words, German one long word."""
    v = vocabulary()  # which has bytes, each as a letter
    v = replace(v, names=tuple(name.replace("Ġw", "æĹ¥") for name in v.names))
    model = WhisperModel("toy", ToyEngine(), v)
    stream = model.open(source, "en", transcript=True)
    model.hear([stream], [Sound(tones([1, 2]), SPEAKING)])
    assert stream.writes.words == words


def test_how_long_a_window_may_be():
    """More than 20 s without a full stop are cut behind a word so that six stay: the fifteenth word
    is the last that was heard, in its middle, before 15 s."""
    words = (0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 0, 1, 2, 3, 5)
    for seconds, start_ms in ((20, 0.0), (21, 14_750.0)):
        model, _, stream = heard(words=words[:seconds])
        (draft,) = model.draft([stream], [Ask()])
        model.commit(stream, draft, seconds)
        assert stream.start_ms == pytest.approx(start_ms, abs=20)
    stream.window.said, stream.window.looks = [*range(60)], [20_000.0] * 60
    stream.window.drop(60)
    assert stream.window.before == [*range(12, 60)]  # 48 tokens before it are remembered

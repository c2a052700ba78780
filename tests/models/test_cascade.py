"""A cascade with ears that follow a script and a mouth that translates word for word."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft, Feature, Sound
from dragoman.models.cascade.model import CascadeModel
from dragoman.models.cascade.plan import MOST, _bounded, _unread
from dragoman.models.cascade.stream import Word, settled_words
from dragoman.policies import ages, make_policy
from dragoman.text.again import count_letters
from tests.models.word_for_word import GERMAN, STOP, WordForWord
from tests.scripted import ScriptedEar, ScriptedModel, chunks_of, spell


def german(words) -> str:
    """The whole script, translated."""
    bare = (w if w in GERMAN else w.removesuffix(STOP) for w in words)
    stops = (STOP if w not in GERMAN else "" for w in words)
    return "".join(f" {GERMAN[b].replace(' ', '')}{s}" for b, s in zip(bare, stops, strict=True))


def cascade(words, *, every=400.0, **more) -> CascadeModel:
    script = [(word, every * (place + 1)) for place, word in enumerate(words)]
    model = CascadeModel("ears+mouth", ScriptedModel(script, **more), WordForWord())
    model.mouth = model._translator
    return model


def interpret(model, policy, total_ms, step_ms) -> tuple[str, Interpreter]:
    interpreter = Interpreter(model, make_policy(policy), source="en", target="de")
    said = [word for chunk in chunks_of(total_ms, step_ms) for word in interpreter.hear(chunk).said]
    return "".join(said), interpreter


SENTENCES = st.lists(
    st.lists(st.sampled_from(list(GERMAN)), min_size=0, max_size=5).map(
        lambda words: [*words, "Red."]
    ),
    min_size=1,
    max_size=4,
).map(lambda sentences: [word for one in sentences for word in one])
POLICIES = ["greedy", "offline", "local-agreement:n=2", "wait-k:k=2", "alignatt:last=400",
            "agreeatt:old=600,alone=1350,sure=0.8", "ksn:k=80,s=30,n=1"]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(SENTENCES, st.sampled_from(POLICIES), st.integers(150, 1500), st.integers(1, 3))
def test_all_is_said_whatever_the_policy(words, policy, step_ms, tokens_per_word):
    model = cascade(words, tokens_per_word=tokens_per_word)
    said, interpreter = interpret(model, policy, 400 * len(words) + 900, step_ms)
    assert said == german(words)
    assert interpreter.stream.speech.committed == [f" {word}" for word in words]


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.sampled_from(POLICIES), st.integers(150, 1500))
def test_sentences_are_read_one_by_one(words, policy, step_ms):
    model = cascade(words)
    interpret(model, policy, 400 * len(words) + 900, step_ms)
    for read, closed in model.mouth.read:
        ended = [word.strip() not in GERMAN for word in read]
        assert not any(ended[:-1])
        assert closed or not ended[-1]


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.integers(150, 1500), st.sampled_from(["greedy", "local-agreement", "offline"]))
def test_a_word_is_final_when_it_is_old_or_its_sentence_is_done_with(words, step_ms, policy):
    model = cascade(words)
    interpreter = Interpreter(model, make_policy(policy), source="en", target="de")
    said = ""
    for chunk in chunks_of(400 * len(words) + 8000, step_ms)[:-1]:
        said += "".join(interpreter.hear(chunk).said)
        now = interpreter.stream.heard_ms
        # Heard twice, by looks that the frames round down: a step and a frame from 5 s on.
        old = sum(400 * (place + 1) <= now - 5080 - step_ms for place in range(len(words)))
        young = sum(400 * (place + 1) <= now - 5000 + 80 for place in range(len(words)))
        ends = [at + 1 for at, word in enumerate(words) if word not in GERMAN]
        done = max([end for end in ends if said.startswith(german(words[:end]))], default=0)
        looked = policy != "offline"
        assert len(interpreter.stream.speech.committed) >= max(done, old) * looked
        assert len(interpreter.stream.speech.committed) <= max(done, young)


@pytest.mark.parametrize("policy", ["greedy", "offline"])
def test_the_transcript_tells_when_its_words_were_heard(policy):
    """A word every 400 ms, which settles later, or when its sentence is done with."""
    words = ["Red", "Green.", "Blue", "Green", "Red."]
    interpreter = Interpreter(cascade(words), make_policy(policy), source="en", target="de")
    told = []
    for chunk in chunks_of(400 * len(words) + 900, 500):
        update = interpreter.hear(chunk)
        stream = interpreter.stream
        told += zip(stream.transcript, stream.transcript_ms, strict=True)
        if not update.transcript:
            assert update.transcript_lag_ms is None
            continue
        ages = [stream.heard_ms - ms for ms in stream.transcript_ms]
        assert update.transcript_lag_ms == pytest.approx(np.mean(ages))
    assert [word.strip() for word, _ in told] == words
    assert [ms for _, ms in told] == pytest.approx([400 * n for n in range(1, 6)], abs=100)


def test_which_words_settle():
    """Ages 6100, 5500, 5100 and 4900 ms; 5 s are enough for what was heard before as well."""
    moments = [900, 1500, 1900, 2100]
    attention = np.zeros((4, 350), np.float32)
    attention[range(4), [ms // 20 for ms in moments]] = 1.0
    texts = (" a", " b", " c", " d")
    heard = Draft((1, 2, 3, 4), texts, (1, 2, 3, 4), attention=attention, frame_ms=20.0)
    assert settled_words(heard, texts, 7000.0) == 3
    assert settled_words(heard, (" a", " b"), 7000.0) == 2
    assert settled_words(heard, (" a", " x", " c"), 7000.0) == 1
    assert settled_words(heard, (" x", " b", " c"), 7000.0) == 1  # after a change
    assert settled_words(heard, (), 7000.0) == 1  # 6 s are enough by themselves
    assert [settled_words(heard, (), now) for now in (6899.0, 6900.0)] == [0, 1]
    assert settled_words(heard, texts, 7099.0) == 3
    assert settled_words(heard, texts, 7100.0) == 4
    assert settled_words(heard, (" x",), 7500.0) == 2
    assert settled_words(Draft(), (" a",), 7000.0) == 0


def test_a_word_may_change_after_its_translation_was_said():
    """What was said stays; what is left is translated with the word as it is now."""
    first, then = ["Red", "Green"], ["Red", "Blue", "See"]
    script = iter([first, then])
    ears = ScriptedModel([("Red", 400.0)])
    model = CascadeModel("ears+mouth", ears, WordForWord())
    ears._drafter = lambda stream, ask: replace(
        spell([f" {word}" for word in next(script)], 1, True),
        attention=np.ones((3, 10), np.float32),
        frame_ms=40.0,
    )
    stream = model.open("en", "de")
    for chunk, words in zip(chunks_of(800, 400), (first, then), strict=True):
        model.hear([stream], [Sound(chunk.samples)])
        draft = model.draft([stream], [Ask()])[0]
        assert model._translator.read[-1][0] == tuple(f" {word}" for word in words)
        model.commit(stream, draft, 1)
    assert stream.said == [5, 7]  # rot, blau
    assert stream.speech.committed == []
    assert stream.transcript == ()


@pytest.mark.parametrize("policy", ["offline", "agreeatt:old=600,alone=1350,sure=0.8"])
def test_a_sentence_that_does_not_end_is_translated_in_parts(policy):
    words = ["Red", "Green", "Blue"] * 40
    model = cascade(words)
    said, _ = interpret(model, policy, 400 * len(words) + 900, 500)
    assert said == german(words)
    assert 50 < max(len(read) for read, _ in model.mouth.read) <= MOST


def test_a_part_ends_behind_a_comma_or_where_the_speaker_took_time():
    texts = ["so"] * 100
    times = [300.0 * place for place in range(100)]

    def ends(read: int = 0) -> list[int]:
        words = [Word(text, ms, 0.0) for text, ms in zip(texts, times, strict=True)]
        return list(_bounded(words, [5, 100], read))

    short = [Word("so", ms, 0.0) for ms in times]
    assert list(_bounded(short[:40], [40], 0)) == [40]  # which is not too long
    later = [*short[:35], Word("so,", 35.0, 0.0), *short[:6]]
    assert list(_bounded(later, [4, 42], 0)) == [4, 42]  # though it begins late
    assert list(_bounded(short[:MOST], [MOST], 0)) == [MOST]  # a comma may still come
    last = [*short[:43], Word("so,", 43.0, 0.0), *short[:1]]
    assert list(_bounded(last, [45], 0)) == [44, 45]  # a comma before a single word is one, too
    times[30:] = [ms + 500 for ms in times[30:]]  # before the 31st word
    times[68:] = [ms + 200 for ms in times[68:]]
    assert ends() == [5, 30, 68, 100]
    texts[40] = "so,"
    assert ends() == [5, 41, 100]  # a comma may still come to the rest
    texts[10] = texts[24] = "so,"  # too early for it to matter
    assert ends() == [5, 41, 100]
    texts[63] = "so;"
    assert ends() == [5, 41, 64, 100]
    assert ends(read=42)[:2] == [5, 64]  # what was said stays together, as far as the next comma
    assert ends(read=70)[:2] == [5, 70]
    assert ends(read=99) == [5, 99, 100]
    assert ends(read=100) == [5, 100]
    texts[26] = texts[29] = texts[44] = "so,"  # of several commas, that behind which it took most
    assert ends()[:2] == [5, 30]
    times[45:] = [ms + 900 for ms in times[45:]]
    assert ends()[:2] == [5, 45]
    texts[44], texts[45] = "so", "so,"
    times[46:] = [ms + 2000 for ms in times[46:]]  # behind the next comma, which is too far
    assert ends()[:2] == [5, 30]


def test_no_sentence_ends_in_what_was_read():
    words = [Word(text, 0.0, 0.0) for text in ("Red.", "Blue.", "Green.")]
    assert _unread(words, 1) == [1, 2, 3]
    assert _unread(words, 2) == [2, 3]
    assert _unread(words, 4) == [3]  # the ears took something back: all is one sentence


def test_what_would_have_been_said_is_the_guess_for_what_will_be():
    """Without the words that were said since; a sentence that is new has none."""
    words = ["Red", "Green", "Blue.", "Red", "Blue"]
    model = cascade(words)
    stream = model.open("en", "de")
    mouth, tokens = model.mouth, []
    for chunk in chunks_of(2000, 400):
        model.hear([stream], [Sound(chunk.samples)])
        draft = model.draft([stream], [Ask()])[0]
        tokens.append(draft.tokens)
        model.commit(stream, draft, 1)
    assert [read for read, _ in mouth.read] == [
        (" Red",), (" Red", " Green"), (" Red", " Green", " Blue."), (" Red",), (" Red", " Blue")
    ]  # fmt: skip
    assert mouth.guesses == [(), (), (), (), tokens[3][1:]]


def test_attention_is_that_of_the_source_words():
    words = ["Red", "See", "Mr.", "Blue", "Green"]
    model = cascade(words)
    stream = model.open("en", "de")
    for chunk in chunks_of(2300, 2300):
        model.hear([stream], [Sound(chunk.samples)])
    draft = model.draft([stream], [Ask()])[0]
    assert draft.words == (" rot", " sehen", " Herr", " blau", " grün")
    assert draft.ends == (1, 3, 4, 5, 6)
    expected = [2300 - 400 * (place + 1) for place in (0, 1, 1, 2, 3, 4)]
    found = ages(draft.attention, draft.frame_ms)
    np.testing.assert_allclose(found, expected, atol=2 * 40)
    np.testing.assert_allclose(draft.attention.sum(axis=1), 1)
    # Nobody is surer of a translation than of the word that it translates.
    assert draft.log_probs == pytest.approx([-0.15] * 6)


def test_a_misheard_word_that_is_revised_is_not_said():
    """The ears guess a wrong word at the edge every time; two drafts never agree on it."""
    guesses = iter(["Blue", "Green"] * 50)
    model = cascade(["Red", "See", "Red", "See."], flicker=lambda ms: [next(guesses)])
    said, _ = interpret(model, "local-agreement:n=2", 2600, 400)
    assert said == german(["Red", "See", "Red", "See."])


def test_what_did_not_change_is_not_translated_again():
    model = cascade(["Red", "See", "Blue"], every=100.0)
    interpret(model, "agreeatt:old=600,alone=1350,sure=0", 3000, 250)
    read = [words for words, _ in model.mouth.read]
    assert len(read) == len(set(model.mouth.read))
    assert max(map(len, read)) == 3


def test_a_pause_ends_the_utterance():
    model = cascade(["Red", "See."])
    interpreter = Interpreter(
        model,
        make_policy("offline"),
        source="en",
        target="de",
        utterance_pause_ms=1000,
        ear=ScriptedEar((400.0, 800.0)),
    )
    said = [interpreter.hear(chunk).said for chunk in chunks_of(3000, 500)]
    assert [" ".join(words) for words in said[:3]] == [""] * 3
    assert "".join(said[3]) == german(["Red", "See."])
    assert interpreter.stream.final == ()
    assert interpreter.stream.said == []
    interpreter.stream.speech.open = (0.0, 0)
    assert interpreter.stream.open == (3000.0, 0)  # where the source ended


@settings(max_examples=80, deadline=None)
@given(SENTENCES, st.sampled_from(POLICIES), st.integers(150, 1500), st.data())
def test_another_goes_on_from_where_a_sentence_is_open(words, policy, step_ms, data):
    """It hears the sound since then, knows what was said of that, and says what was not: nothing is
    lost, nothing said twice, and no sentence that is done with is heard again."""
    chunks = chunks_of(400 * len(words) + 900, step_ms)
    cut = data.draw(st.integers(0, len(chunks) - 1))
    first = Interpreter(cascade(words), make_policy(policy), source="en", target="de")
    said = [word for chunk in chunks[:cut] for word in first.hear(chunk).said]
    begin_ms, letters = first.open
    known = len(said)
    while letters > 0:
        known -= 1
        letters -= count_letters(said[known])
    assert letters == 0
    heard = [place for place in range(len(words)) if 400 * (place + 1) > begin_ms]
    assert not heard or not heard[0] or words[heard[0] - 1].endswith(STOP)
    model = cascade([words[place] for place in heard])
    shifted = [(words[place], 400 * (place + 1) - begin_ms) for place in heard]
    model._recogniser.script = shifted
    second = Interpreter(model, make_policy(policy), source="en", target="de")
    second.recall(said[known:])
    again = np.zeros(int((first.stream.heard_ms - begin_ms) * RATE / 1000), np.float32)
    rest = [second.hear(Chunk(again, last=False)), *map(second.hear, chunks[cut:])]
    said += [word for update in rest for word in update.said]
    assert "".join(said) == german(words)


def test_where_nothing_is_open_another_begins_where_the_ears_would():
    interpreter = Interpreter(cascade(["Red."]), make_policy("greedy"), source="en", target="de")
    interpreter.hear(chunks_of(2000, 400)[0])
    stream = interpreter.stream
    assert stream.heard.tokens == ()
    assert stream.open is None  # these ears do not say
    stream.speech.open = (100.0, 0)
    assert stream.open == (400.0, 0)  # they may have kept what is done with
    stream.speech.open = (900.0, 7)
    assert stream.open == (900.0, 0)  # letters are those of the translation


def test_words_that_were_told_are_not_told_again_by_whoever_goes_on():
    """The first sentence is said late, when a word of the second has settled already."""
    model = cascade(["Red.", "Blue", "Green", "Blue"], every=1000.0)
    stream = model.open("en", "de")
    for _ in range(8):
        model.hear([stream], [Sound(chunks_of(1000, 1000)[0].samples)])
    assert [word.text for word in stream.final] == [" Red.", " Blue", " Green"]
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 3)
    assert [word.text for word in stream.final] == [" Blue", " Green"]
    assert stream.open == (0.0, len("rot.blau"))
    stream.heard, stream.speech.open = Draft(), (3000.0, 0)  # a word that is final is open still
    assert stream.open == (0.0, len("rot.blau"))


def test_languages_and_ears_that_do_not_fit():
    model = cascade(["Red"])
    with pytest.raises(DragomanError, match=r"speaks 'de', not 'fr'"):
        model.open("en", "fr")
    with pytest.raises(DragomanError, match=r"hears 'en', not 'it'"):
        model.open("it", "de")
    assert model.open(None, "de").heard_ms == 0
    deaf = ScriptedModel([], features=frozenset({Feature.SILENCE}))
    with pytest.raises(DragomanError, match="does not tell when it heard a word"):
        CascadeModel("x", deaf, WordForWord())


def test_only_what_was_drafted_last_can_be_committed():
    model = cascade(["Red"])
    stream = model.open("en", "de")
    model.hear([stream], [Sound(chunks_of(800, 800)[0].samples)])
    draft = model.draft([stream], [Ask()])[0]
    model.commit(stream, draft, 1)
    with pytest.raises(DragomanError, match="drafted last"):
        model.commit(stream, draft, 1)


def test_the_transcript_is_handed_out_once_when_it_settles():
    words = ["Red", "See", "Red.", "Blue", "Green"]
    model = cascade(words)
    interpreter = Interpreter(model, make_policy("local-agreement"), source="en", target="de")
    updates = [interpreter.hear(chunk) for chunk in chunks_of(8000, 400)]
    assert [word for update in updates for word in update.transcript] == [f" {w}" for w in words]
    # The first sentence is said after 1600 ms; of the second, " Blue" was heard at 1600 ms, that is
    # in the frame from 1600 to 1640, and " Green" 400 ms later.
    told = [(update.hearing.audio_ms, len(update.transcript)) for update in updates]
    assert [(ms, count) for ms, count in told if count] == [(1600, 3), (6800, 1), (7200, 1)]
    assert interpreter.stream.words_heard == len(words)
    assert {update.language for update in updates} == {"en"}

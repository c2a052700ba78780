"""A cascade by hand: what its ears wrote down is told, draft by draft."""

from dataclasses import replace

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models import Ask, BatchError, Draft, Feature, Sound
from dragoman.models.base import fail_alone
from dragoman.models.cascade.model import CascadeModel
from dragoman.models.cascade.plan import _guess
from dragoman.models.cascade.stream import Word
from dragoman.models.cascade.translator import Translation
from tests.models.word_for_word import WordForWord
from tests.scripted import ALL_FEATURES, DiaryModel


def written(*words, at, tail="", **more) -> Draft:
    """A token a word, and one for the tail; they look at moments."""
    attention = np.eye(700, dtype=np.float32)[[ms // 10 for ms in at]]
    texts, ends = tuple(f" {word}" for word in words), tuple(range(1, len(words) + 1))
    sure = {"log_probs": (-0.1,) * len(at), "ended": True} | more
    return Draft(
        tuple(range(len(at))), texts, ends, tail, attention=attention, frame_ms=10.0, **sure
    )


def told(*drafts, mouth=None) -> tuple[CascadeModel, object]:
    """A cascade whose ears write down these drafts one after the other, and a stream of it."""
    left = iter(drafts)
    ears = DiaryModel(lambda stream, ask: next(left))
    model = CascadeModel("ears+mouth", ears, mouth or WordForWord())
    model.mouth = model._translator
    return model, model.open("en", "de")


def hear(model, stream, ms, **more) -> None:
    model.hear([stream], [Sound(np.zeros(16 * ms, np.float32), **more)])


class Undecided(WordForWord):
    """Says of each sentence in turn whether its translation is over."""

    def __init__(self, *ended) -> None:
        super().__init__()
        self.ended = iter(ended)

    def translate_one(self, sentence) -> Translation:
        return replace(super().translate_one(sentence), ended=next(self.ended))


@pytest.mark.parametrize(
    ("ears", "mouth", "over"),
    [
        (True, (True, True), True),
        (False, (True, True), False),
        (True, (False, True), False),
        (True, (True, False), False),
    ],
)
def test_a_draft_is_over_if_the_ears_and_every_sentence_say_so(ears, mouth, over):
    heard = written("Red.", "Blue", at=(100, 200), ended=ears, silence=0.25)
    model, stream = told(heard, mouth=Undecided(*mouth))
    hear(model, stream, 800)
    (draft,) = model.draft([stream], [Ask()])
    assert draft.ended is over
    assert draft.silence == 0.25  # as the ears have it


def test_a_word_that_may_go_on_is_the_tail_of_a_draft():
    heard = written("Red.", "See", at=(100, 200))
    model, stream = told(heard, mouth=Undecided(True, False))
    hear(model, stream, 800)
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.words, draft.ends, draft.tail) == ((" rot.",), (2,), " sehen")


def test_half_a_word_that_does_not_go_on_is_said_as_it_is():
    """The source became another after the first half was said."""

    class Changing(WordForWord):
        def translate_one(self, sentence):
            if not sentence.said:
                return super().translate_one(sentence)
            looks = np.ones((1, len(sentence.words)), np.float32)
            return Translation((7,), (-0.1,), looks, True)

    heard = written("See", at=(200,))
    model, stream = told(heard, heard, mouth=Changing())
    hear(model, stream, 800)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 1)
    hear(model, stream, 100)
    stream.known.clear()
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.words, draft.ends) == ((" seh", " blau"), (0, 1))


@pytest.mark.parametrize(("tokens", "held", "ends"), [(0, [], (2,)), (1, [11], (1,))])
def test_half_a_word_that_does_not_go_on_is_said_once(tokens, held, ends):
    """Whole with no more of its tokens, it is not the beginning of what follows."""

    class Changing(WordForWord):
        def translate_one(self, sentence):
            if not sentence.said:
                return super().translate_one(sentence)
            return Translation((11, 12), (-0.1, -0.1), np.ones((2, 1), np.float32), True)  # ler n

    heard = written("See", at=(200,))
    model, stream = told(heard, heard, mouth=Changing())
    hear(model, stream, 800)
    model.commit(stream, model.draft([stream], [Ask()])[0], 1)
    assert stream.unfinished == [9]  # seh
    hear(model, stream, 100)
    stream.known.clear()
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.words, draft.ends) == ((" seh", " lern"), (0, 2))
    model.commit(stream, draft, tokens)
    assert stream.unfinished == held
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.words, draft.ends) == ((" lern",), ends)


def test_a_word_that_was_said_as_whole_may_go_on():
    """It seemed to be the last of its sentence; what is added to it is not a word of its own, also
    when it is known before what follows."""

    class Slow(WordForWord):
        def translate_one(self, sentence):
            found = super().translate_one(sentence)
            one = (found.tokens[:1], found.log_probs[:1], found.attention[:1])
            return Translation(*one, ended=not sentence.said)

    heard = written("See", "Red", at=(200, 300))
    model, stream = told(heard, mouth=Slow())
    hear(model, stream, 800)
    for words, tail in (((" seh",), ""), ((), "en"), (("en",), " rot")):
        stream.known.clear()
        (draft,) = model.draft([stream], [Ask()])
        assert (draft.words, draft.tail) == (words, tail)
        model.commit(stream, draft, 1)


def test_a_translation_looks_where_its_word_was_heard_and_is_no_surer():
    """A word of two tokens is where the later one looks, and as sure as the less sure one."""
    attention = np.eye(60, dtype=np.float32)[[10, 6, 31]]
    heard = Draft(
        (0, 1, 2),
        (" Red.", " Blue"),
        (2, 3),
        log_probs=(-0.5, -0.1, -0.2),
        attention=attention,
        frame_ms=10.0,
        start_ms=1000.0,
    )
    model, stream = told(heard)
    hear(model, stream, 1510)
    (draft,) = model.draft([stream], [Ask()])
    assert draft.words == (" rot.", " blau")
    assert draft.log_probs == pytest.approx((-0.55, -0.55, -0.25))
    # From 1100 ms, where the first word is, to 1510 ms there are 20 frames of 20 ms and some.
    assert (draft.start_ms, draft.frame_ms, draft.attention.shape) == (1100.0, 20.0, (3, 21))
    assert draft.attention.argmax(axis=1).tolist() == [0, 0, 10]  # 210 ms later
    assert draft.looks(0, 3) == [1100.0, 1100.0, 1300.0]


def test_a_word_whose_tokens_are_gone_is_where_the_window_begins():
    heard = written("Red", "Blue", at=(320,), start_ms=100.0)
    model, stream = told(replace(heard, ends=(0, 1)))
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    assert draft.looks(0, 2) == [100.0, 420.0]
    assert draft.log_probs == pytest.approx((-0.05, -0.15))


def test_a_word_may_look_at_a_moment_that_has_just_begun():
    model, stream = told(written("Red", "Blue", at=(400, 720)))
    hear(model, stream, 700)
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.attention.shape, int(draft.attention[1].argmax())) == ((2, 16), 15)


def test_a_word_may_be_all_that_was_heard_and_look_at_what_comes():
    """As a recogniser of one's own may have it, whose frames are long."""
    model, stream = told(written("Red", at=(760,)))
    hear(model, stream, 700)
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.start_ms, draft.attention.tolist()) == (700.0, [[1.0]])


def test_where_nothing_was_heard_nothing_is_drafted():
    model, stream = told(Draft(ended=True, silence=0.9))
    hear(model, stream, 700)
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.tokens, draft.words, draft.ended, draft.silence) == ((), (), True, 0.9)
    assert (draft.start_ms, draft.attention.shape) == (700.0, (0, 1))
    assert model.mouth.read == []


def test_half_a_word_is_translated_at_the_end_only():
    model, stream = told(written("Red.", "See", at=(100, 200, 300), tail=" Blue"))
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    assert model.mouth.read == [((" Red.",), True), ((" See",), False)]
    assert draft.text == " rot. sehen"
    model.mouth.read.clear()
    (draft,) = model.draft([stream], [Ask(final=True)])
    assert model.mouth.read == [((" See", " Blue"), True)]  # the first did not change
    assert draft.text == " rot. sehen blau"
    assert draft.looks(4, 5) == [900.0]  # it is being heard
    assert draft.log_probs[4] == pytest.approx(-0.05)
    assert stream.words_heard == 2
    model.commit(stream, draft, 5, closed=True)
    assert stream.transcript == (" Red.", " See", " Blue")
    assert stream.words_heard == 3
    assert stream.speech.commits == [(900.0, 0, False), (900.0, 3, True)]


@pytest.mark.parametrize(
    ("tokens", "said", "read", "unfinished", "transcript"),
    [
        (0, [], 0, [], ()),
        (1, [5], 1, [5], ()),  # rot
        (2, [], 0, [], (" Red.",)),  # rot.
        (3, [9], 1, [9], (" Red.",)),  # rot. seh
        (4, [9, 10], 1, [], (" Red.",)),  # rot. sehen
        (5, [9, 10, 7], 2, [], (" Red.",)),  # rot. sehen blau
    ],
)
def test_what_is_left_of_a_sentence(tokens, said, read, unfinished, transcript):
    model, stream = told(written("Red.", "See", "Blue", at=(100, 200, 300)))
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    assert (draft.tokens, draft.ends) == ((5, 4, 9, 10, 7), (2, 4, 5))
    model.commit(stream, draft, tokens)
    assert (stream.said, stream.read, stream.unfinished) == (said, read, unfinished)
    assert (stream.transcript, stream.words_heard) == (transcript, 3)
    assert stream.heard.words == (" Red.", " See", " Blue")[len(transcript) :]
    assert len(stream.speech.commits) == 1 + len(transcript)  # the ears hear of what is settled
    (rest,) = model.draft([stream], [Ask()])
    assert rest.tokens == draft.tokens[tokens:]
    whole = sum(end <= tokens for end in draft.ends)
    assert rest.words == (" rot.", " sehen", " blau")[whole:]  # the first one whole
    assert rest.ends == tuple(end - tokens for end in draft.ends[whole:])


def test_a_sentence_that_was_said_leaves_nothing():
    model, stream = told(written("See", "Blue.", at=(200, 300)))
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 1)
    assert (stream.said, stream.unfinished, stream.read) == ([9], [9], 1)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 3)
    assert (stream.said, stream.unfinished, stream.read) == ([], [], 0)
    assert (stream.final, stream.transcript) == ((), (" See", " Blue."))


def test_an_utterance_that_is_over_leaves_nothing():
    heard = written("Red", "See", "Blue", at=(100, 200, 300))
    model, stream = told(heard, heard)
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 2)
    assert (stream.said, stream.unfinished, stream.read) == ([5, 9], [9], 2)  # rot seh
    hear(model, stream, 900, closing=True)
    (draft,) = model.draft([stream], [Ask(final=True)])
    model.commit(stream, draft, len(draft.tokens), closed=True)
    assert (stream.final, stream.said, stream.unfinished, stream.read) == ((), [], [], 0)
    assert (stream.heard, stream.words_heard) == (Draft(), 3)


def test_a_look_back_does_not_unread_what_was_read():
    model, stream = told(written("Red", "Blue", at=(200, 300)))
    hear(model, stream, 900)
    (draft,) = model.draft([stream], [Ask()])
    stream.read = 2
    model.commit(stream, draft, 1)
    assert stream.read == 2


class StopsLast(WordForWord):
    """Reads full stops at the end of a sentence only."""

    def translate_one(self, sentence) -> Translation:
        *inner, last = sentence.words
        words = (*(word.removesuffix(".") for word in inner), last)
        return super().translate_one(replace(sentence, words=words))


def test_a_full_stop_that_comes_late_makes_nothing_be_said_twice():
    """Two words were said when the first one gets its stop; one behind what was said counts."""
    model, stream = told(
        written("Red", "Blue", at=(200, 300)),
        written("Red.", "Blue.", "See", at=(200, 300, 600)),
        written("Red.", at=(200,)),  # the ears take back what was said already
        mouth=StopsLast(),
    )
    hear(model, stream, 500)
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, 2)
    assert (stream.said, stream.read) == ([5, 7], 2)  # rot blau
    hear(model, stream, 500)
    (draft,) = model.draft([stream], [Ask()])
    assert [words for words, _ in model.mouth.read[1:]] == [(" Red", " Blue."), (" See",)]
    assert draft.words == (".", " sehen")
    stream.said = [5]
    hear(model, stream, 500)
    (draft,) = model.draft([stream], [Ask()])
    assert model.mouth.read[-1] == ((" Red.",), True)


def test_old_words_settle_when_they_are_heard_unless_the_utterance_ends():
    old = written("Red", "Blue", at=(1000, 1960))
    model, stream = told(old, old)
    hear(model, stream, 7000)
    assert stream.final == (Word(" Red", 1000.0, 0.0),)
    assert (stream.transcript, stream.heard.words) == ((" Red",), (" Blue",))
    assert (stream.words_before, stream.words_heard) == (1, 2)
    assert stream.speech.commits == [(7000.0, 1, False)]
    model, stream = told(old)
    hear(model, stream, 7000, closing=True)
    assert (stream.final, stream.transcript, stream.speech.commits) == ((), (), [])
    assert stream.speech.drafts[0][1] == Ask(final=True)


def test_words_that_settle_when_heard_and_when_said_are_told_with_their_moments():
    model, stream = told(written("Red", "Blue.", at=(1000, 1960)))
    hear(model, stream, 7000)
    assert (stream.transcript, stream.transcript_ms) == ((" Red",), (1000.0,))
    (draft,) = model.draft([stream], [Ask()])
    model.commit(stream, draft, len(draft.tokens))
    assert stream.transcript == (" Red", " Blue.")
    assert stream.transcript_ms == (1000.0, 1960.0)


def test_streams_that_fail_do_so_alone():
    def drafter(stream, ask):
        if stream.heard_ms == 300:
            raise ValueError("mute")
        return written("Red", at=(100,))

    class HalfDeaf(DiaryModel):
        def hear(self, streams, sounds):
            super().hear(streams, sounds)
            if len(streams) > 1:
                raise BatchError({1: ValueError("deaf")})

    model = CascadeModel("ears+mouth", HalfDeaf(drafter), WordForWord())
    streams = [model.open("en", "de") for _ in range(5)]
    sounds = [
        Sound(np.zeros(16 * ms, np.float32), look=ms != 400, closing=ms == 500)
        for ms in (100, 200, 300, 400, 500)
    ]
    with pytest.raises(BatchError) as caught:
        model.hear(streams, sounds)
    assert {place: str(error) for place, error in caught.value.errors.items()} == {
        1: "deaf",
        2: "mute",
    }
    asked = [[ask.final for _, ask, _ in one.speech.drafts] for one in streams]
    assert asked == [[False], [], [], [], [True]]
    assert [one.heard.words for one in streams] == [(" Red",), (), (), (), (" Red",)]
    model.hear(streams[:1], sounds[:1])  # nobody fails, nothing is raised


def test_what_a_cascade_offers():
    ears = DiaryModel(None, frozenset({Feature.ATTENTION, Feature.DECISIONS, Feature.SILENCE}))
    ears.hears = ("en", "es")
    model = CascadeModel("both", ears, WordForWord())
    assert model.features == {Feature.ATTENTION, Feature.SILENCE, Feature.TRANSCRIPT}
    assert (model.name, model.hears, model.speaks) == ("both", ("en",), ("de",))  # reads no "es"
    stream = model.open(None, "de")
    assert (stream.language, stream.speech.language) == ("en", "en")
    stream.speech.language = None  # who listens finds that it is another one
    assert stream.language is None
    stream.speech.heard_ms, stream.speech.ends_heard = 700.0, 3
    assert (stream.heard_ms, stream.ends_heard) == (700.0, 3)
    assert CascadeModel("x", DiaryModel(None, ALL_FEATURES), WordForWord()).features == (
        ALL_FEATURES - {Feature.DECISIONS}
    )
    with pytest.raises(DragomanError, match="another model"):
        model.draft([stream.speech], [Ask()])


def test_the_guess_is_of_the_sentence_that_begins_most_alike():
    def left(*tokens):
        return Translation(tokens, (-0.1,) * len(tokens), np.zeros((len(tokens), 1)), True)

    known = {
        (("x", "q", "c", "d"), False): ((), left(1, 6, 7)),  # alike, but not from the beginning
        (("a", "b", "c"), False): ((), left(1, 2, 3)),
        (("a", "q", "z"), True): ((1,), left(4, 5)),  # of which a token had been said before
    }
    assert _guess(known, ("a", "b", "d"), (1,)) == (2, 3)
    assert _guess(known, ("a", "q", "c", "d"), (1,)) == (4, 5)
    assert _guess(known, ("a", "q", "c", "d"), ()) == (1, 2, 3)  # the third had said more
    assert _guess(known, ("a", "q", "c", "d"), (1, 4)) == (5,)
    assert _guess(known, ("a",), (1, 2, 3)) == ()
    assert _guess(known, ("a",), (9,)) == ()
    assert _guess({}, ("a",), ()) == ()


class Strict(WordForWord):
    """Counts how often it is asked, and refuses a word."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def translate(self, sentences) -> list[Translation]:
        self.batches.append(len(sentences))
        if any(" Green" in one.words for one in sentences):
            raise ValueError("no green")
        return super().translate(sentences)


def several(*heard) -> tuple[CascadeModel, list]:
    """A cascade with streams that have each heard a draft of their own."""
    ears = DiaryModel(lambda stream, ask: heard[int(stream.heard_ms) - 900])
    model = CascadeModel("ears+mouth", ears, Strict())
    streams = [model.open("en", "de") for _ in heard]
    for place, stream in enumerate(streams):
        hear(model, stream, 900 + place)
    return model, streams


def test_all_sentences_of_all_streams_are_translated_at_once():
    heard = (
        written("Red.", "Blue.", "See", at=(100, 200, 300)),
        Draft(ended=True),  # nothing
        written("Blue", at=(100,)),
    )
    model, streams = several(*heard)
    asks = [Ask(), Ask(), Ask(final=True)]
    drafts = model.draft(streams, asks)
    assert [draft.text for draft in drafts] == [" rot. blau. sehen", "", " blau"]
    assert model._translator.batches == [4]
    for stream, ask, draft in zip(several(*heard)[1], asks, drafts, strict=True):
        (alone,) = model.draft([stream], [ask])
        assert draft.tokens == alone.tokens
        np.testing.assert_array_equal(draft.attention, alone.attention)
    # What is known is not asked again: of the first stream the rest of a sentence that was begun.
    model.commit(streams[0], drafts[0], 1)
    model._translator.batches.clear()
    again = model.draft(streams, asks)
    left = [drafts[0].tokens[1:], (), drafts[2].tokens]
    assert [draft.tokens for draft in again] == left
    assert model._translator.batches == []
    assert [said for said, _ in streams[0].known.values()] == [(5,), (), ()]


def test_a_draft_that_fails_changes_no_stream_and_the_others_are_drafted_alone():
    """As the interpreter asks: all together, and then each for itself."""
    model, streams = several(written("Red", at=(100,)), written("Green", at=(100,)))
    (before,) = model.draft(streams[:1], [Ask()])
    known = dict(streams[0].known)
    found = {}

    def draft(members):
        made = model.draft([streams[i] for i in members], [Ask(final=True) for _ in members])
        found.update(zip(members, made, strict=True))

    with pytest.raises(ValueError, match="no green"):
        draft([0, 1])
    assert streams[0].known == known
    model.commit(streams[0], before, 0)  # which was drafted last
    errors = fail_alone(draft, [0, 1])
    assert {place: str(error) for place, error in errors.items()} == {1: "no green"}
    assert found[0].text == " rot"

"""Exported nets of every kind on a toy: in steps as at once, in batches, astray, and counted."""

import numpy as np
import pytest

from dragoman.audio.chunk import RATE, Chunk
from dragoman.detectors import LearnedBoundaries
from dragoman.interpreter import Interpreter, step
from dragoman.models import Ask, Sound
from dragoman.models.exported.config import Languages
from dragoman.models.exported.model import ExportedModel
from dragoman.models.exported.pieces import Pieces
from dragoman.models.search import Found, search
from dragoman.policies import make_policy
from dragoman.trace import Trace

from .toy_net import FIRST, KINDS, ToyNet, speech, spelled, talk, toy_model


def hear(model, stream, samples, size, **more) -> None:
    for at in range(0, len(samples), size):
        model.hear([stream], [Sound(samples[at : at + size], **more)])


@pytest.mark.parametrize("size", [1600, 5333, 16000])
@pytest.mark.parametrize("kind", KINDS)
def test_in_steps_as_at_once_before_the_end_of_the_source(kind, size, monkeypatch):
    """However the sound comes, the same is encoded and drafted while it goes on."""
    model = toy_model(kind, monkeypatch)
    samples = speech(talk(9))
    in_steps, at_once = model.open("en", "de"), model.open("en", "de")
    hear(model, in_steps, samples, size)
    model.hear([at_once], [Sound(samples)])
    np.testing.assert_array_equal(in_steps.encoded.memory[0], at_once.encoded.memory[0])
    assert in_steps.encoded.states == at_once.encoded.states > 200
    # What is not yet a whole chunk has not been encoded.
    assert in_steps.ends_heard == at_once.ends_heard == (8 if in_steps.net.config.chunks else 9)
    drafts = [model.draft([stream], [Ask()])[0] for stream in (in_steps, at_once)]
    assert drafts[0].tokens == drafts[1].tokens
    assert drafts[0].words == drafts[1].words
    assert len(drafts[0].tokens) >= 8


@pytest.mark.parametrize("kind", KINDS)
def test_committed_bit_by_bit_the_same_is_said(kind, monkeypatch):
    """Between drafts, any number of tokens may be committed; the decoder goes on from there."""
    model = toy_model(kind, monkeypatch)
    words = talk(12)
    for each in (1, 2, 5):
        stream, said = model.open("en", "de"), []
        for second in range(12):
            model.hear([stream], [Sound(speech(words[second : second + 1]))])
            draft = model.draft([stream], [Ask()])[0]
            count = min(each, len(draft.tokens))
            said += draft.tokens[:count]
            model.commit(stream, draft, count)
            if count < len(draft.tokens):  # and once more, of what is left
                again = model.draft([stream], [Ask()])[0]
                assert again.tokens == draft.tokens[count:]
        assert said == [word + FIRST for word in words[: len(said)]]
        assert len(said) >= 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_streams_is_each_of_them(kind, monkeypatch):
    talks = [talk(20, seed) for seed in range(4)]
    texts = []
    for together in (True, False):
        model = toy_model(kind, monkeypatch)
        traces = [Trace() for _ in talks]
        speakers = [
            Interpreter(model, make_policy("local-agreement"), target="de", record=trace)
            for trace in traces
        ]
        for second in range(20):
            chunks = [Chunk(speech(one[second : second + 1]), last=second == 19) for one in talks]
            if together:
                step(speakers, chunks)
            else:
                for speaker, chunk in zip(speakers, chunks, strict=True):
                    speaker.hear(chunk)
        texts.append([[(s.text, s.chunk) for s in trace.sayings] for trace in traces])
        assert [t.prediction for t in traces] == [spelled(one).strip() for one in talks]
        if together and kind != "transducer":
            assert max(model._net.batches) >= 4
    assert texts[0] == texts[1]


def test_limits_of_an_ask_are_kept(monkeypatch):
    model = toy_model("whole", monkeypatch)
    stream = model.open("en", "de")
    model.hear([stream], [Sound(speech(talk(9)))])
    assert len(model.draft([stream], [Ask(max_tokens=3)])[0].tokens) == 3
    assert len(model.draft([stream], [Ask(max_words=4)])[0].words) == 4
    whole = model.draft([stream], [Ask()])[0]
    assert whole.ended
    forced = model.draft([stream], [Ask(avoid_end=True, max_tokens=len(whole.tokens) + 2)])[0]
    assert len(forced.tokens) == len(whole.tokens) + 2
    assert not forced.ended


class Astray(ToyNet):
    """Looks back at the very beginning with every seventh token."""

    def step(self, tokens, memory, lengths, cache, final=None):
        made = super().step(tokens, memory, lengths, cache, final)
        for i in range(len(lengths)):
            if made.cache[0].shape[1] % 7 == 0:
                made.attention[i] = 0
                made.attention[i, 0, :, 0] = 1
        return made


@pytest.mark.parametrize("spec", ["greedy", "local-agreement", "offline", "alignatt:last=400"])
def test_a_net_that_looks_astray_loses_nothing(spec, monkeypatch):
    model = toy_model("whole", monkeypatch)
    model._net = Astray("whole")
    words, trace = talk(90), Trace()
    interpreter = Interpreter(model, make_policy(spec), target="de", record=trace)
    for second, word in enumerate(words):
        interpreter.hear(Chunk(speech([word]), last=second == 89))
    assert trace.prediction == spelled(words).strip()


@pytest.mark.parametrize("kind", KINDS)
def test_word_ends_are_counted_once_however_the_window_moves(kind, monkeypatch):
    model = toy_model(kind, monkeypatch)
    interpreter = Interpreter(
        model, make_policy("local-agreement"), target="de", detector=LearnedBoundaries()
    )
    counts = []
    for second, word in enumerate(talk(100)):
        interpreter.hear(Chunk(speech([word]), last=second == 99))
        counts.append(interpreter.stream.ends_heard)
    assert counts == sorted(counts)
    assert abs(counts[-1] - 100) <= 3  # a cut within a pause may count it twice


def test_languages_that_it_tells(monkeypatch):
    model = toy_model("whole", monkeypatch)
    assert (model.hears, model.speaks) == (("en",), ("de",))
    assert model.open(None, "de").language == "en"
    model._net.config.languages = Languages("", "de")  # it does not say what it hears
    assert model.open("fr", "de").language == "fr"
    assert model.open(None, "de").language is None


def test_before_anybody_speaks_little_is_kept(monkeypatch):
    from dragoman.audio.ear import Voice

    model = toy_model("whole", monkeypatch)
    stream = model.open("en", "de")
    silence = Voice(spoken=False, speaking=False, silence_ms=1000.0)
    for _ in range(10):
        model.hear([stream], [Sound(np.zeros(RATE, np.float32), silence)])
    assert model._net.encoded == []
    assert 1900 <= stream.heard_ms - stream.start_ms <= 2100
    assert model.draft([stream], [Ask()])[0].tokens == ()
    model.hear([stream], [Sound(speech([3]))])
    assert model.draft([stream], [Ask()])[0].words == (" w3",)


def test_drafts_that_are_final_are_searched_with_care_and_the_others_beside_them_are_not(
    monkeypatch,
):
    model, searched = toy_model("whole", monkeypatch, beams=3), []

    def noting(texts, prompts, beams):
        searched.append(([prompt.final for prompt in prompts], beams))
        return search(texts, prompts, beams)

    monkeypatch.setattr("dragoman.models.exported.model.search", noting)
    streams = [model.open("en", "de") for _ in range(4)]
    model.hear(streams, [Sound(speech([word])) for word in (1, 2, 3, 5)])
    asks = [Ask(), Ask(final=True), Ask(final=True, hasty=True), Ask()]
    drafts = model.draft(streams, asks)
    assert searched == [([False, True, False], 1), ([True], 3)]  # one of them in haste
    assert [draft.words for draft in drafts] == [(" w1",), (" w2",), (" w3",), (" w5",)]


def test_what_was_said_of_a_stream_is_not_taken_for_what_was_said_of_another(monkeypatch):
    """Two of them said something: of the net's caches, only those of one length go together."""
    model = toy_model("whole", monkeypatch)
    streams = [model.open("en", "de") for _ in range(3)]
    model.hear(streams, [Sound(speech([word, 7])) for word in (1, 2, 3)])
    for one in (0, 2):
        (draft,) = model.draft([streams[one]], [Ask()])
        model.commit(streams[one], draft, 1)
    model.hear(streams, [Sound(speech([8]))] * 3)
    words = [draft.words for draft in model.draft(streams, [Ask()] * 3)]
    assert words == [(" w7", " w8"), (" w2", " w7", " w8"), (" w7", " w8")]


def test_an_encoder_that_hears_chunks_goes_on_from_what_it_kept(monkeypatch):
    """The toy counts in what it keeps; the two streams have heard different numbers of chunks."""
    model = toy_model("chunks", monkeypatch)
    old, new = model.open("en", "de"), model.open("en", "de")
    model.hear([old], [Sound(speech([1]))])  # five windows, each 16 frames on
    assert [array.tolist() for array in old.encoded.kept] == [[[5.0]]]
    model.hear([new, old], [Sound(speech([2]))] * 2)
    assert [one.encoded.kept[0].item() for one in (old, new)] == [11.0, 5.0]


def test_the_end_without_sound_leaves_nothing_for_a_later_chunk(monkeypatch):
    model = toy_model("chunks", monkeypatch)
    one = model.open("en", "de")
    model.hear([one], [Sound(speech([1, 2]))])
    assert one.encoded.states == 44  # of fifty: the last chunks are not whole
    model.hear([one], [Sound(np.zeros(0, np.float32), last=True, closing=True)])
    assert one.encoded.states == 50


def test_who_has_heard_no_whole_chunk_has_nothing_to_say_beside_others(monkeypatch):
    model = toy_model("chunks", monkeypatch)
    new, old = model.open("en", "de"), model.open("en", "de")
    model.hear([new, old], [Sound(speech([1])[:4000]), Sound(speech([1, 2]))])
    assert new.encoded.memory is None
    assert [draft.words for draft in model.draft([new, old], [Ask()] * 2)] == [(), (" w1", " w2")]


@pytest.mark.parametrize(
    ("quiet", "moment_ms", "until_ms"),
    [(slice(-25, None), 9870.0, 9760.0), (slice(700, 725), 7120.0, 7120.0)],
)
def test_sound_that_waits_for_its_chunk_is_not_settled(quiet, moment_ms, until_ms, monkeypatch):
    """The quietest moment may lie behind the last chunk that is whole."""
    model = toy_model("chunks", monkeypatch)
    one = model.open("en", "de")
    one.take_in(Sound(speech([*range(1, 10), -1])))
    one.levels[quiet] = -1.0
    assert one.quiet_ms() == moment_ms
    assert model.speak_part(one)[1] == until_ms
    assert one.encoded.states == 9760 / 40


@pytest.mark.parametrize(("kind", "words"), [("whole", (" w1",)), ("monotonic", (" w1.",))])
def test_a_net_that_decides_for_itself_has_decided_for_its_full_stop(kind, words):
    """Whoever says a draft of another net before its end leaves the stop for later."""
    units = Pieces(("<pad>", "<s>", "</s>", "<unk>", "w1", ".▁"), "suffix")
    model = ExportedModel(kind, ToyNet(kind), units, None)
    stream = model.open("en", "de")
    looks = (np.ones(1, np.float32),) * 2
    draft = model._finished(stream, Found((4, 5), (-0.1, -0.1), looks, ended=True), Ask())
    assert draft.words == words

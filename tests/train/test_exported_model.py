"""Exported nets as models: heard in any chunks, in batches, with every policy that fits."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.audio.chunk import RATE, Chunk
from dragoman.detectors import CtcWords, LearnedBoundaries
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Feature, Sound
from dragoman.models.exported.caat_search import Beam
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.model import BOUNDS, ExportedModel
from dragoman.models.exported.net import BOS
from dragoman.models.guard import cut_loop
from dragoman.models.load import load_model
from dragoman.models.search import Prompt, search
from dragoman.policies import AlignAtt, Follow, LocalAgreement, Offline, WaitK


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    samples = np.random.default_rng(seed).standard_normal(int(seconds * RATE))
    return (0.1 * samples).astype(np.float32)


def chunks(samples: np.ndarray, size: int) -> list[Chunk]:
    pieces = [samples[at : at + size] for at in range(0, len(samples), size)]
    return [Chunk(piece, i == len(pieces) - 1) for i, piece in enumerate(pieces)]


def said(model: ExportedModel, policy, samples: np.ndarray, size: int = 4000, **settings) -> str:
    interpreter = Interpreter(model, policy, source="en", target="de", **settings)
    return "".join(
        word for update in interpreter.run(chunks(samples, size)) for word in update.said
    )


@pytest.fixture(scope="session")
def model_of(exporter):
    loaded = {}

    def load(label: str) -> ExportedModel:
        if label not in loaded:
            loaded[label] = load_model(str(exporter.folder_of(label)), threads=1)
        return loaded[label]

    return load


def test_offline_says_what_the_net_says_of_the_whole(model_of):
    model = model_of("transformer")
    samples = sound(3.0)
    stream = model.open("en", "de")
    model.hear([stream], [Sound(samples, last=True, closing=True)])
    features, net = stream.sound.frames[None], model._net
    encoding = net.encode(features, np.array([features.shape[1]]))
    prompts = [Prompt((BOS,), 10 + int(encoding.lengths[0]))]
    texts = Texts(net, [encoding.memory], [int(encoding.lengths[0])], prompts)
    found = search(texts, prompts, beams=5)[0]
    tokens = found.tokens[: cut_loop([], found.tokens)]  # an untrained net stammers
    expected = "".join(model._target.words(tokens, ended=True).words)
    assert said(model, Offline(), samples) == expected


def test_features_are_those_of_training(model_of, exporter):
    """The same sound through the training front end and the exported encoder."""
    from dragoman.train.data.fbank import Fbank

    model, net, samples = model_of("transformer"), exporter.net("transformer"), sound(2.0)
    stream = model.open(None, "de")
    model.hear([stream], [Sound(samples[:7777])])
    model.hear([stream], [Sound(samples[7777:], last=True, closing=True)])
    assert stream.heard_ms == 2000
    sounds, lengths = torch.from_numpy(samples * 32768)[None], torch.tensor([len(samples)])
    with torch.no_grad():
        features, lengths = Fbank(16)(sounds, lengths)
        states = net.encode(features, lengths).states
        expected = net.memory(states)
    for found, tensor in zip(stream.encoded.memory, expected, strict=True):
        np.testing.assert_allclose(found, tensor.numpy(), atol=2e-3)


@pytest.mark.parametrize("size", [1600, 5333, 48000])
def test_an_incremental_net_hears_the_same_in_any_chunks(model_of, exporter, size):
    model, net = model_of("incremental"), exporter.net("incremental")
    samples = sound(3.0, seed=1)
    stream = model.open("en", "de")
    for chunk in chunks(samples, size):
        model.hear([stream], [Sound(chunk.samples, last=chunk.last, closing=chunk.last)])
    whole = model.open("en", "de")
    model.hear([whole], [Sound(samples, look=False)])
    features = torch.from_numpy(whole.sound.frames)[None]
    with torch.no_grad():
        encoded = net.encode(features, torch.tensor([features.shape[1]]))
        memory = net.memory(encoded.states)
    assert stream.encoded.states == encoded.states.shape[1]
    for found, expected in zip(stream.encoded.memory, memory, strict=True):
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("label", ["transformer", "incremental", "vgg-blstm"])
def test_a_batch_of_streams_is_each_of_them(model_of, label):
    model = model_of(label)
    sounds = [sound(2.0, seed=2), sound(1.3, seed=3), sound(2.7, seed=4)]

    def drafts(members):
        streams = [model.open("en", "de") for _ in members]
        made = []
        for last in (False, True):
            halves = [np.array_split(sounds[i], 2)[int(last)] for i in members]
            model.hear(streams, [Sound(half, last=last, closing=last) for half in halves])
            asks = [Ask(max_tokens=4, final=last) for _ in members]
            made.append(model.draft(streams, asks))
            for stream, draft in zip(streams, made[-1], strict=True):
                model.commit(stream, draft, min(2, len(draft.tokens)))
        return list(zip(*made, strict=True))

    together = drafts(range(3))
    for i in range(3):
        alone = drafts([i])[0]
        for here, there in zip(together[i], alone, strict=True):
            assert here.tokens == there.tokens
            assert here.words == there.words
            np.testing.assert_allclose(here.log_probs, there.log_probs, atol=1e-4)


@pytest.mark.parametrize(
    ("label", "policy"),
    [
        ("transformer", WaitK(k=2)),
        ("transformer", LocalAgreement()),
        ("transformer", AlignAtt()),
        ("incremental", WaitK(k=1)),
        ("vgg-blstm", WaitK(k=1)),
        pytest.param("mma", Follow(), marks=pytest.mark.slow),
        pytest.param("mma-learned", Follow(), marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_policies_interpret_to_the_end(model_of, label, policy):
    model = model_of(label)
    detector = CtcWords() if Feature.CTC in model.features else None
    text = said(model, policy, sound(4.0), detector=detector)
    again = said(model, policy, sound(4.0), detector=detector)
    assert text == again
    assert text.startswith(" ")


@pytest.mark.slow
def test_a_transducer_writes_what_its_search_finds(model_of, monkeypatch):
    model = model_of("caat")
    assert Feature.DECISIONS in model.features
    # An untrained net stammers, and the guard against loops cuts by what one draft holds.
    monkeypatch.setattr("dragoman.models.guard.cut_loop", lambda said, new: len(new))
    compared = 0
    for seconds in (3.9, 4.0, 4.1, 4.2):
        samples = sound(seconds, seed=5)
        if states_of(model, samples) % model._net.config.decision == 0:
            continue  # a last group that was full is read once more, to end the sentence
        in_steps = said(model, Follow(), samples, size=3200)
        at_once = said(model, Follow(), samples, size=len(samples))
        # The same groups are read in the same order however the sound arrives.
        assert in_steps == at_once
        compared += 1
    assert compared >= 2


def states_of(model: ExportedModel, samples: np.ndarray) -> int:
    stream = model.open("en", "de")
    model.hear([stream], [Sound(samples, last=True, closing=True)])
    return stream.encoded.states


def test_a_forced_prefix_is_gone_on_from(model_of):
    model = model_of("transformer")
    stream = model.open("en", "de")
    model.hear([stream], [Sound(sound(2.0))])
    first = model.draft([stream], [Ask(avoid_end=True, max_tokens=8)])[0]
    model.commit(stream, first, 3)
    second = model.draft([stream], [Ask(avoid_end=True, max_tokens=5)])[0]
    assert second.tokens == first.tokens[3:]  # nothing new was heard
    np.testing.assert_allclose(second.attention, first.attention[3:], atol=1e-5)
    text = "".join(first.words[: first.words_within(3)]) + second.text
    assert text == first.text


def test_attention_is_over_the_sound_heard(model_of):
    model = model_of("transformer")
    stream = model.open("en", "de")
    model.hear([stream], [Sound(sound(2.0))])
    draft = model.draft([stream], [Ask(avoid_end=True, max_tokens=3)])[0]
    assert draft.attention.shape == (3, 49)  # 198 frames, four a state; the last one collects
    assert (draft.frame_ms, draft.start_ms) == (40, 0)
    sums = draft.attention.sum(1)
    assert ((sums > 0.9) & (sums < 1)).all()


def test_each_head_counts_what_it_hears(model_of, exporter):
    """CTC words and word ends, chunk by chunk, against the net over the whole."""
    model, net = model_of("incremental"), exporter.net("incremental")
    assert {Feature.CTC, Feature.BOUNDARIES} <= model.features
    samples, counts = sound(6.0), []
    stream, whole = model.open("en", "de"), model.open("en", "de")
    for chunk in chunks(samples, 8000):
        model.hear([stream], [Sound(chunk.samples, last=chunk.last, closing=chunk.last)])
        heard = stream.heard_ms, stream
        counts.append((CtcWords().count(*heard), LearnedBoundaries().count(*heard)))
    assert counts == sorted(counts)

    model.hear([whole], [Sound(samples, look=False)])
    with torch.no_grad():
        features = torch.from_numpy(whole.sound.frames)[None]
        encoded = net.encode(features, torch.tensor([features.shape[1]]))
    above = encoded.boundary_logits[0] > 0
    assert counts[-1][1] == int((above & ~torch.cat([torch.tensor([False]), above[:-1]])).sum())
    units = torch.unique_consecutive(encoded.ctc_logits[0].argmax(-1)).tolist()
    pieces = [model._source.names[unit] for unit in units if unit != net.blank]
    assert counts[-1][0] == sum(piece.endswith("▁") for piece in pieces)


@pytest.mark.parametrize("label", ["transformer", "incremental", "vgg-blstm", "mma", "caat"])
def test_a_speech_without_a_pause_does_not_grow(model_of, label, monkeypatch):
    # How many texts a transducer follows is nothing to this, and takes most of the time.
    monkeypatch.setattr("dragoman.models.exported.transducer.BEAM", Beam(within=2))
    model = model_of(label)
    stream, words, random = model.open("en", "de"), 0, np.random.default_rng(0)
    spans, cuts = [], 0
    for i in range(12):
        before = stream.start_ms
        model.hear([stream], [Sound(sound(6.0, seed=i))])
        draft = model.draft([stream], [Ask(avoid_end=True, max_tokens=2)])[0]
        # What an untrained net would stammer is replaced by words about what was just heard.
        tokens = tuple(int(token) for token in random.integers(4, len(model._target.names), size=8))
        words_of = model._target.words(tokens, ended=False)
        attention = np.zeros((8, stream.span.frames), np.float32)
        attention[:, -1:] = 1
        if Feature.ATTENTION in model.features:
            made = replace(draft, words=words_of.words, ends=words_of.ends, attention=attention)
            model.commit(stream, replace(made, tokens=tokens), 8)
        else:
            model.commit(stream, draft, len(draft.tokens))
        spans.append(stream.heard_ms - stream.start_ms)
        cuts += stream.start_ms > before
        assert stream.words_heard >= words
        words = stream.words_heard
        assert len(stream.sound.frames) <= 3100
        assert len(stream.window.said) == len(stream.window.looks) <= 100
    assert max(spans) <= BOUNDS.full
    assert cuts >= 2
    assert stream.heard_ms == 72_000


def test_a_closed_utterance_is_forgotten(model_of):
    model = model_of("transformer")
    stream, fresh = model.open("en", "de"), model.open("en", "de")
    model.hear([stream], [Sound(sound(2.0), closing=True)])
    draft = model.draft([stream], [Ask(final=True)])[0]
    heard = stream.words_heard
    model.commit(stream, draft, len(draft.tokens), closed=True)
    assert stream.words_heard == heard
    assert not stream.window.said
    assert stream.words_heard == heard
    next_sound = sound(2.0, seed=9)
    for one in (stream, fresh):
        model.hear([one], [Sound(next_sound, last=True, closing=True)])
    # Two frames straddle the two utterances; from there on nothing is left of the first.
    np.testing.assert_allclose(stream.sound.frames[2:], fresh.sound.frames, atol=1e-4)


def test_wrong_languages_and_texts_are_refused(model_of, exporter):
    model = model_of("transformer")
    with pytest.raises(DragomanError, match="speaks 'de', not 'fr'"):
        model.open("en", "fr")
    with pytest.raises(DragomanError, match="hears 'en', not 'ja'"):
        model.open("ja", "de")
    with pytest.raises(DragomanError, match="another model"):
        model.draft([object()], [Ask()])


def test_folders_that_cannot_interpret_are_refused(exporter, tmp_path):
    folder = shutil.copytree(exporter.folder_of("transformer"), tmp_path / "net")
    config = ExportedNet.read(folder)
    replace(config, input="text").write(folder)
    with pytest.raises(DragomanError, match="reads text"):
        ExportedModel.load(folder)
    units = config.target_units
    replace(config, target_units=units + 1).write(folder)
    with pytest.raises(DragomanError, match=f"has {units} units, but the net {units + 1}"):
        ExportedModel.load(folder)
    config.write(folder)
    (folder / "target.model").unlink()
    with pytest.raises(DragomanError, match="not a SentencePiece model"):
        ExportedModel.load(folder)

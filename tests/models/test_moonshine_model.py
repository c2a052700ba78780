"""Moonshine in the common life of a stream, with a toy for its network; and its real self."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Voice
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft, Sound
from dragoman.models.kind import kind_of
from dragoman.models.load import load_model
from dragoman.models.moonshine.encoder import BEHIND, STATE, Encoded
from dragoman.models.moonshine.model import BOUNDS
from dragoman.models.moonshine.stream import STATE_MS, MoonshineStream
from dragoman.models.moonshine.units import END, START, MoonshineUnits
from dragoman.models.search import Found
from dragoman.models.window import Window
from dragoman.policies import make_policy

from . import made_onnx as made
from .toy_moonshine import (
    FOREIGN,
    LENGTH,
    NAMES,
    STOP,
    WORDS,
    ToyEngine,
    spoken,
    toy,
)


def interpreted(model, sound: np.ndarray, policy: str, step: int) -> str:
    interpreter = Interpreter(model, make_policy(policy), source="en", target="en")
    pieces = [sound[at : at + step] for at in range(0, len(sound), step)]
    said = []
    for index, piece in enumerate(pieces):
        said += interpreter.hear(Chunk(piece, index == len(pieces) - 1)).said
    return "".join(said)


POLICIES = ["greedy", "offline", "local-agreement:n=2", "alignatt:last=400",
            "agreeatt:old=600,alone=1350,sure=0.8"]  # fmt: skip
TALK = st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=90).map(
    lambda words: [word for at, word in enumerate(words) if at == 0 or word != words[at - 1]]
)


@settings(max_examples=30)
@given(TALK, st.sampled_from(POLICIES), st.integers(4000, 40_000))
def test_nothing_that_was_heard_is_lost(words, policy, step):
    model, engine = toy()
    said = interpreted(model, spoken([*words, -1]), policy, step)
    assert [one.strip(".") for one in said.split()] == [f"w{word}" for word in words]
    assert max(engine.windows) <= (BOUNDS.full + 5000) * RATE / 1000


def test_ten_minutes_stay_within_bounds():
    model, engine = toy()
    words = [index % WORDS for index in range(600)]
    said = interpreted(model, spoken(words), "agreeatt:old=600,alone=1350,sure=0.8", RATE)
    assert [one.strip(".") for one in said.split()] == [f"w{word}" for word in words]
    assert max(engine.windows) <= 30 * RATE


@pytest.mark.parametrize("policy", ["greedy", "local-agreement:n=2", "offline"])
def test_another_language_is_passed_over_within_bounds(policy):
    """Of a minute of it nothing is said, and the words of one's own after it are."""
    model, engine = toy()
    engine.knows_languages = True
    foreign, own = [index % FOREIGN for index in range(60)], [*range(FOREIGN, WORDS)] * 4
    said = interpreted(model, spoken(foreign), policy, RATE)
    assert len(said.split()) <= (policy == "greedy")  # which says the first word that it sees
    assert max(engine.windows) <= (BOUNDS.full + 1000) * RATE / 1000
    said = interpreted(model, spoken([*foreign, *own]), policy, RATE)
    kept = [int(word.strip(".")[1:]) for word in said.split()]
    assert kept[-16:] == own[-16:]
    assert sum(word < FOREIGN for word in kept) < 12  # of the window in which the language changes


def test_own_words_are_said_though_some_are_unsure():
    """Every third word is: the mean, (-1.5 - 0.1 - 0.1) / 3, is sure enough."""
    model, engine = toy()
    engine.knows_languages = True
    words = [index % FOREIGN if index % 3 == 2 else FOREIGN + index % 7 for index in range(60)]
    said = interpreted(model, spoken(words), "local-agreement:n=2", RATE)
    assert [one.strip(".") for one in said.split()] == [f"w{word}" for word in words]


def test_streams_are_encoded_together():
    model, engine = toy()
    streams = [model.open("en", "en") for _ in range(3)]
    sounds = [Sound(spoken([index])) for index in range(2)] + [Sound(spoken([3, 4]))]
    model.hear(streams, sounds)
    assert engine.batches == [3]
    drafts = model.draft(streams, [Ask()] * 3)
    assert [draft.text.strip() for draft in drafts] == ["w0", "w1", "w3 w4"]


def test_a_draft_tells_when_its_words_were_heard():
    model, _ = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([5, 6, 7]))])
    draft = model.draft([stream], [Ask(final=True)])[0]
    assert draft.words == (" w5", " w6", " w7.")
    np.testing.assert_allclose(draft.looks(0, 3), [500, 1500, 2500], atol=2 * STATE_MS)
    model.commit(stream, draft, 2)
    assert stream.window.said == [3 + 5, 3 + 6]


def test_silence_is_not_encoded():
    model, engine = toy()
    stream = model.open("en", "en")
    quiet = Sound(np.zeros(8 * RATE, np.float32), Voice(False, False, 8000.0))
    model.hear([stream], [quiet])
    assert model.draft([stream], [Ask(final=True)])[0].tokens == ()
    assert engine.windows == []
    assert len(stream.samples) <= 2 * RATE + STATE
    assert stream.heard_ms == 8000


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("de", "en", "hears English only, not 'de'"),
        ("en", "fr", r"cannot translate it into 'fr'; put a translator .* toy\+opus-en-fr\."),
    ],
)
def test_other_languages_are_refused(source, target, sentence):
    with pytest.raises(DragomanError, match=sentence):
        toy()[0].open(source, target)


def test_bytes_make_letters():
    units = MoonshineUnits(NAMES)
    euro = [STOP + 1, STOP + 2, STOP + 3]
    assert units.text([3, *euro, STOP]) == " w0€."
    grouped = units.words([3, *euro, 4], ended=False)
    assert (grouped.words, grouped.ends, grouped.tail) == ((" w0€",), (4,), " w1")
    assert units.text([3, *euro[:2], 4]) == " w0� w1"  # a letter that never became whole
    assert units.text([START, END, 999]) == ""


def test_bytes_are_counted_with_the_letters_that_they_make():
    units, euro = MoonshineUnits(NAMES), [STOP + 1, STOP + 2, STOP + 3]
    assert units.text(euro) == "€"  # though nothing follows
    grouped = units.words([3, *euro, *euro, 4, 5], ended=True)
    assert grouped.words == (" w0€€", " w1", " w2")
    assert grouped.ends == (7, 8, 9)
    grouped = units.words([3, *euro[:2], 4, 5], ended=True)  # half a letter counts as well
    assert (grouped.words, grouped.ends) == ((" w0\ufffd", " w1", " w2"), (3, 4, 5))
    grouped = units.words([3, *euro[:2], 4, *euro, 5], ended=True)
    assert (grouped.words, grouped.ends) == ((" w0\ufffd", " w1€", " w2"), (3, 7, 8))
    assert (START, END) == (1, 2)  # <s> and </s>
    assert units.name(len(NAMES)) == units.name(len(NAMES) + 5) == ""


def test_a_tokenizer_of_something_else_is_a_sentence(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(DragomanError, match="not Moonshine's tokenizer"):
        MoonshineUnits.load(path)
    for model in ({}, {"vocab": [["▁a", -1.5]]}):  # one of another kind has a list
        path.write_text(json.dumps({"model": model, "added_tokens": []}))
        with pytest.raises(DragomanError, match="not Moonshine's tokenizer"):
            MoonshineUnits.load(path)
    added = [{"id": 1, "content": "<s>"}]
    path.write_text(json.dumps({"model": {"vocab": {"▁a": 3, "<s>": 1}}, "added_tokens": added}))
    assert MoonshineUnits.load(path).names == ("", "", "", "▁a")


def test_a_folder_that_lacks_its_files_is_no_moonshine(tmp_path: Path):
    (tmp_path / "encoder_model.ort").write_bytes(b"")
    assert kind_of(tmp_path) is None
    (tmp_path / "decoder_model_merged.ort").write_bytes(b"nonsense")
    assert kind_of(tmp_path) == "moonshine"
    vocab = {"vocab": {"a": 3}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": vocab, "added_tokens": []}))
    with pytest.raises(DragomanError, match=r"Cannot read .*encoder_model\.ort"):
        load_model(str(tmp_path))


SENTENCES = "The quick brown fox jumps over the lazy dog. It was a bright cold day in April."


@pytest.mark.parametrize(
    ("silence_ms", "closing", "seen_ms"),
    [(500, True, 2000), (500, False, 2500), (0, True, 2500), (2400, True, 2500)],
)
def test_the_silence_behind_what_is_over_is_not_looked_at(silence_ms, closing, seen_ms):
    """Unless nearly all is silence: then something was spoken that the ear did not notice."""
    model, _ = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    voice = Voice(speaking=not silence_ms, silence_ms=silence_ms)
    model.hear([stream], [Sound(spoken([-1])[: RATE // 2], voice, closing, closing)])
    assert len(stream.states) == int(seen_ms * RATE / 1000) // STATE
    assert "".join(model.draft([stream], [Ask(final=closing)])[0].words).split()[0] == "w4"


@pytest.mark.parametrize(("closing", "encoded"), [(False, 1), (True, 3)])
def test_what_is_over_is_encoded_as_a_whole(closing, encoded, monkeypatch):
    """Before, states that saw a second of what followed were as good as it gets."""
    model, engine = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    given = []

    def encode(windows, sounds):
        given.append((windows[0].count, len(sounds[0])))
        return ToyEngine.encode(engine, windows, sounds)

    monkeypatch.setattr(engine, "encode", encode)
    model.hear([stream], [Sound(spoken([5]), last=closing, closing=closing)])
    ((before, samples),) = given
    assert (before == 0) == closing
    assert samples // LENGTH == encoded
    assert len(stream.states) == 3 * LENGTH // STATE


@pytest.mark.weights
def test_a_recording_that_ends_in_silence_ends_with_its_sentence():
    """Half a second of it made an "and" of a full stop, and there was none in the translation."""
    from dragoman.audio.source import open_audio
    from dragoman.setup import Setup, System

    setup = Setup("moonshine-base+mt-en", "en", "de", threads=1).tuned(2000.0)
    try:
        system = System(setup)
        system.model  # noqa: B018
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    talk = Path(__file__).parents[2] / "dragoman" / "talks" / "report.en.ogg"
    updates = system.interpreter().run(open_audio(talk, step_ms=setup.step_ms))
    said = "".join(word for update in updates for word in update.said)
    assert said.endswith(" Vielen Dank für Ihre Aufmerksamkeit.")


@pytest.mark.weights
def test_it_writes_down_english():
    """Spoken by the English voice that is installed with the package; noise says nothing."""
    import soxr

    from dragoman.audio.ear import Ear
    from dragoman.audio.vad import Vad
    from dragoman.voices.hibari import HibariVoice

    try:
        model, vad = load_model("moonshine-tiny", threads=2), Vad.load()
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    voice = HibariVoice()
    speech = soxr.resample(voice.speak(SENTENCES), voice.rate, RATE).astype(np.float32)
    noise = 0.1 * np.random.default_rng(0).standard_normal(6 * RATE).astype(np.float32)
    texts = []
    for sound in (np.concatenate([speech, np.zeros(RATE, np.float32)]), noise):
        policy = make_policy("local-agreement:n=2")
        interpreter = Interpreter(model, policy, source="en", ear=Ear(vad.stream()))
        pieces = [sound[at : at + RATE] for at in range(0, len(sound), RATE)]
        updates = [interpreter.hear(Chunk(p, p is pieces[-1])) for p in pieces]
        texts.append("".join(word for update in updates for word in update.said).strip())
    assert texts == [SENTENCES, ""]


def made_folder(folder: Path) -> Path:
    """A small Moonshine of random weights."""
    made.moonshine_encoder(folder / "encoder_model.onnx", np.uint8)
    made.moonshine_decoder(folder / "decoder_model_merged.onnx", np.uint8)
    vocab = {f"▁w{number}": number for number in range(3, made.WORDS)}
    added = [{"id": number, "content": f"<{number}>"} for number in range(3)]
    tokenizer = {"model": {"vocab": vocab}, "added_tokens": added}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def test_what_a_stream_keeps_is_what_its_window_holds(tmp_path, monkeypatch):
    """From the files on, whatever the net says; sound that left the window left everything."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    model = load_model(str(made_folder(tmp_path)), threads=1, beams=1)
    assert model._beams == 1
    stream = model.open("en", "en")
    random, begun, most = np.random.default_rng(0), set(), 0
    for _ in range(70):
        model.hear([stream], [Sound(random.standard_normal(RATE).astype(np.float32))])
        draft = model.draft([stream], [Ask(max_tokens=4)])[0]
        states, samples = stream.states, len(stream.samples)
        assert samples <= BOUNDS.full * RATE / 1000
        assert len(states) == (samples - BEHIND) // STATE
        assert {array.shape[2] for array in states.memory.values()} == {len(states)}
        kept = max(0, len(states) - 84)  # 2 s, 32,000 samples, are 83.3 states of 384
        assert {array.shape[2] for array in states.past.values()} == {kept}
        most = max(most, kept)
        model.commit(stream, draft, len(draft.tokens))
        begun.add(stream.start_ms)
    assert len(begun) > 3
    assert most > 100
    assert stream.heard_ms == 70_000


def test_a_part_is_encoded_for_itself():
    model, engine = toy(beams=4)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([*range(12)]))])
    whole, level = stream.states, stream.states.level
    stream.window.rest = Draft((3, 4))  # several beams follow no guess
    seen = []
    encode = engine.encode
    engine.encode = lambda windows, sounds: seen.extend(windows) or encode(windows, sounds)
    found, end_ms = model.speak_part(stream)
    assert end_ms == stream.quiet_ms()
    assert 6000 <= end_ms < 12_000
    assert [(window.count, window.level) for window in seen] == [(0, level)]
    assert engine.windows[-1] == int(end_ms * RATE / 1000) // STATE * STATE
    assert found.tokens[:6] == tuple(3 + word for word in range(6))
    assert (engine.beams[-1], engine.prompts[-1].guess) == (4, ())
    assert stream.states is whole
    engine.knows_languages = True  # and -1.5 is what it makes of these words
    assert model.speak_part(stream)[0].tokens == found.tokens  # there are few of them
    stream.sureness = (-1.5,) * 12
    assert model.speak_part(stream)[0] == Found()


# Nets of the workshop in Moonshine's shape.


def test_words_that_a_head_hears_count_from_where_the_text_has_looked():
    """Two states are one for the decoder and the head: 24 ms each, so that 480 ms are ten."""
    window = Window(BOUNDS, MoonshineUnits(("", "", "", "▁in")), said=[3], looks=[1480.0])
    stream = MoonshineStream("en", window, "en", joined=2, words_in=len, start=RATE)
    stream.states = Encoded(labels=np.arange(30))
    assert stream.untold == 30 - 11
    stream.samples = np.zeros(100 * STATE, np.float32)
    stream.forget(stream.start_ms + 20 * STATE_MS)
    assert stream.words_before == 10

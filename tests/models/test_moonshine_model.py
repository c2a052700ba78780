"""Moonshine in the common life of a stream, with a toy for its network; and its real self."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Voice
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft, Feature, Sound
from dragoman.models.exported.config import Languages
from dragoman.models.kind import kind_of
from dragoman.models.load import load_model
from dragoman.models.moonshine.encoder import BEHIND, OPEN, STATE, Encoded
from dragoman.models.moonshine.model import BOUNDS, MoonshineModel
from dragoman.models.moonshine.stream import STATE_MS
from dragoman.models.moonshine.trained import Settings, TrainedMoonshine
from dragoman.models.moonshine.units import END, START, MoonshineUnits
from dragoman.models.search import Found, Past, Prompt
from dragoman.policies import make_policy

from . import made_onnx as made

WORDS = 20
STOP = 3 + WORDS
NAMES = ("", "", "", *(f"▁w{index}" for index in range(WORDS)), ".", "<0xE2>", "<0x82>", "<0xAC>")
LENGTH = RATE  # samples of a word
FOREIGN, FOREIGN_SURENESS = 10, -1.5  # words of another language


def spoken(words: list[int]) -> np.ndarray:
    """A second of a steady level for every word; -1 is silence."""
    return np.repeat(np.float32([(word + 1) / 100 for word in words]), LENGTH)


class ToyEngine:
    """Hears levels: writes the words of its window in order, and a stop at the end."""

    def __init__(self) -> None:
        self.knows_languages = False  # whether it is unsure of the first words of its vocabulary
        self.windows: list[int] = []
        self.batches: list[int] = []
        self.prompts: list[Prompt] = []
        self.beams: list[int] = []
        self.pasts: list[Past | None] = []

    def encode(self, windows, sounds):
        self.batches.append(len(sounds))
        return [self._encode(window, sound) for window, sound in zip(windows, sounds, strict=True)]

    def _encode(self, window: Encoded, sound: np.ndarray) -> Encoded:
        whole = sound[: len(sound) // STATE * STATE]
        states = whole.reshape(1, 1, -1, STATE).mean(3, keepdims=True)
        if window.count:
            states = np.concatenate([window.memory["memory"], states], axis=2)
        self.windows.append(states.shape[2] * STATE)
        return replace(window, count=states.shape[2], memory={"memory": states})

    def speak(self, windows, prompts, beams, pasts=None):
        self.prompts += prompts
        self.beams += [beams] * len(prompts)
        self.pasts += pasts or [None] * len(prompts)
        states = [window.memory["memory"][0, 0, :, 0] for window in windows]
        found = [self._speak(s, p) for s, p in zip(states, prompts, strict=True)]
        if pasts is None:
            return found
        pairs = zip(found, prompts, strict=True)
        return [replace(one, past=Past((*p.known, *p.guess))) for one, p in pairs]

    def _speak(self, states: np.ndarray, prompt: Prompt) -> Found:
        words = heard(states)
        said = [token - 3 for token in prompt.said if token != STOP]
        assert said == [word for word, _ in words[: len(said)]], "what was said is not there"
        found = [(3 + word, middle) for word, middle in words[len(said) :]]
        if found:
            found.append((STOP, 0))
        looks = [np.eye(1, len(states), at, dtype=np.float32)[0] for _, at in found]
        tokens = tuple(token for token, _ in found)[: prompt.most]
        sure = tuple(FOREIGN_SURENESS if 3 <= token < 3 + FOREIGN else -0.1 for token in tokens)
        sure = sure if self.knows_languages else (-0.1,) * len(tokens)
        return Found(tokens, sure, tuple(looks), len(found) <= prompt.most, 0.0)


def heard(states: np.ndarray) -> list[tuple[int, int]]:
    """Levels that last for most of a word, with the state in the middle of each."""
    labels = np.rint(states * 100).astype(int) - 1
    found, begin = [], 0
    for index in range(1, len(labels) + 1):
        if index == len(labels) or labels[index] != labels[begin]:
            if labels[begin] >= 0 and index - begin > 0.6 * LENGTH / STATE:
                found.append((int(labels[begin]), (begin + index) // 2))
            begin = index
    return found


def toy(beams: int = 1) -> tuple[MoonshineModel, ToyEngine]:
    engine = ToyEngine()
    return MoonshineModel("toy", engine, MoonshineUnits(NAMES), beams=beams), engine


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


def test_what_was_said_and_what_may_come_is_told_to_the_search():
    model, engine = toy()
    stream = model.open("en", "en")
    model.hear([stream], [Sound(spoken([5, 6, 7]))])
    draft = model.draft([stream], [Ask()])[0]
    model.commit(stream, draft, 1)
    model.hear([stream], [Sound(spoken([8]))])
    model.draft([stream], [Ask(max_tokens=2)])
    prompt = engine.prompts[-1]
    assert (prompt.start, prompt.said, prompt.most) == ((START,), (8,), 2)
    assert prompt.guess == (9,)  # of the last draft's rest, one less than may be made
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].most == 10 + int(7 * 4.0) - 1


def test_a_draft_follows_one_beam_and_what_is_final_all_of_them():
    model, engine = toy(beams=4)
    streams = [model.open("en", "en") for _ in range(3)]
    for words in ([1, 2], [3]):
        sounds = [Sound(spoken([word + place for word in words])) for place in range(3)]
        model.hear(streams, sounds)
        drafts = model.draft(streams, [Ask(), Ask(final=True), Ask()])
        for stream, draft in zip(streams, drafts, strict=True):
            model.commit(stream, draft, 0)
    said = [draft.text.strip() for draft in drafts]
    assert said == ["w1 w2 w3", "w2 w3 w4.", "w3 w4 w5"]
    assert engine.beams == [1, 1, 4] * 2
    guesses = [prompt.guess for prompt in engine.prompts[3:]]
    assert guesses == [(4, 5), (6, 7), ()]


def test_a_draft_goes_on_from_what_was_computed_of_the_one_before():
    """But not what is final, and not when the window begins elsewhere."""
    model, engine = toy(beams=4)
    stream = model.open("en", "en")

    def past_of_next(word: int, ask: Ask, say: int = 0) -> tuple[int, ...] | None:
        model.hear([stream], [Sound(spoken([word]))])
        model.commit(stream, model.draft([stream], [ask])[0], say)
        past = engine.pasts[-1]
        return None if past is None else past.tokens

    assert past_of_next(1, Ask()) == ()
    assert past_of_next(2, Ask(), say=1) == (START,)
    assert past_of_next(3, Ask()) == (START, 4)  # what was a guess, of which all was said
    assert past_of_next(4, Ask()) == (START, 4, 5)
    assert past_of_next(5, Ask(final=True)) is None
    assert past_of_next(6, Ask()) == ()  # what is final was searched otherwise
    assert past_of_next(7, Ask()) != ()
    stream.window.drop(1)
    stream.forget(1000.0)
    assert past_of_next(8, Ask()) == ()


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
        ("en", "de", r"cannot translate it into 'de'; put a translator .* toy\+TRANSLATOR"),
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
    path.write_text(json.dumps({"model": {}}))
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
    random, begun = np.random.default_rng(0), set()
    for _ in range(70):
        model.hear([stream], [Sound(random.standard_normal(RATE).astype(np.float32))])
        draft = model.draft([stream], [Ask(max_tokens=4)])[0]
        states, samples = stream.states, len(stream.samples)
        assert samples <= BOUNDS.full * RATE / 1000
        assert len(states) == (samples - BEHIND) // STATE
        assert {array.shape[2] for array in states.memory.values()} == {len(states)}
        assert {array.shape[2] for array in states.past.values()} == {max(0, len(states) - OPEN)}
        model.commit(stream, draft, len(draft.tokens))
        begun.add(stream.start_ms)
    assert len(begun) > 3
    assert stream.heard_ms == 70_000


@pytest.mark.parametrize(
    ("ask", "beams"),
    [
        (Ask(), 1),
        (Ask(hasty=True), 1),
        (Ask(final=True), 5),
        (Ask(final=True, hasty=True), 1),  # in haste, what is final is not searched, either
    ],
)
def test_what_is_final_is_searched_with_all_beams_if_there_is_time(ask, beams):
    model, engine = toy(beams=5)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]), last=ask.final, closing=ask.final)])
    (draft,) = model.draft([stream], [ask])
    assert draft.text.strip().strip(".") == "w4 w7"
    assert engine.beams == [beams]


def test_one_draft_for_many_and_few_beams_gives_each_stream_its_own():
    model, engine = toy(beams=5)
    streams = [model.open(None, "en") for _ in range(4)]
    model.hear(streams, [Sound(spoken([word])) for word in range(4)])
    asks = [Ask(), Ask(final=True), Ask(), Ask(final=True)]
    drafts = model.draft(streams, asks)
    assert [draft.text.strip().strip(".") for draft in drafts] == ["w0", "w1", "w2", "w3"]
    assert sorted(engine.beams) == [1, 1, 5, 5]


def test_a_prompt_asks_for_as_many_tokens_as_fit_and_as_are_wanted():
    model, engine = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7, 9]))])
    (draft,) = model.draft([stream], [Ask()])
    assert engine.prompts[-1].most == 10 + 7 * 3  # ten, and seven a second
    assert engine.prompts[-1].guess == ()
    model.commit(stream, draft, 1)
    model.hear([stream], [Sound(spoken([2]))])
    model.draft([stream], [Ask()])
    prompt = engine.prompts[-1]
    assert (prompt.start, prompt.said) == ((START,), (3 + 4,))
    assert prompt.most == 10 + 7 * 4 - 1
    assert prompt.guess == (3 + 7, 3 + 9)  # what was drafted and not said; a stop comes again
    model.hear([stream], [Sound(spoken([5]))])
    model.draft([stream], [Ask(max_tokens=2)])
    assert engine.prompts[-1].most == 2
    assert len(engine.prompts[-1].guess) == 1
    assert not engine.prompts[-1].avoid_end
    model.hear([stream], [Sound(spoken([6]))])
    model.draft([stream], [Ask(avoid_end=True)])
    assert engine.prompts[-1].avoid_end


def test_a_prompt_is_for_the_window_and_for_what_has_not_settled():
    model, engine = toy(beams=5)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7, 9, 2]))])
    stream.forget(2000.0)  # rounded to a state: 24 ms or less are left before
    model.hear([stream], [Sound(spoken([1]))])
    stream.window.settled = Draft((5, 6), log_probs=(-0.1, -0.1))
    stream.window.rest = Draft((5, 6, 3 + 9, 3 + 2))
    for limit, most in ((None, 31), (500, 31), (5, 3), (1, 0)):
        stream.fresh = True
        model.draft([stream], [Ask(max_tokens=limit)])
        assert engine.prompts[-1].most == most  # ten, and seven for each of three seconds
        assert engine.prompts[-1].guess == (3 + 9, 3 + 2)[: max(0, most - 1)]
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].guess == ()  # several beams follow no guess


def test_one_beam_follows_its_guess_to_the_end():
    model, engine = toy(beams=1)
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    stream.window.rest = Draft((3 + 4, 3 + 7))
    model.draft([stream], [Ask(final=True)])
    assert engine.prompts[-1].guess == (3 + 4, 3 + 7)


def unsure(*log_probs: float) -> Found:
    return Found((5,) * len(log_probs), log_probs, (), True)


def test_the_newest_tokens_of_a_draft_say_nothing_about_the_language():
    """Twelve tokens are enough to judge by, the mean shall be -1 or more."""
    model, _ = toy()
    stream = model.open(None, "en")
    edge = unsure(*[-0.9] * 12, -9.0, -9.0)  # the last two are at the edge of the sound
    assert model._if_understood(stream, edge, final=False) is edge
    assert stream.doubted == ()
    assert model._if_understood(stream, edge, final=True) == Found()  # nothing follows them
    assert stream.doubted == edge.log_probs
    foreign = unsure(*[-1.1] * 12, 0.0, 0.0)
    assert model._if_understood(stream, foreign, final=False) == Found()
    assert stream.doubted == (-1.1,) * 12
    stream.sureness = (-0.1,) * 3  # what was said before counts: the mean is -0.9
    assert model._if_understood(stream, foreign, final=False) is foreign


def test_what_was_said_tells_how_sure_one_is():
    model, _ = toy()
    stream = model.open(None, "en")
    model.hear([stream], [Sound(spoken([4, 7]))])
    draft = Draft((7, 10, 12), (" w4", " w7", " w9"), (1, 2, 3), log_probs=(-0.1, -0.2, -0.3))
    model.commit(stream, draft, 2)
    assert stream.sureness == (-0.1, -0.2)
    model.commit(stream, draft.after(2), 1)
    assert stream.sureness == (-0.1, -0.2, -0.3)
    stream.trust([-0.5] * 23)
    assert stream.sureness == (-0.3, *[-0.5] * 23)  # the newest 24


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


def net(languages: Languages, units: dict, **more) -> tuple[TrainedMoonshine, ToyEngine]:
    engine = ToyEngine()
    settings = Settings(len(NAMES), 9, languages, tags={"de": 30, "es": 31})
    return TrainedMoonshine("net", engine, settings, units, **more), engine


def test_a_net_is_told_the_language_and_speaks_more_densely():
    german, spanish = MoonshineUnits(NAMES), MoonshineUnits(NAMES)
    model, engine = net(Languages("en", "de,es"), {"de": german, "es": spanish})
    assert (model.hears, model.speaks) == (("en",), ("de", "es"))
    assert model.features == {Feature.ATTENTION}
    assert model._beams == 5
    for target, tag, units in (("de", 30, german), ("es", 31, spanish)):
        stream = model.open(None, target)
        assert (stream.target, stream.language, stream.window.units) == (target, "en", units)
        assert stream.window.bounds == replace(BOUNDS, full=20_000)
        model.hear([stream], [Sound(spoken([4, 7, 9]))])
        model.draft([stream], [Ask()])
        assert (engine.prompts[-1].start, engine.prompts[-1].most) == ((tag,), 10 + 10 * 3)
    with pytest.raises(DragomanError, match="speaks 'de' and 'es', not 'fr'"):
        model.open("en", "fr")


def test_a_net_that_knows_no_languages_takes_any():
    units = MoonshineUnits(NAMES)
    model, engine = net(Languages(), {"": units}, beams=3)
    assert (model.hears, model.speaks, model._beams) == ((), (), 3)
    stream = model.open(None, "fr")
    assert (stream.language, stream.window.units) == (None, units)
    assert model.open("it", "fr").language == "it"
    model.hear([stream], [Sound(spoken([4]))])
    model.draft([stream], [Ask()])
    assert engine.prompts[-1].start == (1,)  # the beginning of a sentence


def test_a_translation_is_said_however_sure_it_is():
    model, engine = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)}, beams=1)
    engine.knows_languages = True
    stream = model.open("en", "de")
    model.hear([stream], [Sound(spoken([index % FOREIGN for index in range(15)]))])
    assert len(model.draft([stream], [Ask()])[0].words) == 15


def test_words_are_counted_by_a_net_that_hears_them():
    model, _ = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)}, words_in=lambda one: 7)
    assert model.features == {Feature.ATTENTION, Feature.CTC}
    stream = model.open("en", "de")
    model.hear([stream], [Sound(spoken([4]))])
    assert stream.words_heard == 7
    silent, _ = net(Languages("en", "de"), {"de": MoonshineUnits(NAMES)})
    stream = silent.open("en", "de")
    silent.hear([stream], [Sound(spoken([4]))])
    assert stream.words_heard == 0
    assert Settings(1, 1, Languages(), {}).decides == "no"

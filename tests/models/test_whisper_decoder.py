"""The decoder against a straightforward one: caches, guesses, batches and beams change nothing."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.graphs import Graphs
from dragoman.models.search import FORBIDDEN, Prompt, Scores, Search
from dragoman.models.whisper.decoder import ANYTHING, Decoder, Rules
from dragoman.models.whisper.weights import Weights

from . import tiny_whisper as tiny

START = (20, 21)
NEVER, NOT_FIRST = [20, 21, 22, tiny.NO_SPEECH], [3, tiny.END]


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    return tiny.weights()


@pytest.fixture(scope="module")
def plain(arrays) -> tiny.PlainDecoder:
    return tiny.PlainDecoder(arrays)


@pytest.fixture(scope="module")
def decoder(arrays, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    path = tmp_path_factory.mktemp("tiny") / "model.bin"
    tiny.write(path, arrays, tiny.TIED)
    return make(path)


def make(path: Path) -> Decoder:
    rules = Rules(
        tiny.WORDS, end=tiny.END, no_speech=tiny.NO_SPEECH, never=NEVER, not_first=NOT_FIRST
    )
    return Decoder(Weights(path), rules, tiny.ALIGNMENT, Graphs(None, 1))


def sound(states: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((states, tiny.WIDTH)).astype(np.float32)


def log_softmax(logits: np.ndarray, first: bool) -> np.ndarray:
    allowed = logits.copy()
    allowed[NEVER + (NOT_FIRST if first else [])] = -np.inf
    return allowed - np.log(np.exp(allowed).sum())


def plain_greedy(plain, states, prompt: Prompt):
    tokens, log_probs, looks = [], [], []
    while len(tokens) < prompt.most:
        logits, attention = plain([*prompt.known, *tokens], states)
        scores = log_softmax(logits[-1], first=not prompt.said and not tokens)
        token = int(scores.argmax())
        if token == tiny.END:
            return tokens, log_probs, looks, True
        tokens.append(token)
        log_probs.append(scores[token])
        looks.append(attention[-1])
    return tokens, log_probs, looks, False


@pytest.mark.parametrize("said", [(), (5, 6, 7)])
@pytest.mark.parametrize("context", [(), (22, 9, 8)])
def test_greedy_equals_the_plain_decoder(decoder, plain, said, context):
    states = sound(11)
    prompt = Prompt(START, 12, said, context)
    spoken = decoder.speak([states], [prompt])[0]
    tokens, log_probs, looks, ended = plain_greedy(plain, states, prompt)
    assert list(spoken.tokens) == tokens
    assert spoken.ended == ended
    np.testing.assert_allclose(spoken.log_probs, log_probs, atol=1e-3)
    np.testing.assert_allclose(np.array(spoken.looks), np.array(looks), atol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("said", [3, 60])
def test_no_text_is_longer_than_the_net_has_positions(decoder, beams, said):
    """A window full of a language of many tokens asks for more than there are."""
    guess = (9,) * 50 if beams == 1 else ()
    prompt = Prompt(START, 100, (5, 6, 7) * (said // 3), (22, 9, 8), guess, avoid_end=True)
    spoken = decoder.speak([sound(11)], [prompt], beams)[0]
    fits = prompt.within(tiny.POSITIONS)
    assert len(spoken.tokens) == fits.most
    assert len(fits.known) + fits.most == tiny.POSITIONS


def test_silence_is_read_after_the_start_of_the_text(decoder, plain):
    states = sound(9)
    spoken = decoder.speak([states], [Prompt(START, 1, (5, 6), (22, 9))])[0]
    logits, _ = plain([22, 9, START[0]], states)
    spread = np.exp(logits[-1] - logits[-1].max())
    assert spoken.silence == pytest.approx(spread[tiny.NO_SPEECH] / spread.sum(), rel=1e-3)


PROMPTS = st.builds(
    lambda said, guess, most, context: Prompt(
        START, most, tuple(said), tuple(context), tuple(guess)[: most - 1]
    ),
    st.lists(st.integers(0, 19), max_size=5),
    st.lists(st.integers(0, 19), max_size=5),
    st.integers(1, 8),
    st.lists(st.integers(0, 19), max_size=3),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(PROMPTS, st.integers(3, 12)), min_size=1, max_size=4))
def test_batch_and_guess_change_nothing(decoder, batch):
    prompts = [prompt for prompt, _ in batch]
    sounds = [sound(states, seed) for seed, (_, states) in enumerate(batch)]
    together = decoder.speak(sounds, prompts)
    for prompt, states, one in zip(prompts, sounds, together, strict=True):
        bare = Prompt(prompt.start, prompt.most, prompt.said, prompt.context)
        alone = decoder.speak([states], [bare])[0]
        assert one.tokens == alone.tokens
        assert one.ended == alone.ended
        np.testing.assert_allclose(one.log_probs, alone.log_probs, atol=0.05)
        assert np.log(one.silence) == pytest.approx(np.log(alone.silence), abs=0.05)
        for look, other in zip(one.looks, alone.looks, strict=True):
            np.testing.assert_allclose(look[: len(states)], other, atol=0.05)


def test_a_state_counts_as_often_as_its_weight_says(decoder):
    """The third of five states three times, or once with the weight of three: for the language and
    for a text, of each of several sounds for itself."""
    short, long = sound(5), sound(8, seed=1)
    thrice = np.repeat(short, [1, 1, 3, 1, 1], axis=0)
    weight = np.log(np.float32([1, 1, 3, 1, 1]))
    weighed = decoder.first(decoder.remember(short), 20, weight)
    np.testing.assert_allclose(weighed, decoder.first(decoder.remember(thrice), 20), atol=1e-3)
    assert np.abs(weighed - decoder.first(decoder.remember(short), 20)).max() > 0.1
    memories = [decoder.remember(one) for one in (long, short)]
    prompts, weights = [Prompt(START, 5, avoid_end=True)] * 2, [np.zeros(8, np.float32), weight]
    made = decoder.go_on(memories, prompts, 1, weights)
    wanted = decoder.speak([long, thrice], prompts)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-2)
    assert (
        np.abs(
            np.subtract(made[1].log_probs, decoder.speak([short], prompts[:1])[0].log_probs)
        ).max()
        > 0.1
    )


def test_a_right_guess_is_taken_in_one_pass(decoder, monkeypatch):
    states = sound(11)
    prompt = Prompt(START, 8, (5,))
    tokens = decoder.speak([states], [prompt])[0].tokens
    passes = []
    original = decoder.read
    monkeypatch.setattr(decoder, "read", lambda *a: passes.append(1) or original(*a))
    guessed = decoder.speak([states], [Prompt(START, 8, (5,), guess=tokens[:7])])[0]
    assert guessed.tokens == tokens
    assert len(passes) == 1


@pytest.mark.parametrize("said", [(), (5,), (5, 9, 4, 7, 5, 8, 6, 4)])
def test_many_beams_find_the_best_text_of_all(decoder, plain, said):
    """With as many beams as there are words nothing can be missed: try every text."""
    states = sound(7, seed=3)
    most = 2
    texts = {}
    known_scores: dict[tuple[int, ...], np.ndarray] = {}
    for length in range(most):  # a text of `most` tokens is cut short, before its end
        for text in product(range(tiny.WORDS), repeat=length):
            total = score(plain, states, said, text, known_scores)
            texts[text] = total / (len(said) + len(text) + 1)
    best = max(texts, key=texts.__getitem__)
    spoken = decoder.speak([states], [Prompt(START, most, said)], beams=tiny.WORDS)[0]
    assert spoken.ended
    assert spoken.tokens == best


def score(plain, states, said, text: tuple[int, ...], known_scores) -> float:
    """The log-probability of a text with its end."""
    total = 0.0
    for position in range(len(text) + 1):
        known = text[:position]
        if known not in known_scores:
            logits, _ = plain([*START, *said, *known], states)
            known_scores[known] = log_softmax(logits[-1], first=not said and not known)
        token = text[position] if position < len(text) else tiny.END
        total += known_scores[known][token]
    return total


def test_the_end_can_be_avoided(decoder):
    sounds = [sound(11, seed) for seed in range(40)]
    free = decoder.speak(sounds, [Prompt(START, 25)] * 40)
    chosen = next(index for index, spoken in enumerate(free) if spoken.ended)
    forced = decoder.speak([sounds[chosen]], [Prompt(START, 25, avoid_end=True)])[0]
    assert not forced.ended
    assert len(forced.tokens) == 25
    assert forced.tokens[: len(free[chosen].tokens)] == free[chosen].tokens


def test_other_number_formats_read_the_same(arrays, plain, tmp_path: Path):
    """A file of 8-bit weights is taken as it is."""
    stored = {}
    for key, array in arrays.items():
        if key.endswith("weight"):
            scale = 127 / np.abs(array).max(axis=1)
            stored[key] = np.rint(array * scale[:, None]).astype(np.int8)
            stored[f"{key}_scale"] = scale.astype(np.float32)
        else:
            stored[key] = array
    scales = {f"{alias}_scale": f"{name}_scale" for alias, name in tiny.TIED.items()}
    tiny.write(tmp_path / "model.bin", stored, tiny.TIED | scales)
    spoken = make(tmp_path / "model.bin").speak([sound(11)], [Prompt(START, 6)])[0]
    # The embedding is read in 8 bits too: the plain decoder gets the same rounded one.
    rounded = dict(arrays)
    embedding = stored["decoder/embeddings/weight"]
    scale = stored["decoder/embeddings/weight_scale"]
    rounded["decoder/embeddings/weight"] = embedding / scale[:, None]
    tokens, *_ = plain_greedy(tiny.PlainDecoder(rounded), sound(11), Prompt(START, 6))
    assert list(spoken.tokens) == tokens


def test_a_damaged_file_is_refused(tmp_path: Path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"\x06\x00\x00\x00nonsense that goes on for a while")
    with pytest.raises(DragomanError, match="CTranslate2"):
        Weights(path)
    tiny.write(path, {"other": np.zeros(3, np.float32)}, {})
    with pytest.raises(DragomanError, match="no variable"):
        Weights(path).array("decoder/embeddings/weight")


def test_what_may_be_made_where():
    """Token 1 never, 2 not first, and 3 ends the text."""
    rules = Rules(5, end=3, no_speech=4, never=[1], not_first=[2])

    def barred(first: bool, avoid_end: bool) -> list[int]:
        row = rules.allowed[rules.kind(first=first, avoid_end=avoid_end)]
        assert set(row.tolist()) <= {0.0, float(FORBIDDEN)}
        return np.flatnonzero(row).tolist()

    assert barred(first=False, avoid_end=False) == [1]
    assert barred(first=True, avoid_end=False) == [1, 2]
    assert barred(first=False, avoid_end=True) == [1, 3]
    assert barred(first=True, avoid_end=True) == [1, 2, 3]
    assert not rules.allowed[ANYTHING].any()


@pytest.mark.parametrize(("said", "found"), [((), (0, 1)), ((3,) * 9, ())])
def test_what_was_said_counts_as_tokens(said, found):
    """Two likely tokens beat an early end, but late in a text they are padding."""
    search = Search(Prompt(START, 5, said), end=2, beams=2)
    #           now    after token 0   and token 1
    steps = [(0.5, 0.05, 0.4), (0.05, 0.6, 0.05), (0.05, 0.05, 0.85)]
    for a, b, end in steps:
        row = np.log(np.array([a, b, end, 1 - a - b - end], np.float32))
        texts = len(search.tokens)
        search.advance(Scores(np.tile(row, (texts, 1)), np.zeros((texts, 1), np.float32)))
    assert search.result().tokens == found

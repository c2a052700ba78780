"""The device's decoder and search, on the CPU, against the plain ones: token for token."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.models.search import Prompt, Scores, search
from dragoman.models.whisper.decoder import Rules
from dragoman.models.whisper.weights import Weights

from . import tiny_whisper as tiny

torch = pytest.importorskip("torch")

from dragoman.models.gpu.beams import GROUP, likeliest  # noqa: E402
from dragoman.models.gpu.choice import Choice  # noqa: E402
from dragoman.models.gpu.decoder import Decoder  # noqa: E402
from dragoman.models.gpu.layers import Reader  # noqa: E402
from dragoman.models.gpu.speaker import states_filled  # noqa: E402
from dragoman.models.gpu.speaking import Speaking  # noqa: E402
from dragoman.models.gpu.texts import CapturedTexts, aligned  # noqa: E402

START = (20, 21)
NEVER, NOT_FIRST = [20, 21, 22, tiny.NO_SPEECH], [3, tiny.END]
CPU = torch.device("cpu")


class Exact(tiny.PlainDecoder):
    """The plain decoder in full precision."""

    def linear(self, x, name):
        y = x @ self.arrays[f"{name}/weight"].T
        return y + self.arrays.get(f"{name}/bias", 0.0)


class PlainTexts:
    """The plain decoder as the search of the CPU sees it: every text anew for every token."""

    end = tiny.END

    def __init__(self, plain: Exact, sounds, prompts):
        self._plain = plain
        self._going = list(zip(prompts, sounds, strict=True))
        self._texts = [[] for _ in prompts]  # new tokens
        self._rules = Rules(
            tiny.WORDS, end=tiny.END, no_speech=tiny.NO_SPEECH, never=NEVER, not_first=NOT_FIRST
        )

    def _scores(self, prompt, states, texts):
        log_probs, looks = [], []
        for text in texts:
            logits, attention = self._plain([*prompt.known, *text], states)
            first = not prompt.said and not text
            kind = self._rules.kind(first=first, avoid_end=prompt.avoid_end)
            allowed = logits[-1] + self._rules.allowed[kind]
            log_probs.append(allowed - np.log(np.exp(allowed).sum()))
            looks.append(attention[-1])
        return Scores(np.array(log_probs), np.array(looks))

    def read_known(self):
        return [self._scores(prompt, states, [[]]) for prompt, states in self._going]

    def read(self, tokens):
        self._texts = [[*text, token] for text, token in zip(self._texts, tokens, strict=True)]
        each, scores, at = [len(rows) for rows in self._rows], [], 0
        for (prompt, states), count in zip(self._going, each, strict=True):
            scores.append(self._scores(prompt, states, self._texts[at : at + count]))
            at += count
        return scores

    def drop(self, counts):
        assert not any(counts)

    def follow(self, prompts, texts):
        self._going = [self._going[index] for index in prompts]
        self._rows = texts
        self._texts = [self._texts[row] for rows in texts for row in rows]


@pytest.fixture(scope="module")
def arrays():
    return tiny.weights()


@pytest.fixture(scope="module")
def net(arrays, tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("tiny") / "model.bin"
    tiny.write(path, arrays, tiny.TIED)
    decoder = Decoder(Reader(Weights(path), CPU, torch.float64), tiny.ALIGNMENT)
    return decoder, choice_of(decoder)


def choice_of(decoder):
    return Choice(
        decoder, CPU, end=tiny.END, no_speech=tiny.NO_SPEECH, never=NEVER, not_first=NOT_FIRST
    )


def sound(states: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((states, tiny.WIDTH))


def stacked(sounds):
    longest = max(map(len, sounds)) + 3  # what fills them up is of no meaning
    filled = np.full((len(sounds), longest, tiny.WIDTH), 7.0)
    for row, one in zip(filled, sounds, strict=True):
        row[: len(one)] = one
    return torch.from_numpy(filled), torch.tensor([len(one) for one in sounds])


PROMPTS = st.builds(
    lambda said, most, context, avoid, least: Prompt(
        START, most, tuple(said), tuple(context), avoid_end=avoid, least=least
    ),
    st.lists(st.integers(0, 19), max_size=5),
    st.integers(0, 12),
    st.lists(st.integers(0, 19), max_size=3),
    st.booleans(),
    st.sampled_from([0, 0, 2]),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(PROMPTS, st.integers(3, 12)), min_size=1, max_size=6),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 5),
    st.sampled_from([(), (3,), (1, 2, 5)]),
)
def test_texts_are_those_of_the_plain_search(net, arrays, batch, beams, seed, captured):
    prompts = [prompt for prompt, _ in batch]
    sounds = [sound(states, seed + number) for number, (_, states) in enumerate(batch)]
    expected = search(PlainTexts(Exact(arrays), sounds, prompts), prompts, beams)
    fixed = [
        CapturedTexts(*net, sounds=size, states=16, beams=beams, tokens=16) for size in captured
    ]
    found = Speaking(*net, stacked(sounds), prompts, beams, fixed).results()
    for one, other, states in zip(found, expected, sounds, strict=True):
        assert one.tokens == other.tokens
        assert one.ended == other.ended
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-5)
        for look, plain in zip(one.looks, other.looks, strict=True):
            np.testing.assert_allclose(look[: len(states)], plain, atol=1e-6)
            assert not look[len(states) :].any()


def test_a_sound_takes_memory_for_its_texts_and_for_itself(net):
    """Of five states and three texts of four tokens, in numbers of eight bytes: keys and values of
    17 places, in two layers eight wide; twelve looks at five states; both twice. And 30 words that
    may follow each text, in four bytes, three times."""
    decoder, _ = net
    keys_and_values, looks = 2 * 2 * 8 * 17 * 8, 12 * 5 * 8
    assert decoder.bytes_of(5, 3, 4) == 2 * (keys_and_values + looks) + 3 * 30 * 4 * 3
    assert decoder.bytes_of(5, 3) == decoder.bytes_of(5, 3, 128)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_likeliest_are_those_of_a_sort(count):
    scores = torch.from_numpy(np.random.default_rng(0).standard_normal((40, 30 * GROUP)))
    scores[0, :8] = 9.0 + torch.arange(8) / 10  # several of the best in one group
    values, places = likeliest(scores, count)
    expected = scores.sort(dim=1, descending=True)
    assert torch.equal(values, expected.values[:, :count])
    assert torch.equal(places, expected.indices[:, :count])


def test_sizes_are_filled_up_to_what_is_multiplied_fastest():
    assert [aligned(count) for count in (0, 1, 8, 9)] == [0, 8, 8, 16]
    assert [states_filled(count) for count in (0, 1, 64, 65)] == [0, 64, 64, 128]

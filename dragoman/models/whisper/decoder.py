"""Decoding for a batch of streams, in which all that is known is read at once.

What was said goes through the network in one pass. So does a guess at what comes next, which is
the rest of the draft before: as far as it is what the network would say, and with several beams is
sure of, it stands; from there on tokens are made one by one. To a greedy search a guess saves time
and changes nothing.

What was said need not even be read again: a `Past` has what was computed of it when it was drafted,
of the sound that was heard by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.graphs import Graphs
from dragoman.models.search import FORBIDDEN, Floats, Found, Past, Prompt, Scores, search
from dragoman.models.whisper.graph import Shape, decoder_graph, memory_graph
from dragoman.models.whisper.tape import Memory, Tape
from dragoman.models.whisper.weights import Weights

States = NDArray[np.float32]
"""What an encoder makes of a window: `[states, width]`."""

ANYTHING = 0  # the kind of place at which every token is allowed


class Rules:
    """Which tokens may be made."""

    def __init__(
        self, words: int, *, end: int, no_speech: int, never: list[int], not_first: list[int]
    ) -> None:
        self.end = end
        self.no_speech = no_speech
        self.allowed = np.zeros((5, words), np.float32)  # by kind of place: added to the logits
        self.allowed[1:, never] = FORBIDDEN
        self.allowed[self.kind(first=True, avoid_end=False), not_first] = FORBIDDEN
        self.allowed[self.kind(first=True, avoid_end=True), not_first] = FORBIDDEN
        self.allowed[self.kind(first=False, avoid_end=True) :, end] = FORBIDDEN

    @staticmethod
    def kind(*, first: bool, avoid_end: bool) -> int:
        """The kind of a place in a text, as a row of `allowed`."""
        return 1 + first + 2 * avoid_end

    def silence(self, log_probs: Floats) -> float:
        """The probability of silence, from what may follow the start of a text."""
        return float(np.exp(log_probs[self.no_speech]))


class Decoder:
    """The decoder of one model."""

    def __init__(
        self,
        weights: Weights,
        rules: Rules,
        alignment: Sequence[tuple[int, int]],
        graphs: Graphs,
        *,
        exact: bool = False,
    ) -> None:
        """`exact`: in 32-bit floats; else in 8 bits."""
        heads = [list(head) for head in alignment]
        self._memory = graphs.session(
            "memory", lambda: memory_graph(weights, exact=exact), of=exact
        )
        self._network = graphs.session(
            "decoder", lambda: decoder_graph(weights, alignment, exact=exact), of=[heads, exact]
        )
        self._memory_names = [output.name for output in self._memory.get_outputs()]
        self._output_names = [output.name for output in self._network.get_outputs()]
        self._weights = weights
        self.shape = Shape.of(weights)
        self._positions = weights.array("decoder/position_encodings/encodings")
        self.rules = rules

    def speak(
        self, states: Sequence[States], prompts: Sequence[Prompt], beams: int = 1
    ) -> list[Found]:
        """Continue every prompt, of states that nobody has remembered yet."""
        return self.go_on([self.remember(one) for one in states], prompts, beams)

    def go_on(
        self,
        memories: Sequence[Memory],
        prompts: Sequence[Prompt],
        beams: int = 1,
        weights: Sequence[Floats] | None = None,
        pasts: Sequence[Past] | None = None,
    ) -> list[Found]:
        """Continue every prompt, given what was remembered of its sound.

        `weights`: what is added to the score of each of its states; nothing by default. `pasts`:
        what was computed of each prompt before, which is not computed again; then the probability
        of silence is unknown, and what was found has a past to go on from.
        """
        prompts = [prompt.within(len(self._positions)) for prompt in prompts]
        texts = Texts(self, memories, prompts, weights, pasts)
        found = search(texts, prompts, beams)
        if pasts is not None:
            return [replace(one, past=past) for one, past in zip(found, texts.pasts, strict=True)]
        return [replace(one, silence=s) for one, s in zip(found, texts.silences, strict=True)]

    def remember(self, states: States) -> Memory:
        """Every layer's keys and values of the sound."""
        outputs = self._memory.run(None, {"states": states[None]})
        return dict(zip(self._memory_names, outputs, strict=True))

    def first(self, memory: Memory, token: int, weight: Floats | None = None) -> Floats:
        """The log-probabilities of what follows the first token of a text."""
        tape = Tape([memory], self.shape, None if weight is None else [weight])
        log_probs, _ = self.read(tape, [[token]], [[0]], [[ANYTHING]])
        first: Floats = log_probs[0, 0]
        return first

    def read(
        self,
        tape: Tape,
        texts: Sequence[Sequence[int]],
        rows: Sequence[Sequence[int]],
        kinds: Sequence[Sequence[int]],
    ) -> tuple[Floats, Floats]:
        """Read further tokens: the log-probabilities of what may follow the wanted rows, which are
        places of these kinds, and where each token looked."""
        width = max(map(len, texts))
        tokens = np.array([[0] * (width - len(text)) + list(text) for text in texts])
        positions, mask = tape.extend([width - len(text) for text in texts], width)
        x = self._weights.array("decoder/embeddings/weight", tokens) + self._positions[positions]
        feed: dict[str, NDArray[Any]] = {**tape.cache, **tape.memory}
        feed |= {"x": x, "mask": mask, "memory_mask": tape.memory_mask}
        feed |= {"rows": np.array(rows, np.int64)[..., None], "kinds": np.array(kinds, np.int64)}
        feed["allowed"] = self.rules.allowed
        log_probs, looks, *cache = self._network.run(None, feed)
        names = (name.removeprefix("new_") for name in self._output_names[2:])
        tape.cache = dict(zip(names, cache, strict=True))
        return log_probs, looks.reshape(len(texts), width, -1)


class Texts:
    """The decoder in the middle of a batch of texts, as the search sees it."""

    def __init__(
        self,
        decoder: Decoder,
        memories: Sequence[Memory],
        prompts: Sequence[Prompt],
        weights: Sequence[Floats] | None = None,
        pasts: Sequence[Past] | None = None,
    ) -> None:
        self._decoder, self._rules = decoder, decoder.rules
        self._going = list(prompts)
        self._keeps = pasts is not None  # what is computed now is wanted later
        self.pasts = _fitting(pasts or [Past()] * len(prompts), prompts)
        self._tape = Tape(memories, decoder.shape, weights, self.pasts)
        self.silences: list[float] = []  # in the window of each prompt

    @property
    def end(self) -> int:
        return self._rules.end

    def read_known(self) -> list[Scores]:
        prompts = self._going
        whole = [prompt.whole for prompt in prompts]
        texts = [text[len(past.tokens) :] for text, past in zip(whole, self.pasts, strict=True)]
        width = max(map(len, texts))
        # All texts end in the same column. The wanted rows of each are its start, whose next token
        # says how likely silence is (any row, where that is past), its last known token, and its
        # guess.
        guess = max(len(prompt.guess) for prompt in prompts)
        last = range(width - 1 - guess, width)
        starts = [width - len(t) + len(p.context) for t, p in zip(texts, prompts, strict=True)]
        rows = [[min(start, width - 1), *last] for start in starts]
        unused = [guess - len(prompt.guess) for prompt in prompts]  # rows before the wanted ones
        kinds = []
        for prompt, count in zip(prompts, unused, strict=True):
            first = self._kind(prompt, first=not prompt.said)
            later = [self._kind(prompt)] * len(prompt.guess)
            kinds.append([ANYTHING] * (1 + count) + [first, *later])
        log_probs, looks = self._decoder.read(self._tape, texts, rows, kinds)
        self.silences = [self._rules.silence(row[0]) for row in log_probs]
        if self._keeps:
            self.pasts = [Past(text, self._tape.row(index)) for index, text in enumerate(whole)]
        return [
            Scores(log_probs[index, 1 + count :], looks[index, last.start + count :])
            for index, count in enumerate(unused)
        ]

    def read(self, tokens: Sequence[int]) -> list[Scores]:
        texts = [[token] for token in tokens]
        each = len(texts) // len(self._going)
        kinds = [[self._kind(prompt)] for prompt in self._going for _ in range(each)]
        log_probs, looks = self._decoder.read(self._tape, texts, [[0]] * len(texts), kinds)
        ends = range(each, len(texts) + 1, each)
        return [Scores(log_probs[end - each : end, 0], looks[end - each : end, 0]) for end in ends]

    def drop(self, counts: Sequence[int]) -> None:
        self._tape.drop(counts)

    def follow(self, prompts: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        self._tape.follow(prompts, texts)
        self._going = [self._going[index] for index in prompts]

    def _kind(self, prompt: Prompt, *, first: bool = False) -> int:
        return self._rules.kind(first=first, avoid_end=prompt.avoid_end)


def _fitting(pasts: Sequence[Past], prompts: Sequence[Prompt]) -> list[Past]:
    """As much of each past as is known of its prompt; but all prompts are then read to their ends
    from the same column on, so that what one of them has less the others have less, too."""
    texts = [prompt.whole for prompt in prompts]
    known = [past.known(prompt.known) for past, prompt in zip(pasts, prompts, strict=True)]
    width = max(len(text) - count for text, count in zip(texts, known, strict=True))
    kept = [max(0, len(text) - width) for text in texts]
    return [
        Past(past.tokens[:count], {name: a[:, :, :count] for name, a in past.cache.items()})
        for past, count in zip(pasts, kept, strict=True)
    ]

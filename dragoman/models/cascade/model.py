"""A cascade: a recogniser writes down what it hears, a translator translates that.

They meet in the language that is spoken, if the translator reads that; else in English, if the
recogniser can translate into it: then that translation is the transcript.

There is one policy, the interpreter's, and it judges translations. So that it can, every word of
the transcript keeps the moment it was heard at: what a translated word looks at in the text becomes
the sound that it looks at. The transcript settles by a rule of its own, late (`settled_words`): a
word may change after its translation was said, and then the rest is translated with what it was.

Sentences, and parts of very long ones, are translated one by one. One that has ended is done with
when all its translation was said, and its words are then final; the last one may go on, and is
translated anew whenever more of it is heard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, BatchError, Draft, Feature, Model, Sound, Stream, fail_alone
from dragoman.models.cascade.plan import Planned, planned
from dragoman.models.cascade.stream import CascadeStream, Part, words_of
from dragoman.models.cascade.translator import Pair, Translator
from dragoman.models.choose import PIVOT, with_pivot
from dragoman.models.words import Words, words_after

FRAME_MS = 20.0  # of the attention that policies see


class CascadeModel:
    """Loaded once, shared by all its streams."""

    def __init__(self, name: str, recogniser: Model, translator: Translator) -> None:
        if Feature.ATTENTION not in recogniser.features:
            raise DragomanError(
                f"Model '{recogniser.name}' does not tell when it heard a word, so nothing can be "
                "translated behind it."
            )
        self.name = name
        self._recogniser, self._translator = recogniser, translator
        self.features = (recogniser.features - {Feature.DECISIONS}) | {Feature.TRANSCRIPT}

    @property
    def device(self) -> str:
        """Where the recogniser works, and with it the ear: cpu or cuda."""
        return getattr(self._recogniser, "device", "cpu")

    @cached_property
    def hears(self) -> tuple[str, ...]:
        """Of what the recogniser hears, what comes out translated."""
        return tuple(code for code in self._recogniser.hears if self._translates(code))

    def _translates(self, source: str) -> bool:
        for target in self.speaks:
            with suppress(DragomanError):
                self.open(source, target)
                return True
        return not self.speaks  # nobody knows

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._translator.speaks

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> CascadeStream:
        try:
            pair = self._translator.between(source, target)
        except DragomanError as error:
            return self._through_english(source, target, error)
        if source is None and pair[0] == PIVOT and self._pivots:
            with suppress(DragomanError):  # whatever is spoken
                return CascadeStream(self._recogniser.open(None, PIVOT), pair, PIVOT)
        return CascadeStream(self._recogniser.open(pair[0], pair[0]), pair)

    @property
    def _pivots(self) -> bool:
        """Whether the recogniser seems to translate into English; asked to, it may refuse."""
        speaks, others = self._recogniser.speaks, set(self._recogniser.hears) - {PIVOT}
        return PIVOT in speaks and bool(others)

    def _through_english(
        self, source: str | None, target: str, refused: DragomanError
    ) -> CascadeStream:
        """For a translator that has refused to read what is spoken."""
        recogniser, _, translator = self.name.partition("+")
        if source is None:
            raise refused
        if source == target:  # not there and back
            raise DragomanError(
                f"Model '{self.name}' translates, and does not write down '{source}'.",
                advice=f"a recogniser alone does: --model {recogniser}.",
            )
        try:
            pair = self._translator.between(PIVOT, target)
        except DragomanError:
            raise refused from None
        if self._pivots and source in self._recogniser.hears:
            with suppress(DragomanError):
                return CascadeStream(self._recogniser.open(source, PIVOT), pair, PIVOT)
        raise DragomanError(refused.what, advice=with_pivot(source, translator))

    def hear(self, streams: Sequence[Stream], sounds: Sequence[Sound]) -> None:
        """Hear, and write down what was heard."""
        own = [_own(stream) for stream in streams]
        for stream in own:
            stream.listen()
        errors: dict[int, Exception] = {}
        try:
            self._recogniser.hear([stream.speech for stream in own], sounds)
        except BatchError as several:
            errors = several.errors

        drafts: dict[int, Draft] = {}

        def draft(members: Sequence[int]) -> None:
            asks = [Ask(final=sounds[i].closing) for i in members]
            made = self._recogniser.draft([own[i].speech for i in members], asks)
            drafts.update(zip(members, made, strict=True))

        looking = [i for i, sound in enumerate(sounds) if sound.look and i not in errors]
        errors |= fail_alone(draft, looking)
        for i, made in drafts.items():
            tokens = own[i].write_down(made, closing=sounds[i].closing)
            if not sounds[i].closing:
                self._recogniser.commit(own[i].speech, made, tokens)
        if errors:
            raise BatchError(errors)

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        """What is new to all streams is translated together; no stream changes before it is."""
        own = [_own(stream) for stream in streams]
        plans = [_planned(stream, ask) for stream, ask in zip(own, asks, strict=True)]
        new = [one.sentence for plan in plans for one in plan if one.known is None]
        made = iter(self._translator.translate(new) if new else ())
        drafts = []
        for stream, plan in zip(own, plans, strict=True):
            parts = tuple(one.translated(made) for one in plan)
            stream.remember(parts)
            drafts.append(self._draft(stream, parts))
        return drafts

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        heard = own.heard
        settled = own.take(draft, tokens, closed=closed)
        if settled or closed:
            self._recogniser.commit(own.speech, heard, settled, closed=closed)

    # Drafting.

    def _draft(self, stream: CascadeStream, parts: Sequence[Part]) -> Draft:
        texts: list[str] = []
        ends: list[int] = []
        tail, before, said = "", 0, stream.said
        for part in parts:
            held = stream.unfinished if said else []
            grouped = self._grouped(stream.pair, part, said[: len(said) - len(held)], held)
            texts += grouped.words
            ends += [before + max(0, end - len(held)) for end in grouped.ends]
            tail, before, said = grouped.tail, before + len(part.translation.tokens), []
        return Draft(
            tokens=tuple(token for part in parts for token in part.translation.tokens),
            words=tuple(texts),
            ends=tuple(ends),
            tail=tail,
            log_probs=tuple(value for part in parts for value in _log_probs(part)),
            ended=stream.heard.ended and all(part.translation.ended for part in parts),
            silence=stream.heard.silence,
            **_in_time(parts, stream.heard_ms),
        )

    def _grouped(self, pair: Pair, part: Part, said: Sequence[int], held: Sequence[int]) -> Words:
        """What is left to say of a part, in words: the first may have begun with what is held."""
        tokens, ended = [*held, *part.translation.tokens], part.translation.ended or part.closed
        grouping = partial(self._translator.words, pair=pair)
        return words_after(grouping, said, tokens, ended=ended)


def _planned(stream: CascadeStream, ask: Ask) -> tuple[Planned, ...]:
    """The sentences of what a stream has heard."""
    words = (*stream.final, *words_of(stream.heard, stream.heard_ms, whole=ask.final))
    return tuple(planned(stream, words, final=ask.final))


def _own(stream: Stream) -> CascadeStream:
    if not isinstance(stream, CascadeStream):
        raise DragomanError("This stream was opened by another model.")
    return stream


def _log_probs(part: Part) -> Iterator[float]:
    """Of a word of the translation: that of its token and of the word that it translates."""
    found = part.translation
    for log_prob, row in zip(found.log_probs, found.attention, strict=True):
        yield log_prob + part.words[int(row.argmax())].log_prob


def _in_time(parts: Sequence[Part], now_ms: float) -> dict[str, Any]:
    """Attention over words as attention over time."""
    times = [word.ms for part in parts for word in part.words]
    start_ms = min([*times, now_ms])
    frames = int((now_ms - start_ms) / FRAME_MS) + 1
    rows = []
    for part in parts:
        places = [min(int((word.ms - start_ms) / FRAME_MS), frames - 1) for word in part.words]
        row = np.zeros((len(part.translation.tokens), frames), np.float32)
        np.add.at(row.T, places, part.translation.attention.T)
        rows.append(row)
    attention = np.concatenate(rows) if rows else np.zeros((0, frames), np.float32)
    return {"attention": attention, "frame_ms": FRAME_MS, "start_ms": start_ms}

"""A cascade: a recogniser writes down what it hears, a translator translates that.

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
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from operator import and_, eq
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, BatchError, Draft, Feature, Model, Sound, Stream, fail_alone
from dragoman.models.cascade.stream import CascadeStream, Known, Part, Sentence, Word, words_of
from dragoman.models.cascade.translator import Pair, Translation, Translator
from dragoman.models.words import Words, words_after
from dragoman.text.sentences import COMMAS, ends_sentence, split_sentences

FRAME_MS = 20.0  # of the attention that policies see
# Words of a sentence that may end behind a comma, and of any: translators learn from few that are
# longer, and then lose track; but what ends in mid-phrase is worse.
LONGEST, MOST = 40, 60


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
    def hears(self) -> tuple[str, ...]:
        return self._recogniser.hears

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._translator.speaks

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> CascadeStream:
        pair = self._translator.between(source, target)
        return CascadeStream(self._recogniser.open(pair[0], pair[0]), pair)

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
        return [self._draft(_own(stream), ask) for stream, ask in zip(streams, asks, strict=True)]

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        heard = own.heard
        settled = own.take(draft, tokens, closed=closed)
        if settled or closed:
            self._recogniser.commit(own.speech, heard, settled, closed=closed)

    # Drafting.

    def _draft(self, stream: CascadeStream, ask: Ask) -> Draft:
        heard = stream.heard
        words = (*stream.final, *words_of(heard, stream.heard_ms, whole=ask.final))
        parts = tuple(self._parts(stream, words, ask.final))
        stream.drafted = parts
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
            ended=heard.ended and all(part.translation.ended for part in parts),
            silence=heard.silence,
            **_in_time(parts, stream.heard_ms),
        )

    def _grouped(self, pair: Pair, part: Part, said: Sequence[int], held: Sequence[int]) -> Words:
        """What is left to say of a part, in words: the first may have begun with what is held."""
        tokens, ended = [*held, *part.translation.tokens], part.translation.ended or part.closed
        grouping = partial(self._translator.words, pair=pair)
        return words_after(grouping, said, tokens, ended=ended)

    def _parts(self, stream: CascadeStream, words: Sequence[Word], final: bool) -> Iterator[Part]:
        """The sentences of a transcript, translated; of the first, some may have been said."""
        before, stream.known = stream.known, {}
        said, ends = tuple(stream.said), _unread(words, stream.read)
        for begin, end in pairwise((0, *_bounded(words, ends, stream.read))):
            sentence = tuple(words[begin:end])
            texts = tuple(word.text for word in sentence)
            closed = final or end < len(words) or ends_sentence(texts[-1])
            translation = _gone_on(before.get((texts, closed)), said)
            if translation is None:
                translation = self._translator.translate(
                    texts, said, closed=closed, pair=stream.pair, guess=_guess(before, texts, said)
                )
            stream.known[texts, closed] = (said, translation)
            yield Part(sentence, closed, translation)
            said = ()


def _unread(words: Sequence[Word], read: int) -> list[int]:
    """The ends of sentences; but none among the first `read` words, whose translation was said.

    A recogniser may put a full stop there later on, and what was said behind it would be said again
    as the beginning of the next sentence.
    """
    ends = split_sentences([word.text for word in words])
    return [end for end in ends if end >= read] or ends[-1:]


def _bounded(words: Sequence[Word], ends: Sequence[int], read: int) -> Iterator[int]:
    """The ends of sentences, of which none is too long: a recogniser may forget the full stops.

    One that is gets an end more, but none among the first `read` words, whose translation was said.
    """
    begin = 0
    for end in ends:
        while end - begin > LONGEST and (place := _another_end(words, begin, end, read)):
            begin = place
            yield begin
        yield end
        begin = end


def _another_end(words: Sequence[Word], begin: int, end: int, read: int) -> int:
    """Where a long sentence may end: behind a comma, or else where the speaker took most time; 0:
    not yet, since there may still come a comma."""
    first = max(begin + LONGEST // 2, read - 1)
    commas = [place for place in range(first, end - 1) if words[place].text.endswith(COMMAS)]
    places = [place for place in commas if place < begin + LONGEST] or commas[:1]
    if not places and end - begin > MOST:
        places = [*range(first, min(max(begin + MOST, read), end - 1))]
    return 1 + max(places, key=lambda place: words[place + 1].ms - words[place].ms, default=-1)


def _own(stream: Stream) -> CascadeStream:
    if not isinstance(stream, CascadeStream):
        raise DragomanError("This stream was opened by another model.")
    return stream


def _guess(
    before: dict[Sentence, Known], words: tuple[str, ...], said: tuple[int, ...]
) -> tuple[int, ...]:
    """What may be said next of a sentence: the rest of what would have been, when less of it, or
    something else, was heard."""
    found = {texts: _gone_on(known, said) for (texts, _), known in before.items()}
    near = max(
        (texts for texts, left in found.items() if left is not None),
        key=lambda texts: sum(accumulate(map(eq, texts, words), and_)),
        default=None,
    )
    left = found[near] if near is not None else None
    return left.tokens if left is not None else ()


def _gone_on(known: Known | None, said: tuple[int, ...]) -> Translation | None:
    """What is left of a translation that is known, if what was said since is its beginning."""
    if known is None:
        return None
    before, translation = known
    more = len(said) - len(before)
    if said != (*before, *translation.tokens[:more]):
        return None
    return replace(
        translation,
        tokens=translation.tokens[more:],
        log_probs=translation.log_probs[more:],
        attention=translation.attention[more:],
    )


def _log_probs(part: Part) -> Iterator[float]:
    """Of a word of the translation: that of its token and of the word that it translates."""
    found = part.translation
    for log_prob, row in zip(found.log_probs, found.attention, strict=True):
        yield log_prob + part.words[int(row.argmax())].log_prob


def _in_time(parts: Sequence[Part], now_ms: float) -> dict[str, Any]:
    """Attention over words as attention over time."""
    times = [word.ms for part in parts for word in part.words]
    start_ms = min(times, default=now_ms)
    frames = int((now_ms - start_ms) / FRAME_MS) + 1
    rows = []
    for part in parts:
        places = [min(int((word.ms - start_ms) / FRAME_MS), frames - 1) for word in part.words]
        row = np.zeros((len(part.translation.tokens), frames), np.float32)
        np.add.at(row.T, places, part.translation.attention.T)
        rows.append(row)
    attention = np.concatenate(rows) if rows else np.zeros((0, frames), np.float32)
    return {"attention": attention, "frame_ms": FRAME_MS, "start_ms": start_ms}

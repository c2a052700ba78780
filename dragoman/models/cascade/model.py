"""A cascade: one model writes down what it hears, a text net translates that.

There is one policy, the interpreter's, and it judges translations. So that it can, every word of
the transcript keeps the moment it was heard at: what a translated word looks at in the text becomes
the sound that it looks at. Words of the transcript become final with the words that translate them.

Sentences are translated one by one. One that has ended is done with when all its translation was
said; the last one may go on, and is translated anew whenever more of it is heard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Draft, Feature, Model, Stream
from dragoman.models.cascade.text_net import TextNet, Translation
from dragoman.text.sentences import ends_sentence, split_sentences

FRAME_MS = 20.0  # of the attention that policies see


Sentence = tuple[tuple[str, ...], bool]  # words, and whether they are closed
Known = tuple[tuple[int, ...], Translation]  # after what was said, what would be said


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the transcript."""

    text: str  # with its spacing
    ms: float  # when it was heard
    log_prob: float  # of the least sure of its tokens; 0 once it is final


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence of the transcript, and what is left to say of it."""

    words: tuple[Word, ...]
    closed: bool  # it will not go on
    translation: Translation


@dataclass(frozen=True, slots=True)
class Drafted:
    """What the last draft was made of."""

    heard: Draft
    parts: tuple[Part, ...]


@dataclass(slots=True, eq=False)
class CascadeStream:
    """One speaker. Bounded, since the ears are and a sentence that is done with is forgotten."""

    ear: Stream
    final: tuple[Word, ...] = ()  # words of the open sentence that cannot change any more
    said: list[int] = field(default_factory=list)  # tokens of its translation
    unfinished: list[int] = field(default_factory=list)  # last of them, of a word not whole
    drafted: Drafted | None = None
    known: dict[Sentence, Known] = field(default_factory=dict)  # translations of the last draft

    @property
    def heard_ms(self) -> float:
        return self.ear.heard_ms

    @property
    def pause_ms(self) -> float:
        return self.ear.pause_ms

    @property
    def words_heard(self) -> int:
        return self.ear.words_heard

    @property
    def ends_heard(self) -> int:
        return self.ear.ends_heard


class CascadeModel:
    """Loaded once, shared by all its streams."""

    def __init__(self, name: str, ears: Model, mouth: TextNet) -> None:
        if Feature.ATTENTION not in ears.features:
            raise DragomanError(
                f"Model '{ears.name}' does not tell when it heard a word, so nothing can be "
                "translated behind it."
            )
        self.name, self.ears, self.mouth = name, ears, mouth
        self.features = frozenset(ears.features - {Feature.DECISIONS})

    def open(self, source: str | None, target: str) -> CascadeStream:
        known = self.mouth.net.config.languages
        known.refuse_others(self.name, source, target)
        source = source or known.source
        if not source:
            raise DragomanError(f"Say with --from which language '{self.name}' shall hear.")
        return CascadeStream(self.ears.open(source, source))

    def hear(
        self, streams: Sequence[Stream], chunks: Sequence[Samples], last: Sequence[bool]
    ) -> None:
        self.ears.hear([_own(stream).ear for stream in streams], chunks, last)

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        own = [_own(stream) for stream in streams]
        listening = [Ask(final=ask.final) for ask in asks]
        heard = self.ears.draft([stream.ear for stream in own], listening)
        return [
            self._draft(stream, ask, words)
            for stream, ask, words in zip(own, asks, heard, strict=True)
        ]

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        if own.drafted is None:
            raise DragomanError("Only what was drafted last can be committed.")
        heard, parts = own.drafted.heard, own.drafted.parts
        before = len(own.final)
        if closed:
            self.ears.commit(own.ear, heard, len(heard.tokens), closed=True)
            own.final, own.said, own.unfinished = (), [], []
        else:
            final = _take(own, draft, parts, tokens) - before
            self.ears.commit(own.ear, heard, heard.ends[final - 1] if final > 0 else 0)
        own.drafted = None

    # Drafting.

    def _draft(self, stream: CascadeStream, ask: Ask, heard: Draft) -> Draft:
        words = (*stream.final, *_words(heard, stream.ear.heard_ms, whole=ask.final))
        parts = tuple(self._parts(stream, words, ask.final))
        stream.drafted = Drafted(heard, parts)
        texts: list[str] = []
        ends: list[int] = []
        tail, before, held = "", 0, stream.unfinished
        for part in parts:
            tokens, whole = part.translation.tokens, part.translation.ended or part.closed
            grouped = self.mouth.target.words([*held, *tokens], ended=whole)
            texts += grouped.words
            ends += [before + max(0, end - len(held)) for end in grouped.ends]
            tail, before, held = grouped.tail, before + len(tokens), []
        return Draft(
            tokens=tuple(token for part in parts for token in part.translation.tokens),
            words=tuple(texts),
            ends=tuple(ends),
            tail=tail,
            log_probs=tuple(value for part in parts for value in _log_probs(part)),
            ended=heard.ended and all(part.translation.ended for part in parts),
            silence=heard.silence,
            attention=_in_time(parts, stream.ear.heard_ms),
            frame_ms=FRAME_MS,
        )

    def _parts(self, stream: CascadeStream, words: Sequence[Word], final: bool) -> Iterator[Part]:
        """The sentences of a transcript, translated; of the first, some may have been said."""
        before, stream.known = stream.known, {}
        said, ends = tuple(stream.said), split_sentences([word.text for word in words])
        for begin, end in pairwise((0, *ends)):
            sentence = tuple(words[begin:end])
            texts = tuple(word.text for word in sentence)
            closed = final or end < len(words) or ends_sentence(texts[-1])
            translation = _gone_on(before.get((texts, closed)), said)
            if translation is None:
                translation = self.mouth.translate(texts, said, closed=closed)
            stream.known[texts, closed] = (said, translation)
            yield Part(sentence, closed, translation)
            said = ()


def _own(stream: Stream) -> CascadeStream:
    if not isinstance(stream, CascadeStream):
        raise DragomanError("This stream was opened by another model.")
    return stream


def _take(stream: CascadeStream, draft: Draft, parts: Sequence[Part], tokens: int) -> int:
    """The first tokens of a draft were said: how many words of the transcript that settles."""
    begin, words = 0, 0  # tokens and words of sentences that are done with
    for part in parts:
        end = begin + len(part.translation.tokens)
        if not part.closed or tokens < end:
            new = draft.tokens[begin:tokens]
            settled = max(len(stream.final), _read(part.translation, len(new)))
            stream.final = tuple(replace(word, log_prob=0.0) for word in part.words[:settled])
            stream.said += new
            whole = draft.whole(tokens) - begin  # of the new tokens
            stream.unfinished = [*new[whole:]] if whole > 0 else [*stream.unfinished, *new]
            return words + settled
        begin, words = end, words + len(part.words)
        stream.final, stream.said, stream.unfinished = (), [], []
    return words


def _gone_on(known: Known | None, said: tuple[int, ...]) -> Translation | None:
    """What is left of a translation that is known, if what was said since is its beginning."""
    if known is None:
        return None
    before, translation = known
    more = len(said) - len(before)
    if more < 0 or said != (*before, *translation.tokens[:more]):
        return None
    return replace(
        translation,
        tokens=translation.tokens[more:],
        log_probs=translation.log_probs[more:],
        attention=translation.attention[more:],
    )


def _words(heard: Draft, now_ms: float, *, whole: bool) -> Iterator[Word]:
    """The words of a draft of the ears, with the moments that they look at."""
    assert heard.attention is not None
    start_ms = now_ms - heard.attention.shape[1] * heard.frame_ms
    for text, begin, end in zip(heard.words, (0, *heard.ends), heard.ends, strict=False):
        looks = heard.attention[begin:end]
        newest = int(looks.argmax(axis=1).max()) if looks.size else 0
        sure = min(heard.log_probs[begin:end], default=0.0)
        yield Word(text, start_ms + newest * heard.frame_ms, sure)
    if whole and heard.tail:
        yield Word(heard.tail, now_ms, 0.0)


def _log_probs(part: Part) -> Iterator[float]:
    """Of a word of the translation: that of its token and of the word that it translates."""
    found = part.translation
    for log_prob, row in zip(found.log_probs, found.attention, strict=True):
        yield log_prob + part.words[int(row.argmax())].log_prob


def _in_time(parts: Sequence[Part], now_ms: float) -> NDArray[np.float32]:
    """Attention over words as attention over time: [tokens, frames]. The last frame stays free,
    since policies take it for a sink."""
    times = [word.ms for part in parts for word in part.words]
    start_ms = min(times, default=now_ms)
    frames = int((now_ms - start_ms) / FRAME_MS) + 2
    rows = []
    for part in parts:
        places = [min(int((word.ms - start_ms) / FRAME_MS), frames - 2) for word in part.words]
        row = np.zeros((len(part.translation.tokens), frames), np.float32)
        np.add.at(row.T, places, part.translation.attention.T)
        rows.append(row)
    return np.concatenate(rows) if rows else np.zeros((0, frames), np.float32)


def _read(translation: Translation, tokens: int) -> int:
    """How many words of a sentence its first tokens have read."""
    looks = translation.attention[:tokens]
    return int(looks.argmax(axis=1).max()) + 1 if looks.size else 0

"""What there is to translate of a transcript: its sentences, and what is known of them already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import and_, eq

from dragoman.models.cascade.stream import CascadeStream, Known, Part, Word, Wording
from dragoman.models.cascade.translator import Sentence, Translation
from dragoman.text.sentences import COMMAS, ends_sentence, split_sentences

# Words of a sentence that may end behind a comma, and of any: translators learn from few that are
# longer, and then lose track; but what ends in mid-phrase is worse.
LONGEST, MOST = 40, 60


@dataclass(frozen=True, slots=True)
class Planned:
    """A sentence of a transcript; its translation, if that is known."""

    words: tuple[Word, ...]
    sentence: Sentence
    known: Translation | None

    def translated(self, made: Iterator[Translation]) -> Part:
        """The same with its translation, which is the next that was made, if none is known."""
        translation = next(made) if self.known is None else self.known
        return Part(self.words, self.sentence.closed, translation)


def planned(stream: CascadeStream, words: Sequence[Word], *, final: bool) -> Iterator[Planned]:
    """The sentences of a transcript; of the first, some may have been said."""
    said, ends = tuple(stream.said), _unread(words, stream.read)
    for begin, end in pairwise((0, *_bounded(words, ends, stream.read))):
        own = tuple(words[begin:end])
        texts = tuple(word.text for word in own)
        closed = final or end < len(words) or ends_sentence(texts[-1])
        known = _gone_on(stream.known.get((texts, closed)), said)
        guess = () if known else _guess(stream.known, texts, said)
        yield Planned(own, Sentence(texts, stream.pair, said, closed, guess), known)
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


def _guess(
    before: Mapping[Wording, Known], words: tuple[str, ...], said: tuple[int, ...]
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

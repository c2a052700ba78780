"""One speaker in a cascade: what was written down, what of it has settled, what was said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.errors import DragomanError
from dragoman.models.base import Draft, Stream
from dragoman.models.cascade.translator import Pair, Translation
from dragoman.models.window import boundary
from dragoman.text.again import count_letters

# Age of a word that settles: heard twice, or in any case. A recogniser learns from several seconds
# of what follows whether a comma or a full stop stood behind a word; told that none did, it goes on
# without them, and translations of text without marks are worse.
SETTLED_MS, ALONE_MS = 5000.0, 6000.0

Wording = tuple[tuple[str, ...], bool]  # words, and whether they are closed
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


@dataclass(slots=True, eq=False)
class CascadeStream:
    """One speaker. Bounded, since the recogniser's stream is, and a sentence that is done with is
    forgotten."""

    speech: Stream  # the recogniser's
    pair: Pair  # of the translator
    met: str | None = None  # the language into which the recogniser translates, if it may have to
    heard: Draft = field(default_factory=Draft)  # what the recogniser last wrote down
    final: tuple[Word, ...] = ()  # words of the open sentence that cannot change any more
    said: list[int] = field(default_factory=list)  # tokens of its translation
    read: int = 0  # words of it that these looked at
    unfinished: list[int] = field(default_factory=list)  # last of them, of a word not whole
    drafted: tuple[Part, ...] | None = None  # what the last draft was made of
    known: dict[Wording, Known] = field(default_factory=dict)  # translations of the last draft
    transcript: tuple[str, ...] = ()
    transcript_ms: tuple[float, ...] = ()  # when each of its words was heard
    words_before: int = 0  # words of the transcript that are final
    begin_ms: float = 0.0  # before which all that was heard is done with,
    letters: int = 0  # and how many were said of what was heard since

    @property
    def open(self) -> tuple[float, int] | None:
        """Where the open sentence begins, and how many letters were said of it; where nothing is
        open, where the recogniser's window begins."""
        if self.final or self.heard.tokens:
            return self.begin_ms, self.letters
        window: tuple[float, int] | None = getattr(self.speech, "open", None)
        return window and (max(window[0], self.begin_ms), self.letters)

    @property
    def heard_ms(self) -> float:
        return self.speech.heard_ms

    @property
    def words_heard(self) -> int:
        return self.words_before + len(self.heard.words)

    @property
    def ends_heard(self) -> int:
        return self.speech.ends_heard

    @property
    def language(self) -> str | None:
        return self.speech.language

    @property
    def through(self) -> str | None:
        """The language between the one that is spoken and the target, if there is one."""
        return None if self.language == self.met else self.met

    def listen(self) -> None:
        self.transcript, self.transcript_ms = (), ()

    def write_down(self, heard: Draft, *, closing: bool) -> int:
        """The recogniser has a new draft: how many tokens of it settle."""
        count = 0 if closing else settled_words(heard, self.heard.words, self.heard_ms)
        self.heard = heard
        return self._settle(count)

    def _settle(self, count: int) -> int:
        """The next words will not change any more: how many tokens of the draft these are."""
        if not count:
            return 0
        words = [*words_of(self.heard, self.heard_ms, whole=False)][:count]
        tokens = self.heard.ends[count - 1]
        self.final += tuple(replace(word, log_prob=0.0) for word in words)
        self._tell(words)
        self.heard = self.heard.after(tokens)
        return tokens

    def _tell(self, words: Sequence[Word]) -> None:
        self.transcript += tuple(word.text for word in words)
        self.transcript_ms += tuple(word.ms for word in words)
        self.words_before += len(words)

    def remember(self, parts: tuple[Part, ...]) -> None:
        """What a draft is made of; its translations are known from now on."""
        self.drafted, self.known = parts, {}
        said = tuple(self.said)  # of the first of them
        for part in parts:
            self.known[tuple(word.text for word in part.words), part.closed] = (
                said,
                part.translation,
            )
            said = ()

    def take(self, draft: Draft, tokens: int, *, closed: bool) -> int:
        """The first tokens of a draft were said: how many tokens of the transcript that settles."""
        if self.drafted is None:
            raise DragomanError("Only what was drafted last can be committed.")
        parts, self.drafted = self.drafted, None
        if closed:
            return self._close(parts)
        begin, done = self._say(draft, parts, tokens)
        settled = self._settle(max(0, done - len(self.final)))
        self.final = self.final[done:]
        said = draft.words[: draft.words_within(tokens)]
        # Not behind words that were told: whoever goes on from there would tell them again.
        if done and not self.final:
            times = [word.ms for part in parts for word in part.words]
            self.begin_ms = min(boundary(times[:done], times[done:]), self.heard_ms)
            self.letters, said = 0, said[draft.words_within(begin) :]
        self.letters += count_letters("".join(said))
        return settled

    def _say(self, draft: Draft, parts: Sequence[Part], tokens: int) -> tuple[int, int]:
        """The first tokens of a draft were said: how many of them, and how many words of the
        transcript, are those of sentences that are done with."""
        begin, words = 0, 0
        for part in parts:
            end = begin + len(part.translation.tokens)
            if not part.closed or tokens < end:
                new = draft.tokens[begin:tokens]
                self.said += new
                self.read = max(self.read, _read(part.translation, len(new)))
                whole = max(0, draft.whole(tokens) - begin)  # of the new tokens
                # A word may be whole with none of them: what was held of it does not go on.
                held = [] if draft.words_within(tokens) else self.unfinished
                self.unfinished = [*held, *new[whole:]]
                break
            begin, words = end, words + len(part.words)
            self.said, self.unfinished, self.read = [], [], 0
        return begin, words

    def _close(self, parts: Sequence[Part]) -> int:
        words = [word for part in parts for word in part.words][len(self.final) :]
        tokens = len(self.heard.tokens)
        self._tell(words)
        self.final, self.said, self.unfinished, self.read = (), [], [], 0
        self.heard = Draft()
        self.begin_ms, self.letters = self.heard_ms, 0
        return tokens


def settled_words(heard: Draft, before: Sequence[str], now_ms: float) -> int:
    """How many words of the recogniser's draft will not change any more: those that are old and
    were heard `before` as well, and those that are older still."""
    count, same = 0, True
    for place, word in enumerate(words_of(heard, now_ms, whole=False)):
        same = same and place < len(before) and before[place] == word.text
        if now_ms - word.ms < (SETTLED_MS if same else ALONE_MS):
            break
        count += 1
    return count


def words_of(heard: Draft, now_ms: float, *, whole: bool) -> Iterator[Word]:
    """The words of a draft of the ears, with the moments that they look at."""
    for text, begin, end in zip(heard.words, (0, *heard.ends), heard.ends, strict=False):
        newest = max(heard.looks(begin, end), default=heard.start_ms)
        sure = min(heard.log_probs[begin:end], default=0.0)
        yield Word(text, newest, sure)
    if whole and heard.tail:
        yield Word(heard.tail, now_ms, 0.0)


def _read(translation: Translation, tokens: int) -> int:
    """How many words of a sentence its first tokens have read."""
    looks = translation.attention[:tokens]
    return int(looks.argmax(axis=1).max()) + 1 if looks.size else 0

"""One speaker whom Whisper hears: its mel frames, and what the encoder made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dragoman.audio.chunk import RATE
from dragoman.models.base import Sound
from dragoman.models.drafting import Span
from dragoman.models.life import WindowStream
from dragoman.models.search import Found
from dragoman.models.whisper.engine import View
from dragoman.models.whisper.mel import FRAME_MS, Frames
from dragoman.models.window import quietest
from dragoman.models.words import Units, without_stop
from dragoman.text.again import overlap
from dragoman.text.plain import plain
from dragoman.text.sentences import ends_sentence

STATE_MS = 2 * FRAME_MS  # the encoder makes one state of two frames
SECOND = int(1000 / FRAME_MS)  # in mel frames
PADDING = 4 * SECOND  # silence after the sound; with less of it the network loops
SAME_LEVEL = 0.1  # scaled to levels that differ by less (1 dB), sound looks the same
RENEW_MS = 1500.0  # of new sound, after which a window is renewed: its last seconds encoded again
NEXT_MS = 200.0  # the look at a sentence's first word may move by less than this
JUDGED_MS = 3000.0  # of sound by which one language is told from another
# How likely English is at least where it is spoken, with whatever accent; after three to six
# seconds of German it is less likely. Of languages that resemble each other, such as Croatian and
# Serbian, one is taken for the other: those are not judged. Who was heard to speak English is
# doubted less, since accents come near other languages now and then (0.006 to 0.05), and it is
# worse to say nothing of English for long: of six seconds of German, three quarters are below.
FOREIGN, FOREIGN_BY_NOW, TOLD_APART = 0.05, 0.003, frozenset({"en"})
LEFT_MS, LEFT_WORDS = 400.0, 4  # of words before a window some sound may be left at its head

Spoken = tuple[str, float]  # a word of the source, and when it was heard, in ms


@dataclass(slots=True)
class Transcript:
    """The words of the source as they were heard; only where they are is kept."""

    words_before: int = 0  # the window
    looks: list[float] = field(default_factory=list)  # the moment of each word in it
    words: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()  # a guess for the next time
    told: tuple[str, ...] = ()  # words of the window that were told, as they were heard then
    told_ms: float = -1.0  # where what was told ends
    gone: tuple[str, ...] = ()  # the last words before the window
    start_ms: float = 0.0  # of the window that was written down

    @property
    def count(self) -> int:
        return self.words_before + len(self.looks)

    def renew(self, units: Units, found: Found, start_ms: float) -> None:
        """Take what was written down of the window that begins at a moment."""
        grouped = units.words(found.tokens, ended=found.ended)
        self.tokens, self.words, self.start_ms = found.tokens, grouped.words, start_ms
        self.looks = []
        for begin, end in pairwise((0, *grouped.ends)):
            # A full stop looks at what follows it: the next sentence, be it seconds later.
            letters = without_stop(units, found.tokens[begin:end]) or 1
            peaks = [int(look.argmax()) for look in found.looks[begin : begin + letters]]
            self.looks.append(start_ms + STATE_MS * max(peaks))

    def tell(self, said_ms: float) -> list[Spoken]:
        """The translation has come to a moment: the sentences that ended before it, told once.

        The window may stay where it is for long; readers of both languages do not wait for that.
        """
        before = self._told_before()
        for count in range(len(self.words) - 1, before, -1):
            if self.looks[count] <= said_ms and ends_sentence(self.words[count - 1]):
                self.told = self.words[:count]
                last, following = max(self.looks[:count]), self.looks[count]
                self.told_ms = min(last + (following - last) / 4, following - NEXT_MS)
                return [(self.words[place], self.looks[place]) for place in range(before, count)]
        return []

    def _told_before(self) -> int:
        """How many words of the window were told: by their text; if that has become another, also
        by their moments, which may have moved. Where nothing of it was, all words are new."""
        again = self._again()
        head = self.words[again : again + len(self.told)]
        if list(map(plain, head)) == list(map(plain, self.told)):
            return again + len(self.told)
        by_text = again + overlap(self.told, self.words[again:]).words
        return max(by_text, self._words_until(self.told_ms))

    def _words_until(self, ms: float) -> int:
        """How many words come before a moment: as few looks as can be lie on the wrong side."""
        early = [look <= ms for look in self.looks]
        counts = range(len(early) + 1)
        return min(counts, key=lambda count: early[:count].count(False) + sum(early[count:]))

    def _again(self) -> int:
        """How many words at the head of the window are the last before it: what is left of their
        sound is heard as the word again."""
        if not self.looks or self.looks[0] >= self.start_ms + LEFT_MS:
            return 0
        head, last = list(map(plain, self.words)), list(map(plain, self.gone))
        for count in range(min(len(head), len(last)), 0, -1):
            if any(head[:count] == last[at : at + count] for at in range(len(last))):
                return count
        return 0

    def forget(self, until_ms: float) -> list[Spoken]:
        """The window begins later: the words that were heard before it and not told yet."""
        gone = [place for place, look in enumerate(self.looks) if look < until_ms]
        if not gone:
            return []
        before = self._told_before()
        fresh = [(self.words[place], self.looks[place]) for place in gone if place >= before]
        self.gone = (*self.gone, *(self.words[place] for place in gone))[-LEFT_WORDS:]
        self.words_before += len(gone)
        left = [place for place, look in enumerate(self.looks) if look >= until_ms]
        self.told = tuple(self.words[place] for place in left if place < before)
        self.words = tuple(self.words[place] for place in left)
        self.looks = [self.looks[place] for place in left]
        self.tokens = ()
        return fresh


@dataclass(frozen=True, slots=True)
class Encoding:
    """What the encoder made of a window when it was last renewed."""

    states: Any
    start_ms: float  # of the window,
    end_ms: float  # and up to where it had been heard
    level: float  # that it was scaled to

    def like(self, start_ms: float, level: float) -> bool:
        """Whether the sound that it was made of looks the same as the beginning of a window."""
        return self.start_ms == start_ms and abs(self.level - level) < SAME_LEVEL


@dataclass(slots=True, eq=False, kw_only=True)
class WhisperStream(WindowStream):
    """Bounded however long the talk."""

    mel: Frames
    detects: bool  # the language was not given: detect it
    writes: Transcript | None = None  # of the source, if somebody wants it
    states: Any = None  # what the encoder last made of the window
    whole: Encoding | None = None  # and when the window was last renewed
    expected: str | None = field(init=False)  # the language that it was told
    judged: bool = False  # that is what the window sounds like
    known: bool = False  # that is what was heard last

    def __post_init__(self) -> None:
        self.expected = self.language

    @property
    def heard_ms(self) -> float:
        return self.mel.heard * 1000.0 / RATE

    @property
    def start_ms(self) -> float:
        return self.mel.start * FRAME_MS

    @property
    def frames(self) -> int:
        """Mel frames in the window."""
        return self.mel.frames - self.mel.start

    @property
    def span(self) -> Span:
        """The last state is left out: whatever is spoken, it collects attention."""
        return Span(self.start_ms, max(0, self.frames // 2 - 1), STATE_MS)

    def take_in(self, sound: Sound) -> None:
        self.mel.hear(sound.samples)

    def forget(self, until_ms: float) -> None:
        """The window begins at an even frame: the encoder takes them two by two."""
        frame = int(until_ms / FRAME_MS + 1e-6)
        self.mel.forget(frame - frame % 2)
        self.judged = False
        if self.writes is not None:
            self._tell(self.writes.forget(until_ms))

    def view(self, *, plain: bool = False) -> View[Any]:
        """The window, for the encoder."""
        mel = self.mel.window(PADDING + self.frames % 2)
        whole = self.whole
        if whole is None or not whole.like(self.start_ms, self.mel.loudest):
            return View(mel, self.frames // 2, plain=plain)
        renew = self.heard_ms - whole.end_ms >= RENEW_MS
        return View(mel, self.frames // 2, whole.states, renew or plain, plain)

    def view_until(self, end: int) -> View[Any]:
        """The part of the window before a frame of the stream, for the encoder."""
        frames = end - self.mel.start
        return View(self.mel.window(PADDING + frames % 2, end), frames // 2, plain=True)

    def quiet_frame(self) -> int:
        """The quietest moment in the part of the window that may be settled up to, as a frame of
        the stream."""
        begin = int(self.settle_after_ms / FRAME_MS)
        levels = self.mel.level(begin, int(self.settle_before_ms / FRAME_MS))
        frame = begin + int(quietest(levels, FRAME_MS) / FRAME_MS + 1e-6)
        return frame - frame % 2

    @property
    def writes_down(self) -> bool:
        """Whether the text is to be what is said, in the speaker's own language."""
        return self.language == self.target

    def detected(self, language: str) -> None:
        self.language = language

    @property
    def doubtful(self) -> bool:
        """Whether it is time to find out if what is to be written down is in the language that was
        told: the net would put any other one into that."""
        if self.judged or self.expected != self.target or self.target not in TOLD_APART:
            return False
        return self.foreign or self.frames * FRAME_MS >= JUDGED_MS

    def judge(self, likely: float) -> None:
        """How likely the language that was told is, of all that the window holds."""
        self.judged = self.known = likely >= (FOREIGN_BY_NOW if self.known else FOREIGN)
        self.language = self.expected if self.judged else None

    @property
    def foreign(self) -> bool:
        """Whether another language is spoken than was told."""
        return self.expected is not None and self.language is None

    def encoded(self, states: Any, view: View[Any]) -> None:
        """Take what the encoder made of a view."""
        self.states = states
        if view.renew:
            self.whole = Encoding(states, self.start_ms, self.heard_ms, self.mel.loudest)

    def tell_written(self) -> None:
        """Something was said: what was spoken up to there need not wait for the window to move."""
        if self.writes is not None and self.window.looks:
            self._tell(self.writes.tell(max(self.window.looks)))

    def _tell(self, spoken: Sequence[Spoken]) -> None:
        self.transcript += tuple(word for word, _ in spoken)
        self.transcript_ms += tuple(ms for _, ms in spoken)

    def written(self, units: Units, found: Found) -> None:
        """The words of the window in their own language."""
        assert self.writes is not None
        self.writes.renew(units, found, self.start_ms)
        self.words_heard = self.writes.count

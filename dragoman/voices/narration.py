"""The interpreter's speech as files that line up with the talk, the same in every run.

Where all is known beforehand, no phrase has to wait for its text: each begins just after the
speaker began it, whatever the machine needed. Speech that takes longer than the speaker had is
spoken faster, within limits; what is late all the same is caught up with in the next pause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from dragoman.audio.chunk import RATE, Original, Samples
from dragoman.audio.film import Film
from dragoman.audio.mix import DUCK_DB, Mix, pad_until, sweep_parts
from dragoman.audio.write import SoundWriter
from dragoman.errors import DragomanError
from dragoman.text.moments import shown_moment
from dragoman.text.phrases import PHRASE, SENTENCE, break_cost
from dragoman.voices.apart import Apart
from dragoman.voices.base import Voice, sound_of
from dragoman.voices.phrases import Pace, Phrase, Word, Words, best_stop, text_of

SILENCE = 0.8
"""Seconds without speech that end a phrase, where a break reads well…"""
LONG_SILENCE = 2.5
"""…and anywhere, even one of few words."""
CLAUSE = 60
"""Characters from which on a phrase may end with a comma."""
LONGEST = 200
"""Characters of a phrase: the speed may change only between phrases."""
BEHIND = 0.5
"""Seconds after the speaker that a phrase begins: one hears who speaks, and then what it means."""
SLACK = 0.5
"""Seconds that a phrase may be later than that before the one before it has to hurry."""
SMOOTH = 0.15
"""How much the speed may change from one phrase to the next."""

_Sound = tuple[float, Samples]
"""Of a phrase, and when it begins."""


class Narration:
    """Speaks into sound files.

        with Narration(voice, speak="speech.mp3", mix="mix.wav") as narration:
            narration.hear(samples)            # 16 kHz; the speaker
            narration.say("Good morning,", at_ms=1200)

    `speak` gets the interpreter alone, at the voice's own rate; `mix` the recording, `duck_db`
    softer while the interpreter speaks, and the interpreter in it (`dragoman.audio.mix.Mix`), in
    the quality of what `hear` is told of as the `original`, else at 16 kHz; of a `film`, with its
    picture. Memory does not grow with the sound. What was said so far is kept when the user or an
    error ends the talk early. A file that cannot be written any more is told of (`report`) and
    costs the other nothing; what was wrong is raised at the end.

    With `apart` the voice speaks on a thread of its own: a slow one delays neither `hear` nor
    `say`, and the files are the same. What goes wrong there is raised by one of the next calls.
    """

    def __init__(
        self,
        voice: Voice,
        speak: str | Path | None = None,
        mix: str | Path | None = None,
        pace: Pace | None = None,
        duck_db: float = DUCK_DB,
        apart: bool = False,
        report: Callable[[str], None] | None = None,
        film: Film | None = None,
    ) -> None:
        if speak is not None and mix is not None and Path(speak) == Path(mix):
            raise DragomanError(f"The speech and the mix cannot both be written to {speak}.")
        for path in (speak, mix):
            if path is not None:
                sweep_parts(Path(path))
        self._voice, self._pace, self._report = voice, pace or Pace(), report
        self.phrases: list[Phrase] = []  # those spoken so far
        self._words = Words(next(iter(voice.languages), ""))
        self._heard = 0  # samples
        self._free = 0.0
        self._ending = False
        self._fault: DragomanError | None = None  # of the voice
        self._lost: DragomanError | None = None  # of the file that came to an end first
        self._speech: SoundWriter | None = None
        self._apart: Apart[_Sound] | None = None
        self._mix = Mix(mix, duck_db, voice.rate, film) if mix is not None else None
        try:
            self._speech = SoundWriter(speak, voice.rate) if speak is not None else None
        except DragomanError:
            self._end(keep=False)
            raise
        self._apart = Apart[_Sound]("narration") if apart else None

    @property
    def end(self) -> float:
        """When the phrase spoken last is over, in seconds."""
        return self._free

    @property
    def heard(self) -> float:
        """Seconds of the speaker."""
        return self._heard / RATE

    @property
    def waiting(self) -> int:
        """Phrases that the voice has not spoken yet."""
        return self._apart.left if self._apart is not None else 0

    def hear(self, samples: Samples, original: Original | None = None) -> None:
        """The next of the speaker; always, or never, with the same as it was recorded."""
        self._heard += len(samples)
        recorded = original or Original(samples, RATE)
        self._to_mix(lambda mix: mix.hear(recorded.frames, recorded.rate))
        self._write_spoken()

    def say(self, text: str, at_ms: float, end_ms: float | None = None) -> None:
        """The interpreter's next words, and when in the talk the speaker said them."""
        end = None if end_ms is None else end_ms / 1000
        for word in self._words.add(text, at_ms / 1000, end):
            if self._ended_before(word):
                self._speak(len(self._words.waiting), word.at)
            elif len(text_of([*self._words.waiting, word])) > LONGEST:
                self._speak_some()
            self._words.append([word])

    def finish(self) -> bool:
        """Speak what is left, up to the end of the talk; returns when all of it is written, or
        with False if it was given up."""
        self._speak(len(self._words.waiting), self.heard)
        self._write_spoken(wait=True)
        self._to_speech(lambda speech: pad_until(speech, self.heard))
        return not self.waiting

    def give_up(self, *, mix: bool = True) -> None:
        """Leave out what all wait for: what is not spoken by now, or a `mix` that is being made.

        For a signal. It raises nothing: within a call of libsndfile that would be lost.
        """
        if self._ending:
            if mix and self._mix is not None:
                self._mix.give_up()
        elif self._apart is not None:
            self._apart.end()

    def close(self) -> None:
        """Speak what is left and keep the files; a voice that failed on the way is told now."""
        keep = True
        try:
            self.finish()
        except DragomanError:
            keep = bool(self.phrases)
            raise
        finally:
            self._end(keep)
        if (fault := self._fault or self._lost) is not None:
            raise fault

    def _ended_before(self, word: Word) -> bool:
        """Whether the words that wait are a phrase, now that the next word is known."""
        waiting = self._words.waiting
        if not waiting:
            return False
        silence = word.at - waiting[-1].end
        if len(waiting) < self._pace.few or silence >= LONG_SILENCE:
            return silence >= LONG_SILENCE
        cost = break_cost(waiting[-1].text, word.text, word.language)
        marked = waiting[-1].ends_phrase
        if cost == SENTENCE or (silence >= SILENCE and (marked or cost <= PHRASE)):
            return True
        return marked and len(text_of(waiting)) >= CLAUSE

    def _speak_some(self) -> None:
        """Speak a part of what waits and is too long, so that the rest is a phrase as well."""
        waiting, few = self._words.waiting, self._pace.few
        if len(waiting) < 2:  # the next word is longer than a phrase by itself
            return
        most = 2 * len(waiting) // 3
        ends = [n for n in range(few, most + 1) if waiting[n - 1].ends_phrase]
        count = ends[-1] if ends else best_stop(waiting[:most], few, waiting[most].text)
        self._speak(count, waiting[count].at)

    def _speak(self, count: int, room_until: float) -> None:
        """Speak the first words that wait; what follows them begins at a moment."""
        if not count:
            return
        work = partial(self._spoken, self._words.take(count), room_until)
        if self._apart is None:
            self._write(*work())
        else:
            self._apart.do(work)

    def _spoken(self, words: Sequence[Word], room_until: float) -> _Sound:
        """When a phrase begins, and its sound."""
        text, at = text_of(words), words[0].at
        start = max(self._free, at + BEHIND)
        sound = self._sound_of(text, 1.0, start)
        room = max(room_until, words[-1].end) + BEHIND + SLACK - start
        speed = self._speed(len(sound) / self._voice.rate, room)
        if speed > 1.0:
            sound = self._sound_of(text, speed, start)
        self.phrases.append(Phrase(text, at, start, speed))
        self._free = start + len(sound) / self._voice.rate
        return start, sound

    def _write_spoken(self, *, wait: bool = False) -> None:
        """Write what was spoken apart; the files are this thread's alone."""
        if self._apart is not None:
            for start, sound in self._apart.taken(wait=wait):
                self._write(start, sound)

    def _write(self, start: float, sound: Samples) -> None:
        def spoken(speech: SoundWriter) -> None:
            pad_until(speech, start)
            speech.write(sound)

        self._to_mix(lambda mix: mix.say(start, sound))
        self._to_speech(spoken)

    def _to_mix(self, write: Callable[[Mix], None]) -> None:
        if self._mix is not None:
            try:
                write(self._mix)
            except DragomanError as error:
                self._mix.discard()
                self._mix = None
                self._go_on_without(error)

    def _to_speech(self, write: Callable[[SoundWriter], None]) -> None:
        if self._speech is not None:
            try:
                write(self._speech)
            except DragomanError as error:
                self._speech = None  # which has thrown itself away
                self._go_on_without(error)

    def _go_on_without(self, error: DragomanError) -> None:
        """A file cannot be written any more: if there is another, that is not to lose anything."""
        if self._mix is None and self._speech is None:
            raise error
        self._lost = error
        if self._report is not None:
            self._report(str(error))

    def _speed(self, seconds: float, room: float) -> float:
        """How fast to speak so that it ends in time, not much faster than the phrase before."""
        before = self.phrases[-1].speed if self.phrases else 1.0
        wanted = seconds / max(room, 0.1)
        return min(self._pace.fastest, max(1.0, before - SMOOTH, min(wanted, before + SMOOTH)))

    def _sound_of(self, text: str, speed: float, start: float) -> Samples:
        """A voice that fails at once ends the talk; one that fails later only its own sound."""
        if self._fault is None:
            try:
                return sound_of(self._voice, text, speed)
            except DragomanError as error:
                told = f"From {shown_moment(start)} on nothing is spoken: {error}"
                self._fault = DragomanError(told) if self.phrases else error
        if not self.phrases:
            raise self._fault
        return np.zeros(0, np.float32)

    def _end(self, keep: bool) -> None:
        """Keep what was spoken, or leave no trace; what waits for the voice stays unsaid."""
        self._ending = True
        if self._apart is not None:
            self._apart.end()
        with ExitStack() as stack:  # what is wrong with one of them costs the other nothing
            for file in (self._mix, self._speech):
                if file is not None:
                    stack.callback(file.close if keep else file.discard)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
            return
        interrupted = isinstance(error, KeyboardInterrupt)
        expected = interrupted or isinstance(error, DragomanError)
        with suppress(DragomanError):  # the first error is the one to tell
            try:
                if interrupted and self._apart is not None:
                    self._write_spoken()  # what is not spoken by now may take long
                elif expected:
                    self.finish()
            finally:
                self._end(keep=interrupted or (expected and bool(self.phrases)))

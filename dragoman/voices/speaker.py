"""Speaks aloud on a thread of its own, so that the text never waits for the speech."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, Self

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.voices.base import Voice, sound_of
from dragoman.voices.phrases import Pace, Phrase
from dragoman.voices.schedule import Schedule

PATIENCE = 1.0
"""Seconds to wait for the thread's end: a voice that is busy far away must not hold up ours."""


class Loudspeaker(Protocol):
    """What `dragoman.audio.playback.Player` is: one sound after the other."""

    def play(self, samples: Samples, ahead: float) -> bool:
        """Play; returns `ahead` seconds before the end, with False if it was stopped."""

    def drain(self) -> None:
        """Wait until all is played."""

    def stop(self) -> None:
        """Fall silent at once."""


class Waiting(Protocol):
    """Time, as the speaker's thread sees it: real, or simulated in a test."""

    def now(self) -> float:
        """Seconds since some moment."""

    def wait(self, change: threading.Condition, seconds: float | None) -> None:
        """Until the condition, which is held, is notified or the seconds are over."""


class RealTime:
    """The clock on the wall."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, change: threading.Condition, seconds: float | None) -> None:
        change.wait(seconds)


class Speaker:
    """Says texts one after the other: `say` returns at once, `finish` when all is spoken.

        with Player(voice.rate) as player, Speaker(voice, player, report=print) as speaker:
            speaker.say("Good morning,")

    An error of the voice is reported once, as a sentence, and costs no more than that phrase.
    """

    def __init__(
        self,
        voice: Voice,
        player: Loudspeaker,
        report: Callable[[str], None],
        pace: Pace | None = None,
        time: Waiting | None = None,
    ) -> None:
        self._voice, self._player, self._report = voice, player, report
        self._time = time or RealTime()
        self._schedule = Schedule(pace, next(iter(voice.languages), ""))
        self._change = threading.Condition()  # guards what follows
        self._busy = False
        self._playing = False
        self._closed = False
        self._stops = 0
        self._free = 0.0
        self._reported: set[str] = set()
        self._effort = Effort()
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Speak this after what was said before; returns at once."""
        with self._change:
            if not self._closed:
                self._schedule.add(text, self._time.now())
                self._change.notify_all()

    def stop(self) -> None:
        """Fall silent at once, in the middle of a word, and forget what waits."""
        with self._change:
            self._stops += 1
            self._schedule.clear()
            self._free = 0.0
            self._change.notify_all()
            self._player.stop()
            while self._playing and threading.current_thread() is not self._thread:
                self._change.wait(0.01)  # it may have been about to play: stop that as well
                self._player.stop()

    def finish(self) -> None:
        """Wait until all is spoken; no more text comes."""
        with self._change:
            self._schedule.end()
            self._change.notify_all()
            while not self._closed and (self._busy or not self._schedule.is_empty):
                self._change.wait()
        self._player.drain()

    def close(self) -> None:
        """End the thread; what is not spoken yet stays unsaid."""
        with self._change:
            self._closed = True
        self.stop()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        self._try(self._voice.load)
        while (taken := self._next_phrase()) is not None:
            self._try(partial(self._speak, *taken))
            with self._change:
                self._busy = self._playing = False
                self._change.notify_all()

    def _try(self, work: Callable[[], None]) -> None:
        """What goes wrong is told, but the same thing only once: the next phrase may go well."""
        try:
            work()
        except DragomanError as error:
            told = str(error)
        except Exception as error:  # a driver may raise anything, and this thread has to go on
            told = f"Speech failed: {error}."
        else:
            return
        if told not in self._reported:
            self._reported.add(told)
            self._report(told)

    def _next_phrase(self) -> tuple[Phrase, int] | None:
        """Wait for the next phrase; None when the speaker is closed."""
        with self._change:
            while not self._closed:
                now = self._time.now()
                due = self._schedule.due(now)  # what still plays leaves just the time to prepare it
                if due is not None and due <= now:
                    self._busy = True
                    return self._schedule.take(now, max(now, self._free)), self._stops
                self._time.wait(self._change, None if due is None else due - now)
            return None

    def _speak(self, phrase: Phrase, stops: int) -> None:
        begun = self._time.now()
        sound = sound_of(self._voice, phrase.text, phrase.speed)
        seconds = len(sound) / self._voice.rate
        now = self._time.now()
        self._effort.note(now - begun)
        with self._change:
            if self._stops != stops:
                return
            self._playing = True
            self._free = max(self._free, now) + seconds
        self._player.play(sound, self._effort.ahead)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            self.close()


class Effort:
    """How long before the end of a phrase the work on the next one has to begin."""

    LEAST, MOST = 0.2, 3.0

    def __init__(self) -> None:
        self.ahead = self.LEAST

    def note(self, seconds: float) -> None:
        """The work on a phrase took this long: expect somewhat more, forget slowly."""
        wanted = max(1.25 * seconds, 0.8 * self.ahead)
        self.ahead = min(self.MOST, max(self.LEAST, wanted))

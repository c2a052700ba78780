"""The interpreter's speech as files, on a timeline that is the same in every run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.resample import resample
from dragoman.audio.write import StereoMix, WavWriter
from dragoman.errors import DragomanError
from dragoman.voices.base import Voice, sound_of
from dragoman.voices.schedule import Pace, Phrase, Schedule


class Narration:
    """Speaks into wav files what a `Speaker` would say aloud, as if synthesis took no time.

        with Narration(voice, speak="speech.wav", mix="mix.wav") as narration:
            narration.hear(samples)            # 16 kHz; moves time on
            narration.say("Good morning,", at_ms=1200)

    `speak` gets the interpreter alone, at the voice's own rate; `mix` the speaker left and the
    interpreter right, at 16 kHz. Both are streamed: memory does not grow with the talk. What was
    said so far is kept when the user or an error ends the talk early.
    """

    def __init__(
        self,
        voice: Voice,
        speak: str | Path | None = None,
        mix: str | Path | None = None,
        pace: Pace | None = None,
    ) -> None:
        if speak is not None and mix is not None and Path(speak) == Path(mix):
            raise DragomanError(f"The speech and the mix cannot both be written to {speak}.")
        self._voice = voice
        self._schedule = Schedule(pace)
        self._heard = 0  # samples
        self._now = 0.0
        self._free = 0.0
        self._fault: DragomanError | None = None
        self._speech: WavWriter | None = None
        self._mix = StereoMix(mix) if mix is not None else None
        try:
            self._speech = WavWriter(speak, voice.rate) if speak is not None else None
        except DragomanError:
            self._discard()
            raise

    def hear(self, samples: Samples) -> None:
        """The next of the speaker. What is said afterwards is said after it was heard."""
        self._heard += len(samples)
        self._speak_before(self._heard / RATE)
        if self._mix is not None:
            self._mix.hear(samples)

    def say(self, text: str, at_ms: float) -> None:
        """The interpreter's next words, at a moment of the talk."""
        self._speak_before(at_ms / 1000)
        self._schedule.add(text, self._now)

    def close(self) -> None:
        """Speak what is left and keep the files; a voice that failed on the way is told now."""
        try:
            self._schedule.end()
            self._speak_before(float("inf"))
            self._pad_speech(self._heard / RATE)
        finally:
            for file in (self._speech, self._mix):
                if file is not None:
                    file.close()
        if self._fault is not None:
            raise self._fault

    def _speak_before(self, moment: float) -> None:
        """Speak every phrase that begins before a moment: nothing can join it any more."""
        while (due := self._schedule.due(self._free)) is not None and due < moment:
            self._place(self._schedule.take(due, due))
        self._now = max(self._now, moment)

    def _place(self, phrase: Phrase) -> None:
        sound = self._sound_of(phrase)
        self._free = phrase.start + len(sound) / self._voice.rate
        if self._mix is not None:
            self._mix.say(phrase.start, resample(sound, self._voice.rate))
        if self._speech is not None:
            self._pad_speech(phrase.start)
            self._speech.write(sound)

    def _sound_of(self, phrase: Phrase) -> Samples:
        """A voice that fails at once ends the talk; one that fails later only its own sound."""
        if self._fault is None:
            try:
                return sound_of(self._voice, phrase.text, phrase.speed)
            except DragomanError as error:
                if self._free == 0.0:
                    raise
                since = f"{int(phrase.start) // 60}:{int(phrase.start) % 60:02d}"
                self._fault = DragomanError(f"From {since} on nothing is spoken: {error}")
        return np.zeros(0, np.float32)

    def _pad_speech(self, until: float) -> None:
        """Silence up to a moment, a second at a time."""
        if self._speech is not None:
            while (left := round(until * self._voice.rate) - self._speech.frames) > 0:
                self._speech.write(np.zeros(min(left, self._voice.rate), np.float32))

    def _discard(self) -> None:
        for file in (self._speech, self._mix):
            if file is not None:
                file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        spoken = isinstance(error, DragomanError) and self._free > 0
        if error is None:
            self.close()
        elif spoken or isinstance(error, KeyboardInterrupt):
            with suppress(DragomanError):  # the first error is the one to tell
                self.close()
        else:
            self._discard()

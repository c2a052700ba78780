"""Scripted models that commands load by name: they say sentences, warn, are slow, or get stuck."""

from __future__ import annotations

import itertools
import logging
import os
import random
import sys
import time
from collections.abc import Callable

from dragoman.errors import DragomanError
from dragoman.models import Feature
from tests.scripted import ScriptedModel

TEXT = (
    "This is the first sentence of a talk that goes on and on. "
    "Here comes the second one, which is a little longer than a line of eighty columns is. "
    "It ends."
)


def sentences() -> ScriptedModel:
    """Three sentences, a word every 400 ms; their stops come with the words."""
    return ScriptedModel([(word, 400.0 * (i + 1)) for i, word in enumerate(TEXT.split())])


def loaded_once() -> ScriptedModel:
    """Cannot be loaded a second time."""
    loaded_once.times = getattr(loaded_once, "times", 0) + 1
    assert loaded_once.times == 1, "it is loaded again"
    return sentences()


def speechless() -> ScriptedModel:
    """Hears nobody."""
    return ScriptedModel([])


class _Working(ScriptedModel):
    """Does something whenever it hears."""

    def __init__(self, work) -> None:
        super().__init__([(word, 400.0 * (i + 1)) for i, word in enumerate(TEXT.split())])
        self._work = work

    def hear(self, streams, sounds) -> None:
        super().hear(streams, sounds)
        self._work(streams[0].heard_ms)


def warning() -> ScriptedModel:
    """Warns after two seconds."""
    log = logging.getLogger("dragoman.audio")
    return _Working(lambda ms: log.warning("Something is odd.") if ms == 2000 else None)


def slow() -> ScriptedModel:
    """Needs 1.2 s for a chunk, however long that is."""
    return _Working(lambda ms: time.sleep(1.2))


def behind() -> ScriptedModel:
    """Needs 0.6 s for a chunk, however long that is."""
    return _Working(lambda ms: time.sleep(0.6))


def stuck() -> ScriptedModel:
    """Says so, and never comes back."""

    def work(ms: float) -> None:
        sys.stdout.write("stuck\n")
        sys.stdout.flush()
        time.sleep(1000)

    return _Working(work)


def killed_in_the_middle() -> ScriptedModel:
    """Gets stuck at the third recording if the environment says so."""
    model = sentences()
    opened, opens = model.open, itertools.count()

    def open_slowly(source, target, **wanted):
        if os.environ.get("SLOWLY") and next(opens) == 2:
            time.sleep(600)  # until it is killed
        return opened(source, target, **wanted)

    model.open = open_slowly
    return model


def deaf_to_silence() -> ScriptedModel:
    """A model without a belief in silence, as most are but Whisper."""
    model = sentences()
    model.features = frozenset({Feature.ATTENTION})
    return model


def crowd(words) -> ScriptedModel:
    """Words that come so fast that they fill a screen in seconds."""
    return ScriptedModel([(word, 2.5 * (i + 1)) for i, word in enumerate(words)])


def many() -> ScriptedModel:
    """A thousand numbers in two and a half seconds, a sentence of each fifty."""
    return crowd(f"number{i}{'.' if i % 50 == 49 else ''}" for i in range(1000))


def wide() -> ScriptedModel:
    """Words that are wider than a terminal, and characters that take two columns."""
    return crowd(["x" * 200, *("漢字仮名" * 10 + f"{i}" for i in range(300)), "最後。"])


def changing() -> ScriptedModel:
    """The first words of the crowd, and an interim text that is never final."""
    script = [(f"word{i}", 2.5 * (i + 1)) for i in range(1000)]
    return ScriptedModel(script, flicker=lambda ms: ["perhaps", "later"])


def failing() -> ScriptedModel:
    """Says what it can for a second."""
    model = many()
    hear = model.hear

    def fail_at_last(streams, sounds) -> None:
        hear(streams, sounds)
        if streams[0].heard_ms > 1000:
            raise DragomanError("It is over.")

    model.hear = fail_at_last
    return model


def doubting() -> ScriptedModel:
    """Takes it for Welsh for a second, doubts that for one, and then for good."""
    return welsh(lambda heard_ms: heard_ms // 1000 in (0, 2))


def detecting() -> ScriptedModel:
    """Finds out after a second that the speaker talks Welsh."""
    return welsh(lambda heard_ms: heard_ms >= 1000)


def welsh(known: Callable[[float], bool]) -> ScriptedModel:
    """Hears Welsh, and knows it at some moments."""
    model = sentences()
    hear = model.hear

    def hear_welsh(streams, sounds) -> None:
        hear(streams, sounds)
        for stream in streams:
            stream.language = "cy" if known(stream.heard_ms) else None

    model.hear = hear_welsh
    return model


SPOKEN = "Dies ist der erste Satz eines Vortrags, der weiter und weiter geht. Hier endet er."


def bilingual() -> ScriptedModel:
    """Writes down the speaker's words too, one every 400 ms, if it is asked to."""
    model = sentences()
    hear, open_stream = model.hear, model.open

    def open_both(source, target, *, transcript=False):
        stream = open_stream(source, target, transcript=transcript)
        stream.wanted = transcript
        return stream

    def hear_both(streams, sounds) -> None:
        for stream in streams:
            stream.before = stream.heard_ms
        hear(streams, sounds)
        for stream in streams:
            words = [" " + word for word in SPOKEN.split()]
            fresh = words[int(stream.before / 400) : int(stream.heard_ms / 400)]
            stream.transcript = tuple(fresh) if stream.wanted else ()

    model.open, model.hear = open_both, hear_both
    return model


def mute() -> ScriptedModel:
    """Writes nothing down."""
    model = sentences()
    model.features = model.features - {Feature.TRANSCRIPT}
    return model


class _Placed(ScriptedModel):
    """A word every 400 ms of a recording whose samples tell how many seconds / 1000 they come
    after its beginning: it says what is said there, wherever it begins to hear."""

    def __init__(self) -> None:
        self._whole = [(word, 400.0 * (i + 1)) for i, word in enumerate(PLACED)]
        super().__init__(self._whole)

    def hear(self, streams, sounds) -> None:
        if streams[0].heard_ms == 0:
            begin = 1e6 * float(sounds[0].samples[0])
            self.script = [(word, end - begin) for word, end in self._whole if end > begin + 200]
        super().hear(streams, sounds)
        streams[0].ended = False  # the recording may go on


_letters = random.Random(1)
PLACED = ["".join(_letters.choices("aeioubdfgklmnprst", k=6)) for _ in range(100)]
PLACED[::10] = [word.title() for word in PLACED[::10]]
PLACED[9::10] = [f"{word}." for word in PLACED[9::10]]


def placed() -> ScriptedModel:
    return _Placed()

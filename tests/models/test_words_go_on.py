"""A word that was said as a whole may go on: every policy, every family of units."""

import numpy as np
import pytest

from dragoman.models import Feature
from dragoman.models.exported.pieces import Pieces
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.search import Found
from dragoman.models.whisper.tokens import Vocabulary, WhisperUnits
from dragoman.models.window import Bounds, Window
from dragoman.policies import make_policy
from tests.scripted import interpret

from .test_life import BareModel, BareStream
from .test_nothing_is_lost import SPECS

SPECIAL = ("", "", "", "")
PREFIX = ("▁Wir", "▁seh", "en", "▁Diskriminierung", "en", ",", "▁oft", ".")
SUFFIX = ("Wir▁", "seh", "en▁", "Diskriminierung", "en", ",▁", "oft", ".▁")
TEXT = "Wir sehen Diskriminierungen, oft."
BYTES = tuple(name.replace("▁", "Ġ") for name in PREFIX)
UNITS = {
    "prefix": Pieces((*SPECIAL, *PREFIX), "prefix"),
    "suffix": Pieces((*SPECIAL, *SUFFIX), "suffix"),
    "moonshine": MoonshineUnits((*SPECIAL, *PREFIX)),
    "whisper": WhisperUnits(Vocabulary((*SPECIAL, *BYTES), {}, 0, 0, 0, 0, 0, 0, 0), False),
}
BOUNDS = Bounds(long=12_000, too_long=20_000, kept=6_000, full=26_000)
TOKEN_MS = 240.0


class Growing(BareModel):
    """Hears a token more every 240 ms, and takes what it heard for the whole every time."""

    features = frozenset({Feature.ATTENTION, Feature.SILENCE, Feature.DECISIONS})

    def __init__(self, units):
        super().__init__()
        self.units = units

    def open(self, source, target, *, transcript=False):
        return BareStream(target, Window(BOUNDS, self.units))

    def speak(self, streams, asks):
        return [self._found(stream) for stream in streams]

    def _found(self, stream) -> Found:
        count, said = min(int(stream.heard_ms / TOKEN_MS), len(PREFIX)), len(stream.window.said)
        tokens = tuple(range(len(SPECIAL), len(SPECIAL) + count)[said:])
        frames = np.eye(stream.span.frames, dtype=np.float32)
        looks = [int(TOKEN_MS * (said + place) / 40) for place in range(len(tokens))]
        return Found(tokens, (-0.1,) * len(tokens), tuple(frames[looks]), ended=True, silence=0.0)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("spec", SPECS)
def test_however_much_was_said_when_it_goes_on(spec, units):
    trace, *_ = interpret(Growing(UNITS[units]), make_policy(spec), 2400, 120)
    assert trace.prediction == TEXT

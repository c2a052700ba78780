"""A model that waits: what is killed in the middle of its work can be killed there for certain."""

from __future__ import annotations

import time
from pathlib import Path

from tests.scripted import ScriptedModel, steady

FREE = 4  # streams that are opened at once, by each process
GO = Path("go")  # beside the corpus; once it is there, nobody waits


class Gated(ScriptedModel):
    """Opens a few streams, and the others when it may."""

    opened = 0

    def open(self, source, target, *, transcript=False):
        self.opened += 1
        while self.opened > FREE and not GO.exists():
            time.sleep(0.02)
        return super().open(source, target, transcript=transcript)


def gated() -> Gated:
    """Says what `steady` says."""
    model = steady()
    model.__class__ = Gated
    return model

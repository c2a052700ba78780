"""A model that fails for one of its speakers."""

from __future__ import annotations

from tests.scripted import ScriptedModel, steady


def for_welsh() -> ScriptedModel:
    """Fails once it has heard a second of Welsh."""
    model = steady()
    draft = model.draft

    def fail(streams, asks):
        if any(stream.language == "cy" and stream.heard_ms > 1000 for stream in streams):
            raise RuntimeError("secret")
        return draft(streams, asks)

    model.draft = fail
    return model

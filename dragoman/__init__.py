"""Dragoman speaks the translation while the speaker is still talking."""

__version__ = "0.1.0"

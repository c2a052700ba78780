"""The Model interface; window, search and words written once; a folder per family of nets."""

from dragoman.models.base import Ask, BatchError, Draft, Feature, Model, Sound, Stream

__all__ = ["Ask", "BatchError", "Draft", "Feature", "Model", "Sound", "Stream"]

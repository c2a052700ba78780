"""The Model interface and one file per model family."""

from dragoman.models.base import Ask, Draft, Feature, Model, Stream

__all__ = ["Ask", "Draft", "Feature", "Model", "Stream"]

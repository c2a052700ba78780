"""The weight store: models by name, fetched once, checked by hash, used from a folder.

from dragoman.store import get
folder = get("whisper-base")     # fetches when missing, returns at once when present
"""

from dragoman.store.shelf import find, get

__all__ = ["find", "get"]

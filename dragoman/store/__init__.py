"""The weight store: models by name, fetched once, checked by hash, used from a folder.

from dragoman.store import get
folder = get("whisper-base")     # fetches when missing, returns at once when present

    catalogue   what there is            shelf      get, find, at_hand, verify, add, remove
    home        where it lies            overview   what each can do on this machine
    sources     where it comes from: folders, the hub, packages (over download)
    kinds       what a folder's model can do
"""

from dragoman.store.shelf import at_hand, find, get, is_whole

__all__ = ["at_hand", "find", "get", "is_whole"]

"""Where the store keeps things.

<home>/models/NAME/...       the files, verified
<home>/records/NAME.json     what was verified: size and time of each file
<home>/locks/NAME.lock       one process at a time works on a model
<home>/partial/NAME/SHA256   downloads on their way, named by what they will be
<home>/entries/NAME.yaml     models that the user added
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """DRAGOMAN_HOME, or `dragoman` in the platform's cache directory."""
    if chosen := os.environ.get("DRAGOMAN_HOME"):
        return Path(chosen).expanduser()
    return _cache_directory() / "dragoman"


def _cache_directory() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local)
    return Path.home() / ".cache"


def models() -> Path:
    return home() / "models"


def records() -> Path:
    return home() / "records"


def locks() -> Path:
    return home() / "locks"


def partial(name: str) -> Path:
    return home() / "partial" / name


def added_entries() -> Path:
    return home() / "entries"


def shipped_entries() -> Path:
    """The catalogue that comes with the package: one YAML file per model."""
    return Path(__file__).parent / "entries"


def weight_folders() -> list[Path]:
    """The folders of DRAGOMAN_WEIGHTS, each of which may hold a folder per model name."""
    listed = os.environ.get("DRAGOMAN_WEIGHTS", "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in listed if folder]


def hub_cache() -> Path:
    """Where the model hub's own client keeps what it fetched for other programs."""
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("HF_HOME"):
        return Path(chosen) / "hub"
    return Path.home() / ".cache" / "huggingface" / "hub"

"""What is dear to make is made once for all processes of a test run."""

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


def shared_folder(tmp_path_factory) -> Path:
    """Where all processes of this test run find what one of them has made."""
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    made.mkdir(exist_ok=True)
    return made


def made_once(path: Path, make: Callable[[Path], None]) -> Path:
    """Return `path`, which whoever comes first makes; the others wait until it is there."""
    with FileLock(path.with_name(f"{path.name}.lock")):
        if not path.exists():
            begun = path.with_name(f"{path.name}.begun")
            make(begun)
            begun.rename(path)
    return path

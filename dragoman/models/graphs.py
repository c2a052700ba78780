"""Graphs that are made of a model's weights, ready to be run.

To make and to optimise them takes longer than all else of loading, so they are kept, optimised, in
the store's place for prepared files. They are made again when the weights are others, or
onnxruntime, the processor's kind, the code that makes them; a file that cannot be loaded is made
again, too. Where nothing can be written they are made each time, and so they are for a folder that
is not the store's.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.files import put_in_place, sentences_for, temporary_for
from dragoman.models.byte_sums import make_exact
from dragoman.models.sessions import session_options
from dragoman.store.home import home
from dragoman.store.prepared import place_for, stamp_of

KIND = "graphs"
KEPT = 2  # of one name: two precisions, or two versions of this software, take turns


class Graphs:
    """The graphs of the model in one folder."""

    def __init__(self, folder: Path | None, threads: int) -> None:
        """`folder` holds the weights; where it is not the store's, or None, nothing is kept."""
        ours = folder is not None and home().resolve() in folder.resolve().parents
        self._folder = folder if ours else None
        self._threads = threads

    def session(self, name: str, make: Callable[[], bytes], of: Any = None) -> Any:
        """A session that runs the graph that `make` makes; `of` is what it depends on, besides the
        weights."""
        path = self._path(name, of)
        if path is not None and path.is_file():
            try:
                session = self._load(str(path))
                with suppress(OSError):
                    os.utime(path)  # it was used
                return session
            except Exception:  # onnxruntime's own errors have no common base
                pass
        made = make()
        if path is None:
            return self._load(made)
        try:
            return self._kept(made, path)
        except Exception:  # nowhere to write, be it onnxruntime that finds that out
            return self._load(made)

    def _path(self, name: str, of: Any) -> Path | None:
        """Where a graph is kept: under a name that says all that it was made of."""
        if self._folder is None:
            return None
        import onnxruntime

        try:
            files = stamp_of(self._folder)
        except OSError:
            return None
        made_of = [makers(), onnxruntime.__version__, platform.machine(), processor(), files, of]
        digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
        return place_for(self._folder, KIND) / f"{name}-{digest}.ort"

    def _kept(self, made: bytes, path: Path) -> Any:
        """Load a graph and keep it; of its name, those that were not used for longest go."""
        temporary = temporary_for(path)
        with sentences_for(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                session = self._load(made, keep=temporary)
                name = path.name.rpartition("-")[0]
                others = [one for one in path.parent.glob(f"{name}-*.ort") if one != path]
                others.sort(key=used, reverse=True)
                for old in others[KEPT - 1 :]:
                    old.unlink(missing_ok=True)
                put_in_place(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        return session

    def _load(self, graph: str | bytes, keep: Path | None = None) -> Any:
        import onnxruntime

        options = session_options(self._threads)
        # Windows differ in length all the time: neither room nor plans are kept for each of them.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        if isinstance(graph, bytes):  # a graph that is kept was made exact
            make_exact(options)
        if keep is not None:
            options.optimized_model_filepath = str(keep)
            options.add_session_config_entry("session.save_model_format", "ORT")
        elif isinstance(graph, str):
            options.add_session_config_entry("session.load_model_format", "ORT")
        return onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])


def used(path: Path) -> float:
    """When a graph was used last; never, if another process has just removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def makers() -> str:
    """All code of this room, since it is what makes the graphs, as a hash."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def processor() -> str:
    """The processor's features, as the system reports them: graphs are optimised for these."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    told = (line.partition(":")[2].strip() for line in lines if line.startswith(("flags", "Feat")))
    return next(told, "")

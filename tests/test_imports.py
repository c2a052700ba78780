"""The design's import directions, held by a test."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "dragoman"

OPEN = {"errors", "files", "terminal", "yaml_text", "__version__"}  # to all

# A room may import itself and the rooms named here.
MAY_IMPORT = {
    "errors": set(),
    "yaml_text": set(),
    "files": set(),
    "terminal": set(),
    "text": set(),
    "audio": {"text", "store"},
    "store": {"text"},
    "metrics": {"text"},
    "workers": set(),
    "cluster": {"workers"},
    "corpora": {"audio", "text"},
    "trace": {"metrics", "text"},
    "models": {"audio", "text", "store", "own"},
    "own": set(),
    "knobs": {"own"},
    "detectors": {"models", "text", "knobs"},
    "policies": {"models", "text", "knobs"},
    "clock": set(),
    "awake": set(),
    "versions": set(),
    "utterance": {"models", "policies", "text"},
    "batch": {"models"},
    "interpreter": {
        *("audio", "text", "trace", "models", "detectors", "policies", "clock"),
        *("utterance", "batch", "own"),
    },
    "setup": {
        *("audio", "text", "trace", "models", "detectors", "policies", "interpreter", "clock"),
    },
    "voices": {"audio", "text", "store"},
    "interrupts": set(),
    "listeners": {"audio", "text", "trace", "interpreter", "interrupts", "voices"},
    "lag": {"text", "interpreter"},
    "events": {"interpreter", "lag"},
    "api": {"audio", "text", "policies", "setup", "clock", "awake", "events"},
    "talks": {"audio", "voices"},
    "trial": {"audio", "clock", "setup"},
    "evaluate": {
        *("audio", "text", "store", "trace", "metrics", "models", "detectors", "policies"),
        *("interpreter", "voices", "setup", "clock", "awake", "corpora", "workers", "own"),
        "versions",
    },
    "train": {
        *("audio", "text", "store", "trace", "metrics", "models", "detectors", "policies"),
        *("interpreter", "voices", "evaluate", "setup", "clock", "corpora", "listeners"),
        *("workers", "versions"),
    },
    "serve": {
        *("audio", "text", "models", "policies", "interpreter", "setup", "clock", "lag", "voices"),
        *("cluster", "store"),
    },
}
HEAVY = {"torch", "lightning", "lhotse", "codecarbon"}
# Of other machines only these two know.
ON_CLUSTER = ("cluster.py", "serve/cluster.py")
# What works on a GPU needs torch, and is imported only where there is one; so is COMET's net, which
# is far too large for anything slower.
ON_GPU = (
    *(
        "models/gpu/",
        "models/whisper/gpu/",
        "models/moonshine/gpu/",
        "models/cascade/gpu/",
        "models/device.py",
        "audio/vad_gpu.py",
        "voices/gpu/",
    ),
    *("metrics/comet.py", "metrics/xlmr.py"),
)


def imports_of(path: Path) -> set[str]:
    """Every dotted name that a file imports, at the top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path):
    room = room_of(path)
    if room in {"cli", "__init__", "__main__"}:
        return
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "dragoman" and len(parts) > 1 and parts[1] not in OPEN:
            assert parts[1] in MAY_IMPORT[room] | {room}, f"{room} must not import {name}"
        on_gpu = path.relative_to(PACKAGE).as_posix().startswith(ON_GPU)
        if path.relative_to(PACKAGE).as_posix() not in ON_CLUSTER:
            assert parts[0] != "ray", f"only {ON_CLUSTER} may import ray, not {path.name}"
        if room != "train" and not (on_gpu and parts[0] == "torch"):
            assert parts[0] not in HEAVY, f"only train/ may import {parts[0]}, not {room}"


def test_every_room_has_a_rule():
    assert {room_of(path) for path in FILES} <= {*MAY_IMPORT, "cli", "__init__", "__main__"}

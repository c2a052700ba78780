"""The tools that we compare with, in an environment of their own.

They are installed from PyPI under `build/peers` when a benchmark first needs them. To use others,
name a Python that has them: DRAGOMAN_PEERS=/path/to/bin/python.
"""

import os
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parent.parent / "build" / "peers"
# SimulEval pins old versions of things that scoring does not need; so it comes without them.
WITHOUT_DEPENDENCIES = ["simuleval==1.1.4"]
WITH_DEPENDENCIES = ["OmniSTEval==0.1.10", "pandas", "requests", "soundfile", "textgrid"]
WITH_DEPENDENCIES += ["tornado", "tqdm"]


class PeersMissingError(Exception):
    """They cannot be had here; says how to get them."""


def python() -> str:
    """The Python that can import SimulEval and OmniSTEval."""
    chosen = os.environ.get("DRAGOMAN_PEERS")
    if chosen:
        return chosen
    found = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        try:
            _install(found)
        except subprocess.CalledProcessError as error:
            raise PeersMissingError(
                "SimulEval and OmniSTEval could not be installed; name a Python that has them in "
                f"DRAGOMAN_PEERS. The reason: {error.stderr.strip().splitlines()[-1]}"
            ) from error
        (HOME / "ready").touch()
    return str(found)


def _install(found: Path) -> None:
    print("installing SimulEval and OmniSTEval for comparison …", flush=True)
    _run(sys.executable, "-m", "venv", str(HOME))
    _run(str(found), "-m", "pip", "install", "-q", *WITH_DEPENDENCIES)
    _run(str(found), "-m", "pip", "install", "-q", "--no-deps", *WITHOUT_DEPENDENCIES)
    _run(str(found), "-c", "import simuleval.cli, omnisteval.cli")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)

"""SimulEval's program in copies of this process: to import it takes most of a short run."""

import os
import sys
from multiprocessing import get_context
from pathlib import Path


def run_cli(folder: Path, *arguments: object) -> str:
    """What `simuleval ARGUMENTS…` prints in a folder; it must end well."""
    import simuleval.cli  # noqa: F401

    told = folder / "simuleval.out", folder / "simuleval.err"
    copy = get_context("fork").Process(target=_run, args=(folder, told, list(map(str, arguments))))
    copy.start()
    copy.join()
    out, err = (path.read_text() for path in told)
    assert copy.exitcode == 0, err[-2000:]
    return out


def _run(folder: Path, told: tuple[Path, Path], arguments: list[str]) -> None:
    for number, path in enumerate(told, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    # What pytest has put in their place would write nowhere.
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    sys.argv = ["simuleval", *arguments]

    from simuleval.cli import main

    main()
    sys.stdout.flush()

"""Commands and what they print, in this process or in one of their own."""

import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from unittest.mock import patch

from dragoman.cli import main
from tests import warm

ROOT = Path(__file__).parents[2]


def dragoman(*args: object) -> subprocess.CompletedProcess[str]:
    """Return what `dragoman ARGS…` prints into files and its status, without a process of its own:
    starting one costs more than most commands do.

    What a process would print as a traceback is raised here.
    """
    words = [str(arg) for arg in args]
    with (
        TemporaryFile("w+") as out,
        TemporaryFile("w+") as err,
        open(os.devnull) as nothing,
        patch.object(sys, "stdin", nothing),
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(ROOT),
    ):
        status = None
        try:
            main(words)
        except SystemExit as end:
            status = end.code
        for file in (out, err):
            file.flush()
            file.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


def process(*args: object, **options) -> subprocess.CompletedProcess[str]:
    """Return the same of a process: for what is about standard streams, or the size of files."""
    return subprocess.run(
        warm.command("-m", "dragoman", *args),
        cwd=ROOT, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip

"""The command line: one file per command, loaded only when it is called."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

EXTRAS = {
    "train": ("torch", "lightning", "lhotse", "codecarbon", "onnxscript", "tensorboard"),
    "espeak": ("espeakng_loader",),
    "gpu": ("torch",),
    "mic": ("sounddevice",),
    "serve": ("starlette", "uvicorn", "websockets", "prometheus_client", "python_multipart"),
}
"""The packages that an extra of `pip install` brings."""


def main(args: Sequence[str] | None = None) -> None:
    """Run `dragoman`; what a user can get wrong becomes a sentence and exit status 2."""
    try:
        status = _run(args)
    except KeyboardInterrupt:  # before a command has begun, or after it has ended
        status = 130
    try:
        sys.stdout.flush()
    except OSError:
        silence_stdout()
    sys.exit(status)


def silence_stdout() -> None:
    """Its reader is gone or its disk is full: what is still to be written goes nowhere."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: Sequence[str] | None) -> int:
    import click

    from dragoman.cli.app import dragoman
    from dragoman.errors import DragomanError

    try:
        status = dragoman.main(args, prog_name="dragoman", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:  # Ctrl-C: whoever had something to say about it has said it
        return 130
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (sentence := _missing(error.name or "")) is None:
            raise
        print(f"dragoman: {sentence}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output went away (`dragoman score x | head`): not an error of ours.
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        # A file that nobody thought would be refused, such as one whose name is too long.
        print(f"dragoman: {error.filename!r} cannot be used: {error.strerror}.", file=sys.stderr)
        return 2


def _missing(module: str) -> str | None:
    """How to install what a module belongs to; None if we do not know it."""
    package = module.partition(".")[0]
    extra = next((extra for extra, names in EXTRAS.items() if package in names), None)
    if extra is None:
        return None
    torch = [f"pip install '{_wanted('torch', extra)}'"] if extra == "train" else []
    lines = "".join(f"\n    {line}" for line in [*torch, f"pip install 'dragoman[{extra}]'"])
    return f"This needs {package}, which is not installed; run:{lines}"


def _wanted(package: str, extra: str) -> str:
    """A package in the version that an extra asks for."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = [line.partition(";") for line in requires("dragoman") or ()]
    except PackageNotFoundError:  # run from its source
        wanted = []
    found = (line.strip() for line, _, where in wanted if f'"{extra}"' in where.replace("'", '"'))
    return next((line for line in found if line.startswith(package)), package)

"""The command line: one file per command, loaded only when it is called."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO, TextIOWrapper

EXTRAS = {
    "train": ("torch", "lightning", "lhotse", "codecarbon", "onnxscript", "tensorboard"),
    "espeak": ("espeakng_loader",),
    "gpu": ("torch",),
    "mic": ("sounddevice",),
    "serve": ("starlette", "uvicorn", "websockets", "h11", "prometheus_client", "python_multipart"),
}
"""The packages that an extra of `pip install` brings."""
NO_HOME = "Could not determine home directory."
"""What Python says of `~nobody`, and of `~` where a user has no home."""


def main(args: Sequence[str] | None = None) -> None:
    """Run `dragoman`; what a user can get wrong becomes a sentence and exit status 2."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever called us, as in `>&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, TextIOWrapper):  # one letter it cannot write costs no talk
        sys.stdout.reconfigure(errors="replace")
    try:
        status = _run(args)
    except KeyboardInterrupt:  # before a command has begun, or after it has ended
        status = 130
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        status = _tell(error)
    sys.exit(status)


def silence_stdout() -> None:
    """Its reader is gone or its disk is full: what is still to be written goes nowhere."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: Sequence[str] | None) -> int:
    import click

    from dragoman.cli.app import dragoman
    from dragoman.errors import DragomanError
    from dragoman.own import own_told

    output = sys.stdout
    try:
        with own_told():
            status = dragoman.main(args, prog_name="dragoman", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        _print(shown.getvalue().rstrip("\n"))
        return error.exit_code
    except click.Abort:  # Ctrl-C: whoever had something to say about it has said it
        return 130
    except DragomanError as error:
        _print(f"dragoman: {error}")
        return 2
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            raise
        _print(f"dragoman: The name {error.object!r} is not UTF-8 text; rename the file.")
        return 2
    except RuntimeError as error:
        if str(error) != NO_HOME:
            raise
        _print(
            "dragoman: A path begins with ~, and whose folder that is nobody knows; set HOME, "
            "or write the path in full."
        )
        return 2
    except ModuleNotFoundError as error:
        if (sentence := _missing(error.name or "")) is None:
            raise
        _print(f"dragoman: {sentence}")
        return 2
    except SystemExit as end:
        # The reader of our output went away (`dragoman score x | head`): not an error of ours. So
        # rich ends then; click ends with another standard output in the place of that one.
        if isinstance(end.__context__, BrokenPipeError) or sys.stdout is not output:
            return 0
        raise
    except BrokenPipeError:
        return 0
    except OSError as error:
        return _tell(error)


def _tell(error: OSError) -> int:
    """Say what the system refused, where no command had thought of it; returns the exit status."""
    from dragoman.files import sentence_of

    if error.filename is not None:  # such as a name that is too long
        sentence = f"{error.filename!r} cannot be used: {error.strerror}."
    elif (found := sentence_of(error, "standard output")) is not None:
        silence_stdout()
        sentence = found
    else:
        raise error
    _print(f"dragoman: {sentence}")
    return 2


def _print(text: str) -> None:
    from dragoman.cli.notes import tell  # not before there is something to say

    tell(text)


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

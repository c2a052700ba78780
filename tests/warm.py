"""Commands that cost no start: copies of a Python process that has imported everything already.

Most of what a short command costs is its imports. `command("-m", "dragoman", …)` is to be run in
place of `[sys.executable, "-m", "dragoman", …]`: a client so small that it starts in no time has
the warm process of this test run make a copy of itself, which takes over the client's streams,
folder and environment, and ends with its status. It is in another process group, and what is sent
to the client does not reach it: what is about signals, terminals, limits or streams that are closed
starts a process of its own. What this takes is Linux's; elsewhere every command does.
"""

import array
import contextlib
import functools
import io
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STREAMS = 3
LONGEST = 1 << 20
"""Bytes of a request: arguments and environment."""


def command(*arguments: object) -> list[str]:
    """`python ARGUMENTS…`, `-m` and all, in a copy of the warm process."""
    if sys.platform != "linux":
        return [sys.executable, *map(str, arguments)]
    client = [sys.executable, "-I", "-S", str(Path(__file__).with_name("warm_client.py"))]
    return [*client, _started().address, *map(str, arguments)]


class Warm:
    """The process that is copied; it ends when nobody holds its `life` any more."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="warm")
        self.address = f"{self.folder.name}/socket"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(self.address)
        listening.listen(64)
        self.life, theirs = os.pipe()[::-1]
        kept = (listening.fileno(), theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", *map(str, kept)],
            cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=kept,
        )  # fmt: skip
        listening.close()
        os.close(theirs)

    def end(self) -> None:
        os.close(self.life)
        self.process.wait()
        self.folder.cleanup()


@functools.cache
def _started() -> Warm:
    return Warm()


def end() -> None:
    """At the end of all tests."""
    if _started.cache_info().currsize:
        _started().end()
        _started.cache_clear()


# ---------------------------------------------------------------- the process that is copied


def main() -> None:
    listening, life = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    _import_what_is_dear()
    asked = _be_copied(listening, life)
    listening.close()
    os.close(life)
    if asked is not None:
        _become(*asked)


def _import_what_is_dear() -> None:
    """What most commands need, and begins no threads, which a copy would not have: onnxruntime
    does."""
    import dragoman.cli.app
    import dragoman.evaluate
    import dragoman.interpreter
    import dragoman.metrics
    import dragoman.models.load
    import dragoman.setup
    import dragoman.text.caption_files
    import dragoman.voices.registry  # noqa: F401

    for name in ("rich.progress", "rich.table", "sacrebleu", "soundfile", "soxr"):
        with contextlib.suppress(ImportError):
            __import__(name)
    assert len(os.listdir("/proc/self/task")) == 1


def _be_copied(listening: socket.socket, life: int) -> tuple[dict, list[int]] | None:
    """In a copy, what it shall do, and the streams that it gets; None: no more are wanted."""
    while True:
        ready, _, _ = select.select([listening, life], [], [])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if life in ready:
            with contextlib.suppress(ChildProcessError):
                while os.wait():
                    pass
            return None
        connection, _ = listening.accept()
        if os.fork() == 0:
            return _copied_for(connection)
        connection.close()


def _copied_for(connection: socket.socket) -> tuple[dict, list[int]]:
    """Make the copy, which alone returns from here; this process tells whoever asked its status."""
    size = array.array("i").itemsize * STREAMS
    request, parts, _, _ = connection.recvmsg(LONGEST, socket.CMSG_SPACE(size))
    streams = array.array("i")
    streams.frombytes(parts[0][2][:size])
    copy = os.fork()
    if copy == 0:
        connection.close()
        return marshal.loads(request), list(streams)
    for stream in streams:
        os.close(stream)
    status = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    with contextlib.suppress(OSError):  # a client that is gone
        connection.send(str(status).encode())
    os._exit(0)


def _become(asked: dict, streams: list[int]) -> None:
    """From here on this is `python ARGUMENTS…`, and ends as that does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    modes = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    for number, (name, mode) in enumerate(modes):
        binary = open(number, f"{mode}b", closefd=False)  # noqa: SIM115
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        text = io.TextIOWrapper(
            binary, "utf-8", errors, line_buffering=name == "stderr" or binary.isatty()
        )
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
    kind, name, *rest = asked["arguments"]
    assert kind == "-m"
    sys.argv = [name, *rest]
    sys.path[0] = asked["folder"]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

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
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
STREAMS = 3
LONGEST = 1 << 20
"""Bytes of a request: arguments and environment."""


def command(*arguments: object) -> list[str]:
    """`python ARGUMENTS…`, with `-m` or `-c` and all, in a copy of the warm process."""
    if sys.platform != "linux":
        return [sys.executable, *map(str, arguments)]
    client = [sys.executable, "-I", "-S", str(Path(__file__).with_name("warm_client.py"))]
    return [*client, _started().address, *map(str, arguments)]


class Copy:
    """A process like that of `Popen`, as far as tests need one. Each stream is that of the tests
    unless it is given; `PIPE` is for what it writes. `hangup`: what it finds set for SIGHUP."""

    def __init__(
        self, *arguments: object, cwd: Path = ROOT, env: dict[str, str] | None = None,
        stdin=None, stdout=None, stderr=None, hangup: int = signal.SIG_DFL,
    ) -> None:  # fmt: skip
        self.args = [sys.executable, *map(str, arguments)]
        self.returncode: int | None = None
        self.stdout = self.stderr = None
        self._waiting = threading.Lock()
        request = {"arguments": self.args[1:], "folder": str(cwd), "hangup": int(hangup)}
        request["environment"] = dict(os.environ if env is None else env)
        with contextlib.ExitStack() as given_away:
            streams = [self._stream(0, stdin, given_away), self._stream(1, stdout, given_away)]
            streams.append(self._stream(2, stderr, given_away))
            self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
            self._connection.connect(_started().address)
            socket.send_fds(self._connection, [marshal.dumps(request)], streams)
            self.pid = int(self._connection.recv(100))

    def _stream(self, number: int, stream, given_away: contextlib.ExitStack) -> int:
        """A descriptor for the copy; what nobody else has is closed here when that has it."""
        if stream == subprocess.PIPE:
            ours, theirs = os.pipe()
            setattr(self, ("", "stdout", "stderr")[number], open(ours))  # noqa: SIM115
        elif stream == subprocess.DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR)
        elif stream is None:
            return number
        else:
            return stream if isinstance(stream, int) else stream.fileno()
        given_away.callback(os.close, theirs)
        return theirs

    def communicate(self) -> tuple[str, str]:
        """All that it writes, into two pipes, until it has ended."""
        with ThreadPoolExecutor(2) as readers:
            told = tuple(readers.map(lambda stream: stream.read(), (self.stdout, self.stderr)))
        self.wait()
        return told

    def poll(self) -> int | None:
        """Somebody may wait for it on another thread."""
        if self._waiting.acquire(blocking=False):
            try:
                if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
                    self._take_status()
            finally:
                self._waiting.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._connection], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
                self._take_status()
        return self.returncode

    def _take_status(self) -> None:
        self.returncode = int(self._connection.recv(100) or b"1")
        self._connection.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # gone since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


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

    commands = ("compare", "demo", "live", "models", "serve", "translate")
    names = [f"dragoman.cli.{command}" for command in commands]
    names += ["dragoman.serve.run", "dragoman.serve.parent", "rich.live", "rich.progress"]
    for name in (*names, "rich.table", "sacrebleu", "soundfile", "soxr"):
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
    asked = marshal.loads(request)
    copy = os.fork()
    if copy == 0:
        connection.close()
        return asked, list(streams)
    if "hangup" in asked:  # a `Copy`
        connection.send(str(copy).encode())
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
    if "hangup" in asked:
        os.setsid()
        signal.signal(signal.SIGHUP, asked["hangup"])
    if "largest" in asked:
        resource.setrlimit(resource.RLIMIT_FSIZE, asked["largest"])
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
    sys.argv = [name if kind == "-m" else kind, *rest]
    sys.path[0] = asked["folder"]
    if kind == "-c":
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(name, module.__dict__)
    else:
        assert kind == "-m"
        runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

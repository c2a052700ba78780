"""The process: a server that lets talks finish when it is asked to end."""

from __future__ import annotations

import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from dragoman.errors import DragomanError
from dragoman.serve.app import make_app
from dragoman.serve.logs import note
from dragoman.serve.patience import Impatient, ImpatientSocket
from dragoman.serve.service import Service
from dragoman.terminal import leave_terminal

LARGEST = 1 << 20  # bytes of a message
_FILES = 65536  # that may be open
_FLUSH = 10.0  # seconds for the rest of talks that were ended for them, and for slow listeners


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and what it serves TLS with, if it does."""

    host: str
    port: int
    cert: Path | None = None
    key: Path | None = None

    def url(self, port: int) -> str:
        """Of the page, once it is known which port was free."""
        name = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        return f"{'https' if self.cert else 'http'}://{name}:{port}/"

    def bound(self, *, shared: bool = False) -> socket.socket:
        """A socket with this address, which nobody can connect to until it is served; `shared`:
        others may have the same, and whoever connects comes to one of those that are served."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = _Shared(family) if shared else _Reserved(family)
        try:
            sock.bind((self.host.strip("[]"), self.port))
        except (OSError, TypeError) as error:  # TypeError: it is written as no name can be
            sock.close()
            why = getattr(error, "strerror", "this is no name of a host")
            raise DragomanError(
                f"Cannot listen on {self.host}, port {self.port}: {why}.",
                advice="choose another with --host or --port.",
            ) from error
        return sock

    def check_tls(self) -> None:
        """Whether certificate and key can be served with; else what is wrong, and with which."""
        if (self.cert is None) != (self.key is None):
            raise DragomanError(
                "A certificate and its key go together.",
                advice="name them with --tls-cert and --tls-key.",
            )
        if self.cert is not None and self.key is not None:
            _check_pair(self.cert, self.key)


def _check_pair(cert: Path, key: Path) -> None:
    for path in (cert, key):
        _check_pem(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except ssl.SSLError as error:
        why = (error.reason or "they cannot be read").replace("_", " ").lower()
        raise DragomanError(f"Cannot serve TLS with {cert} and {key}: {why}.") from error


def _check_pem(path: Path) -> None:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DragomanError(f"Cannot serve TLS with {path}: {error.strerror}.") from error
    if b"-----BEGIN " not in text:
        raise DragomanError(f"Cannot serve TLS with {path}: it is not written in PEM.")
    if b"ENCRYPTED" in text:
        raise DragomanError(
            f"Cannot serve TLS with {path}: it wants a pass phrase, and nobody will type "
            f"one; 'openssl pkey -in {path} -out open.pem' writes it without."
        )


class _Reserved(socket.socket):
    """A socket that has its address to itself from the beginning on. Linux lets several have one
    that may be used again, and the second to listen would learn it when its model is loaded."""

    def bind(self, address: Any) -> None:
        self._reuse(True)  # connections of the server before this one may linger
        super().bind(address)
        self._reuse(False)

    def listen(self, *args: int) -> None:
        self._reuse(True)  # and so may its own, for which the server after it does not wait
        super().listen(*args)

    def _reuse(self, yes: bool) -> None:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(yes))


class _Shared(socket.socket):
    """A socket of which others may have the address, too."""

    def bind(self, address: Any) -> None:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            self.setsockopt(socket.SOL_SOCKET, option, 1)
        super().bind(address)


class Server(uvicorn.Server):
    """Drains at the first SIGTERM or Ctrl-C, ends at the second. SIGHUP has the certificate read
    again, unless there is a window for which it means that this is closed: then it drains."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service
        self._patience: float | None = None  # until when talks may go on
        self._quiet_since: float | None = None
        self._window = sys.stderr.isatty()
        self._hung_up = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.end(sig, frame)

    def end(self, sig: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
        """Somebody asks for the end."""
        if self._patience is not None:
            super().handle_exit(sig, frame)
        else:
            self._begin_to_end()

    def _begin_to_end(self) -> None:
        self._patience = time.monotonic() + self._service.settings.drain

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals(), hangups(self.hang_up):
            yield

    def hang_up(self) -> None:
        """As at SIGHUP."""
        self._hung_up = True

    def _take_hangup(self) -> None:
        self._hung_up = False
        if not self._window:
            renew_certificate(self.config)
        elif self._patience is None:  # it may come twice: from the shell and from the system
            leave_terminal(1)
            leave_terminal(2)
            self._begin_to_end()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to end."""
        if self._hung_up:
            self._take_hangup()
        if self._patience is not None:
            if not self._service.draining:
                self._service.drain()
            if self._service.quiet and self._told():
                return True
            late = time.monotonic() - self._patience
            if late > 0:
                self._service.stop_all()
            if late > _FLUSH:
                return True
        return await super().on_tick(counter)

    def _told(self) -> bool:
        """Whether those who listen in rooms have been told all, or have been waited for."""
        self._quiet_since = self._quiet_since or time.monotonic()
        return not self._service.rooms.behind or time.monotonic() - self._quiet_since > _FLUSH


@contextmanager
def hangups(call: Callable[[], None]) -> Iterator[None]:
    """What is done at SIGHUP, where the system has it, and nobody has said that it shall not count,
    as nohup does."""
    kind = getattr(signal, "SIGHUP", None)
    main = threading.current_thread() is threading.main_thread()
    if kind is None or not main or signal.getsignal(kind) == signal.SIG_IGN:
        yield
        return
    before = signal.signal(kind, lambda *_: call())
    try:
        yield
    finally:
        signal.signal(kind, before)


def renew_certificate(config: uvicorn.Config) -> None:
    """Who connects from now on is shown the certificate as it is by now; one that is no good leaves
    the one before in its place."""
    cert, key = config.ssl_certfile, config.ssl_keyfile
    if config.ssl is None or cert is None or key is None:
        return
    try:
        _check_pair(Path(cert), Path(key))
        config.ssl.load_cert_chain(cert, key)
    except (DragomanError, OSError) as error:
        note("certificate not renewed", why=str(error))
    else:
        note("certificate renewed")


def allow_many_connections() -> None:
    """As many open files as the machine allows: each connection is one, and what a process may have
    to begin with is fewer than an audience."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _trusted(proxies: tuple[str, ...]) -> str | list[str]:
    """Those on this machine, and others that were named; "*": whoever connects. On a socket of IPv6
    an address of IPv4 is written as one of IPv6."""
    if "*" in proxies:
        return "*"
    named = [ip_network(one) for one in ("127.0.0.1", "::1", *proxies)]
    mapped = [
        f"::ffff:{one.network_address}/{96 + one.prefixlen}" for one in named if one.version == 4
    ]
    return [*map(str, named), *mapped]


def make_server(
    service: Service,
    cert: Path | None = None,
    key: Path | None = None,
    kind: type[Server] = Server,
) -> Server:
    """A server for a service; `run(sockets=[…])` runs it."""
    config = uvicorn.Config(
        make_app(service),
        http=Impatient,
        ws=ImpatientSocket,
        log_config=None,
        access_log=False,
        ws_max_size=LARGEST,
        ws_per_message_deflate=False,
        server_header=False,
        ssl_certfile=cert,
        ssl_keyfile=key,
        forwarded_allow_ips=_trusted(service.settings.proxies),
        timeout_graceful_shutdown=5,
    )
    return kind(service, config)

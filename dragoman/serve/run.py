"""The process: a server that lets talks finish when it is asked to end."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path
from types import FrameType

import uvicorn

from dragoman.errors import DragomanError
from dragoman.serve.app import make_app
from dragoman.serve.patience import Impatient
from dragoman.serve.service import Service

LARGEST = 1 << 20  # bytes of a message
_FILES = 65536  # that may be open
_FLUSH = 10.0  # seconds for the rest of talks that were ended for them, and for slow listeners


class Server(uvicorn.Server):
    """Drains at the first SIGTERM or Ctrl-C, ends at the second."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service
        self._patience: float | None = None  # until when talks may go on
        self._quiet_since: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._patience is not None:
            super().handle_exit(sig, frame)
        else:
            self._patience = time.monotonic() + self._service.settings.drain

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to end."""
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


def bound(host: str, port: int) -> socket.socket:
    """A socket with this address, which nobody can connect to until it is served."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as error:
        sock.close()
        raise DragomanError(
            f"Cannot listen on {host}, port {port}: {error.strerror}; choose another with --port."
        ) from error
    return sock


def _trusted(proxies: tuple[str, ...]) -> str | list[str]:
    """Those on this machine, and others that were named; "*": whoever connects."""
    return "*" if "*" in proxies else ["127.0.0.1", "::1", *proxies]


def make_server(service: Service, cert: Path | None = None, key: Path | None = None) -> Server:
    """A server for a service; `run(sockets=[…])` runs it."""
    config = uvicorn.Config(
        make_app(service),
        http=Impatient,
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
    return Server(service, config)


def check_tls(cert: Path, key: Path) -> None:
    """Whether a certificate and its key can be served with; else what is wrong, and with which."""
    for path in (cert, key):
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
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except ssl.SSLError as error:
        why = (error.reason or "they cannot be read").replace("_", " ").lower()
        raise DragomanError(f"Cannot serve TLS with {cert} and {key}: {why}.") from error

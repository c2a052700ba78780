"""A store of its own for every test, and small stand-ins for the hub and the package indexes."""

import hashlib
import io
import json
import os
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml

from dragoman.store.home import shipped_entries

SHIPPED = shipped_entries()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty store; no folder, hub or index of this machine is in reach."""
    for name in list(os.environ):
        if name.lower().startswith(("pip_", "npm_config_", "hf_", "dragoman_")):
            monkeypatch.delenv(name)
    # Nor does the package lie in a clone, with what ships in it.
    monkeypatch.setattr("dragoman.store.home.__file__", str(tmp_path / "a" / "b" / "home.py"))
    monkeypatch.setattr("dragoman.store.home.shipped_entries", lambda: SHIPPED)
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-client"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return home


@pytest.fixture
def waited(monkeypatch):
    """The seconds that a download has waited for, which do not go by. Other threads sleep on: of
    those, too, that earlier tests have begun."""
    waited = []
    known = vars(time) | {"sleep": waited.append}
    monkeypatch.setattr("dragoman.store.download.time", SimpleNamespace(**known))
    return waited


def described(data: bytes) -> dict:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


@pytest.fixture
def enter(home):
    """Enter a model into the catalogue: `enter("toy", {"a.bin": b"..."}, hub=...)`."""

    def enter(name: str, files: dict[str, bytes], **sources) -> None:
        entry = {
            "about": "a toy",
            "task": "translation",
            "languages": ["en"],
            "licence": "MIT",
            "files": {file: described(data) for file, data in files.items()},
            **sources,
        }
        path = home / "entries" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(entry, sort_keys=False), encoding="utf-8")

    return enter


class Server(ThreadingHTTPServer):
    """Serves `pages` by path; knows ranges unless told not to; can hang up half-way."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, bytes] = {}
        self.ranges = True
        self.hang_up_after: list[int] = []  # for each coming answer: how many bytes it gets to
        self.wait: threading.Event | None = None  # stop half-way until this is set
        self.half_way = threading.Event()
        self.asked: list[tuple[str, str | None]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["Range"]))
        data = self.server.pages.get(unquote(self.path))
        if data is None:
            self.send_error(404)
            return
        start = 0
        if self.server.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.send(data[start:])

    def send(self, data: bytes):
        if self.server.hang_up_after:
            data = data[: self.server.hang_up_after.pop(0)]
        try:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.server.half_way.set()
            if self.server.wait:
                self.server.wait.wait()
            self.wfile.write(data[len(data) // 2 :])
        except OSError:
            pass  # the asker is gone

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    if server.wait:
        server.wait.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def hub(server, monkeypatch):
    """Enter files as a repository of the hub; the `hub` of a catalogue entry is returned."""
    monkeypatch.setenv("HF_ENDPOINT", server.address)

    def hub(files: dict[str, bytes]) -> dict:
        for name, data in files.items():
            server.pages[f"/team/toy/resolve/r1/{name}"] = data
        return {"repository": "team/toy", "revision": "r1"}

    return hub


def make_wheel(folder, project: str, members: dict[str, bytes]):
    """A wheel of version 1.0 with these members; its path."""
    path = folder / f"{project}-1.0-py3-none-any.whl"
    info = f"{project}-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name, data)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def make_tarball(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """An npm-like tarball; `links` are symbolic links in it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tarball:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tarball.addfile(link)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tarball.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels that pip is configured to look into; returns an entry's archive."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def wheel(project: str, members: dict[str, bytes], takes: dict[str, str]) -> dict:
        path = make_wheel(folder, project, members)
        return {"pypi": path.name, **described(path.read_bytes()), "members": takes}

    return wheel


@pytest.fixture
def npm_package(server, monkeypatch):
    """A package of a registry on the local server; returns an entry's archive."""
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", server.address)

    def package(name: str, tarball: bytes, takes: dict[str, str]) -> dict:
        version = {
            "name": name,
            "version": "1.0.0",
            "dist": {"tarball": f"{server.address}/{name}.tgz"},
        }
        page = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        server.pages[f"/{name}.tgz"] = tarball
        server.pages[f"/{name}"] = json.dumps(page).encode()
        server.pages[f"/{name}/1.0.0"] = json.dumps(version).encode()
        return {"npm": f"{name}@1.0.0", **described(tarball), "members": takes}

    return package

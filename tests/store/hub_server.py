"""A stand-in of the model hub: its API, its redirects to a host for large files, its refusals."""

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = 10_000  # bytes from which a file is kept outside git


def git_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Repository:
    """Files by commit, and what the names of revisions stand for."""

    commits: dict[str, dict[str, bytes]]
    refs: dict[str, str]
    token: str = ""  # who may see it; empty: all
    gated: bool = False  # to those who accepted its terms: nobody here
    licence: str | None = "mit"

    def commit(self, revision: str) -> str | None:
        found = self.refs.get(revision, revision)
        return found if found in self.commits else None


@dataclass
class Asked:
    """One request: of which host, by which method, for what, with which headers."""

    host: str
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Refusal:
    """An answer that is no answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


class FakeHub:
    """Two servers: the hub, and the other host that it sends askers of large files to."""

    def __init__(self):
        self.repositories: dict[str, Repository] = {}
        self.renamed: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.refusals: list[Refusal] = []  # of the hub, before anything else
        self.cdn_refusals: list[Refusal] = []
        self.hang_up_after: list[int] = []  # for each coming body of the other host
        self.blobs = True  # whether the API tells sizes and hashes
        self.lies: dict[str, bytes] = {}  # other bytes than the records say
        self.circle = False
        self._servers = [self._serve(host) for host in ("hub", "cdn")]
        self.hub, self.cdn = (f"http://127.0.0.1:{s.server_port}" for s in self._servers)

    def _serve(self, host: str) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.fake, server.host = self, host
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    def close(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def add(self, name: str, files: dict[str, bytes], *, commit: str = "c" * 40, **of) -> str:
        """A repository with one commit, which is its main."""
        self.repositories[name] = Repository({commit: files}, {"main": commit}, **of)
        return commit

    def paths(self, host: str = "hub") -> list[str]:
        return [asked.path for asked in self.asked if asked.host == host]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def answer(self):
        fake: FakeHub = self.server.fake
        headers = {name.lower(): value for name, value in self.headers.items()}
        fake.asked.append(Asked(self.server.host, self.command, self.path, headers))
        refusals = fake.refusals if self.server.host == "hub" else fake.cdn_refusals
        if refusals:
            refusal = refusals.pop(0)
            return self.reply(refusal.status, b"", **refusal.headers)
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if self.server.host == "cdn":
            return self.send_file(fake.lies.get(parts[-1]) or self.large_file(parts[-1]))
        if parts[:2] == ["api", "models"]:
            return self.api("/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main")
        return self.resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]))

    def large_file(self, wanted: str) -> bytes:
        for repository in self.server.fake.repositories.values():
            for files in repository.commits.values():
                for data in files.values():
                    if sha256(data) == wanted:
                        return data
        raise AssertionError(wanted)

    def repository(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """A repository at a commit; None after a refusal."""
        fake = self.server.fake
        if fake.circle or name in fake.renamed:
            there = self.path if fake.circle else self.path.replace(name, fake.renamed[name])
            return self.reply(307, b"", Location=there)
        found = fake.repositories.get(name)
        told = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        if found is None or (found.token and told != found.token):
            return self.reply(401, b"", **{"X-Error-Code": "RepoNotFound"})
        if found.gated:
            return self.reply(403, b"", **{"X-Error-Code": "GatedRepo"})
        if (commit := found.commit(revision)) is None:
            return self.reply(404, b"", **{"X-Error-Code": "RevisionNotFound"})
        return found, commit

    def api(self, name: str, revision: str):
        if not (found := self.repository(name, revision)):
            return
        repository, commit = found
        tell = self.server.fake.blobs and "blobs" in parse_qs(urlsplit(self.path).query)
        siblings = [
            {"rfilename": file, **(record_of(data) if tell else {})}
            for file, data in repository.commits[commit].items()
        ]
        card = {"license": repository.licence} if repository.licence else None
        told = {"id": name, "sha": commit, "siblings": siblings, "cardData": card}
        self.reply(200, json.dumps(told).encode())

    def resolve(self, name: str, revision: str, file: str):
        if not (found := self.repository(name, revision)):
            return
        repository, commit = found
        data = repository.commits[commit].get(file)
        if data is None:
            self.reply(404, b"", **{"X-Error-Code": "EntryNotFound"})
            return
        told = {"X-Repo-Commit": commit}
        if len(data) < LARGE:
            self.send_file(self.server.fake.lies.get(file, data), **told)
            return
        digest = sha256(data)
        told |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
        self.reply(302, b"", Location=f"{self.server.fake.cdn}/large/{digest}", **told)

    def send_file(self, data: bytes, **headers: str):
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        tag = {"ETag": f'"{git_name(data)}"'}
        self.reply(206 if start else 200, data[start:], **tag, **headers)

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.server.host == "cdn" and body and self.server.fake.hang_up_after:
            body = body[: self.server.fake.hang_up_after.pop(0)]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def record_of(data: bytes) -> dict:
    """What the hub's records say of a file: of a large one, git keeps only a pointer."""
    record = {"size": len(data), "blobId": git_name(data)}
    if len(data) >= LARGE:
        record["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
    return record

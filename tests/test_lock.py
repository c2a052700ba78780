"""The lock file: all that the image installs, pinned, in our ranges, without known weaknesses."""

from __future__ import annotations

import json
import re
import threading
import tomllib
import urllib.error
import urllib.request
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = ROOT / "deploy" / "requirements.txt"
ADVISORIES = "https://api.osv.dev/v1/querybatch"
PIN = re.compile(r"^([a-z0-9-]+)==(\S+) \\$((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)", re.M)

# Where the image may run; the index has the same files for all of them.
PLACES = [
    {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    for version in ("3.11", "3.12", "3.13", "3.14")
    for machine in ("x86_64", "aarch64")
]


@cache
def pinned() -> dict[str, str]:
    return {name: version for name, version, _ in PIN.findall(LOCK.read_text(encoding="utf-8"))}


def asked_for() -> list[Requirement]:
    """What `dragoman[serve]` asks for, and what builds it."""
    project = PYPROJECT["project"]
    serve, build = project["optional-dependencies"]["serve"], PYPROJECT["build-system"]["requires"]
    return [Requirement(text) for text in [*project["dependencies"], *serve, *build]]


def test_every_line_is_a_pin_with_hashes():
    text = LOCK.read_text(encoding="utf-8")
    assert len(pinned()) == text.count("==") > len(asked_for())
    assert "://" not in text  # it says what, not where from
    assert not re.search(r"^-", text, re.M)


@pytest.mark.parametrize("requirement", asked_for(), ids=str)
def test_a_pin_is_within_our_range(requirement):
    assert requirement.specifier.contains(pinned()[canonicalize_name(requirement.name)])


def wanted_by(name: str) -> list[Requirement]:
    """What a pinned distribution asks for; nothing is known where another version is installed."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return []
    if found.version != pinned()[name]:
        return []
    return [Requirement(text) for text in found.requires or ()]


def test_nothing_is_missing():
    known = 0
    for name in pinned():
        for requirement in wanted_by(name):
            marker = requirement.marker
            if any(marker is None or marker.evaluate(place) for place in PLACES):
                wanted = canonicalize_name(requirement.name)
                assert wanted in pinned(), f"{name} wants {wanted}"
                assert requirement.specifier.contains(pinned()[wanted]), f"{name}: {requirement}"
                known += 1
    if not known:
        pytest.skip("no distribution is installed in the version that is pinned")


def test_no_licence_reaches_further_than_its_own_code():
    """GPL and AGPL would; the LGPL of a library that is loaded does not."""
    for name in pinned():
        try:
            about = distribution(name).metadata
        except PackageNotFoundError:
            continue
        said = [about.get("License-Expression"), (about.get("License") or "")[:200]]
        said += [line for line in about.get_all("Classifier") or () if "License" in line]
        assert not re.search(r"\bA?GPL|General Public License v", " ".join(filter(None, said))), (
            name
        )


def test_the_image_installs_the_lock_and_nothing_else():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"pip install (.*?)(?: \\|$)", dockerfile, re.M)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "requirements.txt" in installs[0]
    assert {"--no-deps", "--no-build-isolation"} <= set(installs[1].split())


# --- the audit -------------------------------------------------------------------------------


def advisories(pins: dict[str, str], service: str = ADVISORIES) -> dict[str, list[str]]:
    """Known weaknesses of pinned versions, by name."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in pins.items()
    ]
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(service, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        results = json.load(answer)["results"]
    found = zip(pins, results, strict=True)
    return {name: [one["id"] for one in row["vulns"]] for name, row in found if row.get("vulns")}


def test_no_pin_has_a_known_weakness():
    try:
        found = advisories(pinned())
    except (OSError, ValueError, KeyError) as error:  # no network, or not their answer
        pytest.skip(f"the advisory database cannot be reached ({type(error).__name__})")
    assert not found, f"'make lock' pins newer versions: {found}"


class Stale(BaseHTTPRequestHandler):
    """An advisory database that knows one weakness."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        weak = {"package": {"name": "weak", "ecosystem": "PyPI"}, "version": "1.0"}
        rows = [{"vulns": [{"id": "PYSEC-1"}]} if one == weak else {} for one in asked]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"results": rows}).encode())

    def log_message(self, *arguments):
        pass


def test_a_weakness_is_found():
    with HTTPServer(("127.0.0.1", 0), Stale) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = advisories(
            {"sound": "1.0", "weak": "1.0"}, f"http://127.0.0.1:{server.server_port}/"
        )
        server.shutdown()
    assert found == {"weak": ["PYSEC-1"]}

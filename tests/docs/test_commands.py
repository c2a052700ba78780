"""Every command of the README and of docs/, typed into a shell as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs import stand_in
from tests.docs.conftest import ROOT
from tests.docs.snippets import PROGRAMS, blocks, snippets

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOUND = [snippet for page in PAGES for snippet in snippets(page)]
COMMANDS = [snippet for snippet in FOUND if snippet.kind == "command"]
INLINE = [snippet for snippet in FOUND if snippet.kind == "inline"]


def shell(command, folder):
    """Type a command; the stand-ins are found before the programs they stand for."""
    path = os.environ["PATH"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH_BEFORE": path}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment | {"PATH": f"{folder / 'bin'}{os.pathsep}{path}", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("snippet", COMMANDS, ids=str)
def test_a_command_works_as_it_stands(snippet, sandbox, request):
    if snippet.page == "longform.md":
        request.getfixturevalue("talks")
    if snippet.text.startswith("simuleval"):
        pytest.importorskip("simuleval")
    done = shell(snippet.text, sandbox)
    assert done.returncode == 0, f"{snippet.text}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("snippet", INLINE, ids=str)
def test_a_command_in_the_text_is_one(snippet):
    """`dragoman score PATH`: the real parser takes it, whatever the words in capitals stand for."""
    words = shlex.split(snippet.text)[1:]
    if "…" not in snippet.text and words[-1:] != ["--help"]:
        stand_in.parse(words + ["ANYTHING"] * missing(words))


def missing(words):
    """How many arguments a mention leaves to the reader: 'dragoman score' alone is one."""
    import click

    for count in range(4):
        try:
            stand_in.parse(words + ["ANYTHING"] * count)
        except click.MissingParameter:
            continue
        except click.UsageError:
            pass
        return count
    return 0


def test_no_command_is_overlooked():
    """A line of code that calls Dragoman is one of those above, or lies in Python or data."""
    seen = {(s.page, line) for s in COMMANDS for line in s.text.split("\n")}
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language in ("python", "yaml", "json"):
                continue
            for line in block.lines:
                if re.search(r"(^|\| )dragoman [a-z]", line):
                    assert (page.name, line) in seen, f"{page.name}: {line}"
    assert len(COMMANDS) > 30
    assert {s.text.split(" ")[0] for s in COMMANDS} <= set(PROGRAMS)


def test_what_is_only_parsed_has_a_reason_and_is_there():
    """No reason outlives its commands, and none is so wide that it covers what could be run."""
    typed = [s.text.partition("dragoman ")[2] for s in COMMANDS + INLINE if "dragoman " in s.text]
    for pattern, why in stand_in.ONLY_PARSED:
        assert why
        assert any(re.match(pattern, command) for command in typed), pattern
    run = {c.split(" ")[0] for c in typed if stand_in.reason(c) is None}
    assert {"translate", "evaluate", "sweep", "tune", "score", "compare", "voices"} <= run


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("dragoman translate talk.mp3 --form de", "No such option"),
        ("dragoman live --step 5ms", "out of range"),
        ("dragoman train recipes/tiny.yaml optimizer.rate=1", "optimi"),
        ("dragoman score nothing.log", "There is no log"),
        ("pip install 'dragoman[trian]'", "there is no extra trian"),
        ("make tset", "tset"),
        ("python -m benchmarks scorign", "scorign"),
    ],
)
def test_a_wrong_command_would_be_noticed(command, complaint, sandbox):
    done = shell(command, sandbox)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_the_talks_of_the_docs_score_what_the_docs_say(talks):
    page = (ROOT / "docs" / "longform.md").read_text(encoding="utf-8")
    (shown,) = [b for b in blocks(page) if b.lines[0].startswith("instances.log  SimulEval")]
    command = (
        "dragoman score instances.log --segments ../../segments.yaml --references ../../refs.txt"
    )
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *shlex.split(command)[1:]],
        cwd=talks / "runs" / "talks",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    printed = {line.rstrip() for line in done.stdout.split("\n")}
    for line in shown.lines:
        assert line.rstrip() in printed, line


def test_every_page_is_on_the_landing_page():
    landing = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name}" in landing, page.name


def test_no_link_leads_nowhere():
    """Neither to a page that is not there nor to a heading that a page has not."""
    written = [
        *PAGES,
        ROOT / "SECURITY.md",
        *ROOT.glob("results/*.md"),
        *ROOT.glob("weights/*/*.md"),
    ]
    for page in written:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            target, _, heading = link.partition("#")
            if "://" in target:
                continue
            to = page.parent / target if target else page
            assert to.exists(), f"{page.name}: {link}"
            assert not heading or heading in headings(to), f"{page.name}: {link}"


def headings(page):
    """What links call the headings of a page: small letters, strokes for spaces, no marks."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}

"""The distributions: built from the source, looked into, installed where nothing is, and run."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

import dragoman
from tests.golden import GOLDEN

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Names that a distribution and its module do not share.
MODULES = {"hibari-tts": "hibari", "pyyaml": "yaml", "espeakng-loader": "espeakng_loader"}


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower()


def module_of(requirement: str) -> str:
    name = name_of(requirement)
    return MODULES.get(name, name.replace("-", "_"))


def imports_of(folder: Path) -> dict[str, set[str]]:
    """Every module that is not ours nor Python's, and the files that import it."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top != "dragoman" and top not in sys.stdlib_module_names:
                    found.setdefault(top, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_what_is_imported_is_asked_for_and_nothing_else():
    base = {module_of(requirement) for requirement in PYPROJECT["dependencies"]}
    extras = {
        module_of(requirement)
        for requirements in PYPROJECT["optional-dependencies"].values()
        for requirement in requirements
    }
    imported = imports_of(ROOT / "dragoman")
    assert set(imported) <= base | extras
    assert base <= set(imported), "a requirement that nothing imports"


def test_there_is_one_version():
    assert PYPROJECT["dynamic"] == ["version"]
    assert "version" not in PYPROJECT
    written = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dragoman").rglob("*.py")
        if re.search(r"^__version__ = ", path.read_text(encoding="utf-8"), re.M)
    ]
    assert written == ["dragoman/__init__.py"]
    assert "version" not in citation()


def citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_citation_names_the_five_papers():
    cited = citation()
    assert cited["cff-version"] == "1.2.0"
    assert cited["license"] == PYPROJECT["license"]
    assert {"message", "title", "authors", "type"} <= set(cited)
    papers = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) (\d{4}), \*(.*?)\* \|", papers, re.M)
    assert len(rows) == len(cited["references"]) == 5
    for (authors, year, title), reference in zip(rows, cited["references"], strict=True):
        assert reference["title"].lower().startswith(title.lower())
        assert reference["year"] == int(year)
        assert authors.startswith(reference["authors"][0]["family-names"])


def test_a_commit_passes_what_make_checks():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = config["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["entry"], hook["language"]) == (
        "local",
        "make check",
        "system",
    )
    assert hook["pass_filenames"] is False
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([a-z]+):(.*(?:\n\t.*)*)", makefile, re.M))
    assert rules["check"].split() == ["lint", "types"]
    assert rules["test"].split() == ["lint", "$(MAKE)", "-j", "2", "types", "tests"]


# --- built and installed ---------------------------------------------------------------------

AWAY = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "runs"
)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """(source distribution, wheel): the wheel is built from what the other one holds."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "source", ignore=AWAY)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist"],
        cwd=folder / "source",
        check=True,
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    (archive,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return archive, wheel


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(distributions):
    _, wheel = distributions
    version = dragoman.__version__
    assert wheel.name == f"dragoman-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = email.message_from_bytes(archive.read(f"dragoman-{version}.dist-info/METADATA"))
        entries = archive.read(f"dragoman-{version}.dist-info/entry_points.txt").decode()
    tracked = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "dragoman").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in names if name.startswith("dragoman/")}
    assert packed == tracked
    assert {name.partition("/")[0] for name in names - packed} == {f"dragoman-{version}.dist-info"}
    assert wheel.stat().st_size < 2_000_000, "weights by accident?"
    assert metadata["Version"] == version
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PYPROJECT["requires-python"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# Dragoman")
    assert set(metadata.get_all("Provides-Extra")) == set(PYPROJECT["optional-dependencies"])
    assert "dragoman = dragoman.cli:main" in entries


@pytest.mark.slow
def test_the_source_distribution_holds_what_its_readers_need(distributions):
    archive, _ = distributions
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"} <= names
    assert {"pyproject.toml", "docs/metrics.md", "recipes/tiny.yaml", "recipes/tiny.tsv"} <= names
    assert not any(name.startswith(("tests", ".ci", "results", "benchmarks")) for name in names)
    assert archive.stat().st_size < 2_000_000


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """An environment that holds the wheel and nothing else; it finds the libraries in ours."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
            *("--no-deps", "--no-index", distributions[1]),
        ],
        check=True,
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},  # pip takes that for there
    )
    (site,) = (folder / "lib").glob("python*/site-packages")
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return folder


def run(installed: Path, *arguments, folder: Path, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [installed / "bin" / "dragoman", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        **more,
    )


@pytest.mark.slow
def test_what_was_installed_runs(installed, tmp_path):
    assert str(dragoman.__version__) in run(installed, "--version", folder=tmp_path).stdout
    where = subprocess.run(
        [installed / "bin" / "python", "-c", "import dragoman; print(dragoman.__file__)"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert Path(where.strip()).is_relative_to(installed)
    log = GOLDEN / "live_runs" / "speech_wait3_per1_seg320.log"
    assert "37.32" in run(installed, "score", log, folder=tmp_path, check=True).stdout
    assert "whisper-base" in run(installed, "models", "list", folder=tmp_path, check=True).stdout
    assert "German" in run(installed, "languages", folder=tmp_path, check=True).stdout
    refused = run(installed, "translate", "none.wav", folder=tmp_path)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
@pytest.mark.weights
def test_the_demo_runs_from_there(installed, tmp_path):
    from dragoman.errors import DragomanError
    from dragoman.store import get

    try:
        get("whisper-base")
    except DragomanError as error:
        pytest.skip(f"the weights cannot be fetched: {error}")
    done = run(installed, "demo", "--fast", "--threads", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) >= 5


def test_names_of_modules_are_right_here():
    """The table above, held against what is installed."""
    known = packages_distributions()
    for name, module in MODULES.items():
        if module in known:
            assert name in {each.lower() for each in known[module]}

"""docs/architecture.md names what there is, and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.docs.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "dragoman"
NAMED = set(re.findall(r"\b\w+\.py\b", PAGE))
TOLD_BY_FILE = (".", "models", "models/cascade", "models/gpu", "serve")


@pytest.mark.parametrize("room", TOLD_BY_FILE)
def test_every_file_of_a_room_that_is_told_by_file_is_named(room):
    there = {path.name for path in (PACKAGE / room).glob("*.py")}
    assert there - {"__init__.py", "__main__.py"} <= NAMED


def test_every_file_that_is_named_is_there():
    there = {path.name for top in (PACKAGE, ROOT / "tests") for path in top.rglob("*.py")}
    assert there >= NAMED


def test_every_room_is_named():
    rooms = [path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    assert len(rooms) > 10
    for room in rooms:
        assert f"    {room.name}/" in PAGE


def test_every_folder_of_models_is_named():
    for family in (PACKAGE / "models").iterdir():
        if (family / "__init__.py").is_file():
            assert re.search(rf"^    {family.name}/ ", PAGE, flags=re.M), family.name
        if (family / "gpu" / "__init__.py").is_file():
            assert f"`{family.name}/gpu/`" in PAGE

"""docs/interpreting.md has the policies, their knobs and what is tuned, as the code has them."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from dragoman.policies import POLICIES
from dragoman.setup import TUNED, TUNED_CASCADE
from tests.docs.conftest import ROOT

PAGE = (ROOT / "docs" / "interpreting.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## When to speak\n")[1].split("\n## ")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in SECTION.split("\n")]


def knob(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_has_the_knobs_that_the_page_says(name):
    (row,) = (row for row in ROWS if row and row[0].startswith(f"`{name}`"))
    told = dict(re.findall(r"`(\w+)=([\w.]+)`", row[2]))
    known = {field.name: field.default for field in fields(POLICIES[name])}
    assert told == {k: v if isinstance(v, str) else knob(v) for k, v in known.items()}


def test_what_is_tuned_is_what_the_page_says():
    found: dict[float, list[str]] = {}
    for row in ROWS:
        if row and (seconds := re.fullmatch(r"([\d.]+) s", row[0])):
            found[1000 * float(seconds[1])] = row[1:]
    for tuned, column in ((TUNED, 0), (TUNED_CASCADE, 1)):
        steps = {step for _, _, step in tuned}
        assert f"(steps of {steps.pop():g} ms)" in SECTION
        assert not steps
        for latency, policy, _ in tuned:
            assert found[latency][column] == f"`{policy}`"
    assert set(found) == {row[0] for row in (*TUNED, *TUNED_CASCADE)}

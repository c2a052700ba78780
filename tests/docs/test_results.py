"""The commands of results/ and of the models' cards: they take hours, so they are read, not run."""

from __future__ import annotations

import re
import shlex

import pytest

from benchmarks.__main__ import names
from tests.docs import stand_in
from tests.docs.conftest import ROOT
from tests.docs.snippets import blocks

PAGES = [*sorted(ROOT.glob("results/*.md")), *sorted(ROOT.glob("weights/*/README.md"))]
TEXTS = {f"{page.parent.name}/{page.name}": page.read_text(encoding="utf-8") for page in PAGES}
BENCHMARKS = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("benchmarks/*.py"))


def commands(text):
    """The lines of code that call Dragoman, whole, without their comments."""
    lines = ("\n".join(block.lines).replace("\\\n", " ").split("\n") for block in blocks(text))
    found = (line for block in lines for line in block if line.startswith("dragoman "))
    return [shlex.split(line.split(" > ")[0], comments=True)[1:] for line in found]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_benchmark_that_is_named_is_there_and_knows_its_variables(text):
    text = " ".join(text.split())
    assert set(re.findall(r"python -m benchmarks (\w+)", text)) <= set(names())
    for variable in re.findall(r"DRAGOMAN_BENCH_\w+", text):
        assert variable in BENCHMARKS


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_script_and_recipe_that_is_named_is_there(text):
    for path in re.findall(r"(?:recipes|results|benchmarks)/[\w./-]+\.(?:py|sh|yaml)", text):
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_command_is_one(text):
    for words in commands(text):
        stand_in.parse([word for word in words if word != "$P"])


def test_there_are_commands_to_read():
    assert sum(len(commands(text)) for text in TEXTS.values()) > 10


def shares(text):
    """Of every table that has them: BLEU live, BLEU offline and the share that is told."""
    found, titles = [], None
    for line in text.split("\n"):
        if not line.startswith("|"):
            titles = None
            continue
        cells = [cell.strip().strip("*") for cell in line.split("|")[1:-1]]
        if titles is None:
            titles = cells
        row = dict(zip(titles, cells, strict=True))
        told = next((row[title] for title in titles if title.startswith("of offline BLEU")), "")
        numbers = [row.get("BLEU") or row.get("BLEU / chrF", ""), row.get("offline", ""), told]
        firsts = [re.match(r"\d+(?:\.\d+)?", number) for number in numbers]
        if all(firsts):
            found.append([first[0] for first in firsts])
    return found


def around(number):
    """What a number may have been before it was rounded."""
    half = 0.5 / 10 ** len(number.partition(".")[2])
    return float(number) - half, float(number) + half


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_shares_of_offline_follow_from_the_numbers_beside_them(text):
    for live, offline, told in shares(text):
        (least, most), (low, high) = around(live), around(offline)
        below, above = around(told)
        assert 100 * least / high <= above, (live, offline, told)
        assert 100 * most / low >= below, (live, offline, told)


def test_there_are_shares_to_follow():
    assert sum(len(shares(text)) for text in TEXTS.values()) > 30

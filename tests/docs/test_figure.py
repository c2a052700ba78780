"""The figure of results/ shows what its tables say."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests.docs.conftest import ROOT

RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def figure():
    spec = importlib.util.spec_from_file_location("figure", RESULTS / "figure.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["figure"] = module
    spec.loader.exec_module(module)
    return module


def test_the_figure_is_drawn_from_the_tables_as_they_are(figure, tmp_path):
    figure.draw(tmp_path / "quality.svg")
    drawn, kept = (folder / "quality.svg" for folder in (tmp_path, RESULTS))
    assert drawn.read_text() == kept.read_text(), "python results/figure.py draws it anew"


def test_a_row_of_the_figure_is_a_row_of_the_table(figure):
    page = (
        "# Results\n\n## Today\n\n"
        "| | BLEU | lag, ms | offline | the human's BLEU / chrF |\n|---|---|---|---|---|\n"
        "| German, ten | 27.1 | **2059** | 28.0 / 64.0 | 15.6 / 54.3 |\n"
        "| … twelve | 22.7 | 1636 | 24.8 | |\n| bars | | 2000 | | |\n\n## More\n\n| | no row |\n"
    )
    assert figure.rows_of(page) == [
        figure.Row("German, ten", 15.6, 27.1, 28.0, 2.059),
        figure.Row("German, twelve", None, 22.7, 24.8, 1.636),
    ]

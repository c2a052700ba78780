"""python recipes/claims/figures.py PAGE [OUT]

What claims.py has found so far, in OUT (out/claims), as a page of curves, quality against lag: for
a question that several runs were asked a line for each run, and for a run that was asked several
questions a line for each question; and some runs beside each other that were asked differently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path

from answers import Answer, read_answers

from dragoman.evaluate.chart import Point, curves
from dragoman.files import whole_file

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The papers' claims</title><style>{css}</style></head><body><main>
<h1>The papers' claims</h1><p class="lead">BLEU against lag; what it means is in papers.md.</p>
{charts}</main></body></html>
"""
# Nets that decide by themselves, beside those that wait.
BESIDE = {"001": ("caat-640ms", "offline", "kd")}
Part = Callable[[Answer], str]


def run_of(one: Answer) -> str:
    return one.run


def question_of(one: Answer) -> str:
    return one.question


def paper_of(one: Answer) -> str:
    return one.paper


def run_and_question_of(one: Answer) -> str:
    return f"{one.run}, {one.question}"


def figures(answers: list[Answer], same: Part, curve: Part, told: str) -> list[str]:
    """A figure for everything that is the same, if there are several curves of it."""
    made = []
    for name in sorted({same(one) for one in answers}):
        own = [one for one in answers if same(one) == name]
        if len({curve(one) for one in own}) > 1:
            points = [Point(curve(one), f"{one.run}, {one.way}", one.lag, one.bleu) for one in own]
            drawn = curves(points, "BLEU", "LAAL")
            caption = escape(told.format(name))
            made.append(f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>")
    return made


def charts(answers: list[Answer]) -> str:
    parts = []
    for paper in sorted({one.paper for one in answers}):
        own = [one for one in answers if one.paper == paper]
        drawn = figures(own, question_of, run_of, "{}: every run that was asked")
        drawn += figures(own, run_of, question_of, "the run {}: every way to wait")
        some = [one for one in own if one.run in BESIDE.get(paper, ())]
        if len({run_of(one) for one in some}) > 1:
            told = "paper {}: nets that decide beside others"
            drawn += figures(some, paper_of, run_and_question_of, told)
        parts.append(f"<h2>Paper {escape(paper)}</h2><div class='charts'>{''.join(drawn)}</div>")
    return "".join(parts)


def main(page: Path, out: Path) -> None:
    drawn = charts(list(read_answers(out)))
    css = (files("dragoman.evaluate") / "page" / "report.css").read_text(encoding="utf-8")
    with whole_file(page) as file:
        file.write(PAGE.format(css=css, charts=drawn))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(
            "Name the page to write: python recipes/claims/figures.py PAGE [OUT]", file=sys.stderr
        )
        raise SystemExit(2)
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "out/claims"))

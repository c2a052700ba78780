"""python results/figure.py [OUT]

Draws quality.svg: for every row of the tables "Today" of cascade.md and end-to-end.md the BLEU of
the human interpreter, of Dragoman live and of Dragoman offline, and how far behind live is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
PAGES = (
    ("cascade.md", "The cascade, whisper-base+mt-en"),
    ("end-to-end.md", "End to end, st-en"),
)
WIDTH, ROW, TOP = 800, 26, 76
LEFT, RIGHT, LAG = 350, 700, 732  # where 0 BLEU, MOST BLEU and the lag are
MOST, LAG_BAR = 40, 2.0
BLUE, RED, GREY = "#0b6bcb", "#c4501b", "#5b6b7b"


@dataclass(frozen=True, slots=True)
class Row:
    """A set of recordings: BLEU of whoever translates it, and the lag of live in seconds."""

    name: str
    human: float | None
    live: float
    offline: float
    lag: float


def rows_of(page: str) -> list[Row]:
    """The rows of the table "Today", without the one of the bars."""
    today = page.split("## Today\n")[1].split("\n## ")[0]
    lines = [line for line in today.splitlines() if line.startswith("|")]
    titles, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    found: list[Row] = []
    for row in rows:
        cells = dict(zip(titles, row, strict=True))
        name = cells[""]
        if name == "bars":
            continue
        if name.startswith("…"):
            name = f"{found[-1].name.split(',')[0]}, {name.removeprefix('… ')}"
        lag = number(cells.get("lag, s")) or number(cells.get("lag, ms")) / 1000
        human = number(cells["the human's BLEU / chrF"]) or None
        found.append(Row(name, human, number(cells["BLEU"]), number(cells["offline"]), lag))
    return found


def number(cell: str | None) -> float:
    """The first number of a cell, which may be bold; 0 if there is none."""
    return float(cell.split(" / ")[0].strip("*")) if cell else 0.0


def x(bleu: float) -> float:
    return LEFT + (RIGHT - LEFT) * bleu / MOST


def text(at: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{at:.1f}" y="{y:.1f}"{style}>{escape(words)}</text>'


def human_mark(at: float, y: float) -> str:
    return f'<path d="M{at:.1f} {y - 6:.1f}l6 6-6 6-6-6z" fill="{GREY}"/>'


def live_mark(at: float, y: float) -> str:
    return f'<circle cx="{at:.1f}" cy="{y:.1f}" r="5.5" fill="{BLUE}"/>'


def offline_mark(at: float, y: float) -> str:
    style = f'fill="#fff" stroke="{BLUE}" stroke-width="2"'
    return f'<circle cx="{at:.1f}" cy="{y:.1f}" r="4.5" {style}/>'


def legend() -> list[str]:
    marks = (
        (human_mark, "the human interpreter"),
        (live_mark, "Dragoman, live"),
        (offline_mark, "Dragoman, offline"),
    )
    parts = [text(16, 28, "BLEU against the printed translation", ' font-weight="bold"')]
    for place, (mark, words) in zip((LEFT, 525, 650), marks, strict=True):
        parts += [mark(place, 24), text(place + 11, 28, words)]
    return parts


def drawn_row(row: Row, y: float) -> list[str]:
    line = f'<path d="M{x(row.live):.1f} {y}H{x(row.offline):.1f}" stroke="{BLUE}"/>'
    late = f' fill="{RED}" font-weight="bold"' if row.lag > LAG_BAR else ""
    parts = [text(32, y + 4, row.name), line, offline_mark(x(row.offline), y)]
    parts += [live_mark(x(row.live), y), text(LAG, y + 4, f"{row.lag:.2f} s", late)]
    return parts if row.human is None else [*parts, human_mark(x(row.human), y)]


def axis(height: float) -> list[str]:
    parts = [text(LAG, TOP - 12, "lag, live")]
    for bleu in range(0, MOST + 1, 10):
        parts.append(f'<path d="M{x(bleu)} {TOP}V{height - 30}" stroke="#dde3e8"/>')
        parts.append(text(x(bleu), height - 12, f"{bleu}", ' text-anchor="middle"'))
    return parts


def figure(pages: list[tuple[str, list[Row]]]) -> str:
    lines = sum(1 + len(rows) for _, rows in pages)
    height = TOP + ROW * lines + 40
    parts = [*legend(), *axis(height)]
    y = TOP + ROW / 2
    for title, rows in pages:
        parts.append(text(16, y + 4, title, f' fill="{GREY}"'))
        for row in rows:
            y += ROW
            parts += drawn_row(row, y)
        y += ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#1d2733">'
        "<title>BLEU of the human interpreter, of Dragoman live and offline</title>"
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def draw(out: Path) -> None:
    pages = [(title, rows_of((HERE / name).read_text(encoding="utf-8"))) for name, title in PAGES]
    out.write_text(figure(pages), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "quality.svg")

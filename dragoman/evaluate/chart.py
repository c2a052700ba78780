"""Latency-quality curves as plain SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 520, 310
LEFT, RIGHT, TOP, BOTTOM = 48, 26, 24, 48
# Told apart by people who see colours differently, on light and on dark paper.
COLOURS = ("#0b6bcb", "#c4501b", "#2a8f5b", "#a04fb5", "#b58a00", "#5b6b7b", "#d43d6a", "#1aa0a8")


@dataclass(frozen=True, slots=True)
class Point:
    """One system on the plane."""

    curve: str  # systems of one curve are joined by a line
    label: str
    latency: float  # seconds
    quality: float


def curves(points: Sequence[Point], quality: str, latency: str) -> str:
    """A drawing of quality against latency, one line per curve, and the curves' names under it."""
    if not points:
        return "<p class='soft'>No system has both values.</p>"
    x, x_ticks = _scale([p.latency for p in points], LEFT, WIDTH - RIGHT)
    y, y_ticks = _scale([p.quality for p in points], HEIGHT - BOTTOM, TOP)
    parts = [f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    for tick in x_ticks:
        parts.append(
            f'<line class="axis" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"/><text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" '
            f'text-anchor="middle">{tick:g}</text>'
        )
    for tick in y_ticks:
        parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" '
            f'y2="{y(tick):.1f}"/><text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" '
            f'text-anchor="end">{tick:g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - BOTTOM + 40}" text-anchor="middle">'
        f"{escape(latency)} (seconds)</text><text x='{LEFT}' y='{TOP - 9}'>{escape(quality)}</text>"
    )
    names = list(dict.fromkeys(point.curve for point in points))
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        own = sorted((p for p in points if p.curve == name), key=lambda p: p.latency)
        line = " ".join(f"{x(p.latency):.1f},{y(p.quality):.1f}" for p in own)
        hollow = _hollow(number)
        dashes = ' stroke-dasharray="5 4"' if hollow else ""
        fill = "var(--wash)" if hollow else colour
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        parts += [
            f'<circle cx="{x(p.latency):.1f}" cy="{y(p.quality):.1f}" r="4" fill="{fill}" '
            f'stroke="{colour}" stroke-width="2">'
            f"<title>{escape(p.label)}: {p.quality:.1f} at {p.latency:z.2f} s</title></circle>"
            for p in own
        ]
    return "".join(parts) + "</svg>" + _legend(names)


def _legend(names: Sequence[str]) -> str:
    """The names in a list of their own: text beside text finds room on any screen."""
    rows = (
        f"<li><i{' class=hollow' if _hollow(number) else ''} "
        f'style="--own:{COLOURS[number % len(COLOURS)]}"></i>{escape(name)}</li>'
        for number, name in enumerate(names)
    )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def _hollow(number: int) -> bool:
    """Whether a curve is told from the one that had its colour before by hollow points."""
    return number // len(COLOURS) % 2 == 1


def _scale(
    values: Sequence[float], start: float, end: float
) -> tuple[Callable[[float], float], list[float]]:
    """A linear scale over round numbers: (value to pixel, ticks)."""
    low, high = min(values), max(values)
    # A twentieth at least: less is chance, and its numbers are longer than there is room for.
    wider = max(0.0, 0.05 * max(abs(low), abs(high)) - (high - low)) / 2
    low, high = low - wider, high + wider
    step = _round_step((high - low) or 1.0)
    first, last = floor(low / step), ceil(high / step)
    if first == last:
        last += 1
    ticks = [n * step for n in range(first, last + 1)]

    def place(value: float) -> float:
        return start + (end - start) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    return place, ticks


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, for about six ticks."""
    power = 10.0 ** floor(log10(span / 6))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= span / 6)

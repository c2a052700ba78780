"""The report: one HTML file that works with no network.

It shows latency-quality curves, plain and computation-aware, a table of systems with intervals and
signatures, and a page per sentence: what was spoken, to read and to hear, and what was said when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from dragoman.evaluate.chart import Point, curves
from dragoman.evaluate.sounds import Spoken
from dragoman.files import whole_file
from dragoman.metrics.instance import Unit
from dragoman.trace import Trace

COLUMNS = ("BLEU", "chrF", "WER", "AL", "LAAL", "LAAL_CA", "DAL", "AP", "RTF")
IN_SECONDS = {"AL", "LAAL", "LAAL_CA", "DAL"}


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system on one corpus, scored."""

    name: str
    curve: str  # systems that share it are joined by a line
    scores: Mapping[str, float | None]
    signature: Mapping[str, str]
    sentences: Sequence[Mapping[str, Any]]  # `index` and the scores of each sentence
    traces: Sequence[Trace]
    unit: Unit = "word"  # what a delay belongs to
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notes: str = ""  # the setup, the failures
    left_out: Sequence[int] = ()  # clips that could not be interpreted


def write_report(
    path: Path,
    title: str,
    lead: str,
    systems: Sequence[SystemResult],
    spoken: Mapping[int, Spoken] | None = None,
) -> None:
    """Write the report, whole or not at all; `spoken` is what was heard, by the clips' numbers."""
    page = files("dragoman.evaluate") / "page"
    html = _HTML.format(
        title=escape(title),
        lead=escape(lead),
        css=(page / "report.css").read_text(encoding="utf-8"),
        js=(page / "report.js").read_text(encoding="utf-8"),
        charts=_charts(systems),
        table=_table(systems),
        signatures=_signatures(systems),
        # No text in it may look like the end of a script, or like the beginning of one.
        data=json.dumps(_data(systems, spoken or {}), ensure_ascii=False).replace("<", "\\u003c"),
    )
    with whole_file(path) as file:
        file.write(html)


def write_scores(path: Path, systems: Sequence[SystemResult]) -> None:
    """The table of the report as tab-separated values; times in milliseconds. At its end, over how
    many clips they are, and which were left out."""
    columns = [c for c in COLUMNS if any(s.scores.get(c) is not None for s in systems)]
    rows = ["\t".join(["system", *columns, "clips", "left_out"])]
    for system in systems:
        values = [system.scores.get(column) for column in columns]
        scores = ["" if v is None else f"{v:.6g}" for v in values]
        left_out = ",".join(map(str, system.left_out))
        rows.append("\t".join([system.name, *scores, str(len(system.traces)), left_out]))
    with whole_file(path) as file:
        file.write("\n".join(rows) + "\n")


_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{css}</style></head><body>
<main id="overview">
<h1>{title}</h1><p class="lead">{lead}</p>
<h2>Quality against latency</h2><div class="charts">{charts}</div>
<h2>Systems</h2>{table}
<h2>Signatures</h2>{signatures}
</main>
<main id="page" hidden></main>
<script type="application/json" id="data">{data}</script>
<script>{js}</script>
</body></html>
"""


def _charts(systems: Sequence[SystemResult]) -> str:
    figures = []
    for latency, caption in (
        ("LAAL", "Latency of the policy alone"),
        ("LAAL_CA", "Latency with computation, as a listener sees it"),
    ):
        points = [
            Point(s.curve, s.name, ms / 1000.0, bleu)
            for s in systems
            if (ms := s.scores.get(latency)) is not None
            and (bleu := s.scores.get("BLEU")) is not None
        ]
        figures.append(
            f"<figure><figcaption>{caption}</figcaption>{curves(points, 'BLEU', latency)}</figure>"
        )
    return "".join(figures)


def _table(systems: Sequence[SystemResult]) -> str:
    columns = [c for c in COLUMNS if any(s.scores.get(c) is not None for s in systems)]
    head = "".join(f"<th>{c}{' (s)' if c in IN_SECONDS else ''}</th>" for c in columns)
    rows = []
    for number, system in enumerate(systems):
        cells = "".join(_cell(system, column) for column in columns)
        named = escape(system.name).replace(",", ",<wbr>")  # a narrow screen breaks it there
        name = f'<a href="#/{number}">{named}</a>'
        if system.notes:
            name += f'<span class="range">{escape(system.notes)}</span>'
        rows.append(f"<tr><td>{name}</td>{cells}</tr>")
    return (
        f"<table class='systems'><thead><tr><th>System</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(system: SystemResult, column: str) -> str:
    value = system.scores.get(column)
    label = f'data-label="{column}{" (s)" if column in IN_SECONDS else ""}"'  # for narrow screens
    if value is None:
        return f'<td {label} data-value="">–</td>'
    scale, digits = (1000.0, 2) if column in IN_SECONDS else (1.0, 2 if column in _RATIOS else 1)
    text = f"{value / scale:z.{digits}f}"
    if column in system.intervals:
        low, high = system.intervals[column]
        between = " to " if low < 0 else "–"  # -1.2–3.4 is hard to read
        ends = f"{low / scale:z.{digits}f}{between}{high / scale:z.{digits}f}"
        text += f'<span class="range">{ends}</span>'
    return f'<td {label} data-value="{value}">{text}</td>'


_RATIOS = {"AP", "RTF"}


def _signatures(systems: Sequence[SystemResult]) -> str:
    """Each way of computing once, with the metrics that share it."""
    sharing: dict[str, list[str]] = {}
    known = {name: text for system in systems for name, text in system.signature.items()}
    for name, signature in known.items():
        sharing.setdefault(signature.partition("|")[2], []).append(name)
    rows = (
        f"<dt>{escape(' '.join(names))}</dt><dd><code>{escape(signature)}</code></dd>"
        for signature, names in sharing.items()
    )
    return f"<dl class='signatures'>{''.join(rows)}</dl>"


def _data(systems: Sequence[SystemResult], spoken: Mapping[int, Spoken]) -> dict[str, Any]:
    return {
        "spoken": {index: asdict(clip) for index, clip in spoken.items()},
        "systems": [{"name": s.name, "unit": s.unit, "sentences": _sentences(s)} for s in systems],
    }


def _sentences(system: SystemResult) -> list[dict[str, Any]]:
    scores = {row["index"]: row for row in system.sentences}
    rows = []
    for trace in system.traces:
        own = scores.get(trace.index, {})
        rows.append(
            {
                "index": trace.index,
                "source": trace.source,
                "source_length": round(trace.source_length),
                "references": [text for text in (trace.reference, *trace.more_references) if text],
                "prediction": trace.prediction,
                "words": _words(trace, system.unit),
            }
            | {name: own.get(name) for name in ("AL", "LAAL", "LAAL_CA", "DAL")}
        )
    return rows


def _words(trace: Trace, unit: Unit) -> list[list[Any]]:
    """[text, delay, when it was shown, units]: a word each, or the characters said at once."""
    instance = trace.instance(unit)
    texts = trace.prediction.split() if unit == "word" else list(trace.prediction)
    times = zip(texts, instance.delays, instance.ends or (), strict=True)
    words: list[list[Any]] = []
    for text, delay, end in times:
        moment = [round(delay), round(end)]
        if unit == "char" and words and words[-1][1:3] == moment:
            words[-1][0] += text
            words[-1][3] += 1
        else:
            words.append([text, *moment, 1])
    return words

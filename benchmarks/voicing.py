"""How many hours of speech one core voices in an hour, with the fast voices."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

from dragoman.train.data.pack import Codec
from dragoman.train.voicing.corpus import voice_text
from dragoman.train.voicing.shard import Voicing
from dragoman.train.voicing.spoken import parse_shares

BAR = 1000 / 16  # 1,000 hours of speech an hour on 16 cores
SENTENCES = (
    "I should like to thank the rapporteur for her excellent and thorough work on this report.",
    "The vote on the amendments will take place tomorrow at 12 noon, as announced on Monday.",
    "We cannot accept a budget that cuts research by 15 % while promising more innovation.",
    "Does the Commission intend to publish the results of the consultation before the summer?",
)


def run(rows: int = 200) -> dict[str, float]:
    """Print and return hours of speech per hour of one core's work, for each codec."""
    found = {}
    for voices, codec in (("espeak", "pcm"), ("espeak", "flac"), ("hibari", "pcm")):
        found[f"{voices}, {codec}"] = hours_per_hour(voices, codec, rows)
    for name, value in found.items():
        print(f"{name:14} {value:7.0f} hours of speech per core-hour (bar {BAR:.1f})")
    return found


def hours_per_hour(voices: str, codec: Codec, rows: int) -> float:
    """Processor time counts, so that other work on the machine does not."""
    voicing = Voicing("en", 1, parse_shares(voices), codec, rooms=0.5, noise=0.5, max_words=80)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.tsv"
        lines = (f"{SENTENCES[n % len(SENTENCES)]}\tx" for n in range(rows))
        text.write_text("en\tde\n" + "\n".join(lines) + "\n", encoding="utf-8")
        before = cpu_seconds()
        header = voice_text(text, Path(folder) / "out", voicing)
        return header.hours * 3600 / (cpu_seconds() - before)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    run()

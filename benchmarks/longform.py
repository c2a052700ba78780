"""Long form, 100 talks of 20 segments: Dragoman and OmniSTEval on the same files in one run."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TALKS, SEGMENTS = 100, 20
OMNISTEVAL = "from omnisteval.cli import main; main()"


def run() -> None:
    """Score the same talks with both, compare every value, print the times and their ratio."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = write_talks(folder, random.Random(1))
        print(f"long form: {TALKS} talks of {SEGMENTS} segments, {words} words said")
        try:
            theirs, their_seconds = timed(omnisteval, folder)
        except FileNotFoundError:
            print("  OmniSTEval is not installed: pip install OmniSTEval; nothing to compare with")
            return
        ours, our_seconds = timed(dragoman, folder)
    for metric, value in theirs.items():
        assert abs(ours[metric] - value) < 6e-5, f"{metric}: {ours[metric]} is not {value}"
    print(f"  OmniSTEval  {their_seconds:8.2f} s   (the command, all cores)")
    print(f"  Dragoman    {our_seconds:8.2f} s   (the command, one core)")
    print(f"  {their_seconds / our_seconds:.1f} times as fast; {len(theirs)} scores agree")


def write_talks(folder: Path, rng: random.Random) -> int:
    """A log, segments and references of talks whose output drops, adds and changes words."""
    vocabulary = [_word(rng) for _ in range(4000)]
    segments, references, log = [], [], []
    for talk in range(TALKS):
        clock, said, delays = 0.0, [], []
        for _ in range(SEGMENTS):
            sentence = rng.choices(vocabulary, k=rng.randint(8, 30))
            duration = round(0.35 * len(sentence), 2)
            segments.append(f"{{wav: t{talk}.wav, offset: {clock:.2f}, duration: {duration}}}")
            references.append(" ".join(sentence))
            for position, word in enumerate(sentence):
                if rng.random() < 0.1:
                    continue
                said.append(rng.choice(vocabulary) if rng.random() < 0.2 else word)
                delays.append(round(1000 * (clock + 0.35 * position + 2)))
            clock += duration + 0.5
        elapsed = [delay + 30 * (i + 1) for i, delay in enumerate(delays)]
        log.append(
            {
                "index": talk,
                "prediction": " ".join(said),
                "delays": delays,
                "elapsed": elapsed,
                "prediction_length": len(said),
                "reference": "",
                "source": [f"t{talk}.wav"],
                "source_length": 1000 * clock,
            }
        )
    (folder / "segments.yaml").write_text("".join(f"- {row}\n" for row in segments))
    (folder / "refs.txt").write_text("\n".join(references) + "\n")
    (folder / "instances.log").write_text("".join(json.dumps(row) + "\n" for row in log))
    return sum(len(row["delays"]) for row in log)


def _word(rng: random.Random) -> str:
    return "".join(rng.choices("etaoinshrdlcumwfgypbvk", k=rng.randint(1, 10)))


def timed(command, folder: Path):
    begin = time.perf_counter()
    scores = command(folder)
    return scores, time.perf_counter() - begin


def dragoman(folder: Path) -> dict[str, float]:
    output = _output(
        *("-m", "dragoman", "score", folder / "instances.log", "--json"),
        *("--segments", folder / "segments.yaml", "--references", folder / "refs.txt"),
        *("--compat", "omnisteval", "--ca", "chunk"),
    )
    return json.loads(output)["scores"]


def omnisteval(folder: Path) -> dict[str, float]:
    _output(
        *("-c", OMNISTEVAL, "longform", "--word_level", "--fix_simuleval_emission_ca"),
        *("--speech_segmentation", folder / "segments.yaml"),
        *("--ref_sentences_file", folder / "refs.txt"),
        *("--hypothesis_file", folder / "instances.log"),
        *("--output_folder", folder),
    )
    rows = (folder / "scores.tsv").read_text().splitlines()[1:]
    scores = dict(row.split("\t") for row in rows)
    names = {name: name.replace(" (CU)", "").replace(" (CA)", "_CA") for name in scores}
    return {names[name]: float(value) for name, value in scores.items()}


def _output(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return done.stdout


if __name__ == "__main__":
    run()

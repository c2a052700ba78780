"""Long form, 100 talks of 20 segments: Dragoman and OmniSTEval on the same files in one run.

Both as commands, from files to scores, each on one core; times are seconds of processor time,
ours the best of a few turns. First the metrics that OmniSTEval has; then all that Dragoman has,
StreamLAAL with its own way of cutting among them.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import peers
from benchmarks.scoring import processor_seconds

TALKS, SEGMENTS, TURNS = 100, 20, 3
OMNISTEVAL = "from omnisteval.cli import main; main()"


def run() -> dict[str, float]:
    """Score the same talks with both, hold every value equal, print the times and their ratio."""
    try:
        peer = peers.python()
    except peers.PeersMissingError as error:
        print(error)
        return {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = write_talks(folder, random.Random(1))
        print(f"{TALKS} talks of {SEGMENTS} segments, {words} words said")
        theirs = processor_seconds(omnisteval(folder, peer))
        scores = read_scores(folder / "scores.tsv")
        same = dragoman(folder, [option for name in scores for option in ("-m", name)])
        ours = min(processor_seconds(same) for _ in range(TURNS))
        everything = min(processor_seconds(dragoman(folder, [])) for _ in range(TURNS))
        check(folder, same, scores)
    print(f"{len(scores)} scores agree with OmniSTEval's")
    return {
        "same metrics": report("the same metrics", theirs, ours),
        "all metrics": report("all our metrics", theirs, everything),
    }


def report(what: str, theirs: float, ours: float) -> float:
    ratio = theirs / ours
    print(f"{what}: OmniSTEval {theirs:.2f} s, Dragoman {ours:.2f} s, {ratio:.1f} times as fast")
    return ratio


def check(folder: Path, command: list[str], wanted: dict[str, float]) -> None:
    """OmniSTEval prints four digits; ours must be what it rounded."""
    output = subprocess.run(command, check=True, capture_output=True).stdout
    found = json.loads(output)["scores"]
    for name, value in wanted.items():
        assert abs(found[name] - value) <= 5.1e-5, f"{name} is {found[name]}, not {value}"


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


def dragoman(folder: Path, options: list[str]) -> list[str]:
    command = [sys.executable, "-m", "dragoman", "score", str(folder / "instances.log"), "--json"]
    command += ["--segments", str(folder / "segments.yaml")]
    command += ["--references", str(folder / "refs.txt")]
    return [*command, "--compat", "omnisteval", "--ca", "chunk", *options]


def omnisteval(folder: Path, peer: str) -> list[str]:
    command = [peer, "-c", OMNISTEVAL, "longform", "--word_level", "--fix_simuleval_emission_ca"]
    command += ["--speech_segmentation", str(folder / "segments.yaml")]
    command += ["--ref_sentences_file", str(folder / "refs.txt")]
    command += ["--hypothesis_file", str(folder / "instances.log")]
    return [*command, "--output_folder", str(folder)]


def read_scores(path: Path) -> dict[str, float]:
    """OmniSTEval's scores by our names."""
    rows = (row.split("\t") for row in path.read_text().splitlines()[1:])
    names = {" (CU)": "", " (CA)": "_CA"}
    return {
        name[:-5] + names[name[-5:]] if name[-5:] in names else name: float(value)
        for name, value in rows
    }


if __name__ == "__main__":
    run()

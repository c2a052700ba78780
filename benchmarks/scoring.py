"""Scoring 10,000 sentences: Dragoman and SimulEval on the same log in one run.

First the latency part alone, on sentences that both have already read: AL, LAAL, DAL and AP, with
computation and without. Then the whole command on one core; ours computes every metric it has,
theirs those four and BLEU. Times are seconds of processor time, the best of several turns: the
least disturbed by whatever else the machine does.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import peers
from dragoman.metrics.logs import read_log
from dragoman.metrics.score import score_corpus
from dragoman.metrics.timings import Rules

SENTENCES, TURNS = 10_000, 5
METRICS = ["AL", "LAAL", "DAL", "AP"]
LATENCY_BY_SIMULEVAL = """
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from simuleval.evaluator.instance import LogInstance
from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT
sentences = {i: LogInstance(line) for i, line in enumerate(open(sys.argv[1]))}
scores, seconds = {}, []
for _ in range(3):
    begin = time.process_time()
    for name in sys.argv[2:]:
        for aware in (False, True):
            scorer = LATENCY_SCORERS_DICT[name](computation_aware=aware)
            scores[name + ("_CA" if aware else "")] = scorer(sentences)
    seconds.append(time.process_time() - begin)
print(json.dumps([min(seconds), scores]))
"""


def run() -> dict[str, float]:
    """Measure both, check that they agree, print the ratios."""
    try:
        peer = peers.python()
    except peers.PeersMissingError as error:
        print(error)
        return {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "instances.log", random.Random(7))
        latency = compare_latency(folder, peer)
        command = compare_commands(folder, peer)
    return {"latency": latency, "command": command}


def compare_latency(folder: Path, peer: str) -> float:
    """The four metrics, plain and computation-aware."""
    log = folder / "instances.log"
    instances = read_log(log).instances
    rules = Rules(compat="simuleval", computation="cumulative")
    names = [*METRICS, *(f"{name}_CA" for name in METRICS)]
    theirs, ours = [], []
    for _ in range(TURNS):
        output = subprocess.run(
            [peer, "-c", LATENCY_BY_SIMULEVAL, str(log), *METRICS],
            check=True,
            capture_output=True,
        ).stdout
        seconds, wanted = json.loads(output)
        theirs.append(seconds)
        for _ in range(20):
            begin = time.process_time()
            scores = score_corpus(instances, rules, names).scores
            ours.append(time.process_time() - begin)
    for name in names:
        difference = abs(scores[name].value - wanted[name])
        assert difference <= 1e-6 * max(1, abs(wanted[name])), f"{name} differs by {difference}"
    return report("latency, values equal", min(theirs), min(ours))


def compare_commands(folder: Path, peer: str) -> float:
    """From the log on disk to the scores on the screen, on one core."""
    simuleval = [peer, "-m", "simuleval.cli", "--score-only", "--output", str(folder)]
    simuleval += ["--quality-metrics", "BLEU", "--computation-aware"]
    simuleval += ["--latency-metrics", *METRICS]
    dragoman = [sys.executable, "-m", "dragoman", "score", str(folder), "--json"]
    theirs, ours = [], []
    for _ in range(TURNS):
        (folder / "config.yaml").write_text("source_type: speech\ntarget_type: text\n")
        theirs.append(processor_seconds(simuleval))
        ours.append(processor_seconds(dragoman))
    return report("the whole command", min(theirs), min(ours))


def report(what: str, theirs: float, ours: float) -> float:
    ratio = theirs / ours
    print(f"{what}: SimulEval {theirs:.3f} s, Dragoman {ours:.3f} s, {ratio:.1f} times as fast")
    return ratio


def processor_seconds(command: list[str]) -> float:
    """What a command costs when it may use one core only."""

    def on_one_core() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, preexec_fn=on_one_core)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_log(path: Path, generator: random.Random) -> None:
    """Sentences of 5 to 35 words in words that occur as often as words do."""
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = [
        "".join(generator.choices(letters, k=max(1, round(generator.gauss(5, 2)))))
        for _ in range(8000)
    ]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    with path.open("w") as file:
        for index in range(SENTENCES):
            wanted = generator.choices(vocabulary, weights, k=generator.randint(5, 35))
            spoken = [
                word if generator.random() < 0.7 else generator.choices(vocabulary, weights)[0]
                for word in wanted
                if generator.random() < 0.92
            ] or ["oh"]
            file.write(json.dumps(sentence(index, wanted, spoken, generator)) + "\n")


def sentence(
    index: int, wanted: list[str], spoken: list[str], generator: random.Random
) -> dict[str, object]:
    """A line of a log: three steps of 320 ms behind the ideal pace, some work for each step."""
    source = 400.0 * len(wanted)
    pace = source / len(spoken)
    delays = [min(source, 960.0 + 320 * round(i * pace / 320)) for i in range(len(spoken))]
    elapsed, computed, last = [], 0.0, -1.0
    for delay in delays:
        computed += generator.random() * 120 if delay != last else 0
        last = delay
        elapsed.append(delay + computed)
    return {
        "index": index,
        "prediction": " ".join(spoken).capitalize() + ".",
        "delays": delays,
        "elapsed": elapsed,
        "prediction_length": len(spoken),
        "reference": " ".join(wanted).capitalize() + ".",
        "source": [f"{index}.wav", "samplerate: 16000 Hz"],
        "source_length": source,
    }


if __name__ == "__main__":
    run()

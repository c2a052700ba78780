"""Our interpreter as an agent of the real SimulEval, run as its users run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("simuleval", reason="SimulEval is not installed (pip install 'dragoman[dev]')")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        ("greedy", [500, 1000, 1500, 2000, 2000, 2500, 2600]),
        ("offline", [2600] * 7),
        ("wait-k:k=3", [1500, 2000, 2000, 2500, 2600, 2600, 2600]),
    ],
)
def test_simuleval_runs_our_policies_and_logs_our_delays(tmp_path, policy, delays):
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, np.zeros(41600, np.float32), 16000)
    (tmp_path / "source.txt").write_text(f"{tmp_path / 'a.wav'}\n{tmp_path / 'b.wav'}\n")
    (tmp_path / "target.txt").write_text("word0 word1 word2\nword0 word1\n")
    (tmp_path / "setup.yaml").write_text("model: tests.scripted:sentence\ndetector: ctc\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "simuleval.cli"),
            *("--agent-class", "dragoman.evaluate.simuleval_agent.DragomanAgent"),
            *("--setup", tmp_path / "setup.yaml", "--dragoman-policy", policy),
            *("--source", tmp_path / "source.txt", "--target", tmp_path / "target.txt"),
            *("--source-segment-size", "500", "--output", tmp_path / "out"),
            *("--quality-metrics", "BLEU", "--latency-metrics", "AL", "LAAL"),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in (tmp_path / "out/instances.log").open()]
    assert [row["prediction"].split() for row in rows] == [[f"word{i}" for i in range(7)]] * 2
    assert [row["delays"] for row in rows] == [delays] * 2

"""The load generator at work, scaled down: nothing leaks, nothing is lost, idling costs nothing."""

import pytest

pytest.importorskip("benchmarks.serve")
from benchmarks import moving, serve, soak


def test_connections_leave_nothing_behind():
    before, after = serve.leaks(60)
    assert after["streams"] == 0
    assert after["descriptors"] <= before["descriptors"]
    assert after["tasks"] <= before["tasks"]
    assert after["MiB"] - before["MiB"] < 8


def test_idle_connections_cost_nothing():
    assert serve.idle(40, seconds=1.5) < 0.2


def test_faults_lose_no_word():
    counts = soak.soak(0.05, seed=3, talks=3, length=30)
    assert counts["talks"] >= 3
    assert counts["wrong talks"] == 0
    assert counts["resumes"] > 0


def test_rooms_that_move_lose_no_word():
    counts = moving.soak(0.0, seed=363)
    assert counts["wrong"] == 0
    assert counts["kills"] == counts["drains"] == 1
    assert counts["resumes"] >= moving.ROOMS
    assert counts["listeners"] > 2 * moving.ROOMS


def test_a_load_is_reported(capsys):
    options = ["--streams", "2", "--minutes", "0.05", "--model", "tests.serve.numbers:numbers"]
    serve.run([*options, "--step", "400", "--clients", "2"])
    told = capsys.readouterr().out
    assert "lag p95" in told
    assert "refused or lost: 0" in told
    assert "per s of sound" in told

"""A long talk made of speeches, for the benchmark of what its chunks cost."""

import json

import numpy as np
import pytest
import soundfile

steady = pytest.importorskip("benchmarks.steady")


@pytest.fixture
def speeches(tmp_path):
    """Three of a second each, at three levels."""
    for number in (1, 2, 3):
        sound = np.full(16_000, number / 10, np.float32)
        soundfile.write(tmp_path / f"{number}.wav", sound, 16_000, subtype="FLOAT")
    rows = [json.dumps({"audio": f"{number}.wav"}) for number in (1, 2, 3)]
    path = tmp_path / "speeches.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_speeches_follow_each_other_without_a_gap(speeches):
    chunks = list(steady.chunks(speeches, 1.0, 600.0))
    assert [chunk.last for chunk in chunks] == [False] * 4 + [True]
    assert [len(chunk.samples) for chunk in chunks] == [9600] * 5
    heard = np.concatenate([chunk.samples for chunk in chunks])
    np.testing.assert_allclose(heard[::16_000], [0.1, 0.2, 0.3], atol=1e-3)


def test_a_talk_ends_when_its_time_is_over(speeches):
    chunks = list(steady.chunks(speeches, 1.5 / 60, 1000.0))
    assert [(len(chunk.samples), chunk.last) for chunk in chunks] == [(16_000, False), (8000, True)]


def test_twenty_chunks_around_one_are_taken():
    work = [float(number) for number in range(200)]
    assert steady.around(work, 10) == pytest.approx(9.5)  # 0 to 19
    assert steady.around(work, 100) == pytest.approx(99.5)  # 90 to 109

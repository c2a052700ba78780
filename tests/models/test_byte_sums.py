"""Sums of products of bytes are exact, and the slow way is taken only where there is need."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from dragoman.models import byte_sums
from dragoman.models.graphs import Graphs


@pytest.fixture(autouse=True)
def asked_anew():
    byte_sums.are_exact.cache_clear()
    yield
    byte_sums.are_exact.cache_clear()


def option(session) -> str | None:
    options = session.get_session_options()
    try:
        return options.get_session_config_entry(byte_sums.OPTION)
    except RuntimeError:  # it was not set
        return None


def processor(*, rounds: int):
    """Sessions of a processor that rounds sums of two products to 16 bits where a matrix has so
    many rows; else its sums are exact."""

    class Session:
        def __init__(self, *_) -> None:
            pass

        def run(self, _, feeds):
            largest = 32767 * byte_sums.SIZE // 2 if len(feeds["x"]) == rounds else 2**31 - 1
            return [np.minimum(feeds["x"].astype(np.int32).sum(axis=1) * 127, largest)]

    return Session


@pytest.mark.parametrize(("rounds", "told"), [(1, "1"), (8, "1"), (0, None)])
def test_the_slow_way_is_taken_only_where_sums_are_rounded(monkeypatch, rounds, told):
    with monkeypatch.context() as patch:
        patch.setattr(onnxruntime, "InferenceSession", processor(rounds=rounds))
        byte_sums.are_exact()
    assert option(Graphs(None, 1).session("product", byte_sums._product)) == told


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_graphs_sum_up_exactly_made_or_kept(tmp_path: Path, monkeypatch, rows):
    """On every processor, whichever way it takes."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    folder = tmp_path / "models" / "net"
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"weights")
    for _ in range(2):
        session = Graphs(folder, 1).session("product", byte_sums._product)
        [found] = session.run(None, {"x": np.full((rows, byte_sums.SIZE), 255, np.uint8)})
        assert (found == 255 * 127 * byte_sums.SIZE).all()

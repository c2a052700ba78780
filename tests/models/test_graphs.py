"""Graphs are made once, and again when what they were made of has changed."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest

from dragoman.models import graphs
from dragoman.models.graphs import Graphs
from dragoman.store.prepared import forget, size_of


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model in the store."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "models" / "net"
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"weights")
    return folder


class Maker:
    """Makes a graph that adds a number, and counts how often."""

    def __init__(self, number: float = 1.0) -> None:
        self.number, self.made = number, 0

    def __call__(self) -> bytes:
        from onnx import TensorProto, helper

        self.made += 1
        constant = helper.make_tensor("c", TensorProto.FLOAT, [1], [self.number])
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
        node = helper.make_node("Add", ["x", "c"], ["y"])
        graph = helper.make_graph([node], "add", [x], [y], [constant])
        opset = [helper.make_opsetid("", 18)]
        made: bytes = helper.make_model(
            graph, opset_imports=opset, ir_version=9
        ).SerializeToString()
        return made


def result(session) -> float:
    return float(session.run(None, {"x": np.zeros(1, np.float32)})[0][0])


def kept(folder: Path) -> list[Path]:
    return list((folder.parents[1] / "prepared" / "graphs").rglob("*.ort"))


def test_a_graph_is_made_once(model):
    make = Maker()
    for _ in range(3):
        assert result(Graphs(model, 1).session("add", make)) == 1.0
    assert make.made == 1
    assert [path.name.partition("-")[0] for path in kept(model)] == ["add"]
    assert size_of(model) == kept(model)[0].stat().st_size


@pytest.mark.parametrize("stored", [True, False])
def test_threads_that_wait_sleep(model, stored):
    """Of a graph that is kept, made or loaded, and of one that is not."""
    for _ in range(2):
        session = Graphs(model if stored else None, 2).session("add", Maker())
        options = session.get_session_options()
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        assert options.intra_op_num_threads == 2


def test_other_weights_make_another(model):
    Graphs(model, 1).session("add", Maker(1.0))
    Graphs(model, 1).session("other", Maker(5.0))
    (model / "model.bin").write_bytes(b"others!!")
    assert result(Graphs(model, 1).session("add", Maker(2.0))) == 2.0
    assert len(kept(model)) == 3


def test_two_of_a_name_take_turns_and_the_least_used_goes(model):
    """Two installations, or two precisions, do not throw each other's graphs away."""
    one, two, three = Maker(1.0), Maker(2.0), Maker(3.0)
    Graphs(model, 1).session("other", Maker(5.0))

    def age(seconds: int) -> None:
        for path in kept(model):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - seconds))

    for _ in range(3):
        for number, make in enumerate((one, two)):
            assert result(Graphs(model, 1).session("add", make, of=number)) == number + 1
            age(60)
    assert (one.made, two.made) == (1, 1)
    Graphs(model, 1).session("add", one, of=0)  # the first is now the one used last
    Graphs(model, 1).session("add", three, of=2)
    assert len(kept(model)) == 3  # two of this name, and the other graph
    Graphs(model, 1).session("add", one, of=0)
    assert one.made == 1
    Graphs(model, 1).session("add", two, of=1)
    assert two.made == 2


@pytest.mark.parametrize("what", ["version", "machine", "settings"])
def test_another_surrounding_makes_another(model, monkeypatch, what):
    import onnxruntime

    Graphs(model, 1).session("add", Maker(1.0), of=[1])
    if what == "version":
        monkeypatch.setattr(onnxruntime, "__version__", "0.0")
    if what == "machine":
        monkeypatch.setattr("platform.machine", lambda: "pdp11")
    found = Graphs(model, 1).session("add", Maker(2.0), of=[2] if what == "settings" else [1])
    assert result(found) == 2.0


@pytest.mark.parametrize("content", [b"", b"no graph", None])
def test_a_broken_file_is_made_again(model, content):
    Graphs(model, 1).session("add", Maker())
    path = kept(model)[0]
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    make = Maker()
    assert result(Graphs(model, 1).session("add", make)) == 1.0
    assert make.made == 1
    assert result(Graphs(model, 1).session("add", make)) == 1.0
    assert make.made == 1


def test_where_nothing_can_be_written_it_is_made_each_time(model):
    (model.parents[1] / "prepared").write_text("in the way")
    make = Maker()
    for _ in range(2):
        assert result(Graphs(model, 1).session("add", make)) == 1.0
    assert make.made == 2


def test_where_a_disk_is_full_the_model_is_loaded_all_the_same(model):
    """It is onnxruntime that writes, and it raises what nobody else does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        found = Graphs(model, 1).session("add", Maker())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert result(found) == 1.0
    assert kept(model) == []


def test_where_the_weights_cannot_be_looked_at_it_is_made_all_the_same(model, monkeypatch):
    def gone(folder):
        raise OSError("gone")

    monkeypatch.setattr(graphs, "stamp_of", gone)
    assert result(Graphs(model, 1).session("add", Maker())) == 1.0
    assert kept(model) == []


def test_what_is_gone_was_never_used(tmp_path):
    """Another process may throw a graph away while this one looks for the oldest."""
    assert graphs.used(tmp_path / "gone.ort") == 0.0


def test_where_the_system_tells_nothing_of_its_processor_its_name_will_do(monkeypatch):
    def unread(self, **more):
        raise OSError("no /proc here")

    monkeypatch.setattr(Path, "read_text", unread)
    monkeypatch.setattr("platform.processor", lambda: "arm")
    assert graphs.processor.__wrapped__() == "arm"


def test_a_folder_that_is_not_the_stores_leaves_nothing_behind(model, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    assert result(Graphs(own, 1).session("add", Maker())) == 1.0
    assert result(Graphs(None, 1).session("add", Maker())) == 1.0
    assert kept(model) == []


def test_what_was_made_goes_with_the_model(model):
    """And what was made of a folder that was made of it."""
    Graphs(model, 1).session("add", Maker())
    converted = model.parents[1] / "prepared" / "whisper"
    from dragoman.store.prepared import place_for

    made = place_for(model, "whisper")
    made.mkdir(parents=True)
    assert made.parent == converted
    Graphs(made, 1).session("add", Maker())
    assert len(kept(model)) == 2
    forget(model)
    assert kept(model) == []
    assert not made.exists()

"""Exported graphs give what the nets give, at any size; what is wrong is named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.net import BOS, OnnxNet
from dragoman.train.export import check_quantised, compare, export
from dragoman.train.exporting import Surroundings
from dragoman.train.graphs import bands_of, in_chunks
from dragoman.train.quantise import quantise
from tests.train.exported import NETS

QUICK = ("transformer", "incremental", "vgg-blstm")


def close(found: np.ndarray, expected: torch.Tensor) -> None:
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4, rtol=1e-4)


def source_for(net, items: int, frames: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(frames)
    if not bands_of(net):
        return torch.randint(4, net.vocabularies.source, (items, frames), generator=generator)
    return 3 * torch.randn(items, frames, bands_of(net), generator=generator)


def same_encoding(net, encoded, heard) -> None:
    assert heard.lengths.tolist() == encoded.lengths.tolist()
    for i, length in enumerate(encoded.lengths.tolist()):
        real = (i, *(slice(None),) * (net.memory_time - 1), slice(length))
        for found, expected in zip(heard.memory, net.memory(encoded.states), strict=True):
            close(found[real], expected[real])
        if encoded.boundary_logits is not None:
            close(heard.boundaries[i, :length], encoded.boundary_logits[i, :length].sigmoid())
        if encoded.ctc_logits is not None:
            states = int(encoded.ctc_lengths[i])
            assert heard.label_lengths[i] == states
            best = encoded.ctc_logits[i, :states].argmax(-1)
            assert heard.labels[i, :states].tolist() == best.tolist()


@pytest.mark.parametrize(
    "label", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in NETS]
)
@torch.no_grad()
def test_a_graph_is_the_net(exporter, label):
    net, made = exporter.net(label), OnnxNet(exporter.folder_of(label), threads=1)
    for items, frames in ((1, 33), (3, 58)):
        source = source_for(net, items, frames)
        lengths = torch.tensor([frames, frames - 9, frames // 2][:items])
        if in_chunks(net):
            window = made.config.chunks.window
            source, lengths = source[:, :window], lengths.clamp(max=window)
            stream, kept = net.begin_stream(items), made.begin_stream(items)
            for _ in range(2):
                encoded, stream = net.hear(source, lengths, stream)
                heard, kept = made.hear(source.numpy(), lengths.numpy(), kept)
            for found, expected in zip(kept, stream, strict=True):
                close(found, expected)
        else:
            encoded = net.encode(source, lengths)
            heard = made.encode(source.numpy(), lengths.numpy())
        same_encoding(net, encoded, heard)
        same_steps(net, made, encoded)


def same_steps(net, made, encoded) -> None:
    items = len(encoded.lengths)
    memory, cache, cached = net.memory(encoded.states), net.begin(items), made.begin(items)
    arrays = tuple(tensor.numpy() for tensor in memory)
    generator = torch.Generator().manual_seed(1)
    for units in (1, 1, 1) if net.decides == "monotonic" else (5, 1, 1):
        tokens = torch.randint(4, net.vocabularies.target, (items, units), generator=generator)
        extra = ()
        if net.decides == "monotonic":
            extra = (torch.arange(items) % 2 == 1,)
        step = net.step(tokens, memory, encoded.lengths, cache, *extra)
        stepped = made.step(
            tokens.numpy(), arrays, encoded.lengths.numpy(), cached, *(e.numpy() for e in extra)
        )
        close(stepped.log_probs, step.logits.log_softmax(-1))
        close(stepped.attention, step.attention)
        if extra:
            assert stepped.write.tolist() == step.write.tolist()
        cache, cached = step.cache, stepped.cache
        for found, expected in zip(cached, cache, strict=True):
            close(found, expected)


def test_the_folder_says_what_is_in_it(exporter):
    folder = exporter.folder_of("incremental")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("config.json", "decoder.onnx", "encoder.onnx", "source.model", "target.model"),
    ]
    config = ExportedNet.read(folder)
    assert (config.net, config.bands, config.ctc, config.boundaries) == (
        *("incremental", 16, True, True),
    )
    assert config.settings["chunk"] == config.chunks.chunk == 4
    assert config.chunks.window == 4 * (4 + 2) + 3
    assert (config.languages.source, config.languages.target) == ("en", "de")
    assert not list(folder.parent.glob(".incremental*"))  # nothing half-written is left


@pytest.mark.parametrize("label", QUICK)
def test_a_graph_does_not_tell_where_it_was_made(exporter, label):
    for graph in ("encoder", "decoder"):
        written = (exporter.folder_of(label) / f"{graph}.onnx").read_bytes()
        assert b".py" not in written
        assert str(Path(__file__).parents[2]).encode() not in written


def test_eight_bits_are_nearly_the_same(exporter, tmp_path):
    full = exporter.folder_of("transformer")
    small = shutil.copytree(full, tmp_path / "int8")
    quantise(small)
    assert ExportedNet.read(small).precision == "int8"
    nets = [OnnxNet(folder, threads=1) for folder in (full, small)]
    source = source_for(exporter.net("transformer"), 1, 60).numpy()
    heard = [net.encode(source, np.array([60])) for net in nets]
    steps = [
        net.step(np.array([[BOS, 7, 8]]), one.memory, one.lengths, net.begin(1))
        for net, one in zip(nets, heard, strict=True)
    ]
    difference = np.abs(np.exp(steps[0].log_probs) - np.exp(steps[1].log_probs)).max()
    assert 0 < difference < 0.1
    assert sorted(path.name for path in small.iterdir()) == sorted(
        path.name for path in full.iterdir()
    )
    matrices = [path.read_bytes().count(b"MatMulInteger") for path in small.glob("*.onnx")]
    assert all(matrices)


def spoil(folder: Path, part: str) -> None:
    """Turn the signs of all weights that have eight bits."""
    graph = onnx.load(folder / f"{part}.onnx")
    for weights in graph.graph.initializer:
        if weights.data_type == onnx.TensorProto.INT8 and len(weights.dims) == 2:
            flipped = -onnx.numpy_helper.to_array(weights)
            weights.CopyFrom(onnx.numpy_helper.from_array(flipped, weights.name))
    onnx.save(graph, folder / f"{part}.onnx")


def test_what_ships_in_eight_bits_is_compared(exporter, tmp_path):
    """A good one passes; one that hears or says something else is refused."""
    net = exporter.net("transformer")
    small = shutil.copytree(exporter.folder_of("transformer"), tmp_path / "int8")
    quantise(small)
    check_quantised(net, OnnxNet(small, threads=1))
    for part in ("encoder", "decoder"):
        bad = shutil.copytree(small, tmp_path / part)
        spoil(bad, part)
        with pytest.raises(DragomanError, match=f"In eight bits the {part} is off by"):
            check_quantised(net, OnnxNet(bad, threads=1))


def copy_graphs(exporter, monkeypatch):
    """From here on an export takes the graphs of "transformer" that were made before, whatever the
    net: to make them anew takes longer than all else."""

    def copied(net, folder):
        for name in ("encoder.onnx", "decoder.onnx"):
            shutil.copy(exporter.folder_of("transformer") / name, folder / name)

    exporter.folder_of("transformer")  # in the way of all others
    monkeypatch.setattr("dragoman.train.export.write_graphs", copied)


def test_nothing_spoiled_is_exported(exporter, tmp_path, monkeypatch):
    import dragoman.train.export as module

    copy_graphs(exporter, monkeypatch)

    def quantise_badly(folder):
        quantise(folder)
        spoil(folder, "decoder")

    monkeypatch.setattr(module, "quantise", quantise_badly)
    with pytest.raises(DragomanError, match="without --int8"):
        export(exporter.net("transformer"), tmp_path / "bad", Surroundings(), int8=True)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_export_left_is_swept_away(exporter, tmp_path, monkeypatch):
    """A kill leaves its folder under a hidden name; the next export in that place removes it."""
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from dragoman.files import whole_folder\n"
        "with whole_folder(Path(sys.argv[1])) as made:\n"
        "    (made / 'encoder.onnx').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "net")], check=False)
    assert [path.name.endswith(".tmp") for path in tmp_path.iterdir()] == [True]
    copy_graphs(exporter, monkeypatch)
    export(exporter.net("transformer"), tmp_path / "net", Surroundings())
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_a_folder_that_exists_is_left_alone(exporter, tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(DragomanError, match="exists already"):
        export(exporter.net("transformer"), tmp_path / "mine", Surroundings())


def test_a_graph_that_is_not_the_net_is_refused(exporter, tmp_path, monkeypatch):
    """The comparison can fail: give it another net's graphs."""
    copy_graphs(exporter, monkeypatch)
    torch.manual_seed(5)
    from dragoman.train.nets.registry import build

    other = build(*NETS["transformer"], exporter.net("transformer").vocabularies)
    with pytest.raises(DragomanError, match="differs from the net"):
        export(other, tmp_path / "wrong", Surroundings())
    assert not list(tmp_path.iterdir())


def test_damaged_folders_are_named(exporter, tmp_path):
    with pytest.raises(DragomanError, match="does not hold an exported net"):
        OnnxNet(tmp_path)
    folder = shutil.copytree(exporter.folder_of("transformer"), tmp_path / "net")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text("{")
    with pytest.raises(DragomanError, match="is damaged"):
        OnnxNet(folder)
    (folder / "config.json").write_text(json.dumps({**config, "input": "smell"}))
    with pytest.raises(DragomanError, match="does not describe"):
        OnnxNet(folder)
    (folder / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(DragomanError, match="newer Dragoman"):
        OnnxNet(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "decoder.onnx").write_bytes(b"nonsense")
    with pytest.raises(DragomanError, match=r"Cannot load .*decoder.onnx"):
        OnnxNet(folder)


@pytest.mark.parametrize("found", [np.nan, np.inf, 1.1])
def test_a_graph_that_gives_other_numbers_is_refused(found):
    expected = torch.tensor([1.0, -torch.inf, 2.0])
    compare("decoder", [np.array([1.0, -np.inf, 2.0], np.float32)], [expected])
    with pytest.raises(DragomanError, match="The exported decoder differs from the net"):
        compare("decoder", [np.array([found, -np.inf, 2.0], np.float32)], [expected])

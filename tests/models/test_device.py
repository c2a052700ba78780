"""Which device and which numbers, and what is told where they cannot be had."""

import pytest

from dragoman.errors import DragomanError
from dragoman.models import device, options
from dragoman.models.load import load_model
from dragoman.models.options import Options

from . import made_whisper


@pytest.fixture
def gpu(monkeypatch):
    """Says whether there is a GPU."""

    def there(missing):
        monkeypatch.setattr(options, "why_no_gpu", lambda: missing)
        monkeypatch.setattr(options, "gpu_found", lambda: missing is None)

    return there


@pytest.mark.parametrize(
    ("missing", "device", "compute", "placed"),
    [
        (None, "auto", None, ("cuda", "float16")),
        (None, "auto", "bfloat16", ("cuda", "bfloat16")),
        (None, "auto", "int8", ("cpu", "int8")),  # the CPU's numbers
        (None, "cpu", None, ("cpu", "int8")),
        (None, "cuda", "float32", ("cuda", "float32")),
        ("none", "auto", None, ("cpu", "int8")),
        ("none", "auto", "float32", ("cpu", "float32")),
    ],
)
def test_device_and_numbers_are_decided(gpu, missing, device, compute, placed):
    gpu(missing)
    found = Options(threads=2, device=device, compute=compute).placed()
    assert (found.device, found.compute, found.threads) == (*placed, 2)


def test_numbers_that_a_gpu_has_not_are_refused(gpu):
    gpu(None)
    with pytest.raises(DragomanError, match=r"float16, bfloat16 or float32; .* --device cpu"):
        Options(device="cuda", compute="int8").placed()


def test_a_family_without_an_engine_for_gpus_says_so(gpu):
    gpu(None)
    with pytest.raises(DragomanError, match="An own net runs on the CPU only"):
        Options(device="cuda").on_cpu("An own net")
    assert Options().on_cpu("An own net").device == "cpu"


def test_cuda_without_a_gpu_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "gpus", lambda: 0)
    folder = made_whisper.make(tmp_path / "whisper")
    with pytest.raises(DragomanError, match="There is no CUDA GPU here; take --device cpu"):
        load_model(str(folder), device="cuda")


def test_cuda_without_torch_says_what_to_install(monkeypatch):
    monkeypatch.setattr(device, "gpus", lambda: 1)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert "pip install 'dragoman[gpu]'" in str(device.why_no_gpu())


def test_a_torch_for_the_cpu_alone_is_told_of(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device, "gpus", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "cannot use the GPU" in str(device.why_no_gpu())


@pytest.mark.parametrize(
    ("begun", "counted", "gpus"),
    [(0, 0, 3), (100, 0, 0), (0, 100, 0), (100, 100, 0)],  # a driver may be there without a GPU
)
def test_a_driver_tells_how_many_there_are(monkeypatch, begun, counted, gpus):
    class Driver:
        def cuInit(self, flags):  # noqa: N802
            return begun

        def cuDeviceGetCount(self, place):  # noqa: N802
            place._obj.value = 3
            return counted

    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: Driver())
    assert device.gpus.__wrapped__() == gpus


def test_a_driver_may_have_another_name_or_none(monkeypatch):
    tried = []

    def none(name):
        tried.append(name)
        raise OSError

    monkeypatch.setattr(device.ctypes, "CDLL", none)
    assert device.gpus.__wrapped__() == 0
    assert tuple(tried) == device.DRIVERS


def test_a_search_follows_a_beam_or_more():
    assert Options(beams=1).beams == 1
    with pytest.raises(DragomanError, match="1 beam or more, not 0"):
        Options(beams=0)


def test_four_processes_take_a_quarter_of_a_gpu_each(monkeypatch):
    torch = pytest.importorskip("torch")
    taken = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", taken.append)
    device.share_gpu(4)
    assert taken == [0.25]

"""How many speakers at once: all their steps are one batch, and the step has to be done in time.

Every speaker is another place of real talks, heard in steps of one second, five beams, the default
policy. All step together, which is the worst case: the batch is as large as can be, and nobody's
step is done before everybody's is. A number of streams holds if the 95th percentile of a step's
work is below half a second; `real time` means below a second. The windows are grown before anything
is measured.

    python -m benchmarks streams

DRAGOMAN_BENCH_TALKS_IN names a folder of recordings (default: those that come with Dragoman),
DRAGOMAN_BENCH_FROM their language (de), DRAGOMAN_BENCH_TO the target (en). DRAGOMAN_BENCH_MODEL is
the model (whisper-base), DRAGOMAN_BENCH_DEVICE and DRAGOMAN_BENCH_COMPUTE are where and in which
numbers it works (auto), DRAGOMAN_BENCH_THREADS on how many threads (all). DRAGOMAN_BENCH_STEP are
the milliseconds of a step (1000).
DRAGOMAN_BENCH_STREAMS are the numbers of streams that are tried, in order, until one is too many
(1,2,4 on a CPU; 100,200,400,600,800,1000 on a GPU), DRAGOMAN_BENCH_STEPS how many steps each.
DRAGOMAN_BENCH_PROCESSES are the processes that share the device and the streams, each with the same
number (1): on a GPU it is Python that has too much to do first.
DRAGOMAN_BENCH_PROFILE=1 shows after each what the host does in two steps more, by functions, and
the GPU in one, by kernels.
DRAGOMAN_BENCH_SHAPE=large-v3 takes random weights of that shape instead of a model; since they
never end a text, drafts are cut at as many tokens as Whisper base makes (12).
"""

import cProfile
import os
import pstats
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dragoman
from benchmarks.crowd import Crowd
from benchmarks.trial import BAR, Trial
from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.source import read_audio
from dragoman.interpreter import step
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.setup import Setup, System

GROWING = 14  # steps until windows have their usual length
TOKENS = 12  # of a draft, of a net that does not know how to end
LARGE = {"layers": 32, "heads": 20, "width": 1280, "bands": 128, "words": 51_866}


class Speakers:
    """Streams that hear talks, each from a place of its own, over and over."""

    def __init__(self, system: System, talks: Sequence[np.ndarray], count: int) -> None:
        self._sound = np.concatenate(list(talks))
        random = np.random.default_rng(0)
        self._at = random.integers(0, len(self._sound), count)
        self._system = system
        self._step = round(system.setup.step_ms * RATE / 1000)
        self.interpreters = [system.interpreter() for _ in range(count)]
        self.words = 0

    def step(self, count: int) -> float:
        """The first `count` streams hear a step each; the seconds that took."""
        going = self.interpreters[:count]
        chunks = [Chunk(self._next(index), False) for index in range(count)]
        begin = time.perf_counter()
        updates = step(going, chunks)
        took = time.perf_counter() - begin
        for update in updates:
            if update.error is not None:
                raise update.error
            self.words += len(update.said)
        return took

    def _next(self, index: int) -> np.ndarray:
        places = (self._at[index] + np.arange(self._step)) % len(self._sound)
        self._at[index] += self._step
        return self._sound[places]

    def trial(self, count: int, steps: int, ready: Callable[[], object] = lambda: None) -> Trial:
        """What the steps of the first `count` streams took; each waits until all are `ready`."""
        before, works = time.process_time(), []
        for _ in range(steps):
            ready()
            works.append(self.step(count))
        return Trial(count, works, time.process_time() - before, steps, self._step / RATE)


def run() -> dict[str, float]:
    """Try more and more streams, print what each takes; the largest number that holds."""
    setup, what = _setup()
    cuda = Options(device=setup.device, compute=setup.compute).placed().device == "cuda"
    sizes = _numbers("DRAGOMAN_BENCH_STREAMS", "100,200,400,600,800,1000" if cuda else "1,2,4")
    steps = _numbers("DRAGOMAN_BENCH_STEPS", "20" if cuda else "5")[0]
    processes = _numbers("DRAGOMAN_BENCH_PROCESSES", "1")[0]
    print(f"{what}, {_device(cuda)}; {processes} process{'es' if processes > 1 else ''}")
    alone = speakers(max(sizes)) if processes == 1 else None
    streams = alone or Crowd(processes, max(sizes), speakers)
    grown = streams.trial(max(sizes), GROWING)
    print(f"{GROWING} steps of {max(sizes)} streams to grow their windows: {grown}", flush=True)
    most, last = 0, 0.0
    for size in sizes:
        trial = streams.trial(size, steps)
        print(trial, flush=True)
        if alone is not None and os.environ.get("DRAGOMAN_BENCH_PROFILE"):
            show_host(alone, size)
            if cuda:
                show_device(alone, size)
        last = trial.p95
        if trial.holds:
            most = size
        if not trial.keeps_up:
            break
    print(f"{streams.words} words were said; {most} streams hold (p95 below {BAR:g} of a step)")
    return {"streams": float(most), "p95": last}


def speakers(count: int) -> Speakers:
    """Streams of this process."""
    return Speakers(_system(), _talks(), count)


def show_device(speakers: Speakers, count: int) -> None:
    """Which kernels the GPU spends a step with."""
    from benchmarks.kernels import show_kernels

    show_kernels(lambda: speakers.step(count))


def show_host(speakers: Speakers, count: int) -> None:
    """Which functions of Python a step spends its time in; who waits for a GPU is among them."""
    profiler = cProfile.Profile()
    with profiler:
        for _ in range(2):
            speakers.step(count)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def _system() -> System:
    setup, _ = _setup()
    return _of_shape(setup) if os.environ.get("DRAGOMAN_BENCH_SHAPE") else System(setup)


def _setup() -> tuple[Setup, str]:
    """What is tried, and what it is called."""
    names = {"device": "DRAGOMAN_BENCH_DEVICE", "compute": "DRAGOMAN_BENCH_COMPUTE"}
    chosen: dict[str, Any] = {key: os.environ.get(name) for key, name in names.items()}
    model = os.environ.get("DRAGOMAN_BENCH_MODEL", "whisper-base")
    source = os.environ.get("DRAGOMAN_BENCH_FROM", "de")
    target = os.environ.get("DRAGOMAN_BENCH_TO", "en")
    step_ms = float(os.environ.get("DRAGOMAN_BENCH_STEP", "1000"))
    threads = int(os.environ.get("DRAGOMAN_BENCH_THREADS", "0"))
    setup = Setup(model=model, source=source, target=target, threads=threads).tuned(2000.0)
    setup = setup.with_changes(step_ms=step_ms, beams=5, **chosen)
    shape = os.environ.get("DRAGOMAN_BENCH_SHAPE")
    name = f"random weights of {shape}'s shape" if shape else model
    return setup, f"{name}, {step_ms:g} ms steps, 5 beams"


class Cut:
    """An engine whose drafts are cut: random weights never end."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def speak(self, states: Sequence[Any], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        cut = [replace(prompt, most=min(prompt.most, TOKENS)) for prompt in prompts]
        return self._engine.speak(states, cut, beams)


def _of_shape(setup: Setup) -> System:
    """A system with random weights of Whisper large-v3's shape."""
    from dragoman.models.whisper.gpu.engine import TorchEngine
    from dragoman.models.whisper.model import WhisperModel
    from dragoman.models.whisper.tokens import Vocabulary
    from dragoman.models.whisper.weights import Weights
    from dragoman.store import get

    known = Path(setup.model)
    vocabulary = Vocabulary.load(known if known.is_dir() else get(setup.model))
    extra = LARGE["words"] - len(vocabulary.names)
    vocabulary = replace(vocabulary, names=(*vocabulary.names, *["<|extra|>"] * extra))
    options = Options(device=setup.device, compute=setup.compute).placed()
    weights = Weights(Path("random"), random_weights(**LARGE))
    config = {"suppress_ids": [], "suppress_ids_begin": []}
    engine = TorchEngine(weights, config, vocabulary, options.compute or "float16", options.device)
    whisper = WhisperModel("large-v3's shape", Cut(engine), vocabulary)
    system = System(setup)
    system.__dict__["model"] = whisper
    return system


def random_weights(
    layers: int, heads: int, width: int, bands: int, words: int
) -> dict[str, np.ndarray]:
    """Weights by their names in CTranslate2's format, in float16."""
    pool = np.random.default_rng(0).standard_normal(2**20 + 7).astype(np.float16)

    def normal(*shape: int, size: float | None = None) -> np.ndarray:
        spread = np.float16(shape[-1] ** -0.5 if size is None else size)
        return np.resize(pool * spread, shape)

    made: dict[str, np.ndarray] = {
        "encoder/conv1/weight": normal(width, bands, 3, size=(3 * bands) ** -0.5),
        "encoder/conv2/weight": normal(width, width, 3, size=(3 * width) ** -0.5),
        "encoder/conv1/bias": normal(width, size=0.1),
        "encoder/conv2/bias": normal(width, size=0.1),
        "encoder/position_encodings/encodings": normal(1500, width, size=0.1),
        "decoder/position_encodings/encodings": normal(448, width, size=0.1),
        "decoder/embeddings/weight": normal(words, width),
    }
    made["decoder/projection/weight"] = made["decoder/embeddings/weight"]

    def norm(name: str) -> None:
        made[f"{name}/gamma"], made[f"{name}/beta"] = np.ones(width), np.zeros(width)

    def linear(name: str, rows: int, columns: int) -> None:
        made[f"{name}/weight"], made[f"{name}/bias"] = normal(rows, columns), normal(rows, size=0.1)

    for side in ("encoder", "decoder"):
        made[f"{side}/num_heads"] = np.int16(heads)
        norm(f"{side}/layer_norm")
        for layer in range(layers):
            name = f"{side}/layer_{layer}"
            sizes = {"self_attention/linear_0": (3, 1), "self_attention/linear_1": (1, 1)}
            sizes |= {"ffn/linear_0": (4, 1), "ffn/linear_1": (1, 4)}
            if side == "decoder":
                sizes |= {f"attention/linear_{i}": (1 + (i == 1), 1) for i in range(3)}
                norm(f"{name}/attention/layer_norm")
            for part, (rows, columns) in sizes.items():
                linear(f"{name}/{part}", rows * width, columns * width)
            norm(f"{name}/self_attention/layer_norm")
            norm(f"{name}/ffn/layer_norm")
    return made


def _talks() -> list[np.ndarray]:
    folder = Path(
        os.environ.get("DRAGOMAN_BENCH_TALKS_IN", Path(dragoman.__file__).parent / "talks")
    )
    ends = {".flac", ".ogg", ".wav", ".mp3"}
    paths = sorted(path for path in folder.rglob("*") if path.suffix in ends)
    if not paths:
        raise SystemExit(
            f"There are no recordings in {folder}; name others in DRAGOMAN_BENCH_TALKS_IN."
        )
    return [read_audio(path) for path in paths]


def _numbers(name: str, default: str) -> list[int]:
    return [int(part) for part in os.environ.get(name, default).split(",")]


def _device(cuda: bool) -> str:
    if not cuda:
        return f"CPU, {os.cpu_count()} cores"
    import torch

    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"


if __name__ == "__main__":
    run()

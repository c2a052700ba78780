"""Live interpreting: Dragoman and WhisperLiveKit on the same clips with the same weights.

Both translate German to English with Whisper base (int8, one thread), hearing each clip in steps
of one second; clip by clip they take turns, so that a busy machine is busy for both. What counts is
processor time, of all threads of a process; reading the sound and loading the model are left out.
Times of the clock depend on who else uses the machine, so latency "with work" is computed as if
each system had one core to itself. Then the command `dragoman translate` is measured: first words,
and memory over ten minutes.

    python -m benchmarks interpreting

DRAGOMAN_BENCH_CORPUS names the corpus: a TSV with the columns audio, de and en. Of it the first
DRAGOMAN_BENCH_CLIPS (12) clips are used, or those that DRAGOMAN_BENCH_TAKE numbers, from 0.
DRAGOMAN_BENCH_MODEL (whisper-base) is another Whisper of ours; WhisperLiveKit is then left out.
DRAGOMAN_BENCH_THREADS (1) are ours; with several, work is the processor time of the thread that
waits, asleep, for the others: what the clock would say if each had a core to itself.
DRAGOMAN_BENCH_WLK names a Python that has WhisperLiveKit;
without it, `build/whisperlivekit` is looked at, which is made by

    python -m venv build/whisperlivekit
    build/whisperlivekit/bin/pip install torch==2.13.0      # its build without CUDA is enough
    build/whisperlivekit/bin/pip install --no-deps whisperlivekit==0.2.26 faster-whisper==1.2.1
    build/whisperlivekit/bin/pip install ctranslate2==4.8.4 numpy soundfile av tokenizers \
        huggingface-hub onnxruntime tqdm tiktoken numba librosa
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from benchmarks.speech import some
from benchmarks.translating import measure_first_words, measure_memory
from dragoman.audio.source import open_audio, read_audio
from dragoman.clock import SimulatedClock
from dragoman.corpora import Clip, read_corpus
from dragoman.evaluate.result import Scorer
from dragoman.metrics import significance
from dragoman.models.load import load_model
from dragoman.setup import Setup, System
from dragoman.store import get
from dragoman.trace import Hearing, Saying, Trace

MODEL, SOURCE, TARGET, STEP_MS = "whisper-base", "de", "en", 1000.0
ROOT = Path(__file__).parent.parent
CORPUS = ROOT.parent / "shared" / "data" / "eval" / "autodub.de-en.tsv"
PEER_PYTHON = ROOT / "build" / "whisperlivekit" / "bin" / "python"
COST_BAR, BLEU_BAR = 1 / 10, -0.5  # of WhisperLiveKit's processor time; against its BLEU


class Contestant(Protocol):
    """One of the systems compared."""

    name: str

    def interpret(self, clip: Clip) -> Trace:
        """Hear a clip; the trace's clock counts processor time as work."""


def run() -> dict[str, float]:
    """Compare, print the ratios, give them by name."""
    corpus = Path(os.environ.get("DRAGOMAN_BENCH_CORPUS", CORPUS))
    if not corpus.is_file():
        print("No corpus: name a TSV with the columns audio, de and en in DRAGOMAN_BENCH_CORPUS.")
        return {}
    clips = read_corpus(corpus, SOURCE, TARGET)
    if "DRAGOMAN_BENCH_TAKE" in os.environ:
        clips = some(clips)
    else:
        clips = clips[: int(os.environ.get("DRAGOMAN_BENCH_CLIPS", "12"))]
    return {
        **compare(clips),
        "first words": measure_first_words(clips),
        "memory": measure_memory(clips),
    }


def compare(clips: list[Clip]) -> dict[str, float]:
    """Both on every clip; without WhisperLiveKit, ours alone."""
    name = os.environ.get("DRAGOMAN_BENCH_MODEL", MODEL)
    ours = dragomans(name)
    if name != MODEL:
        report(interpret_all(clips, ours))
        return {}
    python = os.environ.get("DRAGOMAN_BENCH_WLK", str(PEER_PYTHON))
    if not Path(python).is_file():
        print(
            "WhisperLiveKit is not compared with: name a Python that has it in DRAGOMAN_BENCH_WLK "
            "(benchmarks/interpreting.py says how to make one)."
        )
        report(interpret_all(clips, ours))
        return {}
    with WhisperLiveKit(python) as theirs:
        results = interpret_all(clips, [theirs, *ours])
    report(results)
    return ratios(results[theirs.name], {one.name: results[one.name] for one in ours})


def dragomans(name: str) -> list[Contestant]:
    """The tuned default and local agreement in the same steps, and the default in its own steps."""
    threads = int(os.environ.get("DRAGOMAN_BENCH_THREADS", "1"))
    model = load_model(name, threads=threads)
    tuned = Setup(model=name, source=SOURCE, target=TARGET, threads=threads).tuned(2000.0)
    agreement = tuned.with_changes(policy="local-agreement:n=2", step_ms=STEP_MS)
    setups = [agreement, tuned.with_changes(step_ms=STEP_MS), tuned]
    return [Dragoman(System(setup, model)) for setup in dict.fromkeys(setups)]


class Dragoman:
    """A system of ours."""

    def __init__(self, system: System) -> None:
        self._system = system
        setup = system.setup
        self.name = f"Dragoman, {setup.policy}, {setup.step_ms / 1000:g} s steps"

    def interpret(self, clip: Clip) -> Trace:
        trace = Trace(clip.index, clip.audio.name, clip.texts[TARGET])
        work = time.process_time if self._system.setup.threads == 1 else time.thread_time
        interpreter = self._system.interpreter(trace, SimulatedClock(work))
        step_ms = self._system.setup.step_ms
        chunks = open_audio(clip.audio, start=clip.start or 0.0, end=clip.end, step_ms=step_ms)
        for _ in interpreter.run(chunks):
            pass
        return trace


class WhisperLiveKit:
    """A process that runs it, which is told of clips and answers what was said when."""

    def __init__(self, python: str) -> None:
        worker = Path(__file__).with_name("whisperlivekit_worker.py")
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [python, str(worker), str(get(MODEL)), SOURCE, str(STEP_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        about = self._answer()
        kind = f"{about['whisperlivekit']} ({about['compute']})"
        self.name = f"WhisperLiveKit {kind}, local agreement, {STEP_MS / 1000:g} s steps"
        if about["ctranslate2"] != version("ctranslate2"):
            print(f"Mind: WhisperLiveKit runs on another CTranslate2, {about['ctranslate2']}.")

    def interpret(self, clip: Clip) -> Trace:
        path = Path(self._folder.name) / f"{clip.index}.npy"
        np.save(path, read_audio(clip.audio, clip.start or 0.0, clip.end))
        assert self._process.stdin is not None
        print(path, file=self._process.stdin, flush=True)
        trace, free_ms = Trace(clip.index, clip.audio.name, clip.texts[TARGET]), 0.0
        for chunk, (audio_ms, work_ms, text) in enumerate(self._answer()):
            start_ms = max(audio_ms, free_ms)
            free_ms = start_ms + work_ms
            trace.heard(Hearing(audio_ms, audio_ms, start_ms, free_ms))
            if text:
                trace.said(Saying(text, chunk))
        return trace

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("WhisperLiveKit stopped; what it said is above.")
        return json.loads(line)

    def __enter__(self) -> "WhisperLiveKit":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def interpret_all(clips: list[Clip], systems: list[Contestant]) -> dict[str, list[Trace]]:
    """Every clip by every system before the next clip."""
    results: dict[str, list[Trace]] = {system.name: [] for system in systems}
    for number, clip in enumerate(clips, start=1):
        for system in systems:
            results[system.name].append(system.interpret(clip))
        print(f"  clip {number} of {len(clips)}", file=sys.stderr, flush=True)
    return results


def report(results: Mapping[str, list[Trace]]) -> None:
    """A row for each system."""
    first = next(iter(results.values()))
    seconds = sum(trace.source_length for trace in first) / 1000
    print(f"{len(first)} clips, {seconds:.0f} s of speech.")
    print("Work is processor time: on a machine that others use too, the clock says nothing.")
    print(f"  {'':66} CPU s per s   BLEU   chrF  LAAL s  with work")
    for name, traces in results.items():
        scores = Scorer().values(traces)
        lag, lag_with_work = ((scores[m] or 0.0) / 1000 for m in ("LAAL", "LAAL_CA"))
        quality = f"{bleu(traces):6.2f} {scores['chrF'] or 0.0:6.2f}"
        print(f"  {name:66} {cost(traces):11.3f} {quality} {lag:7.2f} {lag_with_work:10.2f}")


def ratios(theirs: list[Trace], ours: Mapping[str, list[Trace]]) -> dict[str, float]:
    """Our cost as a share of theirs, and how far our BLEU is from theirs, give or take chance."""
    found = {}
    for name, traces in ours.items():
        share = cost(traces) / cost(theirs)
        quality = [Scorer().report(every).scores["BLEU"].measure for every in (theirs, traces)]
        (apart,) = significance.compare(quality[:1], quality[1:])
        low, high = apart.interval.low, apart.interval.high
        met = "met" if share <= COST_BAR and apart.difference >= BLEU_BAR else "NOT met"
        print(
            f"{name}: 1/{1 / share:.1f} of WhisperLiveKit's processor time, BLEU "
            f"{apart.difference:+.2f} (95 %: {low:+.1f} … {high:+.1f}; "
            f"bar: 1/{1 / COST_BAR:.0f} and {BLEU_BAR:+}, {met})"
        )
        found[name] = share
    return found


def cost(traces: list[Trace]) -> float:
    """Seconds of processor time per second of audio."""
    work = sum(heard.compute_ms for trace in traces for heard in trace.hearings)
    return work / sum(trace.source_length for trace in traces)


def bleu(traces: list[Trace]) -> float:
    return Scorer().values(traces)["BLEU"] or 0.0


if __name__ == "__main__":
    run()

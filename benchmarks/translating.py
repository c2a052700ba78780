"""The command `dragoman translate`: how soon its first words come, and how much memory it takes."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import soundfile

from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.corpora import Clip

ROOT = Path(__file__).parent.parent
STREAM_SECONDS = 600
SETTLED_SECONDS = 120  # by then every buffer has been full once


def measure_first_words(clips: list[Clip]) -> float:
    """Start the command on a few clips; the median processor time until something is said."""
    times = [first_words(clip.audio) for clip in clips[:3]]
    wall, cpu = (float(median(column)) for column in zip(*times, strict=True))
    print(
        f"First words of 'dragoman translate FILE': {cpu:.2f} s of processor time after the start, "
        f"{wall:.2f} s by the clock (model cached; median of {len(times)} clips; bar: 2.5 s)."
    )
    return cpu


def first_words(audio: Path) -> tuple[float, float]:
    """Seconds by the clock and of processor time until the first letter is on the screen."""
    before, begin = _children_seconds(), time.perf_counter()
    with _translate(str(audio)) as process:
        assert process.stdout is not None
        while (letter := process.stdout.read(1)).isspace():
            pass
        wall = time.perf_counter() - begin
        process.kill()
    if not letter:
        raise RuntimeError(f"'dragoman translate {audio}' said nothing.")
    return wall, _children_seconds() - before


def measure_memory(clips: list[Clip]) -> float:
    """Translate clips joined to one long talk; its greatest memory in MB."""
    if not Path("/proc/self/status").exists():
        print("Memory: not measured, for this system has no /proc to read it from.")
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        talk = Path(folder) / "talk.wav"
        seconds = join(clips, talk)
        before = _children_seconds()
        samples, peak = watch_memory(talk)
        cpu = _children_seconds() - before
    minutes = {int(heard // 60): megabytes for heard, megabytes in samples}
    settled = [megabytes for heard, megabytes in samples if heard >= SETTLED_SECONDS]
    print(
        f"Memory of 'dragoman translate' over {seconds / 60:.1f} minutes of speech: at most "
        f"{peak:.0f} MB (bar: 700), {settled[-1] - settled[0]:+.0f} MB from minute "
        f"{SETTLED_SECONDS // 60} to the end; {cpu / seconds:.2f} CPU s per second of audio."
    )
    print("  MB at each minute:", " ".join(f"{value:.0f}" for value in minutes.values()))
    return peak


def join(clips: list[Clip], path: Path) -> float:
    """One clip after the other, and again from the first, until the talk is long enough."""
    sounds = [read_audio(clip.audio, clip.start or 0.0, clip.end) for clip in clips]
    written = 0
    with soundfile.SoundFile(path, "w", RATE, 1, "PCM_16") as file:
        while written < STREAM_SECONDS * RATE:
            for sound in sounds:
                file.write(np.asarray(sound))
                written += len(sound)
    return written / RATE


def watch_memory(talk: Path) -> tuple[list[tuple[float, float]], float]:
    """(seconds heard, MB held) whenever something was said or shown, and the most ever held."""
    samples, peak = [], 0.0
    with _translate(str(talk), "--json") as process:
        assert process.stdout is not None
        for line in process.stdout:
            status = _memory(process.pid)
            if "VmRSS" in status:  # not when the process is about to end
                samples.append((json.loads(line)["heard_ms"] / 1000, status["VmRSS"]))
                peak = status["VmHWM"]
    if process.returncode:
        raise RuntimeError(f"'dragoman translate {talk}' ended with status {process.returncode}.")
    return samples, peak


def _translate(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman", "translate", "--quiet", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _memory(pid: int) -> dict[str, float]:
    """What the system says of a process's memory, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    rows = (line.split() for line in lines if line.startswith("Vm"))
    return {row[0].rstrip(":"): int(row[1]) / 1024 for row in rows}


def _children_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

"""A folder with what the docs' commands name: recordings, corpora, logs, and programs."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from dragoman.errors import DragomanError
from dragoman.store import get
from dragoman.store.home import folder_of, record_of
from tests import warm
from tests.audio.conftest import chirp
from tests.docs.snippets import blocks
from tests.golden import GOLDEN

FFMPEG = """#!/bin/sh
for last; do :; done
case "$last $*" in
pipe:1*) cat talk.wav ;;
file:*" -f "*) echo film >"${{last#file:}}" ;;
file:*)
    echo "  Stream #0:0: Video: h264" >&2
    echo "  Stream #0:1(fra): Audio: aac, 16000 Hz, mono" >&2
    exit 1
    ;;
*) tail -c +45 talk.wav ;;
esac
"""
"""It tells of a film, decodes one, makes one, or sends what comes from the network."""

ROOT = Path(__file__).parents[2]
PIP = """
import re, sys, tomllib
project = tomllib.loads(open(r"{root}/pyproject.toml").read())["project"]
extras = project["optional-dependencies"]
arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
assert arguments.pop(0) == "install", arguments
for wanted in arguments:
    name, more = re.fullmatch(r"(?:([\\w.=-]+?))?(?:\\[(.*)\\])?", wanted).groups()
    pins = [pin for pins in extras.values() for pin in pins]
    assert name in (".", "dragoman", "pre-commit") or name in pins, f"nobody needs {{name}}"
    for extra in (more or "").split(","):
        assert not extra or extra in extras, f"there is no extra {{extra}}"
"""
BENCHMARKS = """
import sys
sys.path.insert(0, r"{root}")
from benchmarks.__main__ import names
from itertools import takewhile
wanted = set(takewhile(lambda word: not word.startswith("-"), sys.argv[3:]))
assert sys.argv[1:3] == ["-m", "benchmarks"] and wanted <= set(names()), sys.argv
"""
PROGRAMS = {
    "dragoman": '#!/bin/sh\nexec {warm} "$@"\n',
    "simuleval": '#!/bin/sh\nexec "{python}" -m simuleval.cli "$@"\n',
    "make": '#!/bin/sh\nexec /usr/bin/env -i PATH="$PATH_BEFORE" make -n -C "{root}" "$@"\n',
    "pip": "#!{python}\n" + PIP,
    "python": "#!{python}\n" + BENCHMARKS,
    "arecord": "#!/bin/sh\ncat talk.wav\n",
    "ffmpeg": FFMPEG,
    "pre-commit": "#!/bin/sh\n",
}


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    """The recordings, in every kind of file; what needs one takes a copy."""
    folder = tmp_path_factory.mktemp("recordings")
    sound = chirp(5.0)
    for name in ("talk.wav", "talk.flac", "talk.mp3"):
        soundfile.write(folder / name, sound, 16000)
    soundfile.write(folder / "talk.ogg", sound, 16000, format="OGG", subtype="OPUS")
    shutil.copy(folder / "talk.wav", folder / "talk.m4a")  # what is inside decides
    soundfile.write(folder / "interview.wav", np.stack([sound, sound], axis=1), 16000)
    (folder / "film.mkv").write_bytes(b"\x1aE\xdf\xa3" + bytes(100))
    (folder / "talks").mkdir()
    for name in ("first.ogg", "second.ogg"):
        shutil.copy(folder / "talk.ogg", folder / "talks" / name)
    return folder


@pytest.fixture(scope="session")
def listens():
    """Where the net lies that tells speech from silence, and what the store has noted of it: every
    command that hears wants it. Where it cannot be fetched, each command says so."""
    with pytest.MonkeyPatch.context() as patch, suppress(DragomanError):
        patch.delenv("DRAGOMAN_HOME", raising=False)
        return get("silero-vad"), record_of("silero-vad")
    return None


@pytest.fixture
def sandbox(recordings, listens, tmp_path, monkeypatch):
    """The folder; it is where commands and snippets run."""
    shutil.copytree(recordings, tmp_path, dirs_exist_ok=True)
    _programs(tmp_path / "bin")
    _corpora(tmp_path)
    _logs(tmp_path)
    (tmp_path / "best.yaml").write_text("model: tests.scripted:steady\nsource: de\nstep_ms: 1000\n")
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    for name in ("FOLDER", "my-whisper"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.bin").write_bytes(b"weights")
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "store"))
    if listens is not None:
        net, record = listens
        shutil.copytree(net, folder_of("silero-vad"))
        record_of("silero-vad").parent.mkdir()
        shutil.copy2(record, record_of("silero-vad"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _programs(folder: Path) -> None:
    folder.mkdir()
    stand_in = shlex.join(warm.command("-m", "tests.docs.stand_in"))
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text.format(python=sys.executable, root=ROOT, warm=stand_in))
        (folder / name).chmod(0o755)


def _corpora(folder: Path) -> None:
    rows = [f"talk.wav\t{i}\t{i + 2}\tWorte\tword0 word{i}" for i in range(3)]
    (folder / "corpus.tsv").write_text("\n".join(["audio\tstart\tend\tde\ten", *rows]) + "\n")
    (folder / "wavs.txt").write_text(f"{folder / 'talk.wav'}\n")
    (folder / "refs.txt").write_text("word0 word1 word2\n")
    split = folder / "MUSTC/en-de/data/train"
    (split / "txt").mkdir(parents=True)
    (split / "wav").mkdir()
    shutil.copy(folder / "talk.wav", split / "wav" / "talk.wav")
    (split / "txt/train.yaml").write_text("- {offset: 0.5, duration: 2.0, wav: talk.wav}\n")
    (split / "txt/train.en").write_text("words\n")
    (split / "txt/train.de").write_text("Worte\n")


def _logs(folder: Path) -> None:
    one, other = sorted((GOLDEN / "live_runs").glob("speech*.log"))
    for log, names in ((one, ("one.log", "instances.log")), (other, ("other.log",))):
        for name in names:
            shutil.copy(log, folder / name)
    sentences = len(one.read_text(encoding="utf-8").splitlines())
    for name in ("refs.1.txt", "refs.2.txt"):
        (folder / name).write_text("word0 word1 word2\n" * sentences)
    for log, name in ((one, "wait3"), (other, "wait5")):
        (folder / "runs" / name).mkdir(parents=True)
        shutil.copy(log, folder / "runs" / name / "instances.log")


@pytest.fixture
def talks(sandbox):
    """The example of docs/longform.md, as it stands there."""
    page = (ROOT / "docs" / "longform.md").read_text(encoding="utf-8")
    found = {block.language: "\n".join(block.lines) for block in blocks(page)}
    (sandbox / "segments.yaml").write_text(found["yaml"])
    assert len(yaml.safe_load(found["yaml"])) == 3
    (sandbox / "runs/talks").mkdir(parents=True)
    log = json.dumps(json.loads(found["json"]))
    (sandbox / "runs/talks/instances.log").write_text(log + "\n")
    references = ("the train leaves at eight", "please have your tickets ready")
    references = (*references, "thank you very much")
    assert all(f"*{text}*" in " ".join(page.split()) for text in references)
    (sandbox / "refs.txt").write_text("\n".join(references) + "\n")
    return sandbox

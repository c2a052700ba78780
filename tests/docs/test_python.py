"""Every Python snippet of the README and of docs/, run."""

from __future__ import annotations

import contextlib
import shutil
import sys
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.policies import make_policy
from dragoman.setup import Setup, System
from tests.audio.conftest import chirp
from tests.docs.conftest import ROOT
from tests.docs.snippets import snippets
from tests.docs.test_commands import FOUND
from tests.scripted import chunks_of, steady
from tests.shared import shared_folder

PAGES = sorted({s.page for s in FOUND if s.kind == "python"})


class MadeMicrophone:
    """Hears half a second, twice."""

    def __init__(self, device=None, step_ms=1000):
        self.step_ms = step_ms

    def chunks(self):
        sound = np.zeros(int(16 * self.step_ms), np.float32)
        yield Chunk(sound, last=False, arrival=0.5)
        yield Chunk(sound, last=True, arrival=1.0)


class MadePlayer(contextlib.AbstractContextManager):
    """Plays to nobody."""

    def __init__(self, rate):
        self.rate, self.free_ms = rate, 0.0

    def __exit__(self, *error):
        return None

    def play(self, samples):
        return 0.0

    def __getattr__(self, name):
        return lambda *values, **more: 0.0


def prepare_audio(monkeypatch, sandbox, request):
    from dragoman.store import get

    monkeypatch.delenv("DRAGOMAN_HOME")
    try:
        get("silero-vad")
    except DragomanError as error:
        pytest.skip(f"the voice activity net cannot be fetched: {error}")
    soundfile.write(sandbox / "long.wav", chirp(130.0), 16000)
    (sandbox / "long.wav").replace(sandbox / "talk.m4a")
    monkeypatch.setattr("dragoman.audio.microphone.Microphone", MadeMicrophone)
    return {}


def prepare_models(monkeypatch, sandbox, request):
    (sandbox / "FOLDER").rename(sandbox / "whisper-base")
    monkeypatch.setattr("dragoman.store.get", lambda name: sandbox / name)
    return {}


def prepare_nets(monkeypatch, sandbox, request):
    pytest.importorskip("torch")
    from tests.train.exported import Exporter

    made = Exporter(request.getfixturevalue("shared")).folder_of("transformer")
    shutil.copytree(made, sandbox / "models/en-de")
    return {}


def prepare_training(monkeypatch, sandbox, request):
    pytest.importorskip("lhotse")
    return {}


def prepare_voices(monkeypatch, sandbox, request):
    monkeypatch.setattr("dragoman.audio.playback.Player", MadePlayer)
    return {"source": np.zeros(16000, np.float32)}


PREPARE = {
    "audio.md": prepare_audio,
    "models.md": prepare_models,
    "nets.md": prepare_nets,
    "training.md": prepare_training,
    "voices.md": prepare_voices,
}


@pytest.fixture
def shared(tmp_path_factory):
    return shared_folder(tmp_path_factory)


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_run_one_after_the_other(page, sandbox, monkeypatch, request):
    if page == "longform.md":
        request.getfixturevalue("talks")
    monkeypatch.setattr("dragoman.setup.load_model", lambda name, **options: steady())
    prepare = PREPARE.get(page, lambda *around: {})
    names = prepare(monkeypatch, sandbox, request)
    path = ROOT / page if (ROOT / page).is_file() else ROOT / "docs" / page
    own = [snippet for snippet in snippets(path) if snippet.kind == "python"]
    assert own
    for snippet in own:
        code = "\n" * (snippet.line - 1) + snippet.text  # a traceback names the page's line
        exec(compile(code, str(path), "exec"), names)


def test_the_policy_and_the_detector_of_a_page_speak_by_their_names(monkeypatch):
    """As `--policy mine.Half:share=0.3` and `--detector mine.Pace:words=140`."""
    mine = ModuleType("mine")
    monkeypatch.setitem(sys.modules, "mine", mine)
    for snippet in snippets(ROOT / "docs/interpreting.md"):
        if snippet.kind == "python":
            exec(snippet.text, mine.__dict__)
    specs = [("mine.Half:share=0.3", "fixed"), ("wait-k:k=3", "mine.Pace:words=140")]
    for policy, detector in specs:
        system = System(Setup(model="any", policy=policy, detector=detector), steady())
        interpreter = system.interpreter()
        updates = [interpreter.hear(chunk) for chunk in chunks_of(6000, 500)]
        begun = next(n for n, update in enumerate(updates) if update.said)
        assert 0 < begun < len(updates) - 1  # neither at once nor at the end


@pytest.mark.parametrize("policy", ["greedy", "local-agreement", "wait-k:k=3", "offline"])
@pytest.mark.parametrize("step_ms", [10, 640, 60_000])
def test_the_family_of_a_page_says_every_tone_once(policy, step_ms):
    """As `--model mine:ToneModel`, for much longer than its window, in whatever pieces."""
    mine: dict[str, object] = {}
    for snippet in snippets(ROOT / "docs/models.md"):
        if "ToneModel" in snippet.text and snippet.kind == "python":
            exec(snippet.text, mine)
    count = 46 if step_ms < 100 else 151  # 18 s: small pieces take longest
    parity = [place.bit_count() % 2 for place in range(count)]
    song = [3 + two - one for one, two in pairwise(parity)]  # no phrase of it comes twice in a row
    at = np.arange(3200) / 16000
    tones = [0.5 * np.sin(2 * np.pi * 100 * (tone + 2) * at) for tone in song]
    sound = np.concatenate([np.append(tone, np.zeros(3200)) for tone in tones]).astype(np.float32)
    interpreter = Interpreter(mine["ToneModel"](), make_policy(policy), target="it")
    cuts = range(0, len(sound), 16 * step_ms)
    chunks = [Chunk(sound[n : n + cuts.step], n == cuts[-1]) for n in cuts]
    updates = [interpreter.hear(chunk) for chunk in chunks]
    said = [word for update in updates for word in update.said]
    assert said == [f" {mine['NAMES'][tone]}" for tone in song]
    assert interpreter.stream.samples.nbytes < 4 * 16000 * 20

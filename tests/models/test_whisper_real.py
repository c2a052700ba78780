"""Our decoder on Whisper's own weights says, token by token, what CTranslate2's says."""

from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman.audio.source import read_audio
from dragoman.errors import DragomanError
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.engine import View, WhisperEngine
from dragoman.models.whisper.mel import LogMel
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.store import get

MOST = 40
TALK = Path(dragoman.__file__).parent / "talks" / "weather.de.ogg"


def weights(name: str) -> Path:
    try:
        return get(name)
    except DragomanError as error:
        pytest.skip(str(error))


@pytest.mark.weights
@pytest.mark.parametrize("seconds", [3.0, 6.0, 9.0])
def test_greedy_tokens_are_those_of_ctranslate2(seconds):
    import ctranslate2

    folder = weights("whisper-base")
    vocabulary = Vocabulary.load(folder)
    engine = WhisperEngine(folder, vocabulary, Options(threads=1, compute="int8"))
    mel = LogMel(engine.bands)
    mel.hear(read_audio(TALK)[: int(seconds * 16_000)])
    window = mel.window(400 + mel.frames % 2)
    encoded = engine.encode([View(window)])[0]
    states = engine.encoder.encode(window).states
    v = vocabulary
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    theirs = ctranslate2.models.Whisper(str(folder), compute_type="int8", intra_threads=1)
    view = ctranslate2.StorageView.from_array(states[None])
    made = theirs.generate(view, [list(start)], beam_size=1, max_length=MOST + len(start))[0]
    expected = [token for token in made.sequences_ids[0] if token != v.end]

    # After every beginning of their text, in one batch; where two tokens are as likely, a rounding
    # error decides, so those count of which ours is sure.
    prompts = [Prompt(start, 1, tuple(expected[:count])) for count in range(len(expected))]
    ours = engine.speak([encoded] * len(prompts), prompts, 1)
    sure = [n for n, one in enumerate(ours) if one.log_probs and one.log_probs[0] > np.log(0.5)]
    assert [ours[n].tokens[0] for n in sure] == [expected[n] for n in sure]
    assert len(sure) >= len(expected) / 3
    assert len(sure) >= 2


@pytest.mark.weights
def test_the_language_is_as_likely_as_ctranslate2_finds_it():
    import ctranslate2

    folder = weights("whisper-base")
    engine = WhisperEngine(folder, Vocabulary.load(folder), Options(threads=1))
    mel = LogMel(engine.bands)
    mel.hear(read_audio(TALK)[: 4 * 16_000])
    window = mel.window(400)
    theirs = ctranslate2.models.Whisper(str(folder), compute_type="int8", intra_threads=1)
    found = theirs.detect_language(ctranslate2.StorageView.from_array(window[None]))[0]
    expected = {code.strip("<|>"): probability for code, probability in found}
    assert engine.languages(engine.encode([View(window)]))[0] == pytest.approx(expected, abs=0.03)
    assert max(expected, key=expected.__getitem__) == "de"

"""Piper voice files: what their network is given, and what is said of files that are not right."""

import json

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.voices import espeak, open_voice, piper
from dragoman.voices.network import vits_length
from tests.voices.fakes import FakeNetwork
from tests.voices.weights import need

needs_espeak = pytest.mark.skipif(not espeak.languages(), reason="eSpeak NG is not installed")
LETTERS = "_^$ ,.!həlˈoʊwɜːdgutnmɔɾɡ"


@pytest.fixture
def voice_file(tmp_path, monkeypatch):
    """Writes a description beside an empty network; gives the path and the network that hums."""
    network = FakeNetwork(lambda inputs: 20000)
    monkeypatch.setattr(piper, "load_network", lambda path: network)

    def write(**changes):
        about = {
            "audio": {"sample_rate": 16000},
            "espeak": {"voice": "en-us"},
            "inference": {"noise_scale": 0.6, "length_scale": 1.5, "noise_w": 0.7},
            "phoneme_id_map": {letter: [number] for number, letter in enumerate(LETTERS)},
            **changes,
        }
        path = tmp_path / "anna.onnx"
        path.write_bytes(b"")
        (tmp_path / "anna.onnx.json").write_text(json.dumps(about))
        return path, network

    return write


@needs_espeak
def test_the_network_is_given_padded_phonemes_and_scales(voice_file):
    path, network = voice_file()
    voice = open_voice(str(path), "en")
    assert (voice.rate, voice.languages) == (16000, ("en",))
    assert len(voice.speak("Hello, world!", 1.25)) > 0
    (inputs,) = network.asked
    read = "".join(LETTERS[number] for number in inputs["input"][0])
    assert read == "^_" + "".join(f"{letter}_" for letter in "həlˈoʊ, wˈɜːld!") + "$"
    assert inputs["input_lengths"] == [len(read)]
    assert inputs["scales"] == pytest.approx([0.6, 1.5 * vits_length(1.25), 0.7])
    assert "sid" not in inputs


@pytest.mark.parametrize(("speed", "length"), [(1.0, 1.0), (2.0, 0.22 / 0.72), (10.0, 0.1)])
def test_what_is_rounded_up_does_not_shrink_with_the_rest(speed, length):
    """28 % of the time does not change, so of the rest less is left; but something is."""
    assert vits_length(speed) == pytest.approx(length)


@needs_espeak
def test_one_of_several_speakers(voice_file):
    path, network = voice_file(num_speakers=2, speaker_id_map={"ann": 0, "bob": 1})
    open_voice(f"{path}:bob", "en").speak("Hello.")
    open_voice(str(path), "en").speak("Hello.")
    assert [int(inputs["sid"][0]) for inputs in network.asked] == [1, 0]
    with pytest.raises(DragomanError, match="no speaker 'eve'; it has ann, bob"):
        open_voice(f"{path}:eve", "en")


def test_a_voice_that_is_given_letters(voice_file):
    path, network = voice_file(phoneme_type="text")
    open_voice(str(path), "en").speak("Good.")
    read = "".join(LETTERS[number] for number in network.asked[0]["input"][0])
    assert read.replace("_", "") == "^good.$"


def test_another_language_is_refused(voice_file):
    path, _ = voice_file()
    with pytest.raises(DragomanError, match=r"anna.onnx speaks 'en', not 'fr'; choose kokoro"):
        open_voice(str(path), "fr")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DragomanError, match=r"no file .*x\.onnx; a Piper voice is NAME.onnx with"):
        open_voice(str(tmp_path / "x.onnx"), "en")
    (tmp_path / "x.onnx").write_bytes(b"")
    with pytest.raises(DragomanError, match=r"no file .*x\.onnx\.json"):
        open_voice(str(tmp_path / "x.onnx"), "en")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "does not describe a Piper voice"),
        ("{}", "does not describe a Piper voice: 'audio'"),
        ('{"audio": {"sample_rate": 0}}', "samples a second"),
    ],
)
def test_descriptions_that_are_wrong(tmp_path, text, told):
    (tmp_path / "x.onnx").write_bytes(b"")
    (tmp_path / "x.onnx.json").write_text(text)
    with pytest.raises(DragomanError, match=told):
        open_voice(str(tmp_path / "x.onnx"), "en")


def test_phonemes_that_nobody_here_makes(voice_file):
    path, _ = voice_file(phoneme_type="pinyin")
    with pytest.raises(DragomanError, match="wants 'pinyin' phonemes"):
        open_voice(str(path), "en")


@needs_espeak
def test_a_network_that_is_damaged(tmp_path):
    about = {
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "en-us"},
        "phoneme_id_map": {letter: [number] for number, letter in enumerate(LETTERS)},
    }
    (tmp_path / "x.onnx").write_bytes(b"no network")
    (tmp_path / "x.onnx.json").write_text(json.dumps(about))
    with pytest.raises(DragomanError, match=r"x\.onnx is not a voice that can be loaded"):
        open_voice(str(tmp_path / "x.onnx"), "en").speak("Hello.")


@pytest.mark.weights
@needs_espeak
def test_the_real_network_speaks():
    need("piper-en_US-joe")
    voice = open_voice("piper-en_US-joe", "en")
    normal, fast = (voice.speak("Good morning, everybody.", speed) for speed in (1.0, 1.4))
    assert 1.0 < len(normal) / voice.rate < 3.0
    assert len(normal) / len(fast) == pytest.approx(1.4, abs=0.15)
    assert np.abs(normal).max() <= 0.951

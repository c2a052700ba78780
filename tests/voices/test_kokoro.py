"""Kokoro: what its network is given, and that people would understand it."""

import json

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.voices import espeak, kokoro, open_voice
from tests.voices.fakes import FakeNetwork
from tests.voices.weights import need

LETTERS = "$ ᵊ;:,.!?abdefhijklmnoprstuvwyzɡɹʃʧʤʦəɪʊæɛɔˈˌːAIOWYɑθðŋʌɾ"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A folder like the store's with two speakers, and a network that hums."""
    vocabulary = {letter: number for number, letter in enumerate(LETTERS)}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    (tmp_path / "voices").mkdir()
    for number, speaker in enumerate(("af_heart", "bm_lewis", "ef_dora"), 1):
        styles = np.full((510, 256), number, np.float32) + np.arange(510, dtype=np.float32)[:, None]
        styles.tofile(tmp_path / "voices" / f"{speaker}.bin")
    network = FakeNetwork(lambda inputs: inputs["input_ids"].shape[1] * 1000)
    monkeypatch.setattr(kokoro, "get", lambda name: tmp_path)
    monkeypatch.setattr(kokoro, "load_network", lambda path: network)
    return network


def read_back(inputs):
    return "".join(LETTERS[number] for number in inputs["input_ids"][0])


def test_english_is_read_by_the_dictionary(model):
    voice = open_voice("kokoro:af_heart", "en")
    assert len(voice.speak("Hello, children!", 1.2)) > 0
    (inputs,) = model.asked
    assert read_back(inputs) == "$həlˈO, ʧˈɪldɹᵊn!$"
    assert inputs["speed"] == pytest.approx([1.2])
    assert inputs["style"].shape == (1, 256)
    assert inputs["style"][0, 0] == 1 + len("həlˈO, ʧˈɪldɹᵊn!")


def test_british_speakers_read_the_british_way(model):
    open_voice("kokoro:bm_lewis", "en").speak("dance")
    open_voice("kokoro:af_heart", "en").speak("dance")
    british, american = map(read_back, model.asked)
    assert "ɑː" in british
    assert "æ" in american


@pytest.mark.skipif(not espeak.languages(), reason="eSpeak NG is not installed")
def test_other_languages_are_read_by_espeak_with_their_punctuation(model):
    open_voice("kokoro", "es").speak("Muchas casas, ¿no?")
    assert read_back(model.asked[0]) == "$mˈuʧas kˈasas, nˈo?$"


@pytest.fixture
def german(monkeypatch):
    """What eSpeak NG is asked to read in German; it reads all alike."""
    asked = []

    def read(clauses, voice):
        asked.append((clauses, voice))
        return ["fˈʏnf hˈɔ͡øzɜ t͡suː frˈa͡ʊən ɪm jˈanuːɑːɾ"]

    monkeypatch.setattr(espeak, "missing", lambda language: None)
    monkeypatch.setattr(espeak, "phonemes", read)
    return asked


def test_german_is_said_in_sounds_that_its_speakers_know(model, german):
    open_voice("kokoro:ef_dora", "de").speak("z. B. 5 Häuser")
    assert german == [(["zum Beispiel fünf Häuser"], "de")]
    assert read_back(model.asked[0]) == "$fˈynf hˈYzəɾ ʦuː fɾˈWən ɪm jˈanuːaːɾ$"


def test_german_is_spoken_by_those_who_are_understood(model, german):
    with pytest.raises(
        DragomanError, match="'af_heart' does not speak 'de'; choose one of ef_dora"
    ):
        open_voice("kokoro:af_heart", "de")
    assert open_voice("kokoro:ef_dora+af_heart", "de").name == "kokoro:ef_dora+af_heart"


def test_long_texts_are_spoken_in_pieces(model):
    open_voice("kokoro", "en").speak("This goes on and on, without an end. " * 40)
    assert len(model.asked) > 1
    assert all(inputs["input_ids"].shape[1] <= 512 for inputs in model.asked)


def test_a_speaker_of_another_language_is_refused(model):
    with pytest.raises(DragomanError, match=r"'ef_dora' does not speak 'en'; .*af_heart, bm_lewis"):
        open_voice("kokoro:ef_dora", "en")
    with pytest.raises(DragomanError, match="'nobody' is no speaker of 'en'"):
        open_voice("kokoro:nobody", "en")
    with pytest.raises(DragomanError, match="'kokoro' does not speak 'ja'; choose elevenlabs"):
        open_voice("kokoro", "ja")


def test_speakers_can_be_blended_with_anybody(model):
    open_voice("kokoro:af_heart+ef_dora", "en").speak("Hello, children!")
    (inputs,) = model.asked
    assert inputs["style"][0, 0] == (1 + 3) / 2 + len("həlˈO, ʧˈɪldɹᵊn!")
    with pytest.raises(DragomanError, match="'ef_dora' does not speak 'en'"):
        open_voice("kokoro:ef_dora+af_heart", "en")
    with pytest.raises(DragomanError, match="has no 'nobody'; it has af_heart, bm_lewis, ef_dora"):
        open_voice("kokoro:af_heart+nobody", "en")


def test_who_speaks_in_a_corpus_is_drawn(model):
    random = np.random.default_rng(1)
    drawn = [kokoro.draw("en", random) for _ in range(200)]
    assert {name.partition("+")[0] for name in drawn} == {"af_heart", "bm_lewis"}
    others = [name.partition("+")[2] for name in drawn if "+" in name]
    assert set(others) == {"af_heart", "bm_lewis", "ef_dora"}
    assert 70 < len(others) < 130


def test_what_has_to_be_done_before_it_speaks(monkeypatch):
    monkeypatch.setattr(kokoro, "at_hand", lambda name: None)
    assert kokoro.missing("en") == "run: dragoman models get kokoro"
    monkeypatch.setattr(kokoro, "at_hand", lambda name: name)
    monkeypatch.setattr(espeak, "missing", lambda language: f"nothing reads {language}")
    assert kokoro.missing("en") is None
    assert kokoro.missing("es") == "nothing reads es"


def test_without_espeak_only_english(model, monkeypatch):
    monkeypatch.setattr(espeak, "languages", lambda: ())
    assert open_voice("kokoro", "en").languages == ("en",)
    with pytest.raises(DragomanError, match="needs eSpeak NG to read 'es': run: pip install"):
        open_voice("kokoro", "es")


@pytest.mark.weights
def test_the_real_network_speaks():
    need("kokoro")
    voice = open_voice("kokoro", "en")
    sound = voice.speak("Good morning.")
    assert 0.5 < len(sound) / voice.rate < 2.0
    assert np.sqrt(np.mean(sound**2)) > 0.03


@pytest.mark.weights
@pytest.mark.skipif(not espeak.languages(), reason="eSpeak NG is not installed")
def test_the_real_network_speaks_german():
    need("kokoro")
    voice = open_voice("kokoro", "de")
    assert voice.name == "kokoro:if_sara+ef_dora+ff_siwis"
    assert 0.5 < len(voice.speak("Guten Morgen.")) / voice.rate < 2.0

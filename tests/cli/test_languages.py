"""`dragoman languages`: what the model that is asked for hears."""

import json

import pytest
from click.testing import CliRunner

from dragoman.cli.languages import command
from dragoman.errors import DragomanError
from dragoman.text.languages import HEARD


def listed(*arguments):
    done = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("model", "number"),
    [
        *(("tiny", 99), ("base", 99), ("small", 99), ("medium", 99), ("large-v1", 99)),
        *(("large-v2", 99), ("large-v3", 100), ("turbo", 100), ("tiny.en", 1)),
    ],
)
def test_only_the_third_whisper_hears_cantonese(model, number):
    found = listed("--model", f"whisper-{model}")
    assert len(found) == number
    assert ("yue" in found) == (number == 100)
    assert set(found) <= set(HEARD)


def test_the_default_model_is_asked_for_unless_told():
    assert listed() == listed("--model", "whisper-base")
    assert listed("ger") == {"de": "German"}


def test_of_a_cascade_the_first_half_hears():
    assert listed("--model", "whisper-tiny.en+somewhere") == {"en": "English"}


def test_a_folder_says_it_itself(tmp_path):
    words = ["<|endoftext|>", "<|startoftranscript|>", "<|de|>", "<|xx|>", "<|translate|>"]
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / "vocabulary.txt").write_text("\n".join(words))
    assert listed("--model", str(tmp_path)) == {"de": "German", "xx": "xx"}


@pytest.mark.parametrize("model", ["nllb-600m", "nowhere"])
def test_a_model_that_does_not_say(model, tmp_path):
    with pytest.raises(DragomanError):
        listed("--model", model)
    with pytest.raises(DragomanError, match="does not say"):
        listed("--model", str(tmp_path))


def test_columns_fit_a_terminal():
    done = CliRunner().invoke(command, ["--model", "whisper-large-v3"], catch_exceptions=False)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "yue Cantonese" in done.stdout

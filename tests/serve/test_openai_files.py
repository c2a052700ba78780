"""OpenAI's own client sends files."""

import io
import json

import numpy as np
import pytest
import soundfile

from tests.serve.running import running
from tests.talkers import SPOKEN, TEXT

TOKEN = "a token that nobody guesses"


def wav(seconds=16.0, rate=22050):
    file = io.BytesIO()
    soundfile.write(file, np.zeros(round(seconds * rate)), rate, format="WAV")
    return file.getvalue()


@pytest.fixture
def client():
    """OpenAI's client, of a server that writes down what it hears too."""
    openai = pytest.importorskip("openai")
    with running(token=TOKEN, model="tests.talkers:bilingual") as (_, url):
        base = url.replace("ws", "http", 1) + "/v1"
        yield openai.OpenAI(base_url=base, api_key=TOKEN, max_retries=0)


def translated(client, **options):
    return client.audio.translations.create(file=("talk.wav", wav()), model="any", **options)


def test_a_file_is_translated(client):
    assert translated(client).text == TEXT
    assert translated(client, response_format="text").strip() == TEXT


def test_a_file_is_written_down(client):
    file = ("talk.wav", wav())
    assert client.audio.transcriptions.create(file=file, model="any").text == SPOKEN


def test_captions_and_times(client):
    srt = translated(client, response_format="srt")
    assert srt.startswith("1\n00:00:")
    assert " --> " in srt
    vtt = translated(client, response_format="vtt")
    assert vtt.startswith("WEBVTT\n\n1\n00:00:")
    whole = translated(client, response_format="verbose_json")
    assert whole.duration == pytest.approx(16, abs=0.01)
    assert " ".join("".join(one.text for one in whole.segments).split()) == TEXT
    assert all(one.start < one.end for one in whole.segments)
    file = ("talk.wav", wav())
    words = client.audio.transcriptions.create(
        file=file,
        model="any",
        language="de",
        response_format="verbose_json",
        timestamp_granularities=["word"],
    ).words
    assert len(words) == len(TEXT.split())  # this model says the same in every language
    assert all(one.start <= one.end for one in words)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"file": b"no sound at all"}, 400, "sound"),
        ({"file": None}, 400, "malformed"),
        ({"response_format": "pdf"}, 400, "malformed"),
        ({"language": "klingon"}, 400, "language"),
        ({"token": "wrong"}, 401, "token"),
        ({"origin": "https://evil.example"}, 401, "token"),
    ],
)
def test_what_is_wrong_is_told(opened, changes, status, code):
    service, web = opened(token=TOKEN)
    fields = {"model": "any", "response_format": "json"} | {
        key: value for key, value in changes.items() if key in ("response_format", "language")
    }
    content = changes.get("file", wav(1))
    headers = {"authorization": f"Bearer {changes.get('token', TOKEN)}"}
    if "origin" in changes:
        headers["origin"] = changes["origin"]
    files = {"file": ("talk.wav", content)} if content is not None else {"other": b"x"}
    answer = web.post("/v1/audio/translations", data=fields, files=files, headers=headers)
    assert answer.status_code == status
    told = answer.json()["error"]
    assert told["code"] == code
    assert "/" not in told["message"].replace("https://", "")
    assert service.streams == 0


def test_a_full_server_says_so(opened):
    _, web = opened(streams=1)
    with web.websocket_connect("/v1/interpret") as socket:
        socket.send_text(json.dumps({"type": "start"}))
        socket.receive_text()
        answer = web.post("/v1/audio/translations", files={"file": ("talk.wav", wav(1))})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "full")

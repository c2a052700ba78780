"""The ElevenLabs voice against a stand-in for the service on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.voices import Speaker, open_voice
from dragoman.voices.elevenlabs import ElevenLabsVoice, missing
from tests.voices.test_speaker import HeldPlayer

KEY = "a-key"
TONE = (8000 * np.sin(np.arange(24000) / 10)).astype("<i2").tobytes()


class Service(BaseHTTPRequestHandler):
    """Answers as the test's script says; otherwise like the service: a second of sound."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers, json.loads(body)))
        if self.server.script:
            answer = self.server.script.pop(0)
            if answer == "silence":
                self.server.over.wait()
                return
            status, headers, content = answer
        elif self.headers["xi-api-key"] != KEY:
            detail = {"status": "invalid_api_key", "message": "Invalid API key"}
            status, headers, content = 401, {}, json.dumps({"detail": detail}).encode()
        else:
            status, headers, content = 200, {"Content-Type": "audio/pcm"}, TONE
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        """Where somebody who was led elsewhere arrives."""
        self.server.requests.append((self.path, self.headers, None))
        self.send_error(404)

    def log_message(self, *_):
        pass


@pytest.fixture
def service(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    server.requests, server.script, server.over = [], [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("ELEVENLABS_API_KEY", KEY)
    monkeypatch.setenv("ELEVENLABS_BASE_URL", f"http://127.0.0.1:{server.server_port}/")
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_asks_for_the_sound_of_a_text(service):
    sound = open_voice("elevenlabs:my voice", "de").speak("Guten Morgen.", 1.1)
    assert len(sound) == pytest.approx(24000, abs=500)
    ((path, headers, body),) = service.requests
    assert path == "/v1/text-to-speech/my%20voice?output_format=pcm_24000"
    assert headers["xi-api-key"] == KEY
    assert body["text"] == "Guten Morgen."
    assert body["language_code"] == "de"
    assert body["voice_settings"] == {"speed": 1.1}


@pytest.mark.parametrize(("wanted", "asked"), [(1.4, 1.2), (0.5, 0.7), (1.0, 1.0), (1.0449, 1.04)])
def test_it_stays_within_the_speeds_of_the_service(service, wanted, asked):
    ElevenLabsVoice("en").speak("Hello.", wanted)
    assert service.requests[0][2]["voice_settings"]["speed"] == asked


def test_the_key_is_not_taken_elsewhere(service):
    service.script = [(302, {"Location": "/elsewhere"}, b"")]
    with pytest.raises(DragomanError):
        ElevenLabsVoice("en").speak("Hello.")
    path, headers, _ = service.requests[1]
    assert path == "/elsewhere"
    assert headers["xi-api-key"] is None


def test_silence_is_not_asked_for(service):
    assert len(ElevenLabsVoice("en").speak(" ... ")) == 0
    assert service.requests == []


def test_no_key_is_told_before_anything_is_asked(monkeypatch):
    monkeypatch.setenv("ELEVENLABS_API_KEY", KEY)
    assert missing("en") is None
    monkeypatch.delenv("ELEVENLABS_API_KEY", raising=False)
    assert missing("en") == "set ELEVENLABS_API_KEY"
    with pytest.raises(DragomanError, match="needs a key: set ELEVENLABS_API_KEY"):
        open_voice("elevenlabs", "en")


def test_a_wrong_key(service, monkeypatch):
    monkeypatch.setenv("ELEVENLABS_API_KEY", "wrong")
    told = r"refuses the key in ELEVENLABS_API_KEY: Invalid API key\."
    with pytest.raises(DragomanError, match=told) as caught:
        ElevenLabsVoice("en").speak("Hello.")
    assert len(service.requests) == 1
    assert "wrong" not in str(caught.value)


def test_too_many_requests_are_tried_again_when_the_service_says(service):
    waits = []
    busy = json.dumps({"detail": {"message": "Too many concurrent requests."}}).encode()
    service.script = [(429, {"Retry-After": "3"}, busy), (429, {}, busy)]
    sound = ElevenLabsVoice("en", sleep=waits.append).speak("Hello.")
    assert len(sound) > 0
    assert waits == [3.0, 2.0]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_service_in_trouble_is_tried_again(service, status):
    waits = []
    service.script = [(status, {}, b""), (status, {}, b"")]
    assert len(ElevenLabsVoice("en", sleep=waits.append).speak("Hello.")) > 0
    assert waits == [1.0, 2.0]


def test_too_many_requests_for_good_is_told(service):
    busy = json.dumps({"detail": {"message": "Too many concurrent requests."}}).encode()
    service.script = [(429, {}, busy)] * 3
    with pytest.raises(DragomanError, match=r"asked too often .*: Too many concurrent requests\."):
        ElevenLabsVoice("en", sleep=lambda seconds: None).speak("Hello.")
    assert len(service.requests) == 3


def test_a_service_that_does_not_answer(service):
    service.script = ["silence"]
    with pytest.raises(DragomanError, match=r"did not answer within 0.2 seconds|no answer within"):
        ElevenLabsVoice("en", timeout=0.2).speak("Hello.")


def test_a_service_that_is_not_there(service, monkeypatch):
    monkeypatch.setenv("ELEVENLABS_BASE_URL", "http://127.0.0.1:1")
    with pytest.raises(DragomanError, match=r"cannot be reached at http://127.0.0.1:1: .*refused"):
        ElevenLabsVoice("en").speak("Hello.")


def test_an_answer_that_is_no_json(service):
    service.script = [(404, {}, b"<html>")]
    with pytest.raises(DragomanError, match=r"refused to speak \(status 404\): Not Found\."):
        ElevenLabsVoice("en").speak("Hello.")


def test_the_text_does_not_wait_for_the_service(service):
    """The service is silent for good, yet saying and closing go on."""
    service.script = ["silence"] * 3
    speaker = Speaker(ElevenLabsVoice("en", timeout=30), HeldPlayer(), print)
    for _ in range(100):
        speaker.say("more and more.")
    while not service.requests:
        threading.Event().wait(0.01)
    speaker.close()
    assert len(service.requests) == 1


def test_it_is_never_chosen_unasked(service):
    """The text leaves the machine only when the user says so."""
    with pytest.raises(DragomanError, match="elevenlabs: ask for it by name"):
        open_voice(None, "ja")

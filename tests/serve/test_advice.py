"""Whoever has come over the network types no commands: they are told what they can do."""

import json
import logging
import re
from dataclasses import replace

import pytest

from dragoman.errors import DragomanError, Told
from dragoman.serve.advice import for_client
from dragoman.serve.pages import PAGE
from dragoman.serve.protocol import Captions
from tests.scripted import ScriptedModel
from tests.serve.clients import PATH, Client

COMMANDS = re.compile(r"--[a-z]|dragoman (tune|languages|models|translate)")


def german():
    """Hears German and Dutch, and speaks English and French; what else it is asked for it
    refuses as a model does that somebody typed the name of."""
    model = ScriptedModel([("word", 400.0)])
    model.hears, model.speaks = ("de", "nl"), ("en", "fr")
    open_stream = model.open

    def open_some(source, target, *, transcript=False):
        if source is None:
            raise DragomanError("It hears several languages.", advice="Say with --from which.")
        if (source, target) == ("nl", "fr"):
            raise DragomanError("Dutch goes into English.", advice="name it with --to.")
        if source not in model.hears or target not in model.speaks:
            raise DragomanError("It cannot.", advice="Put a translator behind it: --model it+MT.")
        return open_stream(source, target, transcript=transcript)

    model.open = open_some
    return model


LISTED = "/v1/languages lists what this server has"


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ({"source": "xx"}, f"'xx' is not a language that is known here; {LISTED}."),
        ({"source": "germn"}, "'germn' is not a language that is known here. Did you mean"),
        ({"source": "es"}, "This server hears German or Dutch, not Spanish."),
        ({"source": "de", "target": "es"}, "This server speaks English or French, not Spanish."),
        ({"source": "nl", "target": "fr"}, f"Dutch goes into English; {LISTED}."),
        ({}, f"It hears several languages; {LISTED}."),
        (
            {"source": "de", "latency_ms": 1000},
            "No policy is tuned for less than 1.3 s, and 1 s is less; give a longer 'latency_ms', "
            "or a 'policy'.",
        ),
        (
            {"source": "de", "captions": Captions("http://a.test/")},
            "Captions may not be sent there; whoever runs the server says where they may.",
        ),
    ],
)
def test_who_asks_for_what_cannot_be_had_is_told_what_can(opened, start, told):
    _, web = opened(model="tests.serve.test_advice:german")
    with web.websocket_connect(PATH) as socket:
        message = Client(socket).start(**start).message
    assert message.startswith(told)
    assert COMMANDS.search(message) is None


def cascade():
    """Translates what it is given, once it knows what language that is in."""
    model = ScriptedModel([("word", 400.0)])
    open_stream = model.open

    def open_said(source, target, *, transcript=False):
        if source is None:
            raise DragomanError("'it' has to know.", advice="say it with --from.")
        return open_stream(source, target, transcript=transcript)

    model.open = open_said
    return model


def test_who_speaks_to_a_translator_of_text_is_asked_for_the_language(opened):
    service, web = opened(model="tests.serve.test_advice:cascade")
    assert service.system.model is not None  # loaded, before it is given a name of two
    service.system.setup = replace(service.system.setup, model="a+b")
    with web.websocket_connect(PATH) as socket:
        told = Client(socket).start().message
    assert told == f"Say by 'source' which language is spoken; {LISTED}."


def test_of_many_languages_a_sentence_names_none(opened):
    service, web = opened(model="tests.serve.test_advice:german")
    service.system.model.hears = ("de", "nl", "da", "sv")
    with web.websocket_connect(PATH) as socket:
        told = Client(socket).start(source="ja").message
    assert told == "This server hears 4 languages (/v1/languages lists them), not Japanese."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DragomanError("It is so; do that, or this."), "It is so; do that, or this."),
        (DragomanError("It is so.", advice="give --that."), "It is so; send mp3."),
        (DragomanError("It is so.", advice="(see --that)."), "It is so; send mp3."),
    ],
)
def test_what_is_for_those_who_type_is_left_out(error, told):
    assert for_client(error, "send mp3") == told
    assert for_client(error) == error.what


def test_who_sends_a_file_of_noise_is_not_asked_for_options(opened):
    _, web = opened()
    answer = web.post("/v1/audio/transcriptions", files={"file": ("x", b"\1\2\3" * 999)})
    error = answer.json()["error"]
    assert error["message"] == "The file is not a recording, whatever its name says."


def test_a_language_of_a_file_that_is_none_is_told_without_commands(opened):
    _, web = opened()
    form, files = {"language": "xx"}, {"file": ("x", b"abc")}
    told = web.post("/v1/audio/transcriptions", data=form, files=files).json()["error"]["message"]
    assert told == f"'xx' is not a language that is known here; {LISTED}."


def test_a_warning_of_a_file_names_no_options_to_who_has_sent_it(opened, monkeypatch):
    """The log, whose readers have started the server, has them."""
    _, web = opened()
    sndfile = logging.getLogger("dragoman.audio.ffmpeg")

    def open_and_warn(path):
        advice = "('dragoman live' has --track)."
        sndfile.warning(Told(f"{path} has two; the first is heard.", advice=advice))
        return iter(())

    monkeypatch.setattr("dragoman.serve.uploads.open_audio", open_and_warn)
    answer = web.post("/v1/audio/translations", files={"file": ("x", b"abc")})
    assert answer.json()["warnings"] == ["The file has two; the first is heard."]


def test_a_page_names_no_options():
    """But for one, to whoever has the page on the server's own machine, and has started it."""
    for file in PAGE.iterdir():
        if file.suffix == ".html" or file.name == "microphone.js":
            text = re.sub(r'<p id="share-local".*|<!--', "", file.read_text("utf-8"))
            assert re.findall(r"--[a-z][\w-]+", text) == []


def test_a_policy_that_is_changed_to_is_refused_without_commands(opened):
    _, web = opened(model="tests.serve.test_advice:german")
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(source="de")
        socket.send_text(json.dumps({"type": "change", "latency_ms": 5}))
        assert COMMANDS.search(client.next().message) is None

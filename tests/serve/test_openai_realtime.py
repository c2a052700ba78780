"""OpenAI's own client speaks its Realtime Translation with our server."""

import base64
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.serve import speech
from dragoman.serve.openai_realtime import OpenAIRealtime
from dragoman.serve.protocol import Said, Speech, Transcript
from tests.serve.clients import steady_words
from tests.serve.running import running
from tests.talkers import SPOKEN, TEXT
from tests.voices.fakes import ToneVoice

TOKEN = "a token that nobody guesses"
ADDRESS = "/v1/realtime/translations"


def sound(seconds):
    return base64.b64encode(np.zeros(round(seconds * 24000), "<i2").tobytes()).decode()


@pytest.fixture(autouse=True)
def tone(monkeypatch):
    """A voice that hums, at a rate that is not theirs."""
    voice = ToneVoice(0.02, rate=22050)
    monkeypatch.setattr(speech, "open_voice", lambda name, language: voice)
    return voice


def talk(url, seconds, speech="yes", **session):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key=TOKEN)
    events = []
    with client.realtime.translations.connect(
        model="any", extra_query={"speech": speech}
    ) as connection:
        events.append(connection.recv())
        if session:
            connection.session.update(session=session)
            events.append(connection.recv())
        for _ in range(round(seconds / 0.2)):
            connection.session.input_audio_buffer.append(audio=sound(0.2))
        connection.session.close()
        while events[-1].type != "session.closed":
            events.append(connection.recv())
    return events


def test_the_real_client_reads_what_was_said():
    with running(token=TOKEN, longest=900) as (_, url):
        begun = time.time()
        events = talk(url, 5.2, audio={"output": {"language": "en"}})
    assert [event.type for event in events[:2]] == ["session.created", "session.updated"]
    assert 899 <= events[0].session.expires_at - begun <= 1000
    assert events[1].session.audio.output.language == "en"
    deltas = [event for event in events if event.type == "session.output_transcript.delta"]
    assert [event.delta for event in deltas] == [text for _, text in steady_words()]
    assert all(isinstance(event.elapsed_ms, int) for event in deltas)
    assert all(event.model_extra["lag_ms"] is not None for event in deltas)
    assert len({event.event_id for event in events}) == len(events)


def heard(events):
    """The deltas of sound, and the sound."""
    deltas = [event for event in events if event.type == "session.output_audio.delta"]
    sounds = [np.frombuffer(base64.b64decode(one.delta), "<i2") / 32768 for one in deltas]
    return deltas, sounds


def test_the_real_client_hears_what_was_said(tone):
    with running(token=TOKEN, model="tests.talkers:sentences") as (_, url):
        events = talk(url, 16, audio={"output": {"language": "en"}})
    deltas, sounds = heard(events)
    assert {(one.sample_rate, one.channels, one.format) for one in deltas} == {(24000, 1, "pcm16")}
    assert max(map(len, sounds)) == 24000  # a long phrase comes in pieces
    assert " ".join(text for text, _ in tone.spoken) == TEXT
    spoken = [len(ToneVoice(0.02, rate=22050).speak(*one)) / 22050 for one in tone.spoken]
    assert sum(map(len, sounds)) / 24000 == pytest.approx(sum(spoken), abs=0.01)
    whole = np.concatenate(sounds)
    top = np.argmax(np.abs(np.fft.rfft(whole * np.hanning(len(whole))))) * 24000 / len(whole)
    assert top == pytest.approx(440, abs=10)  # at another rate it would be 479
    # Where a phrase breaks off, it rings a little.
    assert np.percentile(np.abs(whole), 99) == pytest.approx(0.2, abs=0.01)
    times = [one.elapsed_ms for one in deltas]
    assert times == sorted(times)
    assert all(isinstance(one, int) for one in times)
    assert events[-1].type == "session.closed"


def test_who_wants_text_alone_hears_nothing(tone):
    with running(token=TOKEN) as (_, url):
        events = talk(url, 5.2, speech="no")
    assert heard(events)[0] == tone.spoken == []
    assert any(event.type == "session.output_transcript.delta" for event in events)


def test_without_a_voice_the_text_goes_on(monkeypatch):
    def none(name, language):
        raise DragomanError("There is none.")

    monkeypatch.setattr(speech, "open_voice", none)
    with running(token=TOKEN) as (_, url):
        events = talk(url, 5.2)
    (told,) = [event for event in events if event.type == "error"]
    assert (told.error.code, told.error.message) == (
        "voice",
        "This server has no voice for English; read along.",
    )
    deltas = [event.delta for event in events if event.type == "session.output_transcript.delta"]
    assert deltas == [text for _, text in steady_words()]


def test_the_speaker_is_written_down_if_that_is_wanted():
    for wanted in ({"model": "any"}, None):
        with running(token=TOKEN, model="tests.talkers:bilingual") as (_, url):
            audio = {"input": {"transcription": wanted}, "output": {"language": "en"}}
            events = talk(url, 16, audio=audio)

        def text(kind, events=events):
            return "".join(event.delta for event in events if event.type == kind).strip()

        assert text("session.output_transcript.delta") == TEXT
        assert text("session.input_transcript.delta") == (SPOKEN if wanted else "")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "malformed"),
        ('{"type":"session.sing"}', "malformed"),
        ('{"type":"session.input_audio_buffer.append","audio":"?"}', "sound"),
        ('{"type":"session.input_audio_buffer.append","audio":"AAAA"}', "sound"),
    ],
)
def test_what_is_wrong_is_told_in_its_words(opened, message, code):
    _, web = opened()
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        socket.send_text(message)
        told = json.loads(socket.receive_text())
    assert (told["type"], told["error"]["code"]) == ("error", code)
    assert told["error"]["message"]


def test_a_talk_may_end_before_it_has_begun(opened):
    _, web = opened()
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        socket.send_text('{"type":"session.close"}')
        while json.loads(socket.receive_text())["type"] != "session.closed":
            pass


def update(**audio):
    return json.dumps({"type": "session.update", "session": {"audio": audio}})


def append(seconds):
    return json.dumps({"type": "session.input_audio_buffer.append", "audio": sound(seconds)})


def until_closed(socket):
    told = [json.loads(socket.receive_text())]
    while told[-1]["type"] != "session.closed":
        told.append(json.loads(socket.receive_text()))
    return told


def test_the_language_changes_in_mid_talk(opened, tone):
    """What was heard before that is said, and spoken, to its end; the client sees one talk."""
    service, web = opened(streams=1)
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        for message in (append(2.0), update(output={"language": "fr"}), append(2.4)):
            socket.send_text(message)
        while (told := json.loads(socket.receive_text()))["type"] != "session.updated":
            assert told["type"] != "session.closed"
        first = len(tone.spoken)
        service.drain()  # who is in stays in
        socket.send_text(update(output={"language": "en"}, input={"transcription": {"model": "x"}}))
        socket.send_text(append(1.2))
        socket.send_text('{"type":"session.close"}')
        more = until_closed(socket)
    assert told["session"]["audio"]["output"]["language"] == "fr"
    assert first > 0
    assert [one["type"] for one in more].count("session.updated") == 1
    assert not [one for one in more if one["type"] == "error"]
    at = [one["type"] for one in more].index("session.updated")
    assert more[at]["session"]["audio"] == {
        "input": {"transcription": {"model": "dragoman"}},
        "output": {"language": "en"},
    }
    said = [one for one in more if one["type"] == "session.output_transcript.delta"]
    numbers = [one["word"] for one in said]
    assert numbers == list(range(numbers[0], numbers[0] + len(said)))
    assert numbers[0] > 1
    assert min(one["source_ms"] for one in said) >= 2000
    times = [one["elapsed_ms"] for one in said]
    assert times == sorted(times)
    assert service.streams == 0


def test_a_language_that_is_none_leaves_the_talk_as_it_is(opened):
    _, web = opened()
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        socket.send_text(append(1.2))
        socket.send_text(update(output={"language": "xx"}))
        while (told := json.loads(socket.receive_text()))["type"] != "error":
            pass
        assert told["error"]["code"] == "language"
        socket.send_text(append(4.0))
        socket.send_text('{"type":"session.close"}')
        more = until_closed(socket)
    assert "session.updated" not in [one["type"] for one in more]
    said = [one["word"] for one in more if one["type"] == "session.output_transcript.delta"]
    assert said[-1] == 12


@pytest.mark.parametrize(("language", "code"), [("xx", "language"), ("fr", "unfit")])
def test_a_language_that_cannot_be_had_is_told_before_any_sound(opened, language, code):
    """And another may be asked for; until then it is as it was."""
    service, web = opened()
    service.system.model.speaks = ("en", "de")
    refuse_others(service.system.model)
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        for wanted in ("de", language, None, "en"):
            more = {"transcription": {"model": "x"}} if wanted == language else {}
            socket.send_text(update(output={"language": wanted}, input=more))
        told = [json.loads(socket.receive_text()) for _ in range(4)]
        assert service.streams == 0
        socket.send_text(append(5.2))
        socket.send_text('{"type":"session.close"}')
        more = until_closed(socket)
    assert [one["type"] for one in told] == [
        "session.updated", "error", "session.updated", "session.updated",
    ]  # fmt: skip
    assert (told[1]["error"]["type"], told[1]["error"]["code"]) == ("invalid_request_error", code)
    assert [told[at]["session"]["audio"]["output"]["language"] for at in (0, 2, 3)] == [
        "de", "de", "en",
    ]  # fmt: skip
    assert told[2]["session"]["audio"]["input"] == {"transcription": None}
    assert not [one for one in more if one["type"] == "error"]
    assert "session.output_transcript.delta" in [one["type"] for one in more]


def refuse_others(model):
    """Languages that it does not say it speaks."""
    open_stream = model.open

    def open_some(source, target, **how):
        if target not in model.speaks:
            raise DragomanError("Put a translator behind it: --model it+TRANSLATOR.")
        return open_stream(source, target, **how)

    model.open = open_some


def test_an_update_is_answered_in_mid_talk_too(opened):
    """A client may wait for that before it goes on."""
    _, web = opened()
    with web.websocket_connect(ADDRESS) as socket:
        same = update(output={"language": "en"})
        socket.receive_text()
        for message in (same, append(0.2)):
            socket.send_text(message)
        assert json.loads(socket.receive_text())["type"] == "session.updated"
        socket.send_text(same)
        while (told := json.loads(socket.receive_text()))["type"] != "session.updated":
            pass
        assert told["session"]["audio"]["output"]["language"] == "en"
        socket.send_text('{"type":"session.close"}')
        while told["type"] != "session.closed":
            told = json.loads(socket.receive_text())


def test_what_an_update_leaves_out_stays_as_it_was(opened):
    """Who asks for less noise, say, is written down as before; null ends that."""
    _, web = opened()
    quiet = {"noise_reduction": {"type": "near_field"}}
    with web.websocket_connect(ADDRESS) as socket:
        socket.receive_text()
        written = []
        for audio in ({"transcription": {"model": "x"}}, quiet, {"transcription": None}):
            socket.send_text(update(input=audio))
            written.append(json.loads(socket.receive_text())["session"]["audio"]["input"])
        socket.send_text('{"type":"session.close"}')
        until_closed(socket)
    yes, no = {"transcription": {"model": "dragoman"}}, {"transcription": None}
    assert written == [yes, yes, no]


def test_times_are_those_of_the_talk_and_no_sample_is_lost():
    dialect = OpenAIRealtime(SimpleNamespace(query_params={}, headers={}, scope={}), 900.0)
    (told,) = map(json.loads, dialect.write([Said(1, " Gut", 310.0, 2140.0, 1829.5)]))
    assert (told["elapsed_ms"], told["source_ms"], told["word"]) == (2140, 310.0, 1)
    (told,) = map(json.loads, dialect.write([Transcript(1, " Good", 290.0, "en")]))
    assert told["elapsed_ms"] == 290
    spoken = (np.arange(24002) % 1000).astype("<i2").tobytes()
    event = Speech(1, 3180.0, 24000, 24002, "pcm16")
    first, rest = map(json.loads, dialect.speak(event, spoken))
    assert [one["elapsed_ms"] for one in (first, rest)] == [3180, 4180]
    assert b"".join(base64.b64decode(one["delta"]) for one in (first, rest)) == spoken


def test_a_talk_without_an_end_expires_some_day(opened):
    """--longest inf; the field is a whole number."""
    _, web = opened(longest=float("inf"))
    with web.websocket_connect(ADDRESS) as socket:
        told = json.loads(socket.receive_text())
    assert told["type"] == "session.created"
    assert told["session"]["expires_at"] > time.time() + 30 * 24 * 3600

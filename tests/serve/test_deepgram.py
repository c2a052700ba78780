"""Deepgram's own client, against our server."""

import asyncio
import json
from typing import ClassVar

import numpy as np
import pytest
from starlette.websockets import WebSocketDisconnect

from dragoman.serve.deepgram import Deepgram
from dragoman.serve.dialect import Closed
from dragoman.serve.protocol import Code, Error, Interim, Said, Summary
from tests.serve.clients import PATH, Client, steady_words
from tests.serve.numbers import sound_of
from tests.serve.running import running

TOKEN = "a token that nobody guesses"


def pcm(seconds, rate, channels=1):
    return np.zeros(round(seconds * rate) * channels, "<i2").tobytes()


def listen(url, token=TOKEN, **options):
    deepgram = pytest.importorskip("deepgram")
    from deepgram.environment import DeepgramClientEnvironment

    places = dict.fromkeys(("base", "production", "agent", "agent_rest"), url)
    client = deepgram.DeepgramClient(api_key=token, environment=DeepgramClientEnvironment(**places))
    return client.listen.v1.connect(model="any", **options)


@pytest.mark.parametrize(
    ("encoding", "rate", "channels"),
    [
        ("linear16", 16000, 1),
        ("linear16", 44100, 2),
        ("linear16", 8000, 1),
        ("mulaw", 8000, 1),
        ("alaw", 8000, 2),
    ],
)
def test_the_real_client_reads_what_was_said(encoding, rate, channels):
    with running(token=TOKEN) as (_, url):
        options = {"sample_rate": rate, "channels": channels, "language": "de"}
        with listen(url, encoding=encoding, **options) as socket:
            socket.send_keep_alive()
            sound = pcm(5.2, rate, channels)
            if encoding != "linear16":
                sound = sound[::2]  # a byte a sample
            for at in range(0, len(sound), 3001):  # frames that end within a sample
                socket.send_media(sound[at : at + 3001])
            socket.send_close_stream()
            events = list(socket)
    results = [event for event in events if event.type == "Results"]
    words = [word for one in results for word in one.channel.alternatives[0].words]
    assert [word.punctuated_word for word in words] == [t.strip() for _, t in steady_words()]
    assert all(0.9 < word.confidence <= 1 for word in words)
    assert all(one.is_final for one in results)
    starts = [word.start for word in words]
    assert starts == sorted(starts)
    assert all(word.start <= word.end for word in words)
    assert events[-1].type == "Metadata"
    assert events[-1].duration == pytest.approx(5.2, abs=0.01)
    assert events[-1].channels == channels


def test_channels_that_cancel_each_other_are_heard():
    level = 32768 * sound_of(0, 8)
    sound = np.stack([level, -0.9 * level], axis=1).astype("<i2").tobytes()
    options = {"encoding": "linear16", "sample_rate": 16000, "channels": 2}
    with running(model="tests.serve.numbers:numbers") as (_, url), listen(url, **options) as socket:
        socket.send_media(sound)
        socket.send_close_stream()
        results = [event for event in socket if event.type == "Results"]
    said = " ".join(one.channel.alternatives[0].transcript for one in results)
    assert said.split() == [str(number) for number in range(8)]


def test_finalize_says_what_was_heard_and_goes_on():
    with running() as (_, url), listen(url, encoding="linear16", sample_rate=16000) as socket:
        socket.send_media(pcm(2.1, 16000))
        socket.send_finalize()
        first = []
        for event in socket:
            first.append(event)
            if event.from_finalize:
                break
        socket.send_media(pcm(2.7, 16000))
        socket.send_close_stream()
        rest = [event for event in socket if event.type == "Results"]
    heard = " ".join(one.channel.alternatives[0].transcript for one in first).split()
    assert heard == [f"word{i}" for i in range(5)]
    assert [one.from_finalize for one in first][-1] is True
    after = " ".join(one.channel.alternatives[0].transcript for one in rest).split()
    assert after == [f"word{i}" for i in range(5, 12)]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"keyterms": ["Dragoman"]}, "CONFIGURE_KEYTERMS_NOT_SUPPORTED"),
        ({"features": {"numerals": True}}, "CONFIGURE_INTERNAL_ERROR"),
    ],
)
def test_what_cannot_be_configured_in_mid_talk_does_not_end_the_talk(asked, code):
    with running() as (_, url), listen(url, encoding="linear16", sample_rate=16000) as socket:
        from deepgram.listen.v1.types import ListenV1Configure

        socket.send_media(pcm(2.1, 16000))
        socket.send_configure(ListenV1Configure(**asked))
        socket.send_media(pcm(2.7, 16000))
        socket.send_close_stream()
        events = list(socket)
    (failure,) = (event for event in events if event.type == "ConfigureFailure")
    assert (failure.code, failure.description[:16]) == (code, "This server has ")
    results = [event for event in events if event.type == "Results"]
    heard = " ".join(one.channel.alternatives[0].transcript for one in results).split()
    assert heard == [f"word{i}" for i in range(12)]


def test_interim_text_is_told_if_it_is_wanted():
    for wanted in ("true", "false"):
        with running(model="tests.talkers:changing") as (service, url):
            service.system = service.system.changed(policy="local-agreement")
            with listen(url, encoding="linear16", interim_results=wanted) as socket:
                socket.send_media(pcm(1, 16000))
                if wanted == "true":  # it stays until more is sent
                    told = next(event for event in socket if event.type == "Results")
                    assert not told.is_final
                    assert told.channel.alternatives[0].transcript.endswith("perhaps later")
                socket.send_close_stream()
                rest = [event for event in socket if event.type == "Results"]
        assert rest[-1].is_final
        assert wanted == "true" or all(one.is_final for one in rest)


def test_no_mark_comes_alone_however_late_it_is():
    """Its clients put spaces between results, and between words."""
    with running(model="tests.evaluate.late_stops:model") as (service, url):
        service.system = service.system.changed(policy="greedy", step_ms=200.0)
        with listen(url, encoding="linear16", sample_rate=16000, interim_results="true") as socket:
            socket.send_media(pcm(5, 16000))
            socket.send_close_stream()
            results = [event for event in socket if event.type == "Results"]
    best = [one.channel.alternatives[0] for one in results if one.is_final]
    text = "It rains. We stay at home, dry and warm."
    assert " ".join(one.transcript for one in best) == text
    words = [word for one in best for word in one.words]
    assert " ".join(word.punctuated_word for word in words) == text
    assert " ".join(word.word for word in words) == "it rains we stay at home dry and warm"
    ends = {word.word: word.end - word.start for word in words}
    assert ends["rains"] > 0


class Socket:
    """What a dialect sees of a client's."""

    query_params: ClassVar = {"interim_results": "true"}


def told(frames):
    """(final, text) of results."""
    results = [json.loads(frame) for frame in frames]
    return [
        (one["is_final"], one["channel"]["alternatives"][0]["transcript"])
        for one in results
        if one["type"] == "Results"
    ]


def said(number, text):
    return Said(number, text, 1000.0 * number, 1000.0 * number, 500.0, 0.9)


def test_a_word_waits_for_its_mark_only_while_one_may_come():
    dialect = Deepgram(Socket(), 3600.0)
    first = [said(1, " Wir"), said(2, " danken"), Interim(".")]
    assert told(dialect.write(first)) == [(True, "Wir"), (False, "danken.")]
    assert told(dialect.write([Interim(". Sie")])) == [(False, "danken. Sie")]
    assert told(dialect.write([said(3, "."), Interim(" Sie")])) == [
        (True, "danken."),
        (False, "Sie"),
    ]
    assert told(dialect.write([said(4, " Sie"), Interim(" kommen")])) == [
        (True, "Sie"), (False, "kommen"),
    ]  # fmt: skip
    assert told(dialect.write([said(5, " kommen"), Interim("")])) == []  # what follows, who knows
    assert told(dialect.write([Closed(asked=False)])) == [(True, "kommen")]
    assert told(dialect.write([said(6, " Und"), said(7, " 今"), said(8, "日")])) == [
        (True, "Und 今日")
    ]


@pytest.mark.parametrize("wanted", [{}, {"utterance_end_ms": "1000"}])
def test_the_end_of_an_utterance_is_told_though_its_words_were(wanted):
    """Voice agents wait for it before they answer."""
    socket = Socket()
    socket.query_params = {"interim_results": "true", **wanted}
    dialect = Deepgram(socket, 3600.0)
    silence = list(dialect.write([Closed(asked=False)]))
    words = list(dialect.write([said(1, " Ja."), Interim(" Und")]))
    pause = [json.loads(frame) for frame in dialect.write([Interim(""), Closed(asked=False)])]
    again = list(dialect.write([Closed(asked=False)]))
    assert (silence, told(words), again) == ([], [(True, "Ja."), (False, "Und")], [])
    end = pause[0]
    assert (end["is_final"], end["speech_final"], end["channel"]["alternatives"][0]["words"]) == (
        True, True, [],
    )  # fmt: skip
    ends = [(one["type"], one["last_word_end"]) for one in pause[1:]]
    last = json.loads(words[0])
    assert ends == [("UtteranceEnd", last["start"] + last["duration"])] * len(wanted)


@pytest.mark.parametrize(
    "last", [Summary(1, 1000.0, None, 0.1, "de"), Error(Code.FAILED, "It broke.")]
)
def test_no_word_is_held_when_a_talk_ends(last):
    dialect = Deepgram(Socket(), 3600.0)
    assert told(dialect.write([said(1, " danken")])) == [(False, "danken")]
    frames = list(dialect.write([last]))
    assert told(frames) == [(True, "danken")]
    assert json.loads(frames[-1])["type"] in ("Metadata", "Error")


@pytest.mark.parametrize(
    ("encoding", "channels", "heard"),
    [("mulaw", 1, [0, 3, 4]), ("mulaw", 2, [0, 1, 2]), ("linear16", 1, [0, 1, 2])],
)
def test_all_whole_samples_of_a_frame_are_heard_at_once(encoding, channels, heard):
    async def none():
        raise AssertionError

    socket = Socket()
    socket.query_params = {"encoding": encoding, "channels": str(channels), "sample_rate": "8000"}
    dialect = Deepgram(socket, 3600.0)
    asyncio.run(dialect.begin(none, none, none))
    told = [act for size in (3, 1) for act in dialect.read(bytes(size))]
    ends = [first + len(samples) for first, samples in told]
    assert [told[0][0], *ends] == heard


def test_answers_that_nobody_reads_do_not_grow_without_end():
    dialect = Deepgram(Socket(), 3600.0)
    for _ in range(10_000):
        dialect.read('{"type":"Configure"}')
    assert 1 <= len(list(dialect.write([]))) <= 100
    assert list(dialect.write([])) == []


@pytest.mark.parametrize(
    ("query", "sent", "variant"),
    [
        ("encoding=amr-nb", [], "UNFIT"),
        ("sample_rate=fast", [], "MALFORMED"),
        ("channels=0", [], "UNFIT"),
        ("encoding=linear16&language=klingon", [], "LANGUAGE"),
        ("sample_rate=0", [bytes(40_000)], "UNFIT"),
        ("sample_rate=0&channels=2", [bytes(40_000)], "UNFIT"),
        ("", ["nonsense"], "MALFORMED"),
        ("", ['{"type":"Sing"}'], "MALFORMED"),
    ],
)
def test_what_is_wrong_is_told_in_its_words(opened, query, sent, variant):
    _, web = opened()
    with web.websocket_connect(f"/v1/listen?{query}") as socket:
        for message in sent:
            (socket.send_bytes if isinstance(message, bytes) else socket.send_text)(message)
        told = json.loads(socket.receive_text())
    assert (told["type"], told["variant"]) == ("Error", variant)
    with web.websocket_connect(PATH) as socket:  # and the next client is served
        assert Client(socket).start().session


@pytest.mark.parametrize("kind", ["Token", "token", "Bearer", "bearer"])
def test_the_word_before_a_key_is_written_as_each_client_likes(opened, kind):
    """That of Go writes it small."""
    _, web = opened(token=TOKEN)
    headers = {"Authorization": f"{kind} {TOKEN}"}
    with web.websocket_connect("/v1/listen?encoding=linear16", headers=headers) as socket:
        socket.send_text('{"type":"CloseStream"}')
        assert json.loads(socket.receive_text())["type"] != "Error"


@pytest.mark.parametrize("offered", [["token", TOKEN], ["token", "wrong"], ["bearer", TOKEN]])
def test_browsers_offer_their_key_as_a_protocol(opened, offered):
    _, web = opened(token=TOKEN)
    with web.websocket_connect("/v1/listen", subprotocols=offered) as socket:
        assert socket.accepted_subprotocol == offered[0]
        socket.send_text('{"type":"CloseStream"}')
        kind = json.loads(socket.receive_text())["type"]
    assert (kind == "Error") == (offered[1] != TOKEN)


@pytest.mark.parametrize("path", ["/v1/listen", "/v1/realtime/translations"])
def test_who_has_no_token_is_told_so_at_once(opened, path):
    """Nobody keeps a connection by messages that begin nothing."""
    _, web = opened(token=TOKEN)
    with web.websocket_connect(path) as socket:
        assert json.loads(socket.receive_text())["type"].lower() == "error"
        with pytest.raises(WebSocketDisconnect) as end:
            socket.receive_text()
    assert end.value.code == 4401


def test_a_client_that_cannot_come_back_leaves_its_place_to_others(opened):
    service, web = opened(streams=1)
    for _ in range(3):
        with web.websocket_connect("/v1/listen?encoding=linear16&interim_results=true") as socket:
            socket.send_bytes(pcm(1, 16000))
            assert json.loads(socket.receive_text())["type"] == "Results"
        assert service.streams == 0
    with web.websocket_connect(PATH) as socket:
        assert Client(socket).start().session
    assert service.streams == 1  # whoever speaks our own protocol may

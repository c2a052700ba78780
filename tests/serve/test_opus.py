"""Opus over our own protocol and over Deepgram's: heard whole, resumed, refused if it is none."""

import asyncio
import io
import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dragoman.audio.opus import BEFORE, OpusEncoder, count_samples
from dragoman.audio.resample import resample
from dragoman.serve.client import Talk
from dragoman.serve.deepgram import Deepgram
from dragoman.serve.protocol import (
    Audio,
    Change,
    Heard,
    Ready,
    Resume,
    Start,
    Summary,
    write_packet,
)
from tests.audio.matroska import webm_of
from tests.audio.test_opus import melody
from tests.serve.clients import PATH, Client, closed, steady_words
from tests.serve.processes import in_time, proxied
from tests.serve.running import running
from tests.serve.test_deepgram import listen

OPUS = Audio(encoding="opus")
PACKET = 960
SECONDS = 5.2


@cache
def packets() -> list[bytes]:
    encoder = OpusEncoder()
    return encoder.feed(melody(SECONDS)) + encoder.finish()


def numbered(first=0, last=None):
    return [(PACKET * n, p) for n, p in enumerate(packets())][first:last]


def overheard(service) -> list[np.ndarray]:
    """What the model of a service hears from now on."""
    heard, hear = [], service.system.model.hear

    def listen_in(streams, sounds):
        heard.extend(sound.samples for sound in sounds)
        hear(streams, sounds)

    service.system.model.hear = listen_in
    return heard


def check_heard(heard, least=0.98):
    """It is the melody, no more and no less, but for what every encoder does to it."""
    sound, sent = np.concatenate(heard), resample(melody(SECONDS), 48000)
    assert 0 <= len(sound) - len(sent) < 16000 // 20
    assert np.corrcoef(sound[104 : len(sent)], sent[:-104])[0, 1] > least


def talk(web, chosen, meanwhile=lambda client, number: None):
    """From start to summary, with these packets."""
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        assert client.start(audio=OPUS).sample == 0
        for number, (first, packet) in enumerate(chosen):
            socket.send_bytes(write_packet(first, packet))
            meanwhile(client, number)
        client.stop()
        return client, client.until(Summary)


def test_a_talk_in_opus(opened):
    service, web = opened()
    heard = overheard(service)
    client, summary = talk(web, numbered())
    assert client.words == steady_words()
    last = [event for event in client.events if isinstance(event, Heard)][-1]
    assert last.sample == sum(map(count_samples, packets()))
    assert summary.audio_ms == pytest.approx(last.sample / 48, abs=1)
    check_heard(heard)


def test_a_lost_connection_in_mid_sentence(opened):
    service, web = opened()
    heard = overheard(service)
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start(audio=OPUS)
        for first, packet in numbered(0, 103):
            socket.send_bytes(write_packet(first, packet))
        client.until(Heard)
    with web.websocket_connect(PATH) as socket:
        again = Client(socket)
        again.send(Resume(ready.session, ready.resume_token, len(client.words)))
        sample = again.until(Ready).sample
        assert 0 < sample <= 103 * PACKET
        for first, packet in numbered(max(0, sample - BEFORE) // PACKET):
            socket.send_bytes(write_packet(first, packet))
        again.stop()
        again.until(Summary)
    assert client.words + again.words == steady_words()
    check_heard(heard)


def test_a_change_of_policy_leaves_no_packet_behind(opened):
    service, web = opened()
    heard = overheard(service)

    def change(client, number):
        if number % 17 == 0:
            client.send(Change(policy="greedy"))

    talk(web, numbered(), change)
    check_heard(heard)


def test_packets_that_are_lost_on_the_way(opened):
    service, web = opened()
    heard = overheard(service)
    packets = enumerate(numbered())
    client, _ = talk(web, [one for n, one in packets if n % 13 != 5 and not 100 <= n < 110])
    assert client.words == steady_words()
    check_heard(heard, least=0.8)


@pytest.mark.parametrize(
    ("audio", "frames", "code"),
    [
        (OPUS, [write_packet(0, b"\xf9" + bytes(9))], "sound"),
        (OPUS, [write_packet(0, b"")], "sound"),
        (OPUS, [b"1234"], "sound"),
        (OPUS, [bytes(300_000)], "too_big"),
        (OPUS, [write_packet(n * PACKET, b"\x08") for n in range(1, 9)], "sound"),  # a gap at first
        (OPUS, [write_packet(0, b"\x08"), write_packet(1 << 60, b"\x08")], "sound"),
        (OPUS, [write_packet(0, b"\x08"), write_packet(480, b"\x08")], "sound"),
        (Audio(rate=16000, encoding="opus"), [], "unfit"),
    ],
)
def test_what_is_wrong_is_told(opened, audio, frames, code):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.send(Start(audio=audio))
        for frame in frames:
            socket.send_bytes(frame)
        closed(client)
        assert client.events[-1].code == code


def test_the_client_in_python_sends_opus_over_lost_connections():
    sound = melody(SECONDS)

    async def talk(url):
        async with proxied(url) as (proxy, address):
            talk, cuts = Talk(address + PATH, Start(audio=OPUS)), [2, 5, 9]
            come = asyncio.Event()

            async def spoken():
                for at in range(0, len(sound), 4800):
                    yield sound[at : at + 4800]
                    if cuts and at > (cuts[0] + 2) * 0.4 * 48000:
                        come.clear()
                        await come.wait()

            async for event in talk.run(spoken()):
                finished = isinstance(event, Summary)
                come.set()
                if cuts and len(talk.words) >= cuts[0]:
                    cuts.pop(0)
                    proxy.cut()
            return talk, finished

    with running() as (service, url):
        heard = overheard(service)
        talk, finished = in_time(talk(url))
    assert [(word.word, word.text) for word in talk.words] == steady_words()
    assert finished
    assert talk.connections >= 2
    check_heard(heard)


def ogg() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, melody(SECONDS), 48000, format="OGG", subtype="OPUS")
    return file.getvalue()


def pieces(data: bytes, size: int = 1500) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize(
    ("options", "make"),
    [
        ({"encoding": "opus", "sample_rate": 48000}, packets),
        ({"encoding": "ogg-opus"}, lambda: pieces(ogg())),
        ({}, lambda: pieces(ogg())),
        ({}, lambda: pieces(webm_of(packets()))),
    ],
    ids=["packets", "ogg-opus", "ogg", "webm"],
)
def test_deepgrams_client_sends_opus(options, make):
    with running() as (service, url):
        heard = overheard(service)
        with listen(url, **options) as socket:
            socket.send_keep_alive()
            for piece in make():
                socket.send_media(piece)
            socket.send_close_stream()
            results = [event for event in socket if event.type == "Results"]
    said = " ".join(one.channel.alternatives[0].transcript for one in results).split()
    assert said == [text.strip() for _, text in steady_words()]
    check_heard(heard)


def test_a_container_is_known_by_its_first_bytes_however_few_come_first():
    """A browser may send what stands before the sound by itself."""
    data = ogg()
    messages = [data[:8], data[8:40], data[40:2000], data[2000:]]

    async def receive():
        return messages.pop(0)

    dialect = Deepgram(SimpleNamespace(query_params={}), 3600.0)
    start, acts = asyncio.run(dialect.begin(receive, None, None))
    assert start.audio.rate == 48000
    assert acts[0][0] == 0
    assert len(acts[0][1]) > 0


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("encoding=opus", b"\xf9" + bytes(9)),
        ("encoding=ogg-opus", bytes(100)),
        ("", b"OggS" + bytes(100)),
        ("", b"\x1a\x45\xdf\xa3" + bytes(100)),
    ],
)
def test_deepgrams_client_is_told_what_is_no_opus(opened, query, sent):
    _, web = opened()
    with web.websocket_connect(f"/v1/listen?{query}") as socket:
        socket.send_bytes(sent)
        told = json.loads(socket.receive_text())
    assert (told["type"], told["variant"]) == ("Error", "SOUND")

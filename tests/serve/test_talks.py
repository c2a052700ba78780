"""Talks through the web application: two at once, resumed, changed, drained."""

import asyncio
import json
import sys
from itertools import pairwise

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman.serve.connection import Connection
from dragoman.serve.logs import JsonLines
from dragoman.serve.protocol import (
    Change,
    Code,
    Error,
    Heard,
    Interim,
    Ready,
    Resume,
    Said,
    State,
    Summary,
    Transcript,
    write_sound,
)
from dragoman.serve.session import Session
from tests.serve.clients import PATH, RATE_24, Client, closed, steady_words
from tests.serve.numbers import sound_of
from tests.talkers import SPOKEN, TEXT


def test_a_talk_from_start_to_summary(opened):
    service, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start(source="de", target="en")
        assert isinstance(ready, Ready)
        assert ready.sample == 0
        for _ in range(13):
            client.speak()
        client.stop()
        summary = client.until(Summary)
        assert closed(client) == 1000
    assert client.words == steady_words()
    assert (summary.words, summary.audio_ms, summary.language) == (12, 5200.0, "de")
    assert [e.sample for e in client.events if isinstance(e, Heard)][-1] == client.sample
    sayings = [e for e in client.events if isinstance(e, Said)]
    assert all(a.source_ms <= b.source_ms for a, b in pairwise(sayings))
    assert all(a.at_ms <= b.at_ms for a, b in pairwise(sayings))
    assert all(said.lag_ms is not None for said in sayings)
    assert service.streams == 0


@pytest.mark.parametrize("rate", [8000, 24000, 44100])
def test_sound_of_any_rate_is_heard_whole(opened, rate):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(audio=type(RATE_24)(rate=rate))
        for _ in range(10):
            client.speak(0.5, rate)
        client.stop()
        summary = client.until(Summary)
    assert summary.audio_ms == pytest.approx(5000, abs=1)
    assert client.words == steady_words()


def test_the_speaker_is_written_down_if_that_is_wanted(opened):
    for wanted in (True, False):
        _, web = opened(model="tests.talkers:bilingual")
        with web.websocket_connect(PATH) as socket:
            client = Client(socket)
            client.start(transcript=wanted)
            for _ in range(40):
                client.speak()
            client.stop()
            client.until(Summary)
        written = [e for e in client.events if isinstance(e, Transcript)]
        assert [e.number for e in written] == list(range(1, len(written) + 1))
        assert "".join(e.text for e in written).strip() == (SPOKEN if wanted else "")
        assert "".join(text for _, text in client.words).strip() == TEXT


def test_what_was_heard_is_told_after_the_words_that_it_counts(opened, monkeypatch):
    """A connection that is lost in between leaves a client that knows all it needs to resume."""
    send = Connection._send

    async def slowly(self, *news):
        await asyncio.sleep(0.02)  # more is said and heard meanwhile
        await send(self, *news)

    monkeypatch.setattr(Connection, "_send", slowly)
    _, web = opened(model="tests.serve.numbers:numbers")
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start()
        for first in range(0, 60, 2):
            sound = sound_of(first, 2)
            socket.send_bytes(write_sound(client.sample, sound))
            client.sample += len(sound)
        client.stop()
        client.until(Summary)
    word, counted = 0, []
    for event in client.events:
        if isinstance(event, Said):
            word = event.word
        elif isinstance(event, Heard):
            assert event.word <= word
            counted.append(event.word)
    assert max(counted) > 0


def test_two_talks_at_once_do_not_mix(opened):
    _, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        first, second = Client(one), Client(two)
        assert first.start().session != second.start().session
        for _ in range(6):
            first.speak()
            second.speak(0.8)
        assert web.get("/health").json() == {"status": "ready", "streams": 2, "most": 4}
        first.stop()
        second.stop()
        assert first.until(Summary).audio_ms == 2400
        assert second.until(Summary).audio_ms == 4800
    assert first.words == second.words == steady_words()


@pytest.mark.parametrize("lost_after", [0, 1, 3, 7])
def test_a_talk_goes_on_after_a_lost_connection(opened, lost_after):
    """Whatever the client had received: nothing is said twice, nothing is lost."""
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start()
        for _ in range(8):
            client.speak()
        while len(client.words) < lost_after:
            client.next()
    heard = [e.sample for e in client.events if isinstance(e, Heard)] or [0]
    got = client.words[-1][0] if client.words else 0
    with web.websocket_connect(PATH) as socket:
        client.socket = socket
        client.send(Resume(ready.session, ready.resume_token, got, 0, heard[-1]))
        again = client.until(Ready)
        assert heard[-1] <= again.sample <= client.sample
        client.sample = heard[-1]  # it sends again what it has no receipt for
        for _ in range(13 - heard[-1] // 6400):
            client.speak()
        client.stop()
        summary = client.until(Summary)
    assert client.words == steady_words()
    assert summary.audio_ms == client.sample / 16


def test_a_finished_talk_can_still_be_read(opened):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start()
        client.speak(2)
        client.stop()
        client.until(Summary)
    with web.websocket_connect(PATH) as socket:
        late = Client(socket)
        late.send(Resume(ready.session, ready.resume_token, word=3))
        late.until(Summary)
    assert late.words == steady_words()[3:]


def test_a_talk_that_nobody_comes_back_to_is_forgotten(opened):
    service, web = opened(keep=0.01)
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start()
    while service.streams:
        web.get("/health")
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.send(Resume(ready.session, ready.resume_token))
        assert closed(client) == 4404


def test_who_resumes_takes_over(opened):
    _, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        old, new = Client(one), Client(two)
        ready = old.start()
        new.send(Resume(ready.session, ready.resume_token))
        assert isinstance(new.next(), Ready)
        assert closed(old) == 4409
        assert old.events[-1].code == "replaced"
        new.speak(4.8)
        new.stop()
        new.until(Summary)
        assert new.words == steady_words()


def test_the_policy_changes_while_one_talks(opened):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(policy="offline")
        client.speak(2)
        client.send(Change(policy="greedy"))
        client.send(Change(policy="nonsense"))  # told, and changes nothing
        error = client.until(Error)
        assert (error.code, client.words) == ("policy", [])
        client.speak(0.4)
        client.until(Said)
        client.send(Change(latency_ms=2000))
        client.speak(3)
        client.stop()
        client.until(Summary)
    assert client.words == steady_words()


def test_interim_text_is_taken_away_in_the_end(opened):
    _, web = opened(model="tests.talkers:changing")
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start(policy="local-agreement")
        for _ in range(12):
            client.speak()
        client.stop()
        client.until(Summary)
    interims = [e.text for e in client.events if isinstance(e, Interim)]
    assert interims[0].endswith("perhaps later")
    assert interims[-1] == ""


def test_who_fails_ends_alone(opened, caplog):
    caplog.set_level("INFO")
    _, web = opened(model="tests.serve.broken:for_welsh")
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        bad, good = Client(one), Client(two)
        bad.start(source="cy")
        good.start(source="de")
        for _ in range(6):
            good.speak()
            bad.speak()
        assert closed(bad) == 1011
        assert bad.events[-1].code == "failed"
        assert "secret" not in bad.events[-1].message
        for _ in range(6):
            good.speak()
        good.stop()
        good.until(Summary)
    assert good.words == steady_words()
    (noted,) = [record for record in caplog.records if record.getMessage() == "failed"]
    line = JsonLines().format(noted)
    told = json.loads(line)
    assert (told["error"], told["pressure"], told["talks"]) == ("RuntimeError", "normal", 1)
    assert told["where"].startswith("tests.serve.broken.fail:15 < dragoman.interpreter.draft:")
    assert "secret" not in line
    assert "/" not in line  # nor a path


def test_whose_words_cannot_be_taken_ends_alone(opened, monkeypatch):
    take = Session.take

    def fail(session, chunk, update):
        if session.setup.source == "cy":
            raise ValueError("zip() argument 2 is shorter than argument 1")
        take(session, chunk, update)

    monkeypatch.setattr(Session, "take", fail)
    service, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        bad, good = Client(one), Client(two)
        bad.start(source="cy")
        good.start(source="de")
        stepped = []  # of one batch

        async def together():
            for session in service._sessions.values():
                session.hear(0, np.zeros(6400, np.float32))
            stepped.extend(service.scheduler._due())
            await service.scheduler._step(list(stepped))

        web.portal.call(together)
        assert len(stepped) == 2
        assert closed(bad) == 1011
        good.sample = 6400
        good.speak(4.4)
        good.stop()
        good.until(Summary)
    assert good.words == steady_words()


def test_no_more_talks_than_there_is_room_for(opened):
    _, web = opened(streams=1)
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        first, second = Client(one), Client(two)
        first.start()
        answer = web.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "full")
        assert web.get("/health?full=ok").status_code == 200  # for those who follow a talk
        assert second.start().code == "full"
        assert closed(second) == 1013
        first.speak(4.8)
        first.stop()
        first.until(Summary)
        assert first.words == steady_words()
    assert 'dragoman_refused_total{code="full"} 1.0' in web.get("/metrics").text
    with web.websocket_connect(PATH) as socket:
        assert isinstance(Client(socket).start(), Ready)


def test_draining_lets_talks_finish_and_nobody_in(opened):
    service, web = opened()
    with web.websocket_connect(PATH) as one, web.websocket_connect(PATH) as two:
        first, second = Client(one), Client(two)
        first.start()
        web.portal.call(service.drain)
        assert first.until(State).state == "draining"
        assert web.get("/health").json()["status"] == "draining"
        assert web.get("/health?full=ok").status_code == 503
        assert second.start().code == "draining"
        assert closed(second) == 1013
        assert not service.quiet
        first.speak(4.8)
        first.stop()
        first.until(Summary)
        assert closed(first) == 1000
    assert first.words == steady_words()
    assert service.quiet


def test_a_talk_ends_at_its_longest(opened):
    _, web = opened(longest=2.0)
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start()
        for _ in range(9):
            client.speak()
        assert client.until(Error).code == "too_long"
        summary = client.until(Summary)
    assert summary.audio_ms == 2400
    assert client.words == steady_words()


def test_a_silent_client_is_let_go_and_may_come_back(opened):
    _, web = opened(idle=0.05)
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start()
        assert closed(client) == 4408
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.send(Resume(ready.session, ready.resume_token))
        assert isinstance(client.next(), Ready)


def test_lag_steps_and_streams_are_counted(opened):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        client.start()
        assert "dragoman_streams 1.0" in web.get("/metrics").text
        client.speak(4.8)
        client.stop()
        client.until(Summary)
    text = web.get("/metrics").text
    assert "dragoman_streams 0.0" in text
    assert "dragoman_lag_seconds_count 12.0" in text
    steps = float(text.partition("dragoman_step_seconds_count ")[2].split()[0])
    assert f"dragoman_batch_size_sum {steps}" in text
    assert "dragoman_talks_total 1.0" in text


def test_what_is_counted_is_there_before_it_has_happened(opened):
    """A counter that begins at 1 has not grown, as Prometheus sees it."""
    _, web = opened()
    read = text_string_to_metric_families(web.get("/metrics").text)
    samples = {(one.name, *one.labels.values()): one.value for kind in read for one in kind.samples}
    for code in (*Code, "origin"):
        assert samples["dragoman_refused_total", code] == 0
    assert samples["dragoman_talks_total",] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is read from /proc")
def test_what_the_process_takes_is_told(opened):
    _, web = opened()
    text = web.get("/metrics").text
    for name in ("resident_memory_bytes", "open_fds", "max_fds", "cpu_seconds_total"):
        assert float(text.partition(f"\nprocess_{name} ")[2].split()[0]) > 0


def test_nothing_that_was_said_is_in_the_log(opened, caplog):
    caplog.set_level("DEBUG")
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Client(socket)
        ready = client.start()
        client.speak(4.8)
        client.stop()
        client.until(Summary)
    lines = [f"{record.getMessage()} {record.__dict__}" for record in caplog.records]
    assert any(ready.session in line for line in lines)
    assert not any("word0" in line or ready.resume_token in line for line in lines)


def test_samples_survive_the_wire():
    from dragoman.serve.protocol import read_sound, write_sound

    samples = np.array([0.0, 0.5, -1.0, 1.0], np.float32)
    first, read = read_sound(write_sound(7, samples))
    assert first == 7
    assert read.tolist() == [0.0, 0.5, -1.0, 32767 / 32768]

"""`--tls-cert`, with a certificate and a client that checks it."""

import asyncio
import os
import shutil
import signal
import ssl
import subprocess
from dataclasses import replace

import pytest
from click.testing import CliRunner

from dragoman.cli.app import dragoman
from dragoman.errors import DragomanError
from dragoman.serve.client import Talk
from dragoman.serve.places import Place
from dragoman.serve.protocol import Summary
from tests.serve.clients import PATH
from tests.serve.house import Ear, Mouth, ended, house, more, open_room, threads
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import command, in_time


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    return make_certificate(tmp_path)


def make_certificate(folder):
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert]
        + ["-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_a_talk_over_wss(certificate):
    cert, key = certificate
    options = ("--model", "tests.serve.numbers:numbers", "--policy", "greedy", "--step", "400")
    trusting = ssl.create_default_context(cafile=str(cert))

    async def sound():
        yield sound_of(0, 20)

    async def spoken(url):
        talk = Talk(url + PATH, context=trusting)
        return talk, [event async for event in talk.run(sound())]

    with command(*options, "--tls-cert", str(cert), "--tls-key", str(key)) as (_, url):
        assert url.startswith("wss://")
        talk, events = in_time(spoken(url))
    assert isinstance(events[-1], Summary)
    assert [(word.word, word.text) for word in talk.words] == words_of(20)


@pytest.mark.parametrize("wrong", ["none", "folder", "text", "other", "locked"])
def test_what_is_wrong_with_a_certificate_is_a_sentence(certificate, tmp_path, wrong):
    cert, _ = certificate
    made = tmp_path / wrong
    complaint = {
        "none": "No such file",
        "folder": "Is a directory",
        "text": "not written in PEM",
        "other": "mismatch",
        "locked": "pass phrase",
    }[wrong]
    if wrong == "folder":
        made.mkdir()
    elif wrong == "text":
        made.write_text("a key")
    elif wrong in ("other", "locked"):
        lock = ["-aes256", "-pass", "pass:secret"] if wrong == "locked" else []
        kind = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        subprocess.run(
            ["openssl", "genpkey", *kind, *lock, "-out", made], check=True, capture_output=True
        )
    told = CliRunner().invoke(
        dragoman, ["serve", "--tls-cert", str(cert), "--tls-key", str(made), "--port", "0"]
    )
    assert told.exit_code != 0
    assert isinstance(told.exception, DragomanError)
    assert complaint in str(told.exception)
    assert str(made) in str(told.exception)


def test_a_room_is_found_over_tls(certificate, monkeypatch):
    """The certificate is that of the name in `--peer`, whatever address it leads to."""
    cert, key = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async def led():
        async with house(2, threads(cert=cert, key=key)) as here:
            room = await open_room(here.urls[0])
            mouth, ear = Mouth(here.urls[0], room), Ear(here.urls[1], room)
            await more(ear)
            return await mouth.end(), await ended(ear)

    said, told = in_time(led())
    assert told == [said]


def test_whom_this_machine_trusts_is_read_again_only_when_that_changes(
    certificate, tmp_path, monkeypatch
):
    """It takes a tenth of a second, and peers are asked each second, on the event loop."""
    peer = Place("wss://talks.test", "127.0.0.1", 443, "key")
    usual = peer.tls()
    assert peer.tls() is usual
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate[0].read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    ours = peer.tls()
    assert peer.tls() is ours is not usual
    os.utime(trusted, ns=(1, 1))
    assert peer.tls() is not ours
    beside = replace(peer, sibling=True).tls()
    assert (beside.verify_mode, beside.check_hostname) == (ssl.CERT_NONE, False)
    assert peer.tls().verify_mode == ssl.CERT_REQUIRED
    assert replace(peer, url="ws://talks.test").tls() is None


def shown_by(url):
    """The certificate that a server shows."""
    return ssl.get_server_certificate(("127.0.0.1", int(url.rpartition(":")[2]))).strip()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_certificate_is_read_again_at_sighup_and_talks_go_on(certificate, tmp_path):
    cert, key = certificate
    options = ("--model", "tests.serve.numbers:numbers", "--policy", "greedy", "--step", "400")
    trusting = ssl.create_default_context(cafile=str(cert))

    with command(*options, "--tls-cert", str(cert), "--tls-key", str(key)) as (process, url):
        first = cert.read_text().strip()
        assert shown_by(url) == first

        async def sound():
            yield sound_of(0, 10)
            key.write_text("")  # half of it is copied
            process.send_signal(signal.SIGHUP)
            while not any("certificate not renewed" in line for line in process.told):
                await asyncio.sleep(0.05)
            assert await asyncio.to_thread(shown_by, url) == first
            await asyncio.to_thread(make_certificate, tmp_path)
            process.send_signal(signal.SIGHUP)
            while await asyncio.to_thread(shown_by, url) == first:
                await asyncio.sleep(0.05)
            yield sound_of(10, 10)

        async def spoken():
            talk = Talk(url + PATH, context=trusting)
            return talk, [event async for event in talk.run(sound())]

        talk, events = in_time(spoken())
        assert shown_by(url) == cert.read_text().strip()
    assert isinstance(events[-1], Summary)
    assert [(word.word, word.text) for word in talk.words] == words_of(20)

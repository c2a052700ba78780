"""What the speaker's page does when something is missing, full, behind or cut off."""

import json
import threading

import pytest
import soundfile

from dragoman.serve import scheduler, speech
from tests.audio.conftest import chirp
from tests.serve.pages.looking import (
    SHOWN,
    STATE,
    link,
    queue_up,
    start,
    stop,
    the_session,
    wait_until,
)
from tests.serve.stage import staged
from tests.talkers import SPOKEN, TEXT
from tests.voices.fakes import ToneVoice


def test_a_lost_connection_is_come_back_from_and_nothing_is_lost(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(
            f"window.states = []; new MutationObserver(() => states.push({STATE}))"
            ".observe(document.getElementById('state'), {attributes: true})"
        )
        start(page, 4)
        stage.cut()
        page.wait("states.includes('reconnecting')")
        page.wait(f"{SHOWN}.split(' ').length >= 10")
        stage.cut()
        page.wait(f"{SHOWN}.split(' ').length === 32")
        stop(page)
        assert page.text("target") == TEXT
        assert page.text("source") == SPOKEN
        assert page.run("states").count("reconnecting") == 2


LAG = "document.getElementById('lag-now').textContent"
AUDIENCE = "document.getElementById('audience').textContent"


def test_while_the_line_is_lost_nothing_passes_for_current(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page, 6)
        assert page.text("lag-now")[0].isdigit()
        (room,) = stage.service.rooms._rooms.values()
        room.join("somebody")
        page.wait(f"{AUDIENCE} === '· 1 listening'")
        port = stage.line.leads_to
        stage.line.lead_to(1)  # where nobody listens
        stage.cut()
        page.wait(f"{STATE} === 'reconnecting'")
        assert page.text("lag-now").startswith("was ")
        page.wait("!!document.querySelector('.lag.past polyline')")
        page.wait(f"{AUDIENCE} === ''")
        stage.line.lead_to(port)
        page.wait(f"/^[0-9.]+ s behind$/.test({LAG})")
        assert page.run("document.querySelector('.lag.past')") is None
        stop(page)
        assert page.text("lag-now").startswith("was ")  # and nobody is behind any more


def test_who_has_stopped_is_not_told_that_somebody_listens(visit, monkeypatch):
    """However the line breaks, and however the server fares, until the rest is said."""
    go_on, step = threading.Event(), scheduler.step

    def wait(interpreters, chunks):
        assert not any(chunk.last for chunk in chunks) or go_on.wait(60)
        return step(interpreters, chunks)

    monkeypatch.setattr(scheduler, "step", wait)
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        page.run(
            f"window.states = []; new MutationObserver(() => states.push({STATE}))"
            ".observe(document.getElementById('state'), {attributes: true})"
        )
        page.click("#end")
        page.wait("states.includes('finishing')")
        stage.cut()
        (session,) = stage.service._sessions.values()
        wait_until(page, lambda: session.partings)
        wait_until(page, lambda: session.client is not None)
        stage.service.drain()
        page.run("new Promise((done) => setTimeout(done, 300))")
        assert set(page.run("states")) == {"finishing"}
        go_on.set()
        page.wait(f"{STATE} === 'done'")


def test_sound_that_the_phone_has_stopped_begins_again(visit):
    """As after a call, or a sleep; a page that waits for ever looks as if it listened."""
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        page.run(
            "window.contexts = []; window.AudioContext = class extends AudioContext {"
            " constructor(...args) { super(...args); contexts.push(this); } }; 0"
        )
        start(page)
        session = the_session(stage)
        page.run("contexts[0].suspend()")
        page.wait("contexts[0].state === 'running'")
        before = session.sample
        wait_until(page, lambda: session.sample > before)
        stop(page)
        assert page.run("contexts[0].state") == "closed"


def test_a_voice_that_the_phone_has_stopped_begins_again(visit, monkeypatch):
    monkeypatch.setattr(speech, "open_voice", lambda name, language: ToneVoice(0.01))
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.run(
            "window.contexts = []; window.AudioContext = class extends AudioContext {"
            " constructor(...args) { super(...args); contexts.push(this); } };"
            "window.played = 0; const start = AudioBufferSourceNode.prototype.start;"
            "AudioBufferSourceNode.prototype.start = function (at) {"
            " played++; start.call(this, at); }"
        )
        listener.click("#aloud")
        listener.wait("played")
        listener.run("contexts[0].suspend()")
        listener.wait("contexts[0].state === 'running'")
        before = listener.run("played")
        listener.wait(f"played > {before}")
        listener.click("#aloud")
        listener.wait("contexts[0].state === 'closed'")
        stop(page)


@pytest.mark.parametrize(
    ("gone", "kind", "told"),
    [
        ("delete BaseAudioContext.prototype.audioWorklet", "microphone", "newer"),
        ("delete MediaDevices.prototype.getDisplayMedia", "tab", "does not share the sound"),
    ],
)
def test_a_browser_that_lacks_something_is_told_as_such(visit, gone, kind, told):
    with staged() as stage:
        page = visit(stage.address)
        page.run(f"{gone}; 0")
        page.choose("sound", kind)
        page.click("#begin")
        page.wait(f"document.getElementById('trouble').textContent.includes({json.dumps(told)})")
        assert not page.run("document.getElementById('begin').hidden")


def test_a_full_server_is_waited_for(visit):
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        queue_up(second)
        assert "queue" in second.text("state")
        stop(first)
        second.wait(f"{STATE} === 'listening'")
        second.wait(f"{SHOWN}.split(' ').length >= 3")
        stop(second)


def test_a_file_waits_in_the_queue_and_is_heard_whole(visit, folder):
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        soundfile.write(folder / "short.wav", chirp(1.0), 16000)
        second.choose("sound", "file")
        second.put_file("#file", folder / "short.wav")
        queue_up(second)
        second.run("new Promise((done) => setTimeout(done, 1200))")  # longer than the file
        stop(first)
        second.wait(f"{STATE} === 'done'")
        heard = [one.sample for one in stage.service._sessions.values()]
        assert 16000 in heard


def test_who_waits_in_the_queue_may_leave_it(visit):
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        queue_up(second)
        second.click("#end")
        second.wait(f"{STATE} === 'idle'")
        assert second.run("!document.getElementById('begin').hidden")


def test_who_stops_before_the_talk_is_known_to_have_begun_keeps_no_place(visit):
    with staged(keep=600) as stage:
        page = visit(stage.address)
        page.run("Object.defineProperty(WebSocket.prototype, 'onmessage', {set: () => {}}); 0")
        page.click("#begin")
        wait_until(page, lambda: stage.service.streams)
        page.click("#end")
        page.wait(f"{STATE} === 'idle'")
        wait_until(page, lambda: not stage.service.streams)


def test_a_server_that_is_gone_is_told_in_a_sentence(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(
            "window.tracks = []; const get = navigator.mediaDevices.getUserMedia;"
            "navigator.mediaDevices.getUserMedia = async function (wish) {"
            " const stream = await get.call(this, wish); tracks.push(...stream.getTracks());"
            " return stream; }"
        )
        stage.line.lead_to(1)  # where nobody listens
        stage.cut()
        for button in ("#begin", "#share-open"):
            page.click(button)
            page.wait("!document.getElementById('trouble').hidden")
            assert page.text("trouble") == "The server cannot be reached. Is it running?"
        assert page.run("!document.getElementById('begin').hidden")
        assert page.run("tracks.map((track) => track.readyState)") == ["ended"]  # and nobody hears


def test_a_server_that_is_behind_says_so(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        stage.service.drain()
        page.wait(f"{STATE} === 'draining'")
        assert "about to end" in page.text("state")


def test_a_page_without_a_microphone_says_so_before_anything_else(visit, deaf_browser):
    with staged() as stage:
        page = visit(stage.address, of=deaf_browser)
        page.wait("!document.getElementById('trouble').hidden")
        assert "no microphone" in page.text("trouble")
        assert "Plug one in" in page.text("trouble")
        page.choose("sound", "file")
        page.wait("document.getElementById('trouble').hidden")


def test_a_page_without_encryption_says_so_and_how_to_mend_it(visit, deaf_browser):
    with staged() as stage:
        page = visit(stage.address.replace("127.0.0.1", "talks.test"), of=deaf_browser)
        page.wait("!document.getElementById('trouble').hidden")
        assert "without encryption" in page.text("trouble")
        assert "https://" in page.text("trouble")


def test_a_page_whose_microphone_is_forbidden_says_how_to_allow_it(visit, browser):
    with staged() as stage:
        page = visit(stage.address)
        browser.forbid(page, "microphone")
        page.go(stage.address)
        page.wait("!document.getElementById('trouble').hidden")
        assert "not allowed" in page.text("trouble")
        assert "allow the microphone" in page.text("trouble")


def test_a_server_with_a_token_is_asked_with_it_and_no_address_holds_one(visit):
    token = "a token that nobody guesses"
    with staged("endless_orator", token=token) as stage:
        page = visit(stage.address)
        page.click("#begin")
        page.wait("!document.getElementById('trouble').hidden")
        assert "access token" in page.text("trouble")
        page.run(f"document.getElementById('token').value = {json.dumps(token)}")
        start(page)
        listener = visit(link(page))
        listener.wait(SHOWN)
        key = link(page).partition("#")[2]
        for one in (page, listener):
            asked = " ".join(one.run("performance.getEntries().map((entry) => entry.name)"))
            assert key not in asked.replace(link(page), "")
            assert "token" not in asked
        assert key not in page.run("location.href")
        wrong = visit(link(page)[:-4] + "AAAA")
        wrong.wait(f"{STATE} === 'refused'")
        assert "whole link" in wrong.text("trouble")


ASKED = """
navigator.mediaDevices.getUserMedia = ((get) => async function (wish) {
  window.asked = (window.asked ?? 0) + 1;
  await new Promise((done) => { window.allow = done; });
  const stream = await get.call(this, wish);
  window.tracks = stream.getTracks();
  return stream;
})(navigator.mediaDevices.getUserMedia);
"""


def test_who_stops_before_the_microphone_is_allowed_is_not_heard(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(ASKED)
        page.click("#begin")
        page.wait("!!window.allow")
        page.click("#end")
        page.wait("!document.getElementById('begin').hidden")
        page.run("allow()")
        page.wait("window.tracks?.every((track) => track.readyState === 'ended')")
        assert stage.service.streams == 0
        assert page.run("document.getElementById('end').hidden")
        page.run("allow = null")
        page.click("#begin")  # and may begin again
        page.wait("!!window.allow")
        page.run("allow()")
        page.wait(SHOWN)
        stop(page)


def test_who_presses_start_twice_speaks_once(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        page.run(ASKED)
        page.run("for (let i = 0; i < 2; i++) document.getElementById('setup').requestSubmit()")
        page.wait("!!window.allow")
        page.run("new Promise((done) => setTimeout(done, 200))")
        assert page.run("asked") == 1
        page.run("allow()")
        page.wait(SHOWN)
        page.run("document.getElementById('headphones').focus()")
        page.press("Enter")  # which in a field of a form is the same as its button
        page.run("new Promise((done) => setTimeout(done, 200))")
        assert page.run("asked") == 1
        stop(page)


def test_a_screen_that_is_wanted_no_more_as_it_is_granted_may_sleep(visit):
    with staged() as stage:
        page = visit(stage.address)
        assert page.run(
            "(async () => {"
            " const {keepAwake} = await import('/page/wake.js');"
            " const lock = {released: false, release() { this.released = true; }};"
            " let grant;"
            " navigator.wakeLock.request = () => new Promise((done) => { grant = done; });"
            " keepAwake(true); keepAwake(false); grant(lock);"
            " await new Promise((done) => setTimeout(done, 50));"
            " return lock.released;"
            "})()"
        )

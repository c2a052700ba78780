"""The pages in a real Chromium, whose microphone is a file: what people see and can do."""

import json
import socket
import struct
from itertools import pairwise

import numpy as np
import pytest
import soundfile
from PIL import Image

from dragoman.serve import speech
from dragoman.setup import TUNED
from tests.audio.conftest import chirp
from tests.serve.browser import Browser, chromium
from tests.serve.stage import ARABIC, staged
from tests.serve.test_downloads import lines_of
from tests.talkers import SPOKEN, TEXT
from tests.voices.fakes import ToneVoice

pytestmark = pytest.mark.skipif(
    chromium() is None,
    reason="no Chromium here: install it (apt install chromium) to see the pages",
)
SECRET = "what two processes share, and nobody else"
STATE = "document.getElementById('state').dataset.state"
SHOWN = "[...document.querySelectorAll('#target p')].map((p) => p.firstChild.data).join(' ')"
SPY = """
window.spied = [];
const watched = [[AudioContext.prototype, "setSinkId"], [WakeLock.prototype, "request"]];
for (const [what, name] of watched) {
  const before = what[name];
  what[name] = function (...args) { spied.push([name, ...args]); return before.apply(this, args); };
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("browser")
    soundfile.write(made / "microphone.wav", chirp(30.0), 16000)
    return made


@pytest.fixture(scope="module")
def browser(folder):
    made = Browser(folder, folder / "microphone.wav")
    yield made
    made.close()


@pytest.fixture(scope="module")
def deaf_browser(tmp_path_factory):
    """Without a microphone; and with a name that leads here but is not this machine's own."""
    rules = "--host-resolver-rules=MAP talks.test 127.0.0.1"
    made = Browser(tmp_path_factory.mktemp("deaf"), None, rules)
    yield made
    made.close()


@pytest.fixture
def visit(browser):
    """Opens pages; none of them may have had an error of its own."""
    pages = []

    def open_page(address, *size, of=browser):
        page = of.open(address, *size)
        if page.run("location.pathname") == "/":
            page.wait("document.getElementById('to').options.length")
        pages.append(page)
        return page

    yield open_page
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.close()
    # A line that a test cuts, and an answer that refuses, are told in the console, too.
    expected = ("WebSocket connection", "Failed to load resource")
    assert [error for error in errors if not error.startswith(expected)] == []


def start(page, words=3):
    """Start to speak, and wait for some words."""
    page.click("#begin")
    page.wait(f"{SHOWN}.split(' ').length >= {words}")


def stop(page):
    page.click("#end")
    page.wait(f"{STATE} === 'done'")


def link(page, name="share-link", what="value"):
    return page.run(f"document.getElementById('{name}').{what}")


def the_session(stage):
    (session,) = stage.service._sessions.values()
    return session


def test_words_appear_and_never_change(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(
            "window.seen = []; window.guessed = false; new MutationObserver(() => {"
            f" const text = {SHOWN}; if (text !== seen.at(-1)) seen.push(text);"
            " const interim = document.querySelector('#target .interim');"
            " guessed ||= interim.textContent.includes('guess'); })"
            ".observe(document.getElementById('target'),"
            " {subtree: true, childList: true, characterData: true})"
        )
        start(page, 32)
        stop(page)
        assert page.text("target") == TEXT
        assert page.text("source") == SPOKEN
        seen = page.run("seen")
        assert len(seen) > 5
        assert all(after.startswith(before) for before, after in pairwise(seen))
        assert all("guess" not in text for text in seen)
        assert page.run("guessed")  # and what may change was shown, apart
        assert page.text("state") == f"Done: {len(TEXT.split())} words"
        assert page.text("lag-now").endswith("s behind")
        assert page.run("document.getElementById('lag-line').points.length") > 5
        read_out = page.text("announced")
        assert "guess" not in read_out
        assert "Here comes the second one" in " ".join(read_out.split())
        assert page.run("document.getElementById('announced').ariaLive") == "polite"


def test_words_that_may_change_can_be_hidden(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        interim = "getComputedStyle(document.querySelector('#target .interim')).display"
        assert page.run(interim) == "inline"
        page.click("#show-interim")
        assert page.run(interim) == "none"
        stop(page)
        page.go(stage.address)  # it is remembered
        assert not page.run("document.getElementById('show-interim').checked")


def test_the_slider_acts_at_once(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        session = the_session(stage)
        assert session.setup.policy == "local-agreement:n=2"
        page.run("document.getElementById('latency').focus()")
        page.press("ArrowLeft")
        lag, policy, step_ms = TUNED[-2]
        assert page.text("latency-now") == f"about {lag / 1000:.1f} s"
        wait_until(page, lambda: session.setup.policy == policy)
        assert session.setup.step_ms == step_ms
        before = page.run(f"{SHOWN}.length")
        page.wait(f"{SHOWN}.length > {before}")  # and the talk goes on


def wait_until(page, what):
    for _ in range(200):
        if what():
            return
        page.run("new Promise((done) => setTimeout(done, 20))")
    raise AssertionError("It never came to be.")


def test_what_was_said_is_saved_in_mid_talk(visit, monkeypatch):
    monkeypatch.setattr(speech, "open_voice", lambda name, language: ToneVoice(0.01))
    with staged() as stage:
        page = visit(stage.address)
        page.click("#aloud")
        start(page, 12)
        for kind in ("srt", "vtt", "txt"):
            save(page, f"translation.{kind}")
        files = {k: page.downloaded(f"translation.{k}").decode() for k in ("srt", "vtt", "txt")}
        assert files["vtt"].startswith("WEBVTT\n\n1\n00:00:0")
        assert files["srt"].startswith("1\n00:00:0")
        for text in (lines_of(files["srt"]), lines_of(files["vtt"]), files["txt"].strip()):
            assert len(text.split()) >= 12
            assert TEXT.startswith(text)
        page.wait(f"{SHOWN}.split(' ').length === 32")
        stop(page)
        save(page, "translation.txt")
        assert page.downloaded("translation.txt").decode() == TEXT + "\n"
        save(page, "source.txt")
        assert page.downloaded("source.txt").decode() == SPOKEN + "\n"
        save(page, "sound")
        check_wave(page.downloaded("translation.wav"))


def save(page, name):
    page.click("#save summary")
    page.click(f"#save [data-file='{name}']")


def check_wave(data):
    """A whole WAV file with the tone of the voice, about as long as the text took to hum."""
    assert (data[:4], data[8:12]) == (b"RIFF", b"WAVE")
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    samples = np.frombuffer(data[44:], "<i2") / 32767
    hummed = np.abs(samples) > 0.01
    assert 0.6 * 0.01 * len(TEXT) < np.count_nonzero(hummed) / 24000 < 1.2 * 0.01 * len(TEXT)
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.argmax(spectrum) * 24000 / len(samples) == pytest.approx(440, abs=5)


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


def test_a_talk_and_its_listeners_go_on_in_another_process(visit):
    with (
        staged("endless_orator", secret=SECRET) as other,
        staged("endless_orator", secret=SECRET) as stage,
    ):
        page = visit(stage.address)
        start(page, 6)
        listener = visit(link(page))
        listener.wait(f"{SHOWN}.split(' ').length >= 6")
        before = page.run(SHOWN)
        stage.line.lead_to(other.line.port)  # the one that served until now is gone
        stage.cut()
        for one in (page, listener):
            one.wait(f"{SHOWN}.split(' ').length >= {len(before.split()) + 10}")
            words = one.run(SHOWN).split()
            assert [word.strip(".") for word in words] == [f"word{i}" for i in range(len(words))]
        assert page.run(SHOWN).startswith(before)
        assert len(other.service._sessions) == 1


def test_who_joins_late_sees_what_was_said_and_comes_back_too(visit):
    with staged() as stage:
        page = visit(stage.address)
        start(page, 12)
        listener = visit(link(page), 390, 844)
        listener.wait(f"{SHOWN}.split(' ').length >= 12")
        assert TEXT.startswith(listener.run(SHOWN).removesuffix(" "))
        page.wait("document.getElementById('audience').textContent.includes('1 listening')")
        stage.cut()
        page.wait(f"{SHOWN}.split(' ').length === 32")
        listener.wait(f"{SHOWN}.split(' ').length === 32")
        stop(page)
        listener.wait(f"{STATE} === 'over'")
        assert listener.run(SHOWN) == TEXT
        assert listener.text("target") == TEXT  # no guess is left
        listener.click("#spoken")
        assert listener.text("source") == SPOKEN
        save(listener, "translation.txt")
        assert listener.downloaded("translation.txt").decode() == TEXT + "\n"
        again = visit(link(page))  # and after the end
        again.wait(f"{SHOWN}.split(' ').length === 32")


def test_a_listener_hears_and_has_a_text_size_of_its_own(visit, monkeypatch):
    voice = ToneVoice(0.01)
    monkeypatch.setattr(speech, "open_voice", lambda name, language: voice)
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.wait(SHOWN)
        size = "parseFloat(getComputedStyle(document.getElementById('target')).fontSize)"
        before = listener.run(size)
        listener.click("#larger")
        assert listener.run(size) == pytest.approx(1.15 * before)
        listener.click("#captions")
        assert listener.run("document.getElementById('target').offsetParent") is None
        listener.run(
            "window.played = 0; const start = AudioBufferSourceNode.prototype.start;"
            "AudioBufferSourceNode.prototype.start = function (at) {"
            " played += this.buffer.duration; return start.call(this, at); }"
        )
        listener.click("#aloud")
        listener.wait("played > 0.3")
        assert page.run("document.getElementById('aloud').checked") is False
        assert voice.spoken


def test_the_voice_has_an_output_and_keeps_out_of_the_microphone(visit, monkeypatch):
    monkeypatch.setattr(speech, "open_voice", lambda name, language: ToneVoice(0.01))
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        page.run(SPY)
        page.run(
            "window.asked = []; const get = navigator.mediaDevices.getUserMedia;"
            "navigator.mediaDevices.getUserMedia = function (wish) {"
            " asked.push(wish.audio.echoCancellation); return get.call(this, wish); };"
            "window.gains = []; const connect = AudioBufferSourceNode.prototype.connect;"
            "AudioBufferSourceNode.prototype.connect = function (to) {"
            " gains.push(to.gain.value); return connect.call(this, to); }"
        )
        page.click("#aloud")
        assert page.run("!document.getElementById('echo').hidden")
        start(page)
        assert page.run("asked") == [True]
        page.wait("gains.length")
        assert page.run("gains[0]") == pytest.approx(0.4)
        assert page.run("spied.some(([name]) => name === 'request')")  # the screen stays on
        page.click("#headphones")
        page.wait("gains.at(-1) === 1")
        page.wait("document.getElementById('output').options.length > 1")
        chosen = page.run("document.getElementById('output').options[1].value")
        page.choose("output", chosen)
        page.wait("spied.some(([name, device]) => name === 'setSinkId' && device)")
        assert ["setSinkId", chosen] in page.run("spied")


def test_the_code_leads_to_the_listener_s_page(visit, tmp_path):
    zxingcpp = pytest.importorskip("zxingcpp")
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        page.click("#share-open")
        page.wait("document.getElementById('share').open")
        page.picture(tmp_path / "share.png")
        (code,) = zxingcpp.read_barcodes(Image.open(tmp_path / "share.png"))
        assert code.text == link(page)
        assert code.text.startswith(stage.address + "room/")
        for text in ("a", "x" * 60, "ü€", "y" * 150, "z" * 213):
            rows = page.run(f"import('/page/qr.js').then(({{ qr }}) => qr({json.dumps(text)}))")
            picture = np.pad(np.where(rows, 0, 255).astype(np.uint8), 4, constant_values=255)
            (read,) = zxingcpp.read_barcodes(np.kron(picture, np.ones((4, 4), np.uint8)))
            assert read.text == text
        with pytest.raises(RuntimeError, match="too long"):
            page.run("import('/page/qr.js').then(({ qr }) => qr('x'.repeat(214)))")


@pytest.mark.parametrize("path", ["room", "hall", "overlay"])
def test_languages_from_right_to_left_run_so(visit, path):
    with staged("arabic_orator") as stage:
        page = visit(stage.address)
        start(page, 9)
        name = {"room": "share-link", "hall": "share-hall", "overlay": "share-overlay"}[path]
        listener = visit(link(page, name, "value" if path == "room" else "href"))
        listener.wait(f"{SHOWN}.split(' ').length >= 9")
        assert listener.run(SHOWN).strip() == ARABIC
        for one in (page, listener):
            style = one.run(
                "(({direction, textAlign}) => [direction, textAlign])"
                "(getComputedStyle(document.querySelector('#target p')))"
            )
            assert style == ["rtl", "start"]
            # and the first letter stands on the right
            gap = one.run(
                "(() => { const r = document.createRange(); const p = document.querySelector("
                "'#target p'); r.setStart(p.firstChild, 0); r.setEnd(p.firstChild, 1);"
                " const b = p.getBoundingClientRect(), a = r.getBoundingClientRect();"
                " return [a.left - b.left, b.right - a.right]; })()"
            )
            assert gap[0] > gap[1]
        assert page.run("document.getElementById('source').dir") == "ltr"


@pytest.mark.parametrize("dark", [False, True])
def test_everything_fits_on_a_phone(visit, dark):
    with staged("endless_orator") as stage:
        page = visit(stage.address, 390, 844, dark)
        overflow = (
            "document.documentElement.scrollWidth <= 390 && document.body.scrollHeight <= 844"
        )
        assert page.run(overflow)
        start(page, 20)
        assert page.run(overflow)
        assert page.run("document.getElementById('target').clientHeight") > 150
        listener = visit(link(page), 390, 844, dark)
        listener.wait(f"{SHOWN}.split(' ').length >= 20")
        assert listener.run(overflow)
        for one in (page, listener):
            assert contrast(one) > 7
        stop(page)  # and the button can be hit


def contrast(page):
    """Of the text against what is behind it, as WCAG counts it."""
    ink = page.run("getComputedStyle(document.getElementById('target')).color")
    paper = page.run(
        "[document.getElementById('target'), document.body].map((e) =>"
        " getComputedStyle(e).backgroundColor).find((c) => c !== 'rgba(0, 0, 0, 0)')"
    )
    shades = []
    for colour in (ink, paper):
        values = np.array([float(v) for v in colour[4:-1].split(",")]) / 255
        linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        shades.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(shades) / min(shades)


def test_who_scrolls_up_to_read_is_left_there(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address, 390, 500)
        start(page)
        box = "document.getElementById('target')"
        page.wait(f"{box}.scrollHeight > {box}.clientHeight + 150")
        near = f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight"
        assert page.run(near) < 48
        assert page.run("document.getElementById('target-latest').hidden")
        page.run(f"{box}.scrollTop = 0")
        page.wait("!document.getElementById('target-latest').hidden")
        before = page.run(f"{SHOWN}.length")
        page.wait(f"{SHOWN}.length > {before + 40}")
        assert page.run(f"{box}.scrollTop") == 0
        page.click("#target-latest")
        page.wait("document.getElementById('target-latest').hidden")
        assert page.run(near) < 48


def test_the_page_can_be_used_without_a_mouse(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        reached = []
        for _ in range(30):
            page.press("Tab")
            reached.append(page.run("document.activeElement.id"))
            ring = page.run("getComputedStyle(document.activeElement).outlineStyle")
            assert ring != "none", reached[-1]
            if reached[-1] == "begin":
                break
        assert reached == ["from", "to", "sound", "device", "begin"]
        page.press("Enter")
        page.wait(f"{SHOWN}.split(' ').length >= 3")
        page.run("document.querySelector('#save summary').focus()")
        page.press("Enter")
        assert page.run("document.getElementById('save').open")
        page.press("Escape")
        assert not page.run("document.getElementById('save').open")
        assert page.run("document.activeElement.tagName") == "SUMMARY"
        unnamed = page.run(
            "[...document.querySelectorAll('button, input, select, [role=log]')].filter((e) =>"
            " !(e.ariaLabel || e.textContent.trim() || e.labels?.length"
            " || e.getAttribute('aria-labelledby'))).map((e) => e.id)"
        )
        assert unnamed == []


def test_a_full_server_is_waited_for(visit):
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        second.click("#begin")
        second.wait(f"{STATE} === 'queued'")
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
        second.click("#begin")
        second.wait(f"{STATE} === 'queued'")
        second.run("new Promise((done) => setTimeout(done, 1200))")  # longer than the file
        stop(first)
        second.wait(f"{STATE} === 'done'")
        heard = [one.sample for one in stage.service._sessions.values()]
        assert 16000 in heard


def test_who_waits_in_the_queue_may_leave_it(visit):
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        second.click("#begin")
        second.wait(f"{STATE} === 'queued'")
        second.click("#end")
        second.wait(f"{STATE} === 'idle'")
        assert second.run("!document.getElementById('begin').hidden")


def test_a_server_that_is_behind_says_so(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        stage.service.drain()
        page.wait(f"{STATE} === 'draining'")
        assert "about to end" in page.text("state")


def test_a_file_and_a_tab_are_sources_too(visit, folder):
    with staged() as stage:
        page = visit(stage.address)
        page.choose("sound", "file")
        page.click("#begin")
        assert page.text("trouble") == "Choose a file first."
        soundfile.write(folder / "talk.wav", chirp(1.0), 44100)
        page.put_file("#file", folder / "talk.wav")
        page.click("#begin")
        page.wait(f"{STATE} === 'done'")
        assert page.text("target") == TEXT
        (folder / "bad.wav").write_bytes(b"no sound")
        page.put_file("#file", folder / "bad.wav")
        page.click("#begin")
        page.wait("document.getElementById('trouble').textContent.includes('cannot read')")
        page.choose("sound", "tab")
        start(page)
        stop(page)


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


def test_the_overlay_is_transparent_and_looks_as_its_address_says(visit, tmp_path):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page, 30)
        query = "?lines=3&size=40&color=ff8800&interim=no"
        overlay = visit(
            link(page, "share-overlay", "href").replace("?lines=2&size=48&color=ffffff", query)
        )
        overlay.wait(f"{SHOWN}.split(' ').length >= 30")
        style = overlay.run(
            "(({color, fontSize, maxHeight}) => [color, fontSize, maxHeight])"
            "(getComputedStyle(document.getElementById('target')))"
        )
        assert style == ["rgb(255, 136, 0)", "40px", "156px"]
        for element in (
            "document.documentElement",
            "document.body",
            "document.getElementById('target')",
        ):
            assert overlay.run(f"getComputedStyle({element}).backgroundColor") == "rgba(0, 0, 0, 0)"
        assert (
            overlay.run("getComputedStyle(document.querySelector('#target .interim')).display")
            == "none"
        )
        overlay.call(
            "Emulation.setDefaultBackgroundColorOverride", color={"r": 0, "g": 0, "b": 0, "a": 0}
        )
        overlay.picture(tmp_path / "overlay.png")
        alpha = np.asarray(Image.open(tmp_path / "overlay.png").convert("RGBA"))[:, :, 3]
        assert alpha[:400].max() == 0  # nothing above the lines
        assert alpha[-200:].max() == 255
        odd = visit(overlay.run("location.href").replace(query, "?lines=x&size=-4&color=url(x)"))
        odd.wait(SHOWN)
        assert odd.run("getComputedStyle(document.getElementById('target')).fontSize") == "8px"
        assert (
            odd.run("getComputedStyle(document.getElementById('target')).color")
            == "rgb(255, 255, 255)"
        )


def test_a_hall_shows_the_way_in_and_then_huge_words(visit, tmp_path):
    zxingcpp = pytest.importorskip("zxingcpp")
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        room = page.run("fetch('/v1/rooms', {method: 'POST'}).then((answer) => answer.json())")
        empty = visit(f"{stage.address}hall/{room['room']}#{room['listener_token']}", 1280, 720)
        empty.wait(f"{STATE} === 'waiting'")
        empty.picture(tmp_path / "hall.png")
        (code,) = zxingcpp.read_barcodes(Image.open(tmp_path / "hall.png"))
        assert code.text == f"{stage.address}room/{room['room']}#{room['listener_token']}"
        start(page, 20)
        hall = visit(link(page, "share-hall", "href"), 1280, 720)
        hall.wait(f"{SHOWN}.split(' ').length >= 20")
        assert hall.run("document.getElementById('welcome').hidden")
        assert (
            hall.run("parseFloat(getComputedStyle(document.getElementById('target')).fontSize)")
            > 50
        )


def test_no_port_is_left_open():
    """The stage goes away with its tests."""
    with staged() as stage:
        port = int(stage.address.rstrip("/").rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0

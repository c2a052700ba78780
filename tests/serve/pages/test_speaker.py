"""The speaker's page: words appear, the slider acts, files are saved, sources are chosen."""

import json
import socket
import struct
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from dragoman import setup
from dragoman.serve import speech
from dragoman.serve.session import Session
from dragoman.setup import TUNED
from tests.audio.conftest import chirp
from tests.serve.pages.looking import (
    SHOWN,
    SPY,
    STATE,
    link,
    save,
    start,
    stop,
    the_session,
    wait_until,
)
from tests.serve.stage import staged
from tests.serve.test_downloads import lines_of
from tests.talkers import SPOKEN, TEXT
from tests.voices.fakes import ToneVoice


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


@pytest.mark.parametrize(
    ("orator", "chosen", "heading", "language"),
    [
        ("orator", "de", "Spoken: German", "de"),
        ("orator", "", "Spoken, in German", "de"),
        ("through_english", "de", "Spoken: German, in English", "en"),
        ("through_english", "", "Spoken, in English", "en"),
    ],
)
def test_what_is_written_is_called_what_it_is(visit, orator, chosen, heading, language):
    with staged(orator) as stage:
        page = visit(stage.address)
        page.wait("document.getElementById('from').length > 1")
        page.run(f"document.getElementById('from').value = '{chosen}'")
        start(page, 4)
        page.wait("document.getElementById('source').textContent")
        listener = visit(link(page))
        listener.wait("!document.getElementById('spoken').hidden")
        assert page.text("source-name") == heading
        for one in (page, listener):
            assert one.run("document.getElementById('source').lang") == language
        stop(page)


TWIN = "twin.document.getElementById('{}')"


def test_a_tab_that_is_duplicated_has_a_room_of_its_own_also_without_encryption(
    visit, deaf_browser
):
    """Where a browser offers no locks."""
    token = "a token that nobody guesses"
    put = f".value = {json.dumps(token)}"
    with staged(token=token) as stage:
        page = visit(stage.address.replace("127.0.0.1", "talks.test"), of=deaf_browser)
        assert page.run("navigator.locks === undefined")
        page.run(f"document.getElementById('token'){put}")
        page.run("document.getElementById('share-open').click()")
        page.wait("document.getElementById('share').open")
        ours = link(page)
        page.run("window.twin = window.open(location.href); 0")
        page.wait(f"twin.document.readyState === 'complete' && {TWIN.format('to')}?.options.length")
        assert page.run("twin.sessionStorage.length") > 0  # it was handed over
        page.run(TWIN.format("token") + put)
        page.run(TWIN.format("share-open") + ".click()")
        page.wait(TWIN.format("share") + ".open")
        theirs = page.run(TWIN.format("share-link") + ".value")
        page.run("twin.close()")
        assert theirs.split("#")[0] != ours.split("#")[0]
        page.run("window.before = true")
        page.call("Page.reload")  # which takes the room along
        page.wait("!window.before && document.getElementById('to')?.options.length")
        page.run("document.getElementById('share-open').click()")
        page.wait("document.getElementById('share').open")
        assert link(page) == ours


def test_a_tab_that_is_duplicated_has_a_room_of_its_own(visit):
    """A browser hands it all that the first one remembers."""
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        page.run("document.getElementById('share-open').click()")
        page.wait("document.getElementById('share').open")
        ours = link(page)
        page.run("document.getElementById('share').close()")
        start(page)
        page.run("window.twin = window.open(location.href); 0")
        page.wait(f"twin.document.readyState === 'complete' && {TWIN.format('to')}?.options.length")
        assert page.run("twin.sessionStorage.length") > 0  # it was handed over
        page.run(TWIN.format("share-open") + ".click()")
        page.wait(TWIN.format("share") + ".open")
        theirs = page.run(TWIN.format("share-link") + ".value")
        page.run("twin.close()")
        assert theirs.split("#")[0] != ours.split("#")[0]
        stop(page)
        page.run("window.before = true")
        page.call("Page.reload")  # which takes the room along
        page.wait("!window.before && document.getElementById('to')?.options.length")
        page.run("document.getElementById('share-open').click()")
        page.wait("document.getElementById('share').open")
        assert link(page) == ours


def test_a_speaker_goes_on_from_another_device(visit, deaf_browser, folder):
    """To the same listeners; the battery of the first one was empty."""
    soundfile.write(folder / "rest.wav", chirp(3.0), 16000)
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.wait(SHOWN)
        assert page.run("!document.getElementById('share-speaker').open")
        address = link(page, "speaker-link")
        other = visit(address, of=deaf_browser)  # another browser, which knows nothing of the first
        assert other.run("location.hash") == ""
        other.choose("sound", "file")
        other.put_file("#file", folder / "rest.wav")
        other.click("#begin")
        other.wait("document.getElementById('trouble').textContent.includes('wait a minute')")
        page.go(f"{stage.address}health")
        listener.wait(f"{STATE} === 'over'")
        other.click("#begin")
        other.wait(f"{STATE} === 'done'")
        listener.wait("document.querySelectorAll('#target hr').length === 1")
        said = "[...document.querySelectorAll('#target hr ~ p')].map((p) => p.innerText).join(' ')"
        assert listener.run(said).split() == other.run(SHOWN).split()
        assert link(other) == listener.run("location.href")


def test_a_speaker_pauses_and_the_talk_goes_on(visit, monkeypatch):
    """The microphone is off; silence comes, so that neither side takes the line for dead."""
    loud = []
    hear = Session.hear
    monkeypatch.setattr(
        Session,
        "hear",
        lambda self, first, samples: (loud.append(bool(samples.any())), hear(self, first, samples)),
    )
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        session = the_session(stage)
        wait_until(page, lambda: loud[-1:] == [True])
        page.click("#pause")
        wait_until(page, lambda: loud[-5:] == [False] * 5)
        assert page.text("state") == "Paused: nothing is heard"
        stage.cut()
        page.wait(f"{STATE} === 'reconnecting'")
        page.wait(f"{STATE} === 'paused'")
        before = session.sample
        wait_until(page, lambda: session.sample > before)
        page.click("#pause")
        page.wait(f"{STATE} === 'listening'")
        wait_until(page, lambda: loud[-1:] == [True])
        page.click("#pause")
        stop(page)
        assert page.run("document.getElementById('pause').hidden")
        page.click("#begin")
        page.wait(f"{STATE} === 'listening'")  # and the next talk is heard
        assert page.run("document.getElementById('pause').ariaPressed") == "false"
        stop(page)


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


ROWS = tuple((700.0 + 300 * n, f"local-agreement:n={n}", 100.0 * n) for n in range(2, 7))


def test_the_slider_has_as_many_stops_as_something_is_tuned_for(visit, monkeypatch):
    monkeypatch.setattr(setup, "TUNED", ROWS)
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        session = the_session(stage)
        page.run("document.getElementById('latency').focus()")
        for lag, policy, step_ms in ROWS[-2::-1]:
            page.press("ArrowLeft")
            assert page.text("latency-now") == f"about {lag / 1000:.1f} s"
            wait_until(page, lambda policy=policy: session.setup.policy == policy)
            assert session.setup.step_ms == step_ms
        page.press("ArrowLeft")  # there is no more of it
        assert page.run("document.getElementById('latency').value") == "0"
        stop(page)


@pytest.mark.parametrize("rows", [(), ROWS[:1]])
def test_where_nothing_is_to_be_chosen_there_is_no_slider(visit, monkeypatch, rows):
    monkeypatch.setattr(setup, "TUNED", rows)
    with staged() as stage:
        page = visit(stage.address)
        assert page.run("document.getElementById('latency-row').hidden")
        start(page)
        stop(page)


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


@pytest.mark.parametrize("kind", ["srt", "vtt", "txt"])
def test_where_there_is_nothing_to_save_the_page_says_so(visit, kind):
    """Before a talk, and when the server has forgotten it: no empty file passes for the talk."""
    with staged() as other, staged() as stage:
        page = visit(stage.address)
        page.run("document.getElementById('share-open').click()")
        page.wait("document.getElementById('share').open")
        page.run("document.getElementById('share').close()")
        save(page, f"translation.{kind}")
        page.wait("!document.getElementById('trouble').hidden")
        assert "nothing was said yet" in page.text("trouble")
        start(page, 12)
        stop(page)
        stage.line.lead_to(other.line.port)
        stage.cut()
        save(page, f"translation.{kind}")
        page.wait("!document.getElementById('trouble').hidden")
        assert "started anew" in page.text("trouble")


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


def test_phrases_are_heard_in_their_order(visit):
    """A short one may be read sooner than the long one before it, and one cannot be read at all."""
    with staged() as stage:
        page = visit(stage.address)
        page.run(
            "window.played = []; AudioContext.prototype.decodeAudioData = function (sound) {"
            " const length = sound.byteLength; return new Promise((done, fail) => setTimeout(() =>"
            "   length === 1 ? fail(new Error('no sound')) :"
            "   done(this.createBuffer(1, length, 24000)), length)); };"
            "AudioBufferSourceNode.prototype.start = function () {"
            " played.push(this.buffer.length); };"
            "import('/page/voice.js').then(async ({ Voice }) => {"
            " const voice = new Voice(); await voice.open();"
            " for (const length of [400, 1, 20, 100]) {"
            "   voice.take({ at_ms: 0, sound: new ArrayBuffer(length) }); } })"
        )
        page.wait("played.length === 3")
        assert page.run("played") == [400, 20, 100]


def test_where_the_output_is_gone_the_usual_one_is_heard(visit):
    """And whoever turns the sound on and off at once is left with it off."""
    with staged() as stage:
        page = visit(stage.address)
        told = page.run(
            "import('/page/voice.js').then(async ({ Voice }) => {"
            " const voice = new Voice(); await voice.choose('headphones'); await voice.open();"
            " const state = voice.context.state; voice.close();"
            " const opening = voice.open(); voice.close(); await opening;"
            " return [state, voice.context, voice.output]; })"
        )
        assert told == ["running", None, ""]


def test_what_was_spoken_is_not_kept_in_memory(visit):
    """A phone would close the page of a long talk."""
    with staged() as stage:
        page = visit(stage.address)
        kept = page.run(
            "import('/page/voice.js').then(async ({ Voice }) => {"
            " const voice = new Voice(); voice.take({ at_ms: 0, sound: new ArrayBuffer(400) });"
            " const { sound } = voice.phrases[0]; return [sound instanceof Blob, sound.size]; })"
        )
        assert kept == [True, 400]


def test_a_file_and_a_tab_are_sources_too(visit, folder):
    with staged() as stage:
        page = visit(stage.address)
        page.choose("sound", "file")
        page.click("#begin")
        assert page.text("trouble") == "Choose a file first."
        soundfile.write(folder / "talk.wav", chirp(1.0), 44100)
        page.put_file("#file", folder / "talk.wav")
        page.run("window.setInterval = () => 0; 0")  # as rarely as it comes out of sight
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


SLOW = """navigator.permissions.query = () => new Promise((done) => setTimeout(() => {
    window.told = true;
    done({ state: "denied", addEventListener() {} });
}, 300)); 0"""


def test_what_is_told_late_of_a_microphone_does_not_hide_what_was_told_since(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(SLOW)
        page.choose("sound", "microphone")
        page.choose("sound", "file")
        page.click("#begin")
        page.wait("document.getElementById('trouble').textContent === 'Choose a file first.'")
        page.wait("window.told")
        page.run(
            "new Promise((done) => setTimeout(done, 50))"
        )  # what follows from it has been done
        assert page.text("trouble") == "Choose a file first."
        page.run("navigator.mediaDevices.dispatchEvent(new Event('devicechange')); 0")
        page.run("new Promise((done) => setTimeout(done, 50))")
        assert page.text("trouble") == "Choose a file first."


def test_no_port_is_left_open():
    """The stage goes away with its tests."""
    with staged() as stage:
        port = int(stage.address.rstrip("/").rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def check_wave(data):
    """A whole WAV file with the tone of the voice, about as long as the text took to hum."""
    assert (data[:4], data[8:12]) == (b"RIFF", b"WAVE")
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    samples = np.frombuffer(data[44:], "<i2") / 32767
    hummed = np.abs(samples) > 0.01
    assert 0.6 * 0.01 * len(TEXT) < np.count_nonzero(hummed) / 24000 < 1.2 * 0.01 * len(TEXT)
    spectrum = np.abs(np.fft.rfft(samples))
    assert np.argmax(spectrum) * 24000 / len(samples) == pytest.approx(440, abs=5)


def test_what_the_browser_itself_records_is_heard(visit):
    """WebM with Opus, in pieces as they come, sent where Deepgram's clients send it."""
    with staged() as stage:
        heard, hear = [], stage.service.system.model.hear

        def listen_in(streams, sounds):
            heard.extend(sound.samples for sound in sounds)
            hear(streams, sounds)

        stage.service.system.model.hear = listen_in
        page = visit(stage.address)
        page.run(
            "navigator.mediaDevices.getUserMedia({audio: {echoCancellation: false,"
            " noiseSuppression: false, autoGainControl: false}}).then((stream) => {"
            " window.told = []; const socket = new WebSocket(`ws://${location.host}/v1/listen`);"
            " const recorder = new MediaRecorder(stream, {mimeType: 'audio/webm;codecs=opus'});"
            " socket.onmessage = ({data}) => told.push(JSON.parse(data));"
            " socket.onopen = () => recorder.start(100);"
            " recorder.ondataavailable = ({data}) => socket.send(data);"
            " window.finish = () => { recorder.onstop = () => setTimeout(() =>"
            "   socket.send(JSON.stringify({type: 'CloseStream'}))); recorder.stop();"
            "   stream.getTracks().forEach((track) => track.stop()); }; })"
        )
        words = "told.flatMap((one) => one.channel?.alternatives[0].words ?? [])"
        page.wait(f"{words}.length >= 20")
        page.run("finish()")
        page.wait("told.at(-1)?.type === 'Metadata'")
        said = page.run(f"{words}.map((word) => word.punctuated_word).join(' ')")
        seconds = page.run("told.at(-1).duration")
    assert said.startswith(TEXT[:100])
    sound = np.concatenate(heard)
    assert len(sound) == pytest.approx(16000 * seconds, abs=16)
    assert heard_chirp(sound)


def heard_chirp(sound) -> bool:
    """Whether this is a piece of the chirp that the microphone hears: a tone that rises."""
    blocks = sound[: len(sound) // 3200 * 3200].reshape(-1, 3200)
    loud = [block for block in blocks if np.abs(block).max() > 0.05]
    tops = [int(np.argmax(np.abs(np.fft.rfft(block * np.hanning(3200))))) for block in loud]
    return len(tops) > 4 and all(0 <= b - a <= 4 for a, b in pairwise(tops[1:-1]))

"""Those who follow: the listener's page, its link and code, and the speaker whom they follow."""

import json

import numpy as np
import pytest
from PIL import Image

from dragoman.errors import DragomanError
from dragoman.serve import run, speech
from dragoman.serve.app import make_app
from tests.serve.pages.looking import SHOWN, STATE, link, save, start, stop, the_session, wait_until
from tests.serve.stage import staged
from tests.talkers import SPOKEN, TEXT
from tests.voices.fakes import ToneVoice


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


def test_a_guess_does_not_outlive_the_connection_that_it_came_by(visit):
    """What is said next may be told by nobody for a while; what is final stays."""
    guess = "document.querySelector('#target .interim').textContent"
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        overlay = link(page, "share-overlay", "href").replace("?", "?clear=0&")
        pages = [page, *map(visit, (link(page), link(page, "share-hall", "href"), overlay))]
        for one in pages:
            one.wait(f"{SHOWN} && {guess}.includes('guess')")
        stage.line.lead_to(1)  # where nobody listens
        stage.cut()
        for one in pages:
            one.wait(f"!{guess}")
            assert one.run(SHOWN).startswith("word0 word1")


def test_who_listens_is_shown_before_a_talk_and_when_the_page_is_loaded_again(visit):
    shown = "document.getElementById('audience').textContent"
    with staged() as stage:
        page = visit(stage.address)
        page.click("#share-open")
        page.wait("document.getElementById('share').open")
        listener = visit(link(page))
        page.wait(f"{shown}.includes('1 listening')")
        page.run("window.before = true")
        page.call("Page.reload")
        page.wait(f"!window.before && document.readyState === 'complete' && {shown}")
        assert "1 listening" in page.run(shown)
        start(page)
        page.wait(f"{shown}.includes('1 listening')")
        stage.cut()  # who goes while the speaker is away is no longer shown
        listener.go(stage.address)
        page.wait(f"!{shown}")
        stop(page)


def below(path, app):
    """An application, as a proxy shows it that has put it below a path of its own."""

    async def shown(scope, receive, send):
        if "path" in scope:
            inside = scope["path"].startswith(path + "/")
            scope = {**scope, "path": scope["path"].removeprefix(path) if inside else "/nowhere"}
        await app(scope, receive, send)

    return shown


def test_the_pages_may_be_below_a_path_of_a_proxy(visit, monkeypatch):
    monkeypatch.setattr(run, "make_app", lambda service: below("/a/talks", make_app(service)))
    with staged() as stage:
        page = visit(stage.address.rstrip("/") + "/a/talks/")
        page.wait("document.getElementById('to').options.length")
        start(page, 32)
        pages = [visit(link(page)), visit(link(page, "share-hall", "href"))]
        pages.append(visit(link(page, "share-overlay", "href").replace("?", "?clear=0&")))
        for one in pages:
            assert one.run("location.pathname").startswith("/a/talks/")
            one.wait(f"{SHOWN}.split(' ').length === 32")
        lost = visit(link(page).partition("/room/")[0] + "/room#" + link(page).partition("#")[2])
        lost.wait(f"{STATE} === 'refused'")
        stop(page)
        save(page, "translation.srt")
        assert b"-->" in page.downloaded("translation.srt")


def test_a_phone_that_slept_comes_back_at_once(visit):
    """Its line is dead, and nobody has told it; what it shows would be old for most of a minute."""
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.wait(f"{SHOWN}.split(' ').length >= 3")
        listener.run(
            f"window.states = []; new MutationObserver(() => states.push({STATE}))"
            ".observe(document.getElementById('state'), {attributes: true});"
            " const awake = Date.now; Date.now = () => awake.call(Date) + 120_000"
        )
        listener.wait("states.includes('reconnecting') && states.at(-1) === 'listening'")
        stop(page)
        listener.wait(f"{STATE} === 'over'")
        assert listener.run("states").count("reconnecting") == 1
        assert listener.run(SHOWN) == page.run(SHOWN)  # nothing is lost, nothing twice


def test_who_has_the_link_follows_talk_after_talk(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.click("#share-open")  # before anybody speaks
        page.wait("document.getElementById('share').open")
        listener = visit(link(page))
        listener.wait(f"{STATE} === 'waiting'")
        page.press("Escape")
        start(page, 32)
        stop(page)
        before = link(page)
        page.go(stage.address)  # loaded again
        start(page, 32)
        assert link(page) == before
        stop(page)
        listener.wait(f"{SHOWN}.split(' ').length === 64")
        assert listener.run(SHOWN) == f"{TEXT} {TEXT}"
        another = visit(stage.address)  # another tab is another speaker
        another.click("#share-open")
        another.wait("document.getElementById('share').open")
        assert link(another) != before


def test_a_speaker_who_leaves_in_mid_talk_ends_it_and_finds_it_again(visit):
    with staged(keep=600) as stage:  # so long it would be waited for
        page = visit(stage.address)
        start(page, 12)
        listener = visit(link(page))
        session = the_session(stage)
        page.go(stage.address)
        listener.wait(f"{STATE} === 'over'")
        said = "".join(word.text for word in session.words).strip()
        assert listener.run(SHOWN).strip() == said
        assert len(said.split()) >= 12
        save(page, "translation.txt")
        assert page.downloaded("translation.txt").decode() == said + "\n"


def test_a_speaker_who_comes_back_to_a_page_that_was_kept_sees_the_talk_to_its_end(visit, folder):
    """Whether a browser will keep a page nobody knows as it is left, so the talk ends with it."""
    with staged("endless_orator", keep=600) as stage:
        page = visit(stage.address)
        page.choose("sound", "file")
        page.put_file("#file", folder / "microphone.wav")
        page.run("window.kept = true")
        start(page)
        session = the_session(stage)
        page.go(f"{stage.address}health")
        wait_until(page, lambda: session.finished)
        entries = page.call("Page.getNavigationHistory")["entries"]
        page.call("Page.navigateToHistoryEntry", entryId=entries[-2]["id"])
        page.wait("document.getElementById('to')?.options.length")
        if not page.run("!!window.kept"):
            pytest.skip("this browser does not keep such a page")
        page.wait(f"{STATE} === 'done'")
        assert page.run(SHOWN).split() == [word.text.strip() for word in session.words]
        page.click("#begin")  # and may speak again
        wait_until(page, lambda: len(stage.service._sessions) == 2)
        page.wait(f"{STATE} === 'listening'")
        stop(page)


def test_a_speaker_who_leaves_ends_the_talk_also_if_the_socket_takes_no_more(visit):
    """As a page is closed, what it still writes to its socket may be lost."""
    with staged(keep=600) as stage:
        page = visit(stage.address)
        page.run(
            "WebSocket.prototype.send = ((send) => function (data) {"
            ' if (data !== \'{"type":"stop"}\') send.call(this, data);'
            "})(WebSocket.prototype.send); 0"
        )
        start(page, 12)
        listener = visit(link(page))
        page.go(f"{stage.address}health")
        listener.wait(f"{STATE} === 'over'")


@pytest.mark.parametrize("path", ["room/k7f2#token", "room/#token", "room", "hall"])
def test_a_link_whose_name_was_cut_says_so(visit, path):
    with staged() as stage:
        page = visit(stage.address + path)
        page.wait("!document.getElementById('trouble').hidden")
        assert "does not open this room" in page.text("trouble")


def test_a_link_that_leads_to_this_machine_alone_says_so(visit, deaf_browser):
    token = "a token that nobody guesses"
    with staged(token=token) as stage:
        for host in ("127.0.0.1", "talks.test"):
            page = visit(stage.address.replace("127.0.0.1", host), of=deaf_browser)
            page.run(f"document.getElementById('token').value = {json.dumps(token)}")
            page.click("#share-open")
            page.wait("document.getElementById('share').open")
            assert link(page).startswith(f"http://{host}:")
            told = page.run("!document.getElementById('share-local').hidden")
            assert told == (host == "127.0.0.1")


def test_the_original_stands_beside_the_translation(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.wait("!document.getElementById('spoken').hidden")
        listener.click("#spoken")
        tops = [
            listener.run(f"document.getElementById('{name}').getBoundingClientRect().top")
            for name in ("source", "target")
        ]
        assert tops[0] == tops[1]


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


def test_without_a_voice_the_sound_is_off_and_stays_off(visit, monkeypatch):
    def none(name, language):
        raise DragomanError("There is none.")

    monkeypatch.setattr(speech, "open_voice", none)
    spy = (
        "window.sent = []; const send = WebSocket.prototype.send;"
        "WebSocket.prototype.send = function (data) {"
        " if (typeof data === 'string') sent.push(JSON.parse(data));"
        " return send.call(this, data); }"
    )
    asked = "sent.filter(({ type }) => type === 'speak').map(({ speech }) => speech)"
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page))
        listener.wait(SHOWN)
        for one in (page, listener):
            one.run(spy)
            if one is page:
                one.run("document.getElementById('options').open = true")
            one.click("#aloud")
            one.wait("document.getElementById('trouble').textContent.includes('no voice')")
            one.wait(f"{asked}.length === 2")
            assert one.run(asked) == ["mp3", None]
        assert not page.run("document.getElementById('aloud').checked")
        assert listener.run("document.getElementById('aloud').ariaPressed") == "false"
        stage.cut()
        page.wait("sent.some(({ type }) => type === 'resume')")
        listener.wait("sent.some(({ type }) => type === 'listen')")
        assert not page.run("sent.find(({ type }) => type === 'resume').elsewhere.start.speech")
        assert not listener.run("sent.find(({ type }) => type === 'listen').speech")


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


def test_no_button_moves_away_from_a_finger_that_turns_the_sound_on(visit, monkeypatch):
    monkeypatch.setattr(speech, "open_voice", lambda name, language: ToneVoice(0.01))
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page)
        listener = visit(link(page), 390, 800)
        listener.wait("!document.getElementById('spoken').hidden")
        places = (
            "[...document.querySelectorAll('footer button, footer summary')].slice(0, 6)"
            ".map((one) => { const { x, y } = one.getBoundingClientRect(); return [x, y]; }).join()"
        )
        before = listener.run(places)
        listener.click("#aloud")
        listener.wait("!document.getElementById('output-row').hidden")
        assert listener.run(places) == before

"""That everybody can read and use the pages: phones, the dark, right to left, keyboards."""

import numpy as np
import pytest

from tests.serve.pages.looking import SHOWN, link, queue_up, start, stop
from tests.serve.stage import ARABIC, staged


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
        page.wait("document.getElementById('audience').textContent.includes('1 listening')")
        for one in (page, listener):
            assert contrast(one) > 7
            # Who pulls at the top of a text loads no page again, which would end a talk.
            style = "getComputedStyle(document.documentElement).overscrollBehaviorY"
            assert one.run(style) == "none"
            one.click("#save summary")
            box = "document.querySelector('#save ul').getBoundingClientRect()"
            assert one.run(f"{box}.left") >= 0
            assert one.run(f"{box}.right") <= 390
            # and where its button is: one begins with it, the other ends
            button = "document.querySelector('#save summary').getBoundingClientRect()"
            assert any(
                one.run(f"Math.abs({box}.{e} - {button}.{e}) < 20") for e in ("left", "right")
            )
            one.press("Escape")
        stop(page)  # and the button can be hit


def test_what_may_change_is_told_apart_from_its_first_letter_on(visit):
    """The line below it does not begin under the space before it."""
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page, 4)
        page.wait("document.querySelector('#target .interim').textContent.includes('guess')")
        shown = "(({textContent, lastChild}) => [textContent, lastChild.textContent])"
        whole, perhaps = page.run(f"{shown}(document.querySelector('#target p:last-child'))")
        assert perhaps == perhaps.lstrip()
        assert whole.endswith(f" {perhaps}")
        assert "  " not in whole
        stop(page)


def test_in_a_hall_a_line_at_the_top_fades_and_is_not_cut(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        start(page, 3)
        hall = visit(link(page, "share-hall", "href"), 1280, 12000)  # all words have room
        mask = "getComputedStyle(document.getElementById('target')).maskImage"
        hall.wait(SHOWN)
        assert hall.run(f"document.getElementById('target').scrollTop || {mask}") == "none"
        hall.resize(1280, 720)
        hall.wait("document.getElementById('target').scrollTop > 0")
        hall.wait(f"{mask}.startsWith('linear-gradient')")
        stop(page)


def test_who_hears_the_page_is_told_what_others_see(visit):
    """A button without its mark, which microphone, and seconds, not the number of a stop."""
    with staged() as stage:
        page = visit(stage.address)
        page.call("Accessibility.enable")
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        names = {node["name"]["value"].strip() for node in nodes if "name" in node}
        assert {"Save", "Which microphone", "Delay"} <= names
        page.run("document.getElementById('latency').focus()")
        page.press("ArrowLeft")
        now = page.text("latency-now")
        assert page.run("document.getElementById('latency').ariaValueText") == now


def test_on_a_phone_nothing_moves_below_a_finger_when_the_server_is_behind(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address, 390, 844)
        start(page, 4)
        top = "document.getElementById('end').getBoundingClientRect().top"
        before = page.run(top)
        for words in ("Listening; the server is behind", "Reconnecting … what you say is kept"):
            page.run(f"document.getElementById('state').textContent = '{words}'")
            assert page.run(top) == before
        stop(page)


@pytest.mark.parametrize("size", [(320, 568), (844, 390)])
def test_on_a_small_screen_the_code_is_seen_first(visit, size):
    with staged() as stage:
        page = visit(stage.address, *size)
        page.click("#share-open")
        page.wait("document.getElementById('share').open")
        box = "document.querySelector('#share-code svg').getBoundingClientRect()"
        assert page.run(f"{box}.top") > 0
        assert page.run(f"{box}.bottom < innerHeight")
        assert page.run("document.activeElement.id") == "share-copy"


def test_on_a_phone_on_its_side_the_texts_have_the_screen(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address, 844, 390)
        start(page, 20)
        assert page.run("document.body.scrollHeight") <= 390
        assert page.run("document.getElementById('target').clientHeight") > 100
        stop(page)


OVERLAPS = """
(() => {
  const parts = "header > *, #setup label, #setup button, .text, footer > *";
  const shown = [...document.querySelectorAll(parts)]
    .map((e) => [e.id || e.innerText, e.getBoundingClientRect()]).filter(([, box]) => box.width);
  const over = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return shown.flatMap(([one, a], i) =>
    shown.slice(i + 1).filter(([, b]) => over(a, b)).map(([other]) => [one, other]));
})()
"""


@pytest.mark.parametrize("size", [(390, 844), (800, 390), (1100, 800)])
def test_options_leave_room_for_all_and_cover_nothing(visit, size):
    with staged() as stage:
        page = visit(stage.address, *size)
        page.run("document.getElementById('options').open = true")
        for text in ("source", "target"):
            assert page.run(f"document.getElementById('{text}').clientHeight") > 100
            assert page.run(f"document.getElementById('{text}').scrollTop") == 0
        assert page.run(OVERLAPS) == []
        page.click("#begin")  # and the lag is shown
        page.wait("!document.getElementById('lag').hidden")
        assert page.run(OVERLAPS) == []


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


EMPTY = "getComputedStyle(document.getElementById('target'), '::before').content"


def test_an_empty_page_says_what_to_do_also_where_one_text_is_hidden(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run("document.getElementById('source-side').hidden = true")
        assert page.run(EMPTY).startswith('"Press Start')


def test_who_has_pressed_start_is_not_told_to_press_it(visit):
    """Who waits in the queue reads that for long."""
    with staged("endless_orator", streams=1) as stage:
        first, second = visit(stage.address), visit(stage.address)
        start(first)
        queue_up(second)
        assert second.run(EMPTY).startswith('"The translation appears')


def test_who_scrolls_up_to_read_is_left_there(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address, 390, 500)
        start(page)
        box = "document.getElementById('target')"
        page.wait(f"{box}.scrollHeight > {box}.clientHeight + 150")
        near = f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight"
        assert page.run(near) < 48
        assert page.run("document.getElementById('target-latest').hidden")
        # Until it is seen: a word that comes before the browser tells of it leads to the end again.
        page.wait(f"({box}.scrollTop = 0, !document.getElementById('target-latest').hidden)")
        before = page.run(f"{SHOWN}.length")
        page.wait(f"{SHOWN}.length > {before + 40}")
        assert page.run(f"{box}.scrollTop") == 0
        page.click("#target-latest")
        page.wait("document.getElementById('target-latest').hidden")
        assert page.run(near) < 48


def test_who_turns_the_phone_reads_on_at_the_end(visit):
    """What the page itself moves, as other lines come at other widths, is nobody's scrolling."""
    with staged("endless_orator") as stage:
        page = visit(stage.address, 390, 500)
        start(page)
        box = "document.getElementById('target')"
        near = f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 48"
        page.wait(f"{box}.scrollHeight > {box}.clientHeight + 600")
        for width, height in ((800, 390), (390, 800), (360, 500), (640, 360)) * 2:
            page.resize(width, height)
            page.run("document.getElementById('larger').click()")
            before = page.run(f"{SHOWN}.length")
            page.wait(f"{SHOWN}.length > {before + 10}")
            assert page.run("document.getElementById('target-latest').hidden"), (width, height)
            assert page.run(near)
            page.run("document.getElementById('smaller').click()")
        page.wait(f"({box}.scrollTop -= 100, !document.getElementById('target-latest').hidden)")


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


def test_who_comes_late_reads_at_once(visit):
    """A whole talk comes at one moment; to lay it out for every word took some twenty seconds."""
    with staged() as stage:
        page = visit(stage.address)
        looks = page.run(
            "import('/page/pane.js').then(({ Pane }) => {"
            " const box = document.createElement('div'); let looks = 0;"
            " Object.defineProperty(box, 'scrollHeight', { get() { looks++; return 0; } });"
            " const pane = new Pane(box, null);"
            " for (let i = 0; i < 400; i++) pane.append(' word', i);"
            " return Promise.resolve().then(() => looks); })"
        )
        assert 1 <= looks <= 3


FED = """
import('/page/pane.js').then(({{ Pane }}) => {{
  const box = document.createElement('div'); const pane = new Pane(box, null, {most});
  for (let i = 0; i < 9000; i++) pane.append(' word' + i + (i % 10 === 9 ? '{stop}' : ''), 400 * i);
  return [...box.children].map((one) => one.textContent); }})
"""


def test_a_screen_that_nobody_scrolls_keeps_what_it_shows(visit):
    """A hall shows talks for hours: for every word a browser would go through all of them."""
    with staged() as stage:
        page = visit(stage.address)
        shown = page.run(FED.format(most=50, stop="."))
        assert len(shown) == 50
        assert shown[-1].endswith("word8999.")
        whole = " ".join(page.run(FED.format(most="Infinity", stop=".")))
        assert whole.split() == [f"word{i}{'.' * (i % 10 == 9)}" for i in range(9000)]
        assert whole.endswith(" ".join(shown))


def test_a_text_without_sentences_has_paragraphs_all_the_same(visit):
    with staged() as stage:
        shown = visit(stage.address).run(FED.format(most="Infinity", stop=""))
    assert " ".join(shown).split() == [f"word{i}" for i in range(9000)]
    assert max(map(len, shown)) < 2000

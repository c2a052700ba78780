"""Screens that nobody touches: the overlay, the hall."""

import numpy as np
import pytest
from PIL import Image

from tests.serve.pages.looking import SHOWN, STATE, link, start
from tests.serve.stage import staged


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


def test_what_is_wrong_with_an_overlays_address_is_told_until_there_are_words(visit):
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        page.click("#share-open")
        page.wait("document.getElementById('share').open")
        page.press("Escape")
        right = link(page, "share-overlay", "href")
        wrong = "?lines=x&size=999&color=url(x)&align=left&interim=maybe&colour=red"
        odd = visit(right.replace("?lines=2&size=48&color=ffffff", wrong))
        odd.wait("!document.getElementById('trouble').hidden")
        assert odd.text("trouble") == (
            "In the address of this page, there is no colour; lines is a number from 1 to 12; "
            "size is a number from 8 to 400; color is a colour, such as ffffff; "
            "align is start or center or end; interim is yes or no."
        )
        overlay = visit(right.replace("color=ffffff", "color=ffffff&box=00000080&clear=0"))
        start(page)
        for one in (overlay, odd):
            one.wait(SHOWN)
            assert one.run("document.getElementById('trouble').hidden")


@pytest.mark.parametrize(("size", "least"), [((1920, 300), 28), ((390, 844), 16), ((390, 200), 12)])
def test_what_is_wrong_with_an_overlays_address_is_legible_on_any_screen(visit, size, least):
    box = (
        "(({left, top, right, bottom}) => [left >= 0, top >= 0, right <= innerWidth,"
        " bottom <= innerHeight])(document.getElementById('trouble').getBoundingClientRect())"
    )
    with staged("endless_orator") as stage:
        page = visit(stage.address)
        room = page.run("fetch('/v1/rooms', {method: 'POST'}).then((answer) => answer.json())")
        wrong = f"?lines=x&size=999&color=url(x)&align=left&interim=maybe&{'x' * 99}=1"
        right = f"{room['room']}{wrong}#{room['listener_token']}"
        for address in (f"/{right}", "/nowhere#nothing", "?lines=2"):
            odd = visit(f"{stage.address}overlay{address}", *size)
            odd.wait("document.getElementById('trouble')?.hidden === false")
            assert odd.run("[innerWidth, innerHeight]") == list(size)
            assert odd.run(box) == [True] * 4
            assert odd.run("document.getElementById('trouble').scrollWidth") <= size[0]
            assert odd.run("document.getElementById('trouble').scrollTop") == 0  # its first line
            style = odd.run(
                "(({fontSize, color, backgroundColor}) => [fontSize, color, backgroundColor])"
                "(getComputedStyle(document.getElementById('trouble')))"
            )
            assert float(style[0].removesuffix("px")) >= least
            assert style[1:] == ["rgb(255, 255, 255)", "rgb(156, 43, 35)"]


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
        wrong = visit(f"{stage.address}hall/{room['room']}#nonsense", 1280, 720)
        wrong.wait(f"{STATE} === 'refused'")
        assert wrong.run("document.getElementById('welcome').hidden")  # its code leads nowhere
        start(page, 20)
        hall = visit(link(page, "share-hall", "href"), 1280, 720)
        hall.wait(f"{SHOWN}.split(' ').length >= 20")
        assert hall.run("document.getElementById('welcome').hidden")
        assert (
            hall.run("parseFloat(getComputedStyle(document.getElementById('target')).fontSize)")
            > 50
        )

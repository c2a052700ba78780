"""The pages: served whole, from this process alone, and true to the protocol."""

import re
from typing import get_args, get_type_hints
from urllib.parse import urljoin

import pytest

from dragoman.serve import protocol
from dragoman.serve.pages import PAGE
from dragoman.setup import TUNED, TUNED_CASCADE
from dragoman.text.sentences import CLOSING, STOPS

FILES = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir()}
PAGES = {
    "/": "speaker",
    "/room/abcdefgh": "listener",
    "/hall/abcdefgh": "hall",
    "/overlay/abcdefgh": "overlay",
    "/room": "listener",
    "/room/": "listener",
    "/hall": "hall",
    "/hall/": "hall",
    "/overlay": "overlay",
    "/overlay/": "overlay",
}


def modules(name: str, found: set[str] | None = None) -> set[str]:
    """A module and all that it imports."""
    found = set() if found is None else found
    if name not in found:
        found.add(name)
        for other in re.findall(r'from "\./([\w.]+)"', FILES[name]):
            modules(other, found)
    return found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_and_all_that_it_loads_are_served(opened, path):
    _, web = opened()
    answer = web.get(path)
    assert answer.status_code == 200
    assert answer.text == FILES[f"{PAGES[path]}.html"]
    named = set(re.findall(r'"(?:\.\./)?page/([\w.]+)"', answer.text))
    loaded = named | modules(f"{PAGES[path]}.js")
    for name in loaded:
        file = web.get(f"/page/{name}")
        assert file.status_code == 200
        assert file.text == FILES[name]
        assert file.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [path for path in PAGES if path.count("/") == 1 and path != "/"])
def test_a_page_without_a_room_finds_its_files_below_a_path_of_a_proxy(opened, path):
    """They stand beside the folder that it is in, so it has to be in one; and nothing that leads
    there may name more of the address than the proxy has left of it."""
    _, web = opened()
    answer = web.get(f"{path}?lines=3&color=%23fff", follow_redirects=False)
    assert answer.headers["location"] == f"{path[1:]}/?lines=3&color=%23fff"
    assert web.get(f"{path}/", follow_redirects=False).status_code == 200


@pytest.mark.parametrize("path", [path for path in PAGES if path.endswith("/abcdefgh")])
def test_the_page_of_a_room_is_found_with_a_slash_at_its_end_below_a_path_of_a_proxy(opened, path):
    """It led to `http://SITE/room/NAME`: without the proxy's path, and without its TLS."""
    _, web = opened()
    answer = web.get(f"{path}/?lines=3&color=%23fff", follow_redirects=False)
    assert answer.headers["location"] == "../abcdefgh?lines=3&color=%23fff"
    outside = urljoin(f"https://talks.example/interpreter{path}/", answer.headers["location"])
    assert outside == f"https://talks.example/interpreter{path}?lines=3&color=%23fff"


def test_a_name_with_other_letters_leads_to_itself(opened):
    _, web = opened()
    answer = web.get("/room/a%20%3Fb%22/", follow_redirects=False)
    assert answer.headers["location"] == "../a%20%3Fb%22"


def test_no_file_is_left_over():
    used = {f"{name}.html" for name in PAGES.values()} | {"worklet.js", "ticker.js"}
    for name in PAGES.values():
        used |= modules(f"{name}.js")
        used |= set(re.findall(r'"(?:\.\./)?page/([\w.]+)"', FILES[f"{name}.html"]))
    assert used == set(FILES)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_runs_what_this_server_serves_and_nothing_else(opened, path):
    _, web = opened()
    answer = web.get(path)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert re.findall(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", answer.text) == []


def test_nothing_outside_the_page_is_served(opened):
    _, web = opened()
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page/", "/docs", "/v1/interpret"):
        assert web.get(path).status_code == 404


def test_no_address_of_another_host_is_in_it():
    for name, text in FILES.items():
        text = text.replace("http://www.w3.org/2000/svg", "")  # the name of a language, not a place
        assert re.findall(r"(?:https?:)?//[\w-]+\.\w+", text) == [], name


@pytest.mark.parametrize("name", PAGES.values())
def test_every_element_that_the_scripts_name_is_there(name):
    there = set(re.findall(r'\bid="([\w-]+)"', FILES[f"{name}.html"]))
    code = FILES[f"{name}.js"]
    named = set(re.findall(r'(?<![\w.])(?:\$|show|press|toggle)\("([\w-]+)"', code))
    for module in modules(f"{name}.js"):
        named |= set(re.findall(r'\$\("([\w-]+)"\)', FILES[module]))
    lists = re.findall(r"for \(const id of \[([^\]]*)\]", code)
    named |= {one for text in lists for one in re.findall(r'"([\w-]+)"', text)}
    assert named <= there
    assert len(named) > 1


def tags(*kinds) -> set[str]:
    return {kind.__struct_config__.tag for kind in kinds}


ROOM_EVENTS = tags(protocol.Room, protocol.Told, protocol.Talk)
TALK_EVENTS = tags(*get_args(protocol.Event)) - ROOM_EVENTS


def test_every_event_of_a_talk_is_taken():
    taken = set(re.findall(r"^  (\w+): ", FILES["speaker.js"], re.M))
    assert taken >= TALK_EVENTS
    assert taken & ROOM_EVENTS == set()


def test_every_event_of_a_room_is_taken():
    taken = set(re.findall(r"^  (\w+): ", FILES["listener.js"], re.M))
    alone = tags(protocol.Ready, protocol.Heard, protocol.State, protocol.Audience)
    assert taken >= (TALK_EVENTS | ROOM_EVENTS) - alone - tags(protocol.Told)
    assert 'event.type === "told"' in FILES["room.js"]


def test_every_state_has_words():
    hints = [get_type_hints(kind)["state"] for kind in (protocol.State, protocol.Room)]
    states = {state for hint in hints for state in get_args(hint)}
    told = set(re.findall(r"^  (\w+): \"", FILES["states.js"], re.M))
    assert states <= told


def test_every_code_that_the_page_knows_is_one():
    lists = re.findall(r"^const (?:AGAIN|LATER|ASIDE) = \[([^\]]*)\]", FILES["talk.js"], re.M)
    codes = {code for text in lists for code in re.findall(r'"(\w+)"', text)}
    assert codes <= {code.value for code in protocol.Code}
    assert len(codes) > 8


def test_sentences_end_as_they_do_for_captions():
    """In every script, for paragraphs, and for who has the page read out."""
    stops, closing = re.findall(r"/\[(.*?)\]\[(.*)\]\*", FILES["sentences.js"])[0]
    assert set(stops) == {*STOPS, "…"}
    assert set(closing.replace("\\", "")) == set(CLOSING)
    for name in ("pane.js", "announcer.js"):
        assert "endsSentence(" in FILES[name]


def test_the_page_offers_what_the_model_has(opened):
    service, web = opened(token="a token that nobody guesses")
    model = service.system.model
    model.hears, model.speaks = ("de", "fr"), ("en",)
    offered = web.get("/v1/languages").json()
    assert offered == {
        "hears": [{"code": "de", "name": "German"}, {"code": "fr", "name": "French"}],
        "speaks": [{"code": "en", "name": "English"}],
        "from": None,
        "to": "en",
        "latencies_ms": [row[0] for row in TUNED],
        "transcript": True,
        "token": True,
    }


def test_of_a_model_that_does_not_say_the_page_offers_what_the_server_was_told(opened):
    service, web = opened()
    service.system.model.hears = service.system.model.speaks = ()
    offered = web.get("/v1/languages").json()
    assert (offered["hears"], offered["speaks"]) == ([], [{"code": "en", "name": "English"}])
    service.system.model.speaks = ("ace_Arab",)
    offered = web.get("/v1/languages").json()
    assert offered["speaks"] == [{"code": "ace_Arab", "name": "ace_Arab"}]


def test_the_page_offers_the_latencies_that_the_model_can_have(opened):
    service, web = opened()
    model = service.system.model

    def offered():
        return web.get("/v1/languages").json()["latencies_ms"]

    service.system.setup = service.system.setup.with_changes(model="a-recogniser+a-translator")
    assert offered() == [row[0] for row in TUNED_CASCADE]
    model.features = frozenset()  # the policies that are tuned look at attention
    assert offered() == []

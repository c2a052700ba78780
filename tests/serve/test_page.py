"""The page: served whole, from this process alone."""

import re

from dragoman.serve.app import PAGE

FILES = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir()}


def test_the_page_and_all_that_it_loads_are_served(opened):
    _, web = opened()
    page = web.get("/")
    assert page.status_code == 200
    assert page.text == FILES["index.html"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    wanted = set(re.findall(r'"(/page/[\w.]+)"', "".join(FILES.values())))
    assert {path.rpartition("/")[2] for path in wanted} == set(FILES) - {"index.html"}
    for path in wanted:
        assert web.get(path).text == FILES[path.rpartition("/")[2]]


def test_nothing_outside_the_page_is_served(opened):
    _, web = opened()
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page/", "/docs", "/v1/interpret"):
        assert web.get(path).status_code == 404


def test_no_address_of_another_host_is_in_it():
    for name, text in FILES.items():
        assert re.findall(r"(?:https?:)?//[\w-]+\.\w+", text) == [], name


def test_every_element_that_the_script_names_is_there():
    there = set(re.findall(r'\bid="([\w-]+)"', FILES["index.html"]))
    assert set(re.findall(r'\$\("([\w-]+)"\)', FILES["page.js"])) <= there


def test_every_event_of_the_protocol_is_taken():
    from typing import get_args

    from dragoman.serve import protocol

    taken = set(re.findall(r'event\.type === "(\w+)"', FILES["page.js"]))
    assert taken == {kind.__struct_config__.tag for kind in get_args(protocol.Event)}


def test_the_page_offers_what_the_model_has(opened):
    service, web = opened(token="a token that nobody guesses")
    model = service.system.model
    model.hears, model.speaks = ("de", "fr"), ("en",)
    offered = web.get("/v1/languages").json()
    assert offered == {
        "hears": [{"code": "de", "name": "German"}, {"code": "fr", "name": "French"}],
        "speaks": [{"code": "en", "name": "English"}],
        "transcript": True,
        "token": True,
    }

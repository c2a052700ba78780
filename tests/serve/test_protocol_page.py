"""docs/protocol.md says what the types say."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from dragoman.serve import protocol
from tests.docs.snippets import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
MESSAGES = get_args(protocol.Request) + get_args(protocol.Event)


def examples() -> list[str]:
    """The JSON objects of the page: one begins with every brace at the start of a line."""
    text = "\n".join("\n".join(b.lines) for b in blocks(PAGE) if b.language == "json")
    return [part.strip() for part in re.split(r"^(?=\{)", text, flags=re.M) if part.strip()]


@pytest.mark.parametrize("example", examples())
def test_an_example_is_a_message(example):
    message = msgspec.json.decode(example, type=protocol.Request | protocol.Event)
    told, sent = json.loads(example), json.loads(protocol.write(message))
    assert only(told, sent) == told


def only(told, sent):
    """Of what is sent, what is told: a default need not be."""
    if isinstance(told, dict):
        return {key: only(told[key], sent[key]) for key in told}
    if isinstance(told, list):
        return [only(a, b) for a, b in zip(told, sent, strict=True)]
    return sent


def test_every_message_has_an_example():
    shown = {json.loads(example)["type"] for example in examples()}
    assert shown == {kind.__struct_config__.tag for kind in MESSAGES}


def test_the_examples_of_the_server_are_complete():
    """A client's author sees every field there is."""
    for kind in get_args(protocol.Event):
        told = [json.loads(e) for e in examples()]
        shown = [set(e) for e in told if e["type"] == kind.__struct_config__.tag]
        assert {"type", *kind.__struct_encode_fields__} in shown


def test_every_field_of_the_client_is_named():
    for kind in get_args(protocol.Request):
        for name in kind.__struct_encode_fields__:
            assert f'"{name}"' in PAGE or f"`{name}`" in PAGE, name


def test_the_table_of_errors_is_that_of_the_code():
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d*) ?\|", PAGE, re.M))
    closes = {code.value: str(int(protocol.Fault(code, "").close)) for code in protocol.Code}
    assert rows == closes | {"too_long": "", "voice": ""}


def test_the_frame_of_the_page_is_a_frame_of_sound():
    code = next(b for b in blocks(PAGE) if b.language == "python")
    values = {}
    exec("\n".join(code.lines), values)
    first, samples = protocol.read_sound(values["frame"])
    assert (first, (samples * 32768).tolist()) == (48000, values["samples"])

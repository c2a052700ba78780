"""The page's client judges as the one in Python does; every word of its server is scripted."""

import re

import pytest

from dragoman.serve import client
from dragoman.serve.pages import PAGE
from dragoman.serve.past import Past
from dragoman.serve.protocol import (
    MOST_TEXT,
    Error,
    Heard,
    Ready,
    Said,
    Summary,
    Transcript,
    read_request,
    write,
)
from tests.serve.stage import staged

# Sockets that do what a test says, and a clock that goes when it is told to.
SCRIPTED = """
window.sockets = []; window.told = []; window.now = 1000;
performance.now = () => now;
Date.now = () => 0;  // a clock that somebody has set
window.WebSocket = class {
  constructor() { this.sent = []; sockets.push(this); setTimeout(() => this.onopen()); }
  send(data) { this.sent.push(data); }
  close() { this.closed = true; }
};
import("/page/talk.js").then(({ Talk }) => {
  const start = { type: "start", transcript: true, audio: { rate: 16000 } };
  window.talk = new Talk("/x", start, (event) => told.push(event));
});
"""
READY = Ready("4c7467bce1f08be9", "token", 0)


class Line:
    """The server's side of the page's talk."""

    def __init__(self, page):
        self.page, self.count = page, 0
        page.run(SCRIPTED)
        self.opened()

    def opened(self):
        """The next socket; its first message is returned."""
        self.count += 1
        self.page.wait(f"sockets.length === {self.count} && sockets.at(-1).sent.length")
        return read_request(self.sent()[0])

    def tell(self, *events):
        texts = [write(event) for event in events]
        self.page.run(f"for (const data of {texts}) sockets.at(-1).onmessage({{ data }})")

    def sent(self):
        """The texts that the page has sent over the last socket."""
        return self.page.run("sockets.at(-1).sent.filter((one) => typeof one === 'string')")

    def cut(self, code=1006):
        self.page.run(f"sockets.at(-1).onclose({{ code: {code} }})")

    def told(self, kind):
        return [event for event in self.page.run("told") if event["type"] == kind]


@pytest.fixture
def line(visit):
    with staged() as stage:
        yield Line(visit(stage.address))


def said(number):
    return Said(number, f" Donaudampfschiff{number}", 300.0 * number, 123456.7, 1234.5, 0.123)


def written(number):
    return Transcript(number, f" Gesellschaft{number}", 300.0 * number, "de")


def test_the_codes_are_judged_alike():
    text = (PAGE / "talk.js").read_text(encoding="utf-8")
    lists = dict(re.findall(r"^const (\w+) = \[([^\]]*)\]", text, re.M))
    codes = {name: set(re.findall(r'"(\w+)"', one)) for name, one in lists.items()}
    assert codes["LATER"] == {code.value for code in client.PASSING}
    assert codes["ASIDE"] == {code.value for code in client.GOES_ON}


def test_a_long_talk_is_gone_on_with(line):
    """All of its words would be too big a message."""
    line.tell(READY)
    for first in range(1, 6001, 1000):
        events = [one for n in range(first, first + 1000) for one in (written(n), said(n))]
        line.tell(*events, Heard(16000 * first, 16000 * first, first + 990, first + 990))
    line.cut()
    request = line.opened()
    assert len(line.sent()[0]) < MOST_TEXT
    assert (request.word, request.transcript) == (6000, 6000)
    past = Past.of(request.elsewhere, request.sample, 0.0)
    assert past.said[-1] == said(6000)
    assert past.last_transcript == 6000
    assert past.recalled == [said(n).text for n in range(5992, 6001)]
    assert len(past.said) > 500  # and what a late listener reads


def test_before_anything_was_heard_another_process_can_go_on(line):
    line.tell(READY)
    line.page.run("talk.hear(new Float32Array(1600))")
    line.cut()
    request = line.opened()
    assert (request.elsewhere.keep, request.elsewhere.word) == (0, 0)
    line.tell(READY)
    frames = line.page.run("sockets.at(-1).sent.filter((one) => one.byteLength).length")
    assert frames == 1  # the sound is sent again


def test_a_word_that_is_known_is_nothing_new(line):
    line.tell(READY, said(1), said(2), written(1))
    line.cut()
    line.opened()
    line.tell(READY, said(2), said(3), written(1), written(2))
    assert [event["word"] for event in line.told("said")] == [1, 2, 3]
    assert [event["number"] for event in line.told("transcript")] == [1, 2]


def test_a_change_is_asked_for_again_unless_it_was_refused(line):
    change = '{"type":"change","latency_ms":1300}'
    line.page.run("talk.change({ latency_ms: 1300 })")
    line.tell(READY)
    assert line.sent()[1:] == [change]
    line.cut()
    assert line.opened().elsewhere.start.policy is None
    line.page.run("talk.change({ latency_ms: 1300 })")
    line.tell(READY)
    assert line.sent()[1:] == [change]
    line.tell(Error("policy", "There is none."))
    assert [event["code"] for event in line.told("error")] == ["policy"]
    line.cut()
    line.opened()
    line.tell(READY)
    assert line.sent()[1:] == []


def test_a_voice_that_is_wanted_before_the_server_is_ready_is_asked_for(line):
    line.page.run("talk.speak('mp3')")
    line.tell(READY)
    assert line.sent()[1:] == ['{"type":"speak","speech":"mp3"}']
    line.cut()
    line.page.run("talk.speak(null)")
    line.opened()
    line.tell(READY)
    assert line.sent()[1:] == []
    line.cut()
    line.page.run("talk.speak('mp3')")
    line.opened()
    line.tell(READY)
    assert line.sent()[1:] == ['{"type":"speak","speech":"mp3"}']


@pytest.mark.parametrize("code", ["policy", "voice", "sound", "failed", "no_session"])
def test_what_ends_a_talk_is_told_in_the_servers_words(line, code):
    if code in ("sound", "failed", "no_session"):  # the others only before it has begun
        line.tell(READY)
    line.tell(Error(code, "This is why."))
    line.cut(4400)
    assert [event["message"] for event in line.told("end")] == ["This is why."]
    assert line.page.run("sockets.length") == 1


def test_a_dead_line_is_left(line):
    line.tell(READY, said(1))
    line.page.run("now += 14000; talk.watch()")
    assert not line.page.run("sockets[0].closed ?? false")
    line.page.run("now += 2000; talk.watch()")
    assert line.page.run("sockets[0].closed")
    assert line.opened().word == 1
    assert line.told("connection")[-1]["state"] == "reconnecting"
    line.page.run("sockets[0].onmessage?.({ data: '{}' })")  # what still comes there is not heard


def test_a_line_that_never_opens_is_left_too(line):
    line.tell(READY)
    line.page.run(
        "WebSocket = class extends WebSocket {"
        " get onopen() { return () => {}; } set onopen(call) {} }"
    )
    line.cut()
    line.page.wait("sockets.length === 2")
    line.page.run("now += 14000; talk.watch()")
    assert not line.page.run("sockets[1].closed ?? false")
    line.page.run("now += 2000; talk.watch()")
    assert line.page.run("sockets[1].closed")
    line.page.wait("sockets.length === 3")


def test_who_has_stopped_waits_half_a_minute_for_the_rest(line):
    line.tell(READY)
    line.page.run("talk.stop()")
    line.cut()
    line.opened()
    assert line.told("connection")[-1]["state"] == "finishing"
    assert line.told("end") == []
    line.page.run("now += 31000")
    line.cut()
    assert [event["message"] for event in line.told("end")] == [
        "The server cannot be reached (1006)."
    ]


def test_patience_ends_whatever_the_clock_on_the_wall_says(line):
    line.tell(READY)
    line.page.run("Date.now = () => 1e12")
    line.cut()
    line.opened()
    assert line.told("end") == []
    line.page.run("now += 11 * 60 * 1000")
    line.tell(Error("full", "All are taken."))
    line.cut(1013)
    assert [event["message"] for event in line.told("end")] == ["All are taken."]


def test_a_talk_that_is_over_is_over(line):
    line.tell(READY, said(1), Summary(1, 1000.0, 2.0, 0.1, "de"))
    line.cut(1000)
    assert [event["message"] for event in line.told("end")] == [""]

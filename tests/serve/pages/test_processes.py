"""Those who follow, as their process or their line is lost: they come to another one."""

import json
from contextlib import closing

from tests.serve.pages.looking import SHOWN, STATE, link, save, start, stop
from tests.serve.stage import Line, staged
from tests.talkers import TEXT

READ_OUT = "document.getElementById('announced').textContent"
SECRET = "what two processes share, and nobody else"


def test_a_talk_and_its_listeners_go_on_in_another_process(visit):
    with (
        staged("endless_orator", secret=SECRET) as other,
        staged("endless_orator", secret=SECRET) as stage,
    ):
        page = visit(stage.address)
        start(page, 6)
        listener = visit(link(page))
        listener.wait(f"{SHOWN}.split(' ').length >= 6")
        listener.wait(f"{READ_OUT}.includes('word')")  # from now on what is told is read out
        listener.run("document.getElementById('announced').replaceChildren()")
        before = page.run(SHOWN)
        stage.line.lead_to(other.line.port)  # the one that served until now is gone
        stage.cut()
        for one in (page, listener):
            one.wait(f"{SHOWN}.split(' ').length >= {len(before.split()) + 10}")
            words = one.run(SHOWN).split()
            assert [word.strip(".") for word in words] == [f"word{i}" for i in range(len(words))]
        assert "word1 " not in listener.run(READ_OUT)  # what is told anew is not read out again
        assert page.run(SHOWN).startswith(before)
        assert len(other.service._sessions) == 1


def test_a_room_that_is_empty_for_a_moment_loses_no_word(visit):
    """Who listens is in the other process before the speaker is, and is lost there, too."""
    with (
        staged("endless_orator", secret=SECRET) as other,
        staged("endless_orator", secret=SECRET) as stage,
        closing(Line(0)) as line,
    ):
        page = visit(stage.address)
        start(page, 6)
        line.lead_to(stage.line.port)
        listener = visit(link(page).replace(f":{stage.line.port}/", f":{line.port}/"))
        listener.wait(f"{SHOWN}.split(' ').length >= 12")
        for _ in range(2):
            line.lead_to(other.line.port)
            line.cut()
            listener.wait(f"{STATE} === 'waiting'")
            assert len(listener.run(SHOWN).split()) >= 12  # it stays until there is other text
        stage.line.lead_to(other.line.port)
        stage.cut()
        listener.wait(f"{STATE} === 'listening'")
        page.wait(f"{SHOWN}.split(' ').length >= 40")
        listener.wait(f"{SHOWN}.split(' ').length >= 40")
        words = listener.run(SHOWN).split()
        assert [word.strip(".") for word in words] == [f"word{i}" for i in range(len(words))]


def test_the_link_leads_to_the_room_by_whichever_process_it_is_opened(visit):
    with closing(Line(0)) as one, closing(Line(0)) as two:
        peers = tuple(f"http://127.0.0.1:{line.port}" for line in (one, two))
        with (
            staged("endless_orator", secret=SECRET, peers=peers) as stage,
            staged("endless_orator", secret=SECRET, peers=peers) as other,
        ):
            one.lead_to(stage.line.port)
            two.lead_to(other.line.port)
            page = visit(stage.address)
            page.click("#share-open")
            page.wait("document.getElementById('share').open")
            address = link(page).replace(stage.address, other.address)
            early = visit(address)  # before anybody speaks
            early.wait(f"{STATE} === 'waiting'")
            page.press("Escape")
            start(page, 6)
            late = visit(address)
            for listener in (early, late):
                listener.wait(f"{SHOWN}.split(' ').length >= 20")
                words = listener.run(SHOWN).split()
                assert [word.strip(".") for word in words] == [
                    f"word{i}" for i in range(len(words))
                ]
            page.wait("document.getElementById('audience').textContent.includes('2 listening')")
            save(late, "translation.txt")
            assert late.downloaded("translation.txt").decode().startswith("word0 word1")
            assert other.service.streams == 0


def test_a_server_that_was_started_anew_opens_another_room(visit):
    with staged() as other, staged() as stage:
        page = visit(stage.address)
        start(page)
        stop(page)
        before = link(page)
        stage.line.lead_to(other.line.port)
        stage.cut()
        page.click("#begin")
        page.wait(f"{STATE} === 'listening'")
        assert link(page) != before
        stop(page)


FOLLOW = """
import("/page/room.js").then(({ Follower }) => {
  window.WebSocket = class { close() {} };
  const shown = [];
  const follower = new Follower({ room: "k7f2m9qa", token: "x" }, (event) => {
    if (event.type === "anew") shown.length = 0;
    else if (event.text) shown.push(`${event.type} ${event.text}`);
    else if (event.type === "gap") shown.push(`gap of ${event.of}`);
  });
  const frames = FRAMES;
  return frames.map((frame) => { follower.take(frame); return [...shown]; });
})
"""


def test_who_comes_after_a_process_was_lost_sees_that_something_is_missing(visit):
    with staged() as stage:
        page = visit(stage.address)
        start(page, 12)
        listener = visit(link(page))
        listener.wait(f"{SHOWN}.split(' ').length >= 12")
        assert listener.run(SHOWN).startswith(TEXT[:20])
        room = stage.service.rooms.get(link(page).split("/room/")[1].split("#")[0])
        # As of a long talk that another process has begun.
        room._entries = [one for one in room._entries if json.loads(one).get("word", 9) > 4]
        late = visit(link(page))
        late.wait(f"{SHOWN}.split(' ').length >= 6")
        assert late.run(SHOWN).startswith("… ")
        stop(page)


def told(words=(), written=(), talk=1, text="word"):
    said = [{"type": "said", "word": n, "text": f"{text}{n}", "source_ms": n} for n in words]
    heard = [
        {"type": "transcript", "number": n, "text": f"Wort{n}", "source_ms": n} for n in written
    ]
    begin = [{"type": "talk", "talk": talk, "from": "de", "to": "en"}] if talk else []
    return {"type": "told", "next": 1, "events": [*begin, *heard, *said]}


def in_log(log):
    return {"type": "room", "log": log, "state": "listening"}


def test_what_a_new_process_does_not_know_is_still_shown(visit):
    """Of a long talk the speaker's client tells it the end; of another talk nothing is left."""
    frames = [
        in_log("one"),
        told(range(1, 7), range(1, 5)),
        in_log("two"),
        told((), (3, 4, 5)),  # many: the words come in the next frame
        told((5, 6, 7), talk=None),
        in_log("three"),
        told((6, 7, 8)),
        in_log("four"),
        told((6, 7, 8), text="other"),
        told((1, 2), talk=2, text="other"),
    ]
    with staged() as stage:
        page = visit(stage.address)
        seen = page.run(FOLLOW.replace("FRAMES", json.dumps(frames)))
    words = [f"said word{n}" for n in range(1, 9)]
    written = [f"transcript Wort{n}" for n in range(1, 6)]
    assert seen[1] == written[:4] + words[:6]
    assert seen[2] == seen[1]
    assert seen[4] == written + words[:7]
    assert seen[6] == words
    other = ["gap of said", *(f"said other{n}" for n in (6, 7, 8))]
    assert seen[8] == other
    assert seen[9] == other + [f"said other{n}" for n in (1, 2)]


FOLLOWED = """
window.sockets = []; window.told = []; window.now = 1000;
performance.now = () => now;
window.WebSocket = class {
  constructor() { this.sent = []; sockets.push(this); setTimeout(() => this.onopen()); }
  send(data) { this.sent.push(JSON.parse(data)); }
  close() { this.closed = true; }
};
import("/page/room.js").then(({ Follower }) => {
  window.follower = new Follower({ room: "x", token: "y" }, (event) => told.push(event));
});
"""


def test_a_listener_leaves_a_dead_line(visit):
    with staged() as stage:
        page = visit(stage.address)
        page.run(FOLLOWED)
        page.wait("sockets.length === 1 && sockets[0].sent.length")
        room = json.dumps({"type": "room", "room": "x", "log": "L", "state": "waiting"})
        said = {"type": "told", "next": 7, "events": []}
        page.run(
            f"for (const data of [{room!r}, {json.dumps(said)!r}]) sockets[0].onmessage({{data}})"
        )
        page.run("now += 39000; follower.watch()")
        assert not page.run("sockets[0].closed ?? false")
        page.run(f"sockets[0].onmessage({{data: {room!r}}}); now += 39000; follower.watch()")
        assert not page.run("sockets[0].closed ?? false")  # it was told something meanwhile
        page.run("now += 2000; follower.watch(); follower.watch()")
        assert page.run("sockets[0].closed")
        page.wait("sockets.length === 2 && sockets[1].sent.length")
        sent = page.run("sockets[1].sent[0]")
        assert (sent["log"], sent["next"]) == ("L", 7)
        assert page.run("told.at(-1).state") == "reconnecting"
        assert page.run("sockets.length") == 2

"""`--processes`: several behind one address, kept alive and ended together."""

import asyncio
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from dragoman.cli.app import dragoman
from dragoman.errors import DragomanError
from dragoman.serve.child import END, Doors
from dragoman.serve.client import Talk
from dragoman.serve.parent import HANGS, Child, Parent, look_after
from dragoman.serve.protocol import Audio, Start
from dragoman.serve.run import Address
from dragoman.serve.settings import Settings
from dragoman.setup import Setup
from tests import warm
from tests.serve.clients import PATH
from tests.serve.house import Ear, Mouth, ended, has, more, open_room
from tests.serve.processes import DEADLINE, ROOT, command, in_time
from tests.serve.test_elsewhere import NUMBERS
from tests.serve.test_tls import certificate as certificate

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no other system shares a port")
TWO = (*NUMBERS, "--fastest", "1000", "--processes", "2")
LOOKS_OFTEN = "from dragoman.serve import parent; parent.LOOK = 1.0"
"""So that the end of one that hangs is not waited for half a minute."""


def children_of(pid: int) -> list[int]:
    """The processes that serve; one more tracks what multiprocessing shares."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_text()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "spawn_main" in words:
                found.append(int(path.name))
    return found


def gone(pid: int) -> bool:
    """Nobody, or a process that nobody has taken notice of yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(true) -> None:
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def talks_in(ports: list[int]) -> list[int]:
    """How many talks each process has."""
    found = []
    for port in ports:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found.append(
            int(float(next(x for x in lines if x.startswith("dragoman_streams ")).split()[1]))
        )
    return found


def own_ports(pid: int) -> list[int]:
    """Where each process listens by itself: what only one of them has."""
    taken = [listening(child) for child in children_of(pid)]
    return [next(iter(one - other)) for one, other in (taken, taken[::-1])]


def listening(pid: int) -> set[int]:
    """The ports of 127.0.0.1 on which a process listens."""
    inodes = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            inodes.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes
    }


def listens(pid: int, port: int) -> bool:
    return port in listening(pid)


def answers(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
        return json.load(answer)["status"] == "ready"
    return False


def test_a_room_is_one_for_all_and_outlives_its_process():
    """Whoever comes in by the one address may be in either process. One is killed in mid-talk; it
    is replaced, nothing is lost, and a signal to all of them, as supervisors send it, lets the talk
    finish."""

    async def talk(server, url, ports):
        room = await open_room(url)
        mouth, ears = Mouth(url, room), [Ear(url, room) for _ in range(6)]
        for ear in ears:
            await ear.until(has(10))
        talks = await asyncio.to_thread(talks_in, ports)
        assert sorted(talks) == [0, 1]
        before = children_of(server.pid)
        speaking = ports[talks.index(1)]
        for child in before:
            if listens(child, speaking):
                os.kill(child, signal.SIGKILL)
        for ear in ears:
            await more(ear)
        await asyncio.to_thread(wait_until, lambda: len(children_of(server.pid)) == 2)
        assert children_of(server.pid) != before
        await asyncio.to_thread(wait_until, lambda: answers(speaking))
        for pid in (server.pid, *children_of(server.pid)):
            os.kill(pid, signal.SIGTERM)
        for ear in ears:
            await more(ear)
        return await mouth.end(), await ended(*ears)

    with command(*TWO) as (server, url):
        ports = own_ports(server.pid)
        assert len(ports) == 2
        said, told = in_time(talk(server, url, ports))
        assert server.wait(DEADLINE) == 0
    assert told == [said] * 6


def test_the_next_is_replaced_once_the_one_before_it_is_ready():
    ordered = []
    doors = Doors(Address("127.0.0.1", 0), Address("127.0.0.1", 0))
    parent = Parent([doors] * 2, Setup(), Settings(), lambda: None)

    def child(number):
        orders = SimpleNamespace(send=lambda order: ordered.append((number, order)))
        return Child(process=None, orders=orders, beat=None, ready=True)

    parent._children = {0: child(0), 1: child(1)}
    parent._renew(signal.SIGUSR1, None)
    for _ in range(3):
        parent._renew_next()
    assert ordered == [(0, END)]
    parent._tell_ready = None
    quiet = SimpleNamespace(join=lambda: None, close=lambda: None)
    parent._bury(0, Child(quiet, quiet, beat=None, leaving=True))
    assert parent._due[0] <= time.monotonic()  # at once
    parent._children[0] = child(0)
    parent._children[0].ready = False
    parent._renew_next()
    assert ordered == [(0, END)]
    parent._children[0].ready = True
    for _ in range(3):
        parent._renew_next()
    assert ordered == [(0, END), (1, END)]
    parent._end(signal.SIGTERM, None)  # told once alone: at a second time it would end at once
    assert ordered == [(0, END), (1, END), (0, END)]


def test_processes_end_with_a_parent_that_was_killed_and_an_address_is_not_shared_with_others():
    with command(*TWO) as (server, url):
        port = url.rpartition(":")[2]
        again = subprocess.run(
            warm.command("-m", "dragoman", "serve", *TWO, "--port", port),
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert again.returncode == 2
        assert f"Cannot listen on 127.0.0.1, port {port}" in again.stderr
        children = children_of(server.pid)
        assert len(children) == 2
        server.kill()
        wait_until(lambda: all(map(gone, children)))


def test_a_window_that_is_closed_ends_all():
    ours, theirs = pty.openpty()
    server = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", *TWO],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        said = b""
        while b"Ready on" not in said:
            said += os.read(ours, 4096)
        children = children_of(server.pid)
        assert len(children) == 2
        os.close(ours)
        assert server.wait(DEADLINE) == 0
        assert all(map(gone, children))
    finally:
        server.kill()


def test_a_room_is_found_over_tls_whatever_name_the_certificate_has(
    certificate, monkeypatch, tmp_path
):
    """Those who listen trust it; the processes do not, and need not. While they are replaced a talk
    goes on to its end; the log is theirs alone."""
    cert, key = certificate
    monkeypatch.setenv("DRAGOMAN_LOG", str(tmp_path / "log"))

    async def talk(url):
        room = await open_room(url)
        mouth, ears = Mouth(url, room), [Ear(url, room) for _ in range(6)]
        for ear in ears:
            await ear.until(has(10))
        told = await mouth.end(), await ended(*ears)
        async for _ in Talk(url + PATH, Start(audio=Audio(rate=8000))).run(a_moment()):
            pass
        return told

    options = (*TWO, "--tls-cert", str(cert), "--tls-key", str(key))
    with command(*options) as (server, url):
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        before = children_of(server.pid)
        for pid in (server.pid, *before):  # which ends nobody
            os.kill(pid, signal.SIGHUP)
            os.kill(pid, signal.SIGUSR1)
        said, told = in_time(talk(url))
        wait_until(lambda: len({*children_of(server.pid)} - {*before}) == 2)
        server.send_signal(signal.SIGTERM)
        assert server.wait(DEADLINE) == 0
    assert told == [said] * 6
    lines = (tmp_path / "log").read_text().splitlines()
    ready = next(n for n, line in enumerate(lines) if line.startswith("Ready on"))
    assert all(json.loads(line)["event"] for line in lines[ready + 1 :])


async def a_moment():
    yield np.zeros(800, np.float32)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [("refused", "There is no such model in this test."), ("fatal", "ended while it loaded")],
)
def test_what_keeps_a_process_from_loading_is_a_sentence(model, complaint):
    told = subprocess.run(
        warm.command("-m", "dragoman", "serve", "--model", f"tests.serve.unloadable:{model}")
        + ["--policy", "greedy", "--processes", "2", "--port", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2
    assert complaint in told.stderr
    assert "Traceback" not in told.stderr


class Orders:
    """The parent's end of a line to a process that cannot load its model."""

    def recv(self) -> str:
        return "There is no room for it now."


def test_one_that_cannot_be_started_again_costs_the_others_nothing():
    parent = Parent([], Setup(), Settings(), lambda: None)
    child = Child(process=None, orders=Orders(), beat=None)
    with pytest.raises(DragomanError, match="no room for it"):
        parent._hear(0, child)  # nobody is served yet
    parent._tell_ready = None
    parent._hear(0, child)
    assert not child.ready


def test_one_that_ends_for_days_is_started_once_a_minute(caplog):
    """And costs the others nothing, as where its memory is somebody else's by now."""
    caplog.set_level("INFO")
    doors = Doors(Address("127.0.0.1", 0), Address("127.0.0.1", 0))
    parent = Parent([doors], Setup(), Settings(), lambda: None)
    parent._tell_ready = None
    process = SimpleNamespace(join=lambda: None, exitcode=1)
    for _ in range(2000):
        parent._children[0] = child = Child(process, SimpleNamespace(close=lambda: None), beat=None)
        parent._bury(0, child)
    waits = [one.values["again_in"] for one in caplog.records]
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(waits[7:]) == {60}


def test_one_that_hangs_is_ended_and_one_that_loads_or_lives_is_not():
    ended = []
    process = SimpleNamespace(pid=7, kill=lambda: ended.append(7))
    child = Child(process, Orders(), beat=SimpleNamespace(value=0.0))
    for _ in range(3 * HANGS):  # it has not begun
        look_after(child)
    for beat in range(1, 3 * HANGS):
        child.beat.value = float(beat)
        for _ in range(HANGS // 2):  # slow, but alive
            look_after(child)
    assert ended == []
    for _ in range(HANGS):
        look_after(child)
    assert ended == [7]


def test_a_process_that_was_stopped_is_replaced_and_its_talk_goes_on():
    async def talk(server, url, ports):
        room = await open_room(url)
        mouth, ear = Mouth(url, room), Ear(url, room)
        await ear.until(has(10))
        talks = await asyncio.to_thread(talks_in, ports)
        (child,) = [one for one in children_of(server.pid) if listens(one, ports[talks.index(1)])]
        os.kill(child, signal.SIGSTOP)
        await more(ear)
        assert child not in children_of(server.pid)
        return await mouth.end(), await ended(ear)

    with command(*TWO, changed=LOOKS_OFTEN) as (server, url):
        said, told = in_time(talk(server, url, own_ports(server.pid)), 110)
    assert told == [said]


def test_who_is_started_after_the_end_was_asked_for_ends():
    doors = Doors(Address("127.0.0.1", 0), Address("127.0.0.1", 0))
    parent = Parent([doors], Setup("tests.serve.numbers:numbers"), Settings(), lambda: None)
    parent._end(signal.SIGTERM, None)
    parent._start(0)
    process = parent._children[0].process
    process.join(DEADLINE)
    assert process.exitcode == 0


def test_processes_and_a_cluster_do_not_go_together():
    told = CliRunner().invoke(dragoman, ["serve", "--processes", "2", "--cluster", "local"])
    assert isinstance(told.exception, DragomanError)
    assert "--replicas" in str(told.exception)


def test_each_process_has_a_port_behind_the_common_one():
    told = CliRunner().invoke(dragoman, ["serve", *TWO, "--port", "65534"])
    assert isinstance(told.exception, DragomanError)
    assert "no ports for 2 processes" in str(told.exception)

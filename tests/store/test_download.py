"""Downloads: continued where they stopped, and believed only if the hash agrees."""

import errno
import random
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.store import get
from dragoman.store.download import Bar, SourceError, download
from dragoman.store.home import File, megabytes

from .conftest import described

DATA = random.Random(7).randbytes(300_000)
WANTED = File(**described(DATA))


@pytest.fixture
def to(tmp_path):
    return tmp_path / "partial" / "file"


@pytest.fixture
def fetch(server, to):
    server.pages["/file"] = DATA

    def fetch() -> None:
        download(f"{server.address}/file", WANTED, to, "the file", Bar())

    return fetch


def test_a_file_is_fetched(fetch, to, server):
    fetch()
    assert to.read_bytes() == DATA
    assert server.asked == [("/file", None)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(have=st.integers(1, len(DATA) - 1))
def test_an_interrupted_download_continues(fetch, to, server, have):
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(DATA[:have])
    fetch()
    assert to.read_bytes() == DATA
    assert server.asked[-1] == ("/file", f"bytes={have}-")


def test_a_finished_download_asks_nobody(fetch, to, server):
    to.parent.mkdir()
    to.write_bytes(DATA)
    fetch()
    assert server.asked == []


def test_a_connection_that_breaks_is_taken_up_again(fetch, to, server):
    server.hang_up_after = [100_000, 50_000]
    fetch()
    assert to.read_bytes() == DATA
    assert [range_ for _, range_ in server.asked] == [None, "bytes=100000-", "bytes=150000-"]


def test_a_network_that_is_away_for_a_while_is_waited_for(fetch, to, server, waited):
    server.hang_up_after = [100_000, 0, 0, 50_000, 0]
    fetch()
    assert to.read_bytes() == DATA
    assert waited == [1.0, 3.0, 1.0]


def test_a_connection_that_brings_nothing_is_given_up(fetch, to, server, waited):
    server.hang_up_after = [100_000, *[0] * 9]
    with pytest.raises(SourceError, match="the file: "):
        fetch()
    assert to.read_bytes() == DATA[:100_000]  # kept, for the next time
    assert waited == [1.0, 3.0, 9.0]
    with pytest.raises(SourceError, match="the file: "):
        fetch()
    assert len(waited) == 3  # nothing has come: there may be no network at all


def test_a_server_without_ranges_starts_over(fetch, to, server):
    server.ranges = False
    to.parent.mkdir()
    to.write_bytes(DATA[:1000])
    fetch()
    assert to.read_bytes() == DATA


def test_an_old_beginning_that_does_not_fit_is_thrown_away(fetch, to, server):
    to.parent.mkdir()
    to.write_bytes(b"x" * 1000)
    fetch()
    assert to.read_bytes() == DATA
    assert [range_ for _, range_ in server.asked] == ["bytes=1000-", None]


@pytest.mark.parametrize("wrong", [DATA[:-1] + b"?", DATA + b"?"], ids=["changed", "longer"])
def test_wrong_bytes_are_refused(fetch, to, server, wrong):
    server.pages["/file"] = wrong
    with pytest.raises(SourceError, match="is not the file that the catalogue names"):
        fetch()
    assert not to.exists()


def test_a_short_answer_is_a_sentence(fetch, server, waited):
    server.pages["/file"] = DATA[:1000]
    with pytest.raises(SourceError, match="stops at 1000 of 300000 bytes"):
        fetch()


def test_a_refusal_is_a_sentence(to, server):
    with pytest.raises(SourceError, match=r"the file: the server answers 404 Not Found$"):
        download(f"{server.address}/nothing", WANTED, to, "the file", Bar())


def test_no_connection_is_a_sentence(to):
    with pytest.raises(SourceError, match="the file: no connection"):
        download("http://127.0.0.1:1/file", WANTED, to, "the file", Bar())


def test_a_disk_that_cannot_hold_it_is_told_before(fetch, to, server, monkeypatch):
    to.parent.mkdir()
    to.write_bytes(DATA[:100_000])
    room = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room._replace(free=199_999))
    with pytest.raises(DragomanError, match=r"the file needs 0\.2 MB, but .* DRAGOMAN_HOME"):
        fetch()
    assert server.asked == []
    assert to.stat().st_size == 100_000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room._replace(free=200_000))
    fetch()
    assert to.read_bytes() == DATA


def test_a_disk_that_fills_up_on_the_way_is_a_sentence(enter, hub, monkeypatch):
    """Nothing of the network is blamed for it, and no other source is asked."""
    files = {"model.bin": DATA}
    enter("toy", files, hub=hub(files))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Bar, "advance", full)  # where a piece has just been written
    with pytest.raises(DragomanError, match=r"cannot be used \(No space left .* make room"):
        get("toy")


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (1, "0.0 MB"),
        (9_949_999, "9.9 MB"),
        (10**7, "10 MB"),
        (10**9 - 10**6, "999 MB"),
        (10**9, "1.0 GB"),
    ],
)
def test_sizes_as_people_say_them(size, told):
    assert megabytes(size) == told


def test_proxies_are_those_of_the_environment(server, to, monkeypatch):
    """Only the proxy can find such a host: it is asked for the whole address."""
    address = "http://hub.invalid/file"
    server.pages[address] = DATA
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    download(address, WANTED, to, "the file", Bar())
    assert to.read_bytes() == DATA
    assert server.asked == [(address, None)]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_breaks_a_sentence_between_words_and_a_file_has_one_line(
    terminal, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", "40")
    bar = Bar()
    bar.console._force_terminal = terminal
    bar.say("Another process is working on mt-en; waiting for it.")
    lines = capsys.readouterr().err.splitlines()
    if terminal:
        assert lines == ["Another process is working on mt-en; ", "waiting for it."]
    else:
        assert lines == ["Another process is working on mt-en; waiting for it."]

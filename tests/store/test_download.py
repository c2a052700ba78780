"""Downloads: continued where they stopped, and believed only if the hash agrees."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.store.download import Bar, SourceError, download
from dragoman.store.home import File

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


def test_a_connection_that_brings_nothing_is_given_up(fetch, to, server):
    server.hang_up_after = [100_000, 0, 0]
    with pytest.raises(SourceError, match="the file: "):
        fetch()
    assert to.read_bytes() == DATA[:100_000]  # kept, for the next time


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


def test_a_short_answer_is_a_sentence(fetch, server):
    server.pages["/file"] = DATA[:1000]
    with pytest.raises(SourceError, match="stops at 1000 of 300000 bytes"):
        fetch()


def test_a_refusal_is_a_sentence(to, server):
    with pytest.raises(SourceError, match="the file: the server answers 404"):
        download(f"{server.address}/nothing", WANTED, to, "the file", Bar())


def test_no_connection_is_a_sentence(to):
    with pytest.raises(SourceError, match="the file: no connection"):
        download("http://127.0.0.1:1/file", WANTED, to, "the file", Bar())

"""Work in processes: all of it is told, and whatever ends a worker is a sentence."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dragoman.errors import DragomanError
from dragoman.workers import FreshProcesses, WarmProcesses


def squares(number, tell):
    """Tell twice: the square, and who has worked it out."""
    tell((number, number**2))
    tell((number, os.getpid()))


def fails_at_two(number, tell):
    if number == 2:
        raise DragomanError("Two is too many.")
    tell(number)


def dies(number, tell):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", [WarmProcesses, FreshProcesses])
def test_all_is_told(kind):
    told = list(kind(2).each(squares, iter(range(5))))
    assert len(told) == 10
    for number in range(5):
        square, worker = (value for name, value in told if name == number)
        assert square == number**2
        assert worker != os.getpid()
    workers = {value for name, value in told if (name, value) != (name, name**2)}
    assert len(workers) == 5 if kind is FreshProcesses else len(workers) <= 2


@pytest.mark.parametrize("kind", [WarmProcesses, FreshProcesses])
def test_an_error_ends_it_all(kind):
    with pytest.raises(DragomanError, match=r"^Two is too many\.$"):
        list(kind(1).each(fails_at_two, range(5)))


@pytest.mark.parametrize("kind", [WarmProcesses, FreshProcesses])
def test_a_killed_worker_is_a_sentence(kind):
    with pytest.raises(DragomanError, match="A worker process was killed"):
        list(kind(1).each(dies, range(3)))


def test_a_worker_may_be_killed_while_tasks_are_still_to_come():
    def one_by_one():
        while True:
            time.sleep(0.01)
            yield 0

    with pytest.raises(DragomanError, match="A worker process was killed"):
        list(WarmProcesses(1).each(dies, one_by_one()))


def test_who_asks_no_further_ends_it():
    tasks = iter(range(100))
    news = FreshProcesses(1).each(squares, tasks)
    next(news)
    news.close()
    assert next(tasks) < 5


def holds_on(number, tell):
    """Say who it is on standard output, which stays open as long as it lives."""
    print(os.getpid(), flush=True)
    if number:
        os.kill(os.getppid(), signal.SIGKILL)


def test_who_waits_for_a_killed_parent_ends():
    """Its output is at its end only once all who hold it are gone."""
    program = """
from dragoman.workers import WarmProcesses
from tests.test_workers import holds_on

if __name__ == "__main__":
    list(WarmProcesses(2).each(holds_on, [0, 0, 1]))
"""
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split()

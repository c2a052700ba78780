"""For all tests: the machine may be busy, so no example of a property has a time limit; examples
are the same in every run; nets have one thread; what is stuck fails; and what was left out is told
at the end.

`pytest --hypothesis-profile searching` looks for examples that were never tried.
"""

import gc
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests import warm
from tests.stuck import failing_after

# Before any library reads it. Nets of tests are tiny, and several processes share the machine:
# threads that wait for each other only cost.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What torch's exporter keeps of every operation costs more than it saves with nets of one layer;
# the graphs are the same, byte by byte.
os.environ.setdefault("TORCH_FAKE_TENSOR_DISPATCH_CACHE", "0")

busy = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("patient", derandomize=True, **busy)
settings.register_profile("searching", **busy)
settings.load_profile("patient")

STUCK = 300.0
"""Seconds after which a test is stuck: many times what the slowest needs on a busy machine."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported stays: to look for garbage among it takes a fifth of the time. Nor is it
    looked through later: a million objects, again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """What takes long is done first: at the end one process would do it while others have nothing
    left to do."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test that waits for something that never comes fails, and the others run."""
    with failing_after(STUCK):
        return (yield)


def pytest_sessionfinish():
    warm.end()


def pytest_terminal_summary(terminalreporter):
    """Why tests were left out, each reason once."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"Left out ({count}): {reason}")

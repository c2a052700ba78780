"""Commands in copies of a warm process do what those in processes of their own do."""

import subprocess
import sys

import pytest

from tests import warm


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("arguments", [("help", "score"), ("scroe",)], ids=" ".join)
def test_a_command_does_the_same_wherever_it_runs(platform, arguments, monkeypatch, tmp_path):
    if sys.platform != "linux" and platform == "linux":
        pytest.skip("copies of a warm process are Linux's")
    alone = told([sys.executable, "-m", "dragoman", *arguments], tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert told(warm.command("-m", "dragoman", *arguments), tmp_path) == alone


def told(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_elsewhere_nothing_is_begun(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(warm, "_started", lambda: pytest.fail("that is Linux's"))
    assert warm.command("-m", "dragoman")[0] == sys.executable

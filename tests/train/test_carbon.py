"""Energy accounts of runs, and the table of what one model saves."""

import json

import pytest
from click.testing import CliRunner

from dragoman.errors import DragomanError
from dragoman.train.carbon import Footprint, Meter, footprint, saved_by_one_model


def test_the_papers_numbers():
    """184.7 kWh and 70.3 kg a training; 9 trainings saved: 1662.3 kWh and 632.7 kg."""
    run = Footprint("paper", 116, 184.7, ())
    saved = saved_by_one_model([run], 5 * 2)
    assert saved["kg"] == pytest.approx(70.3, abs=0.05)
    assert saved["saved_kwh"] == pytest.approx(1662.3, abs=0.05)
    assert saved["saved_kg"] == pytest.approx(632.7, abs=0.5)


def test_sessions_add_up_and_the_command_prints_the_table(tmp_path):
    from dragoman.cli.carbon import command

    meters = ["GPU(nvml)", "CPU(Cpu Load)"]
    sessions = [
        {"hours": 1.0, "kwh": 0.5, "meters": meters},
        {"hours": 2.0, "kwh": 1.5, "meters": []},
    ]
    (tmp_path / "carbon.json").write_text(json.dumps(sessions))
    found = footprint(tmp_path)
    assert (found.hours, found.kwh, found.measured) == (3.0, 2.0, "partly estimated")
    (tmp_path / "carbon-1.json").write_text(json.dumps(sessions))  # of a second machine
    assert (footprint(tmp_path).hours, footprint(tmp_path).kwh) == (3.0, 4.0)
    (tmp_path / "carbon-1.json").unlink()
    result = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert "10 - 1 = 9 trainings" in result.output
    assert "18 kWh" in result.output


def test_a_meter_reads_and_keeps_earlier_sessions(tmp_path):
    pytest.importorskip("codecarbon")
    for session in (1, 2):
        with Meter(tmp_path) as meter:
            meter.write()  # as at every checkpoint
        sessions = json.loads((tmp_path / "carbon.json").read_text())
        assert len(sessions) == session
        assert sessions[-1]["kwh"] >= 0
        assert sessions[-1]["meters"]


def test_no_reading_is_a_sentence(tmp_path):
    with pytest.raises(DragomanError, match="is not a run"):
        footprint(tmp_path)
    (tmp_path / "recipe.yaml").write_text("net: conformer\n")
    with pytest.raises(DragomanError, match="no energy reading"):
        footprint(tmp_path)
    (tmp_path / "carbon.json").write_text('[{"hours": 1')
    with pytest.raises(DragomanError, match=r"carbon.json is damaged"):
        footprint(tmp_path)

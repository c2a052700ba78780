"""Energy of training runs, and paper 001's table: what one offline model saves.

Paper 001, section 4: one offline-trained model serves every latency, where simultaneous training
needs a model for each k and each way to detect words; 5 x 2 trainings become 1, so 9 are saved.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.files import whole_file

INTENSITY = 0.380539  # kg CO2eq per kWh, the paper's


class Meter:
    """Counts the energy of one process's machine with codecarbon; without it, only the time.

    Readings are written while the run goes on, so that a killed one loses little.
    """

    def __init__(self, folder: Path, node: int = 0):
        self.path, self.tracker = folder / f"carbon{f'-{node}' if node else ''}.json", _tracker()
        self.at, self.begun = time.time(), time.perf_counter()
        self.before = read_sessions(self.path)

    def __enter__(self) -> Meter:
        if self.tracker is not None:
            self.tracker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with nullcontext() if error is None else suppress(DragomanError):  # the first error counts
            self.write()
        if self.tracker is not None:
            self.tracker.stop()

    def write(self) -> None:
        """Put this session's reading behind those of earlier sessions of the run."""
        hours = (time.perf_counter() - self.begun) / 3600
        session: dict[str, Any] = {"begun": self.at, "hours": hours}
        if self.tracker is not None:
            self.tracker.flush()
            session["kwh"] = float(self.tracker._total_energy.kWh)
            session["meters"] = self.tracker._conf.get("hardware", [])
        with whole_file(self.path) as stream:
            json.dump([*self.before, session], stream, indent=1)


def _tracker() -> Any:
    try:
        from codecarbon import OfflineEmissionsTracker
    except ImportError:
        return None
    logging.getLogger("codecarbon").disabled = True
    # The country matters only for CO2, which is computed here from the energy.
    return OfflineEmissionsTracker(
        country_iso_code="USA", save_to_file=False, log_level="critical", allow_multiple_runs=True
    )


def read_sessions(path: Path) -> list[dict[str, Any]]:
    """The readings in one machine's file."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except ValueError as error:
        raise DragomanError(f"{path} is damaged ({error}); move it away.") from error


@dataclass(frozen=True)
class Footprint:
    """Of one run: time, energy, and how the energy is known."""

    run: str
    hours: float
    kwh: float
    meters: tuple[str, ...]

    @property
    def measured(self) -> str:
        """codecarbon reads GPUs and RAPL; a CPU by its load, and RAM, are estimates."""
        guesses = [meter for meter in self.meters if "load" in meter.lower() or "constant" in meter]
        return "partly estimated" if guesses else "measured"


def footprint(folder: Path) -> Footprint:
    """What a run has used, over all its sessions and machines; hours are those of the first."""
    sessions = read_sessions(folder / "carbon.json")
    others = [read_sessions(path) for path in sorted(folder.glob("carbon-*.json"))]
    sessions += [session | {"hours": 0.0} for other in others for session in other]
    counted = [session for session in sessions if "kwh" in session]
    if not counted and not (folder / "recipe.yaml").exists():
        raise DragomanError(f"{folder} is not a run: it has no recipe.yaml.")
    if not counted:
        raise DragomanError(
            f"{folder} has no energy reading; train with codecarbon installed "
            "(pip install 'dragoman[train]') and machine.carbon true."
        )
    return Footprint(
        run=folder.name,
        hours=sum(session["hours"] for session in sessions),
        kwh=sum(session["kwh"] for session in counted),
        meters=tuple(dict.fromkeys(meter for s in counted for meter in s["meters"])),
    )


def saved_by_one_model(
    runs: list[Footprint], models: int, intensity: float = INTENSITY
) -> dict[str, float]:
    """Energy (kWh) and carbon (kg CO2eq) of one training and of the `models` - 1 that it saves."""
    mean = sum(run.kwh for run in runs) / len(runs)
    return {
        "kwh": mean,
        "kg": mean * intensity,
        "saved_kwh": mean * (models - 1),
        "saved_kg": mean * (models - 1) * intensity,
    }

"""A run's numbers for TensorBoard, where it is installed.

The event file is written here, line by line, and not by a thread of its own: what goes wrong with
the disk is then said where it happens.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from dragoman.files import sentences_for


class Board:
    """An event file in `board/`, begun with the first line."""

    def __init__(self, folder: Path):
        host = socket.gethostname()
        name = f"events.out.tfevents.{int(time.time())}.{host}.{os.getpid()}"
        self.path = folder / "board" / name
        self.records: Any = None

    def show(self, line: dict[str, Any]) -> None:
        """Every number of a line of the metrics, at its step."""
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
        except ImportError:
            return
        numbers = {k: v for k, v in line.items() if k not in ("step", "kind")}
        values = [
            Summary.Value(tag=f"{line['kind']}/{name}", simple_value=value)
            for name, value in numbers.items()
        ]
        with sentences_for(self.path):
            if self.records is None:
                self._begin(line["step"])
            self._add(Event(step=line["step"], summary=Summary(value=values)))
            self.records.flush()

    def _begin(self, step: int) -> None:
        """Open the file; what a resumed run makes again replaces what earlier files have."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.records = RecordWriter(self.path.open("ab"))
        self._add(Event(file_version="brain.Event:2"))
        self._add(Event(step=step, session_log=SessionLog(status=SessionLog.START)))

    def _add(self, event: Any) -> None:
        event.wall_time = time.time()
        self.records.write(event.SerializeToString())

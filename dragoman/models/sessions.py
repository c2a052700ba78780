"""How onnxruntime runs the nets of every model."""

from __future__ import annotations

from typing import Any


def session_options(threads: int) -> Any:
    """For a net that works now and then, on a machine that has other work to do."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait for the next piece of work by turning round and round take more of the
    # processor than the work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # that a kept graph is for this machine alone is known
    return options

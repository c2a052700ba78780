"""Kernels of our own are used once they have shown that they work on the machine at hand."""

import warnings
from collections.abc import Callable


def passed(trial: Callable[[], object], otherwise: str = "") -> bool:
    """Whether a trial of kernels goes well; if not, a warning says so; training does without."""
    try:
        trial()
    except Exception as error:  # of whatever kind: a compiler's, a driver's, a wrong number
        warnings.warn(f"Triton's kernels do not work here ({error}){otherwise}.", stacklevel=3)
        return False
    return True

"""Kernels checked in Triton's interpreter, which needs no GPU: a process of its own, since it must
be chosen before triton is imported."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check_interpreted(*modules):
    """`check_all` of modules of tests/train."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    subprocess.run([sys.executable, __file__, *modules], check=True, env=environment)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        import_module(f"tests.train.{module}").check_all("cpu")

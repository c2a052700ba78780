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


def call_plainly():
    """Functions that kernels call, without Triton looking through all of its language at every
    call, which took most of the time: it has done so when the kernel began, and here for the
    functions that are Triton's own."""
    import triton.language as tl
    from triton.runtime import interpreter

    interpreter._patch_lang(tl.sum.fn)
    interpreter.InterpretedFunction.__call__ = lambda function, *args, **options: (
        function.rewrite()(*args, **options)
    )


if __name__ == "__main__":
    call_plainly()
    for module in sys.argv[1:]:
        import_module(f"tests.train.{module}").check_all("cpu")

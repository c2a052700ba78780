"""Kernels checked in Triton's interpreter, which needs no GPU: a process of its own, since it must
be chosen before triton is imported."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import wraps
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check_interpreted(*modules):
    """`check_all` of modules of tests/train."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    subprocess.run([sys.executable, __file__, *modules], check=True, env=environment)


def once_per_launch(patch, is_patched):
    """The interpreter looks through the whole language whenever a kernel calls a function: what the
    launch, or a call of a function of the same module, has patched already needs no other look."""
    seen = set()

    @wraps(patch)
    def patch_once(function):
        if not is_patched():  # a launch
            seen.clear()
        if (module := id(function.__globals__)) in seen:
            return None
        seen.add(module)
        return patch(function)

    return patch_once


def hasten():
    """Half of the interpreter's time goes into what these checks do not need."""
    from triton import language
    from triton.runtime import interpreter

    interpreter._patch_lang = once_per_launch(
        interpreter._patch_lang, lambda: not language.core.is_builtin(language.load)
    )
    # Arrays as small as these have no place whose number overflows.
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


if __name__ == "__main__":
    hasten()
    for module in sys.argv[1:]:
        import_module(f"tests.train.{module}").check_all("cpu")

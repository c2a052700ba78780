"""Kernels checked in Triton's interpreter, which needs no GPU: in a copy of this process, since it
must be chosen before triton is imported."""

import operator
import os
import sys
from importlib import import_module
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np


def check_interpreted(*modules):
    """`check_all` of modules of tests/train."""
    process = get_context("fork").Process(target=_check, args=modules)
    process.start()
    process.join()
    assert process.exitcode == 0, "see what it wrote"


def _check(*modules):
    os.environ["TRITON_INTERPRET"] = "1"
    for name in [name for name in sys.modules if _made_by_triton(name)]:
        del sys.modules[name]
        package, _, own = name.rpartition(".")
        sys.modules.get(package, SimpleNamespace()).__dict__.pop(own, None)
    interpret_quickly()
    for module in modules:
        import_module(f"tests.train.{module}").check_all("cpu")


def _made_by_triton(name: str) -> bool:
    """Also that which is in C stays: it cannot be loaded twice."""
    return name.endswith("_triton") or (
        name.partition(".")[0] == "triton" and not name.startswith("triton._C")
    )


def interpret_quickly():
    """What took most of the time is done in less of it."""
    import triton.language as tl
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    # Functions that kernels call are called, without Triton looking through all of its language
    # every time: it has done so when the kernel began, and here for those that are Triton's own.
    interpreter._patch_lang(tl.sum.fn)
    interpreter.InterpretedFunction.__call__ = lambda function, *args, **options: (
        function.rewrite()(*args, **options)
    )
    interpreter._get_np_dtype = _once_for_a_name(interpreter._get_np_dtype)
    tl.block_type.__init__ = _as_the_first(
        tl.block_type.__init__, lambda kind, shape: (kind.name, *map(_plain, shape))
    )
    tl.tensor.__init__ = _as_the_first(
        tl.tensor.__init__, lambda handle, kind: kind.name, ("handle", "type")
    )
    TritonSemantic.binary_op_sanitize_overflow_impl = _no_overflow
    interpreter.ScanOps.generic_scan = _scan


def _once_for_a_name(find):
    """What a type is in NumPy."""
    found = {}

    def look_up(kind):
        if kind.name not in found:
            found[kind.name] = find(kind)
        return found[kind.name]

    return look_up


def _as_the_first(begin, key, own=()):
    """Begin what has the same key with what the first of them was found to be, but for its own."""
    known = {}

    def begin_quickly(new, *given):
        alike = key(*given)
        if alike not in known:
            begin(new, *given)
            known[alike] = dict(vars(new))
        vars(new).update(known[alike], **dict(zip(own, given, strict=False)))

    return begin_quickly


def _plain(size):
    return getattr(size, "value", size)


def _no_overflow(semantic, left, right, operation):
    """By NumPy, not by Triton's own sums and comparisons."""
    kind = left.type.scalar
    if kind.int_bitwidth < 64:
        numbers = (x.handle.data.astype(np.int64) for x in (left, right))
        exact = getattr(operator, operation.__name__)(*numbers)
        assert exact.min() >= kind.get_int_min_value(), "integers overflow"
        assert exact.max() <= kind.get_int_max_value(), "integers overflow"


def _scan(self, given):
    """Whole rows at doubled distances, as a GPU does it, not one number at a time."""
    rows, kinds = [x.handle.data for x in given], [x.dtype for x in given]
    place = np.arange(len(rows[0]))
    for step in (2**n for n in range((len(place) - 1).bit_length())):
        before = [np.roll(row, step) for row in rows]
        both = [self.to_tensor(x, of) for x, of in zip(before + rows, kinds * 2, strict=True)]
        combined = [x.handle.data for x in self.combine_fn.fn(*both)]
        rows = [np.where(place < step, *pair) for pair in zip(rows, combined, strict=True)]
    return [self.to_tensor(row, of) for row, of in zip(rows, kinds, strict=True)]

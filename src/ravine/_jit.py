"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba

compiled: Any = partial(numba.njit, cache=True, nogil=True, error_model="numpy")
jit = compiled()

# For functions that only compiled code calls: entry points from Python and C take a third of the time to
# compile. In tests, `function.py_func` runs such a function as plain Python.
inner = compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)


def jit_as(signature: Any) -> Any:
    """Compile for one signature, at once: a function in it is then called by its address."""
    return compiled(signature)

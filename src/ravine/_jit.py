"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
from numba import types

# Half of the time to compile a short function goes into its entry points from Python and from C, so each
# decorator makes only those that are needed.
compiled: Any = partial(numba.njit, cache=True, nogil=True, error_model="numpy")

jit = compiled(no_cfunc_wrapper=True)  # called from Python and from compiled code
by_address = compiled()  # also called by its address
inner = compiled(no_cfunc_wrapper=True, no_cpython_wrapper=True)  # called from compiled code only


class Address:
    """A compiled function as an argument of others, which are then compiled once for all such functions."""

    def __init__(self, function: Any, signature: Any) -> None:
        found = function.get_compile_result(signature)
        self.address = int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))
        self._numba_type_ = types.FunctionType(signature)

    def __wrapper_address__(self) -> int:
        return self.address

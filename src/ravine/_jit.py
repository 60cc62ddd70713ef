"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numba
from llvmlite import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder


class _Linked(CompilerBase):
    """Compiles functions that only compiled functions call, and leaves their optimization to the callers.

    Optimizing them again at every level of nested calls took a seventh of the time to compile a first fit. If
    numba renames this step, it runs again, and nothing else changes.
    """

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library._optimize_final_module = lambda: None
        return [DefaultPassBuilder.define_nopython_pipeline(state)]  # type: ignore[no-untyped-call]


# Entry points from Python and from C took a fifth of the time to compile a first fit, so each decorator makes
# only those that are needed. Calling an `inner` function from Python crashes; tests use `tests/compiled.py`.
compiled: Any = partial(numba.njit, cache=True, nogil=True, error_model="numpy")

jit = compiled(no_cfunc_wrapper=True)  # called from Python and from compiled code
by_address = compiled(no_cpython_wrapper=True)  # called by its address
jit_by_address = compiled()  # called from Python and by its address
# called from compiled code only
inner = compiled(no_cfunc_wrapper=True, no_cpython_wrapper=True, pipeline_class=_Linked)


def address_of(function: Any, signature: Any) -> int:
    """Return the address of a compiled function: callers of it are compiled once for all such functions.

    numba has functions as arguments, too, but looks them up by Python code at every call, in the middle of
    which a signal may arrive that is then lost.
    """
    found = function.get_compile_result(signature)
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


def address_for(function: Any, *arguments: Any) -> int:
    """Return the address of a function without a result that is compiled for arguments of these types."""
    typeof: Any = numba.typeof
    return _address_of(function, tuple(typeof(argument) for argument in arguments))


@cache
def _address_of(function: Any, kinds: tuple[Any, ...]) -> int:
    return address_of(function, numba.types.void(*kinds))


def call_address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Generate the call of a function without a result, whose address is the first argument."""
    given = [context.get_value_type(one) for one in signature.args[1:]]
    kind = ir.FunctionType(context.get_value_type(signature.return_type), given)
    builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
    return context.get_dummy_value()

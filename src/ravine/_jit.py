"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numba
from llvmlite import ir

# Version of numba up to which `_compiler.py` is known to work. With a newer one numba's own compiler is used,
# which takes longer, and nothing else changes.
NEWEST = (0, 68)

own, linked = {}, {}
if numba.version_info.short <= NEWEST:
    from ravine._compiler import Compiler, LinkedCompiler

    own, linked = {"pipeline_class": Compiler}, {"pipeline_class": LinkedCompiler}

# Entry points from Python and from C took a fifth of the time to compile a first fit, so each decorator makes
# only those that are needed. Calling an `inner` function from Python crashes; tests use `tests/compiled.py`.
compiled: Any = partial(numba.njit, nogil=True, error_model="numpy")
kept: Any = partial(compiled, cache=True, **own)

jit = kept(no_cfunc_wrapper=True)  # called from Python and from compiled code
by_address = kept(no_cpython_wrapper=True)  # called by its address
jit_by_address = kept()  # called from Python and by its address
inner = compiled(no_cfunc_wrapper=True, no_cpython_wrapper=True, **linked)  # called from compiled code only


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

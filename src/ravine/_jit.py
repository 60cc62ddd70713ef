"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math.

A first fit compiles fifty functions, which is most of its time. Half of what follows makes that shorter: it
leaves out steps of numba that these functions do not need. It uses a few names of numba that are not public;
if numba renames one, compiling takes longer, and nothing else changes.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numba
from llvmlite import ir
from numba import _dynfunc
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager

# they rewrite closures, expressions of whole arrays, and functions that are inlined before types are known
SKIPPED = {"InlineClosureLikes", "NopythonRewrites", "InlineOverloads"}
DEFAULTS = {name: option.default for name, option in Flags.options.items()}


class _Flags(Flags):
    """numba's options, which it compares 40 000 times in a first fit, at a tenth of the time without this."""

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return {**DEFAULTS, **self._values}


class _Compiler(CompilerBase):
    """Compiles functions that Python calls, or compiled code by an address."""

    def __init__(
        self, types: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, given: Any
    ) -> None:
        super().__init__(types, target, library, args, returned, _Flags(flags), given)

    def define_pipelines(self) -> list[Any]:
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
        needed = PassManager("ravine")
        for step, purpose in whole.passes:
            if step.__name__ not in SKIPPED:
                needed.add_pass(step, purpose)
        needed.finalize()
        return [needed]


class _Linked(_Compiler):
    """Compiles functions that only compiled functions call: to a library for these, not to machine code.

    Optimizing them again at every level of nested calls took a seventh of the time to compile a first fit.
    """

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = library = state.targetctx.codegen().create_library(state.func_id.func_qualname)

        def finalize() -> None:
            library._finalized = True

        library._optimize_final_module = lambda: None
        library._finalize_final_module = finalize
        state.targetctx.get_executable = _no_code
        return super().define_pipelines()


def _no_code(library: Any, function: Any, environment: Any) -> Any:
    """Return the key by which numba knows a function, without the address of its code."""
    return _dynfunc.make_function(function.lookup_module(), function.qualname, "", 0, environment, (library,))


# Entry points from Python and from C took a fifth of the time to compile a first fit, so each decorator makes
# only those that are needed. Calling an `inner` function from Python crashes; tests use `tests/compiled.py`.
compiled: Any = partial(numba.njit, nogil=True, error_model="numpy")
kept: Any = partial(compiled, cache=True, pipeline_class=_Compiler)

jit = kept(no_cfunc_wrapper=True)  # called from Python and from compiled code
by_address = kept(no_cpython_wrapper=True)  # called by its address
jit_by_address = kept()  # called from Python and by its address
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

"""numba's compiler without steps that the loops of this package do not need.

A first fit compiles fifty functions, which is most of its time. This file uses names of numba that are not
public: see `_jit.NEWEST`.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags

DEFAULTS = {name: option.default for name, option in Flags.options.items()}


class _Flags(Flags):
    """numba's options, which it compares 40 000 times in a first fit: a tenth of the time without this."""

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return {**DEFAULTS, **self._values}


class Compiler(CompilerBase):
    """Compiles functions that Python calls, or compiled code by an address."""

    def __init__(
        self, types: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, given: Any
    ) -> None:
        own = _Flags(flags)  # type: ignore[no-untyped-call]
        super().__init__(types, target, library, args, returned, own, given)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[Any]:
        """Return numba's own steps."""
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]  # type: ignore[no-untyped-call]


class LinkedCompiler(Compiler):
    """Compiles functions that only compiled functions call, and leaves the machine code to their callers.

    Optimizing them at every level of nested calls, and machine code that nobody calls, took a fifth of the
    time.
    """

    def define_pipelines(self) -> list[Any]:
        """Return numba's own steps, with a library that ends before machine code."""
        state = self.state
        state.library = library = state.targetctx.codegen().create_library(state.func_id.func_qualname)

        def finalize() -> None:
            library._finalized = True

        library._optimize_final_module = lambda: None
        library._finalize_final_module = finalize
        state.targetctx.get_executable = _without_code
        return super().define_pipelines()


def _without_code(library: Any, function: Any, environment: Any) -> Any:
    """Return the key by which numba knows a function, without the address of its code."""
    return _dynfunc.make_function(function.lookup_module(), function.qualname, "", 0, environment, (library,))

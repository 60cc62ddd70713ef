"""Compiled functions that have no entry point from Python (`ravine._jit.inner`), with one for tests."""

import numba


def from_python(function):
    """Return the function, compiled again with an entry point from Python and the globals of now."""
    return numba.njit(function.py_func, error_model="numpy")

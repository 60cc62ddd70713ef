"""How loops are compiled: at their first use, kept on disk, without the interpreter's lock, no fast-math."""

from __future__ import annotations

import numba

jit = numba.njit(cache=True, nogil=True)

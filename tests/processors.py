"""Other processors, emulated: their kernels of BLAS, and the vector instructions of numpy and the C library.

python -m tests.processors tests/index tests/split    runs these tests under every one of them

Compiled loops have the same bits on all of them: tests/test_processors.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np

# name -> (kernels of OpenBLAS, what glibc is not to use, whether numpy keeps its vector instructions)
PROCESSORS = {
    "nehalem": ("Nehalem", "-AVX,-AVX2,-AVX512F,-FMA", False),
    "sandybridge": ("Sandybridge", "-AVX2,-AVX512F,-FMA", False),
    "haswell": ("Haswell", "-AVX512F", True),
    "skylake": ("SkylakeX", "", True),
}

# numpy's names of the instructions that each one needs, old and new; nehalem's are everywhere
INSTRUCTIONS = {
    "nehalem": (),
    "sandybridge": ("AVX",),
    "haswell": ("AVX2", "X86_V3"),
    "skylake": ("AVX512_SKX", "X86_V4"),
}


def environment(name: str) -> dict[str, str]:
    """Return the variables under which a process computes as on another processor."""
    blas, lacks, vectors = PROCESSORS[name]
    found = os.environ | {"OPENBLAS_CORETYPE": blas, "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={lacks}"}
    if not vectors:
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(_numpy("__cpu_dispatch__"))
    return found


def can_run(name: str) -> bool:
    """Say whether this machine has the instructions of a processor."""
    needed = INSTRUCTIONS[name]
    here = _numpy("__cpu_features__")
    return any(here.get(feature, False) for feature in needed) or not needed


def _numpy(name: str) -> Any:
    """Return what numpy knows of the processor; the module's name changed with version 2."""
    core = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    return getattr(import_module(f"{core}._multiarray_umath"), name)


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments under every processor that this machine can stand for."""
    failed = []
    for name in PROCESSORS:
        if not can_run(name):
            print(f"{name}: left out, this machine lacks its instructions", flush=True)
            continue
        print(f"{name}: {' '.join(arguments)}", flush=True)
        if subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment(name)).returncode:
            failed.append(name)
    print(f"numpy {np.__version__}; failed under: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

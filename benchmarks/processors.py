"""Other processors, emulated: the kernels of BLAS, the code of numba and numpy's vector instructions of older ones.

python -m benchmarks.processors tests/index tests/split    runs these tests under every one of them
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

CACHES = Path(__file__).resolve().parent.parent / "build" / "numba"  # compiled code, one folder per processor

# name -> (kernels of OpenBLAS, processor of numba, whether numpy keeps its vector instructions)
PROCESSORS = {
    "nehalem": ("Nehalem", "generic", False),
    "haswell": ("Haswell", "haswell", True),
    "skylake": ("SkylakeX", "skylake-avx512", True),
}


def environment(name: str) -> dict[str, str]:
    """Return the variables under which a process computes as on another processor."""
    blas, compiled, vectors = PROCESSORS[name]
    found = os.environ | {
        "OPENBLAS_CORETYPE": blas,
        "NUMBA_CPU_NAME": compiled,
        "NUMBA_CACHE_DIR": str(CACHES / name),
    }
    if compiled == "generic":
        found["NUMBA_CPU_FEATURES"] = ""
    if not vectors:
        from numpy._core._multiarray_umath import __cpu_dispatch__

        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(__cpu_dispatch__)
    return found


def can_run(name: str) -> bool:
    """Say whether this machine has the instructions of a processor."""
    from numpy._core._multiarray_umath import __cpu_features__

    needed = {"nehalem": (), "haswell": ("AVX2", "FMA3"), "skylake": ("AVX512F", "AVX512_SKX")}[name]
    return all(__cpu_features__.get(feature, False) for feature in needed)


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
